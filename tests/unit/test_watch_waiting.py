"""Why requests wait, and the wait that preemption hides, as polls show it."""

from math import inf

import attrs
import pytest

from tests.watching import RUNS, feed, page, watching
from tidegauge.derive.settings import Settings
from tidegauge.model import Pinned, StartupFacts
from tidegauge.report import replay
from tidegauge.state.backend import Backend, BackendState
from tidegauge.watch import Watch

EIGHT = StartupFacts(run=1, max_num_seqs=8)


def waited(watch, now=2100.0, name="a"):
    (found,) = [one for one in watch.figures(now).backends if one.name == name]
    assert found.waiting_seconds == pytest.approx(dict(found.history.waited))
    return found.waiting_seconds


class TestWaiting:
    def test_cause_by_cause(self):
        """Slots known from the log: each poll's queue is booked to what the page shows."""
        watch = watching(a=EIGHT)
        feed(
            watch,
            page(),
            page(running=8.0, waiting=5.0),
            page(running=5.0, waiting=3.0),
            page(running=5.0, waiting=2.0, kv=0.95),
            page(running=8.0, waiting=1.0, preempted=1.0),
            page(running=8.0, waiting=4.0, preempted=1.0),
        )

        assert {"sequence_slots": 9.0, "prefill_budget": 3.0, "kv_cache": 3.0} == waited(watch)

    @pytest.mark.parametrize(
        ("pinned", "startup", "cause"),
        [
            (Pinned(), None, "unknown"),
            (Pinned(max_num_seqs=8.0), None, "sequence_slots"),
            (Pinned(), EIGHT, "sequence_slots"),
            (Pinned(max_num_seqs=9.0), EIGHT, "prefill_budget"),
            (Pinned(), attrs.evolve(EIGHT, started=False), "unknown"),
        ],
        ids=["unknown", "pinned", "logged", "pinned wins", "failed start"],
    )
    def test_slots_must_be_known(self, pinned, startup, cause):
        """However long eight run while others wait: a plateau is a lower bound, and no evidence for itself."""
        watch = watching(Backend("a", None, pinned), **({"a": startup} if startup else {}))
        feed(watch, *[page(running=8.0, waiting=2.0)] * 11)

        assert {cause: 20.0} == waited(watch)
        observed = watch.figures(2011.0).backends[0].facts.max_num_seqs
        assert (8.0 if pinned.max_num_seqs is None else pinned.max_num_seqs) == observed.value

    def test_slots_are_those_of_one_engine(self):
        """Two ranks of eight: rank 0 is full, rank 1 is not."""
        watch = watching(a=attrs.evolve(EIGHT, data_parallel_size=2))
        first = page() + page(engine="1", start=None)
        second = page(running=8.0, waiting=3.0) + page(running=7.0, waiting=2.0, engine="1", start=None)
        feed(watch, first, second)

        assert {"sequence_slots": 3.0, "prefill_budget": 2.0} == waited(watch)

    def test_first_page_explains_nothing(self):
        """Nobody looked before it."""
        watch = watching(a=EIGHT)
        feed(watch, page(running=8.0, waiting=50.0))

        assert {} == waited(watch)

    def test_restart_explains_nothing(self):
        """The queue of the new process is not the old one's; from its second page on it counts."""
        watch = watching(Backend("a", None, Pinned(max_num_seqs=8.0)))
        feed(watch, page(), page(start=2000.5, running=8.0, waiting=9.0), page(start=2000.5, running=8.0, waiting=2.0))

        assert {"sequence_slots": 2.0} == waited(watch)

    def test_another_servers_page_explains_nothing(self):
        """Two servers behind one URL: only the one that is followed is booked."""
        watch = watching(a=EIGHT)
        booked = feed(
            watch, page(), page(start=1500.0, running=8.0, waiting=70.0), page(running=8.0, waiting=1.0), step=2.0
        )

        assert [True, False, False] == [one.fresh for one in booked]
        assert {"sequence_slots": 4.0} == waited(watch)

    @pytest.mark.parametrize(("interval", "expected"), [(1.0, 20.0), (4.0, 20.0), (15.0, 60.0)])
    def test_gap_is_not_booked(self, interval, expected):
        """A minute without a page, two waiting after it: ten seconds at most, or two polls."""
        watch = watching(interval=interval, a=EIGHT)
        feed(watch, page(), page(running=8.0, waiting=2.0), step=60.0)

        assert {"sequence_slots": expected} == waited(watch)

    def test_failed_polls_are_bridged(self):
        """Two of them: three seconds of one waiting request."""
        watch = watching(a=EIGHT)
        feed(watch, page())
        watch.failed("a", 2001.0, 0.1, "timeout")
        watch.failed("a", 2002.0, 0.1, "timeout")
        feed(watch, page(running=8.0, waiting=1.0), begin=2003.0)

        assert {"sequence_slots": 3.0} == waited(watch)

    def test_counter_outlives_the_window(self):
        """The report tells the window's, /metrics all of it."""
        watch = watching(a=EIGHT)
        feed(watch, page(), page(running=8.0, waiting=5.0))
        feed(watch, page(running=8.0, waiting=1.0), begin=2003.0)
        (late,) = watch.figures(2903.5).backends

        assert {"sequence_slots": 7.0} == late.history.waited
        assert {} == late.waiting_seconds


class TestHiddenWait:
    def run(self, preempted, queued):
        """Four wait for ten seconds, while queue times of *queued* seconds are booked."""
        watch = watching(a=EIGHT)
        busy = [page(running=6.0, waiting=4.0, preempted=min(float(step), preempted)) for step in range(1, 11)]
        feed(watch, page(), *busy, page(running=6.0, preempted=preempted, queued=queued))
        return watch.figures(2020.0).backends[0]

    def test_is_what_the_queue_sum_lacks(self):
        """40 s waited, of which 13 s are in the queue sum: 27 s hide in decode."""
        assert 27.0 == pytest.approx(self.run(5.0, (8.0, 5.0)).hidden_wait)

    def test_is_told_only_where_requests_were_preempted(self):
        """Without preemptions the difference is another thing: who is still waiting."""
        assert None is self.run(0.0, (8.0, 5.0)).hidden_wait

    def test_is_never_negative(self):
        """The waiting gauge, read once a second, missed some."""
        assert 0.0 == self.run(5.0, (30.0, 25.0)).hidden_wait

    def test_is_not_told_of_a_single_page(self):
        """250 preemptions in the server's life, and nobody looked at its queue."""
        state = BackendState(Backend("a"), inf, inf, -inf)
        watch = Watch([state], Settings(window=inf))
        feed(watch, page(preempted=250.0, queued=(43.0,)))

        assert (250.0, None) == (
            watch.figures(2001.0).backends[0].preemptions,
            watch.figures(2001.0).backends[0].hidden_wait,
        )

    def test_of_a_real_server(self):
        """A tiny KV cache: some of what waited is in no queue time, and the KV cache is among the causes."""
        loaded = replay.load({"a": RUNS / "run08_tinykv.a.scrapes.gz"}, {}, {}, "f")
        (found,) = replay.replay(loaded, Settings()).backends

        assert 9 == found.preemptions
        assert 0 <= found.hidden_wait < sum(found.waiting_seconds.values())
        assert found.waiting_seconds["kv_cache"] > 0
