"""Barriers against the ceiling that cuts them into waves."""

import pytest

from tidegauge.derive.ceiling import Ceiling, Order, figures, order, state_of, waves
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
    def test_order_statistics_of_the_case(self):
        """681 barriers as in the case: median 29, largest 32, both integers."""
        fan_outs = [12] * 40 + [27] * 200 + [29] * 300 + [30] * 100 + [31] * 40 + [32]

        assert Order(29, 30, 32) == order(fan_outs)

    def test_median_of_an_even_number_lies_between_the_middle_two(self):
        """As anybody else's median of the same barriers: 19 and 22 give 20.5. p90 and maximum occurred."""
        assert Order(20.5, 27, 27) == order([27, 22, 12, 19])
        assert Order(5.5, 9, 10) == order(range(1, 11))

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


def against(kind, value, source, met, of="reported"):
    """Waves and clipped share of the barriers of one source through one ceiling."""
    found = figures(of, len(met), met, [Ceiling(kind, value, source)])
    return found.waves.get(kind), found.clipped.get(kind)


class TestAgainst:
    @pytest.mark.parametrize(
        ("ceiling", "median", "clipped"), [(16, 2, 2 / 3), (28, 2, 2 / 3), (30, 1, 1 / 3), (32, 1, 0.0), (48, 1, 0.0)]
    )
    def test_waves_and_clipped_share(self, ceiling, median, clipped):
        """Fan-outs of 14, 29 and 32."""
        cut, share = against("client", ceiling, "reported", barriers(14, 29, 32, client=ceiling))

        assert median == cut.median
        assert clipped == pytest.approx(share)

    def test_each_barrier_is_held_against_the_ceiling_it_met(self):
        """The ceiling was raised from 16 to 48 within the window."""
        met = barriers(29, client=16) + barriers(29, 29, client=48)

        assert (Order(1, 2, 2), pytest.approx(1 / 3)) == against("client", 48, "reported", met)

    def test_plateau_that_a_barrier_ran_into_is_its_ceiling(self):
        """Seen as 8 then and as 4 now; one that ran into none is held against what is in force."""
        met = barriers(9, client=8) + barriers(9)

        assert (Order(2.5, 3, 3), 1.0) == against("client", 4, "observed", met, of="inferred")

    def test_reported_barriers_that_met_no_ceiling_say_nothing(self):
        """Their caller reported its limiter later, or has none, or 0 with nothing healthy."""
        assert (None, None) == against("client", 16, "reported", barriers(29) + barriers(29, client=0))

    @pytest.mark.parametrize(("source", "of"), [("config", "reported"), ("reported", "inferred")])
    def test_ceiling_that_nobody_reports_per_barrier_is_the_one_in_force(self, source, of):
        """A configured one, or one that is told beside what the servers show; 0 then still says nothing."""
        assert (Order(1.5, 2, 2), 0.5) == against("client", 16, source, barriers(29, 14), of)
        assert (None, None) == against("client", 0, source, barriers(29), of)

    def test_kinds_are_kept_apart(self):
        """29 calls through a cap of 16 on two servers of 160 slots: 2 and 1."""
        found = figures(
            "reported",
            7,
            barriers(29, client=16),
            [Ceiling("client", 48, "reported"), Ceiling("server", 320, "log")],
        )

        assert {"client": Order(2, 2, 2), "server": Order(1, 1, 1)} == found.waves
        assert {"client": 1.0, "server": 0.0} == found.clipped
        assert ("reported", 7, 1, Order(29, 29, 29), None) == (
            found.source,
            found.total,
            found.count,
            found.fan_out,
            found.duration,
        )

    def test_unfinished_barriers_have_no_duration(self):
        """They have a fan-out all the same."""
        found = figures("reported", 2, (Barrier(1.0, 29, 2.5), Barrier(4.0, 31)), [])

        assert (Order(2.5, 2.5, 2.5), Order(30, 31, 31), {}) == (found.duration, found.fan_out, found.waves)
