"""Sequence slots as observed: a plateau of running requests while others wait."""

import pytest

from tests.builders import page
from tidegauge import vllm
from tidegauge.derive.backends import evidence_of
from tidegauge.derive.capacity import Fact, server_facts
from tidegauge.model import Pinned, StartupFacts
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.slots import OFTEN, ObservedSlots


def observed(*rows):
    slots = ObservedSlots()
    for row in rows:
        slots.see(*row)
    return slots.value


def state(*rows, pinned=None, startup=None):
    """A backend that was polled with (start, running, waiting, KV usage)."""
    one = BackendState(Backend("a", "m", pinned or Pinned()), 900.0, 3600.0, 0.0)
    if startup is not None:
        one.startup(startup)
    for number, (start, running, waiting, usage) in enumerate(rows):
        values = {vllm.RUNNING: running, vllm.WAITING: waiting, vllm.KV_USAGE: usage}
        one.page(page({}, start=start, values=values), 2000.0 + number, 0.1)
    return one


def slots_of(one):
    return server_facts(evidence_of(one.history(2100.0))).max_num_seqs


class TestPlateau:
    def test_largest_number_that_ran_again_and_again(self):
        """Fewer ran while prompts were read; more only once, in a page torn between two steps."""
        rows = [(3.0, 5.0, 0.2)] * 9 + [(8.0, 2.0, 0.3)] * OFTEN + [(9.0, 1.0, 0.3)] * (OFTEN - 1)

        assert 8.0 == observed(*rows)

    @pytest.mark.parametrize(
        "row",
        [
            (8.0, 0.0, 0.2),
            (0.0, 4.0, 0.2),
            (8.0, 4.0, 0.9),
            (8.0, 4.0, None),
            (8.0, None, 0.2),
            (None, 4.0, 0.2),
        ],
        ids=["nobody waits", "nothing runs", "KV full", "KV unknown", "waiting unknown", "running unknown"],
    )
    def test_polls_that_say_nothing(self, row):
        """Without a queue, or without KV cache to spare, something else holds running where it is."""
        assert None is observed(*[row] * 20)

    def test_full_is_what_was_configured(self):
        """A usage that is below the default may be full by the configuration, and the other way round."""
        for kv_full, expected in ((0.6, None), (0.95, 8.0)):
            slots = ObservedSlots(kv_full)
            for _ in range(OFTEN):
                slots.see(8.0, 4.0, 0.92)

            assert expected == slots.value

    def test_memory_is_bounded(self):
        """Ten thousand different numbers."""
        slots = ObservedSlots()
        for running in range(10_000):
            slots.see(float(running + 1), 1.0, 0.1)

        assert None is slots.value
        assert len(slots._seen) <= 4096


class TestAsAFact:
    def test_observed_is_named_as_such(self):
        """A lower bound, with its source beside it."""
        assert Fact(8.0, "observed") == slots_of(state(*[(1000.0, 8.0, 2.0, 0.3)] * 3))

    def test_whatever_is_known_wins(self):
        """The log says 12, the operator 10."""
        rows = [(1000.0, 8.0, 2.0, 0.3)] * 3
        logged = StartupFacts(run=1, max_num_seqs=12)

        assert Fact(12.0, "log") == slots_of(state(*rows, startup=logged))
        assert Fact(10.0, "config") == slots_of(state(*rows, startup=logged, pinned=Pinned(max_num_seqs=10.0)))

    def test_another_process_has_other_slots(self):
        """It was restarted with fewer: what the old one ran says nothing."""
        rows = [(1000.0, 64.0, 2.0, 0.3)] * 3 + [(2003.0, 4.0, 2.0, 0.3)] * 2

        assert Fact(64.0, "observed") == slots_of(state(*rows[:3]))
        assert None is slots_of(state(*rows))
        assert Fact(4.0, "observed") == slots_of(state(*rows, rows[-1]))
