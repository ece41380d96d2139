"""How much each caller may tell."""

import pytest

from tidegauge.parsing.events import Batch, Healthy, Wait
from tidegauge.state.rates import Rates

NOW = 1000.0


def batch(number, caller="sim", fleet="agents"):
    return Batch(caller, fleet, (Healthy(NOW, 2),) * number)


def taken(rates, batches, now=NOW):
    return [rates.ask(one, now) is None for one in batches]


class TestRates:
    def test_flood_is_held_to_the_rate(self):
        """Ten thousand events a second for 30 s: ten seconds' worth at once, then the rate."""
        rates = Rates(1000.0, 10)
        found = [taken(rates, [batch(1000)] * 10, NOW + second) for second in range(30)]

        assert [10, *[1] * 29] == [sum(each) for each in found]

    def test_refusal_says_when_to_come_again(self):
        """And then there is room, to the second."""
        rates = Rates(250.0, 10)
        rates.ask(batch(1000), NOW)
        rates.ask(batch(1000), NOW)
        rates.ask(batch(300), NOW)
        refusal = rates.ask(batch(800), NOW)

        assert ("rate", 3) == (refusal.reason, refusal.after)
        assert "events: sim sends too many; expected at most 250 a second, 2500 at once" == refusal.message
        assert [False, True] == [rates.ask(batch(800), NOW + later) is None for later in (2.0, 3.0)]

    @pytest.mark.parametrize("other", [{"caller": "sim-2"}, {"fleet": "batch"}])
    def test_callers_do_not_share(self, other):
        """Each name of each fleet has its own bucket."""
        rates = Rates(10.0, 10)

        assert [True, True, False, True] == taken(rates, [*[batch(1000)] * 3, batch(1000, **other)])

    def test_refused_batch_costs_nothing(self):
        """A caller that tries again at once is not punished."""
        rates = Rates(100.0, 10)
        taken(rates, [batch(1000)] * 50)

        assert [True, False] == taken(rates, [batch(100), batch(1)], NOW + 1.0)

    def test_hundred_waits_count_as_an_event(self):
        """A list of waits is cheap, and not free."""
        rates = Rates(10.0, 10)
        waits = Batch("sim", "agents", (Wait(NOW, (0.5,) * 1000),) * 10)

        assert 18 == sum(taken(rates, [waits] * 30))

    def test_largest_batch_passes_whatever_the_rate(self):
        """Or it would never be taken."""
        assert [True] == taken(Rates(1.0, 10), [Batch("sim", "agents", (Wait(NOW, (0.0,) * 10),) * 1000)])

    def test_clock_set_back_gives_nothing(self):
        """Time is counted on from there."""
        rates = Rates(100.0, 10)
        taken(rates, [batch(1000)] * 2)

        assert [False] == taken(rates, [batch(100)], NOW - 500.0)
        assert [True, False] == taken(rates, [batch(100), batch(100)], NOW - 499.0)

    def test_buckets_are_bounded(self):
        """The one not asked for longest is forgotten."""
        rates = Rates(100.0, 2)
        taken(rates, [batch(1000, caller) for caller in ("a", "a", "b", "b", "a", "c")])

        assert [("agents", "a"), ("agents", "c")] == list(rates._buckets)
