"""Windows: what is in, what has left, and how much memory it takes."""

import tracemalloc
from math import inf

import pytest

from tests.builders import PHASE_EDGES, histogram
from tidegauge import vllm
from tidegauge.model import Histogram, SeriesKey
from tidegauge.state.increases import Increase
from tidegauge.state.windows import SLOTS, Window

QUEUE = SeriesKey(vllm.QUEUE, "m")
TOKENS = SeriesKey(vllm.PROMPT_TOKENS, "m")


def increase(at, waits=(), tokens=0.0, seconds=1.0, edges=PHASE_EDGES):
    rises = {QUEUE: histogram(waits, edges)} if waits else {}
    return Increase(at, seconds, {TOKENS: tokens} if tokens else {}, rises)


class TestTotals:
    def test_increases_within_the_span_add_up(self):
        """Sums, counts, buckets, counters and covered time."""
        window = Window(60.0)
        window.add(increase(600.0, [0.1, 7.0], 30.0, 1.0))
        window.add(increase(604.0, [13.0], 12.0, 4.0))

        total = window.total(605.0)
        assert histogram([0.1, 7.0, 13.0]).cumulative == total.histograms[QUEUE].cumulative
        assert (pytest.approx(20.1), 3.0) == (total.histograms[QUEUE].sum, total.histograms[QUEUE].count)
        assert 42.0 == total.counter(vllm.PROMPT_TOKENS)
        assert 5.0 == total.seconds

    def test_counter_adds_models_and_reasons_that_are_not_asked_for(self):
        """Over all models, over one, over one reason."""
        window = Window(60.0)
        counters = {
            SeriesKey(vllm.FINISHED, "m", "", "stop"): 3.0,
            SeriesKey(vllm.FINISHED, "m", "", "length"): 5.0,
            SeriesKey(vllm.FINISHED, "n", "", "stop"): 11.0,
        }
        window.add(Increase(600.0, 1.0, counters))
        total = window.total(600.0)

        assert (19.0, 8.0, 14.0) == (
            total.counter(vllm.FINISHED),
            total.counter(vllm.FINISHED, "m"),
            total.counter(vllm.FINISHED, extra="stop"),
        )

    def test_families_limit_what_is_kept(self):
        """The long window keeps lengths only."""
        window = Window(60.0, frozenset({vllm.PROMPT_LENGTH}))
        window.add(increase(600.0, [0.1], 5.0))

        assert ({}, {}) == (window.total(600.0).histograms, window.total(600.0).counters)

    def test_endless_window_keeps_everything(self):
        """A replay has no end of its window."""
        window = Window(inf)
        window.add(increase(1.0, [0.1]))
        window.add(increase(1e9, [0.2]))

        assert 2.0 == window.total(2e9).histograms[QUEUE].count


class TestExpiry:
    def test_an_increase_stays_for_59_and_leaves_after_60_slots(self):
        """Booked at the start of a slot, it is in until the span has passed, and not a second longer."""
        for later, expected in ((0.0, 1.0), (59.999, 1.0), (60.0, None), (61.0, None)):
            window = Window(60.0)
            window.add(increase(600.0, [5.0]))
            found = window.total(600.0 + later).histograms.get(QUEUE)

            assert expected == (found.count if found else None)

    def test_no_increase_outlives_the_span(self):
        """Whenever it was booked: at least 59/60 of the span in, never longer than the span."""
        for offset in (0.0, 0.3, 0.5, 0.999):
            window = Window(60.0)
            window.add(increase(600.0 + offset, [5.0]))

            assert QUEUE in window.total(600.0 + offset + 59.0).histograms
            assert QUEUE not in window.total(600.0 + offset + 60.0).histograms

    def test_expiry_leaves_no_dust(self):
        """What is left adds up as if the rest had never been."""
        window = Window(60.0)
        for second in range(200):
            window.add(increase(600.0 + second, [0.1 + second * 1e-3], 0.1))
            window.total(600.0 + second)
        fresh = Window(60.0)
        for second in range(140, 200):
            fresh.add(increase(600.0 + second, [0.1 + second * 1e-3], 0.1))

        assert fresh.total(799.0) == window.total(799.0)

    def test_a_clock_that_is_ahead_pushes_nothing_out(self):
        """A caller's event of 60 s ahead must not cost what is still within the span."""
        window = Window(60.0)
        window.add(increase(600.0, [5.0]))
        window.add(increase(660.0, [7.0]))

        assert 2.0 == window.total(601.0).histograms[QUEUE].count

    def test_an_event_older_than_the_span_is_not_counted(self):
        """A caller's late event lies before the window."""
        window = Window(60.0)
        window.add(increase(600.0, [5.0]))
        window.add(increase(500.0, [7.0]))

        assert 1.0 == window.total(601.0).histograms[QUEUE].count

    def test_a_clock_that_was_set_back_leaves_nothing_in_the_future(self):
        """Else the hour before would count for another hour."""
        window = Window(60.0)
        window.add(increase(4200.0, [5.0]))
        window.add(increase(600.0, [7.0]))

        assert 7.0 == window.total(601.0).histograms[QUEUE].sum


class TestChangedBuckets:
    def test_older_observations_with_other_buckets_are_let_go(self):
        """A restart with custom buckets: they cannot be added to the old ones."""
        window = Window(60.0)
        window.add(increase(600.0, [5.0], 10.0))
        window.add(increase(601.0, [6.0, 8.0], 20.0, edges=(2.0, 7.0, inf)))
        total = window.total(602.0)

        assert Histogram((2.0, 7.0, inf), (0.0, 1.0, 2.0), 14.0, 2.0) == total.histograms[QUEUE]
        assert 30.0 == total.counter(vllm.PROMPT_TOKENS)

    def test_they_are_let_go_after_an_expiry_too(self):
        """When the total is being added up anew."""
        window = Window(60.0)
        window.add(increase(600.0, [5.0]))
        window.add(increase(630.0, [5.0]))
        window.total(661.0)
        window.add(increase(661.0, [6.0], edges=(2.0, 7.0, inf)))

        assert (2.0, 7.0, inf) == window.total(661.0).histograms[QUEUE].edges


class TestMemory:
    def test_a_day_of_polls_takes_no_more_than_an_hour(self):
        """24 simulated hours at 5 s, asked or not: slots are bounded and memory with them."""
        for asked in (True, False):
            window = Window(900.0)
            tracemalloc.start()
            sizes = []
            for second in range(0, 24 * 3600, 5):
                window.add(Increase(float(second), 5.0, {TOKENS: 5.0}, {}))
                if asked and second % 15 == 0:
                    window.total(float(second))
                if second in (3600, 24 * 3600 - 5):
                    sizes.append(tracemalloc.get_traced_memory()[0])
            tracemalloc.stop()

            assert 2 * SLOTS + 1 >= len(window._slots)
            assert sizes[1] <= sizes[0] * 1.5 + 4096
