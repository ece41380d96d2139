"""Sums that cannot be true are dropped and counted; pages torn by a request are not."""

import pytest

from tests.builders import histogram, merged, page, requests, spread
from tests.served import FIRST, LATER, UPTIME, rise, served
from tidegauge import vllm
from tidegauge.model import Histogram
from tidegauge.state.increases import Increases, add


class TestPoisonedSums:
    @pytest.mark.parametrize("start", [1000.0, None])
    def test_negative_observation_is_no_restart_and_is_dropped(self, start):
        """A `_sum` that falls while its `_count` rises: the interval is left out, the next one counts."""
        increases = Increases()
        increases.advance(served(*FIRST, start=start), 5000.0)
        poisoned = increases.advance(served(*FIRST, (-UPTIME, 0.2, 1.0, UPTIME), start=start), 5001.0)
        after = increases.advance(served(*FIRST, (-UPTIME, 0.2, 1.0, UPTIME), *LATER, start=start), 5002.0)

        assert not poisoned.restarted
        assert {"sum_fell": 1} == poisoned.dropped
        assert {} == poisoned.histograms
        assert 18.0 == pytest.approx(rise(after, vllm.QUEUE).sum)

    @pytest.mark.parametrize("start", [1000.0, None])
    def test_monotonic_clock_as_a_latency_is_dropped(self, start):
        """An aborted request books the host's uptime as prefill, in the +Inf bucket; end-to-end stays sane."""
        increases = Increases()
        increases.advance(served(*FIRST, start=start), 5000.0)
        rows = requests(*FIRST, *LATER)
        rows["prefill"] = histogram([0.2] * 4 + [0.4] * 2 + [UPTIME])
        poisoned = increases.advance(page(rows, start=start), 5001.0)

        assert {"impossible": 1} == poisoned.dropped
        assert {} == poisoned.histograms

    def test_observation_older_than_its_process_is_dropped(self):
        """Without end-to-end to hold it against, the age of the process bounds it."""
        increases = Increases()
        increases.advance(page({"queue": histogram([0.1] * 4)}, start=4000.0), 5000.0)
        poisoned = increases.advance(page({"queue": histogram([0.1] * 4 + [UPTIME])}, start=4000.0), 5001.0)

        assert {"impossible": 1} == poisoned.dropped

    def test_sum_below_what_its_buckets_allow_is_dropped(self):
        """A negative observation hidden in a long interval: the sum rises, by far less than 50 waits of 32 s."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        poisoned = increases.advance(served(*FIRST, *[(32.0, 0.2, 1.0, 0.1)] * 50, (-1400.0, 0.2, 1.0, 1400.0)), 5600.0)

        assert {"impossible": 1} == poisoned.dropped

    def test_long_but_true_latency_is_kept(self):
        """A request of ten minutes on a server of two hours."""
        increases = Increases()
        increases.advance(served(*FIRST), 8000.0)
        increase = increases.advance(served(*FIRST, (590.0, 1.0, 9.0, 0.2)), 8001.0)

        assert {} == increase.dropped
        assert 590.0 == pytest.approx(rise(increase, vllm.QUEUE).sum)

    def test_time_to_first_token_leaves_with_the_poisoned_interval(self):
        """Else the dropped requests would look aborted."""
        increases = Increases()
        first = requests(*FIRST) | {vllm.TTFT: spread(4, 1.2)}
        increases.advance(page(first), 5000.0)
        bad = requests(*FIRST, (-UPTIME, 0.2, 1.0, UPTIME)) | {vllm.TTFT: spread(5, 1.5)}
        poisoned = increases.advance(page(bad), 5001.0)

        assert {} == poisoned.histograms

    def test_poison_of_one_model_leaves_another_model(self):
        """Each model's latencies are judged by themselves."""
        increases = Increases()
        increases.advance(merged(page(requests(), model="m"), page(requests(), model="n")), 5000.0)
        bad = requests((-UPTIME, 0.2, 1.0, UPTIME))
        increase = increases.advance(merged(page(bad, model="m"), page(requests(*LATER), model="n")), 5001.0)

        assert None is rise(increase, vllm.QUEUE, "m")
        assert 3.0 == rise(increase, vllm.QUEUE, "n").count


class TestTornPages:
    def test_sum_ahead_of_its_count_is_kept(self):
        """vLLM answers while it books a request: the sum has it, the count not yet; together the pages are right."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        torn = requests(*FIRST)
        torn["decode"] = Histogram(
            torn["decode"].edges, torn["decode"].cumulative, torn["decode"].sum + 41.0, torn["decode"].count
        )
        first = increases.advance(page(torn), 5001.0)
        second = increases.advance(served(*FIRST, (0.1, 0.2, 41.0, 0.0)), 5002.0)

        assert ({}, {}) == (first.dropped, second.dropped)
        both = add((rise(first, vllm.DECODE), rise(second, vllm.DECODE)))
        assert (41.0, 1.0) == (pytest.approx(both.sum), both.count)

    def test_stage_booked_before_its_end_to_end_is_kept(self):
        """The page has the request in decode and not yet in end-to-end."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        torn = requests(*FIRST)
        torn["decode"] = histogram([3.0] * 4 + [50.0])
        increase = increases.advance(page(torn), 5001.0)

        assert {} == increase.dropped
        assert 1.0 == rise(increase, vllm.DECODE).count
