"""Barriers against the ceiling that cuts them into waves."""

import pytest

from tidegauge.derive.ceiling import Order, against, order, state_of, waves
from tidegauge.model import Barrier


def barriers(*fan_outs, **ceilings):
    return tuple(Barrier(1000.0 + at, fan_out, None, tuple(ceilings.items())) for at, fan_out in enumerate(fan_outs))


class TestWaves:
    @pytest.mark.parametrize(
        ("fan_out", "ceiling", "expected"),
        [(29, 16, 2), (29, 28, 2), (29, 48, 1), (29, 320, 1), (32, 16, 2), (33, 16, 3), (1, 16, 1), (29, 29, 1)],
    )
    def test_waves_are_rounded_up(self, fan_out, ceiling, expected):
        """A wave of one request is a wave."""
        assert expected == waves(fan_out, ceiling)


class TestOrder:
    def test_statistics_are_values_that_occurred(self):
        """681 barriers as in the case: median 29, largest 32, both integers."""
        fan_outs = [12] * 40 + [27] * 200 + [29] * 300 + [30] * 100 + [31] * 40 + [32]

        assert Order(29, 30, 32) == order(fan_outs)

    def test_median_of_an_even_number_is_the_lower_of_the_two(self):
        """No barrier had 15.5 requests."""
        assert Order(10, 21, 21) == order([21, 10])

    def test_nothing_has_no_statistics(self):
        """Absent, not 0."""
        assert None is order([])


class TestState:
    @pytest.mark.parametrize(
        ("ceiling", "expected"), [(16, "clips"), (28, "clips"), (31, "clips"), (32, "inert"), (48, "inert")]
    )
    def test_against_a_roster_of_32(self, ceiling, expected):
        """Below the bound it clips, from there on it never binds."""
        assert expected == state_of(ceiling, 32)

    def test_unmeasured_without_a_bound(self):
        """No barrier was seen."""
        assert "unmeasured" == state_of(16, None)


class TestAgainst:
    @pytest.mark.parametrize(
        ("ceiling", "median", "clipped"), [(16, 2, 2 / 3), (28, 2, 2 / 3), (30, 1, 1 / 3), (32, 1, 0.0), (48, 1, 0.0)]
    )
    def test_waves_and_clipped_share(self, ceiling, median, clipped):
        """Fan-outs of 14, 29 and 32."""
        found = against("client", ceiling, "reported", barriers(14, 29, 32, client=ceiling), 32)

        assert median == found.waves.median
        assert clipped == pytest.approx(found.clipped_ratio)

    def test_each_barrier_is_held_against_the_ceiling_it_met(self):
        """The ceiling was raised from 16 to 48 within the window; the state is that of now."""
        found = against("client", 48, "reported", barriers(29, client=16) + barriers(29, 29, client=48), 32)

        assert ((1, 2, 2), 1 / 3) == (
            (found.waves.median, found.waves.p90, found.waves.max),
            pytest.approx(found.clipped_ratio),
        )
        assert "inert" == found.state

    def test_barriers_that_met_no_known_ceiling_say_nothing(self):
        """The caller reported its limiter later, or 0 with nothing healthy."""
        found = against("client", 16, "reported", barriers(29) + barriers(29, client=0), 32)

        assert (None, None) == (found.waves, found.clipped_ratio)

    def test_roster_that_a_barrier_exceeds_is_no_bound(self):
        """A ceiling of 30 over a typed roster of 28 binds all the same: 32 came."""
        assert "clips" == against("client", 30, "reported", barriers(32, client=30), 28).state
        assert "inert" == against("client", 30, "reported", barriers(27, client=30), 28).state

    def test_kinds_are_kept_apart(self):
        """29 calls through a cap of 16 on two servers of 160 slots: 2 and 1."""
        met = barriers(29, client=16, server=320)

        assert 2 == against("client", 16, "reported", met, 32).waves.median
        assert 1 == against("server", 320, "log", met, 32).waves.median
