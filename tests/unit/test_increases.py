"""From page to page: what counts as an increase, and what must never be averaged in."""

from math import inf

import pytest

from tests.builders import config, histogram, key, merged, page, requests, spread
from tidegauge import vllm
from tidegauge.model import Histogram, Page, SeriesKey
from tidegauge.state.increases import Increases, add
from tidegauge.state.lineage import PATIENCE

UPTIME = 812_345.0  # of the host, in seconds: what a monotonic clock reads
FINISHED = SeriesKey(vllm.FINISHED, "m", "0", "stop")


def served(*rows, start=1000.0, finished=None, **more):
    """A page after the requests *rows* of (queue, prefill, decode, other)."""
    counted = len(rows) if finished is None else finished
    return page(
        requests(*rows), start=start, values={vllm.PREEMPTIONS: 0.0, vllm.PROMPT_TOKENS: counted * 100.0}, **more
    )


def rise(increase, family, model="m"):
    return increase.histograms.get(SeriesKey(family, model))


FIRST = [(0.1, 0.2, 3.0, 0.05)] * 4
LATER = [(6.0, 0.4, 5.0, 0.1)] * 3


class TestOrdinaryPages:
    def test_first_page_of_a_server_that_ran_before_is_only_a_baseline(self):
        """Nothing is known of when its counts came about."""
        increase = Increases().advance(served(*FIRST), 5000.0)

        assert {} == increase.counters
        assert {} == increase.histograms
        assert not increase.restarted

    def test_increase_is_the_difference_of_two_pages(self):
        """Sum, count and buckets of what happened in between, over the time in between."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        increase = increases.advance(served(*FIRST, *LATER), 5002.0)

        queue = rise(increase, vllm.QUEUE)
        assert (18.0, 3.0) == (pytest.approx(queue.sum), queue.count)
        assert histogram([6.0] * 3).cumulative == queue.cumulative
        assert {SeriesKey(vllm.PROMPT_TOKENS, "m"): 300.0} == increase.counters
        assert 2.0 == increase.seconds

    def test_unchanged_page_yields_nothing(self):
        """Quiet servers cost no memory."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        increase = increases.advance(served(*FIRST), 5001.0)

        assert ({}, {}, {}) == (increase.counters, increase.histograms, increase.dropped)

    def test_minus_infinity_takes_the_first_page_from_zero(self):
        """A capture of one page is the life of its server, whatever its process start."""
        increase = Increases(since=-inf).advance(served(*FIRST, start=None), 5000.0)

        assert 4.0 == rise(increase, vllm.E2E).count
        assert not increase.restarted

    @pytest.mark.parametrize(("start", "counted"), [(4000.5, 4.0), (3999.5, None), (None, None), (4161.0, None)])
    def test_process_that_began_while_watched_counts_from_zero(self, start, counted):
        """Its first page holds everything it ever did; an older or unknown one, or one to come, is a baseline."""
        increase = Increases(since=4000.0).advance(served(*FIRST, start=start), 4100.0)

        found = rise(increase, vllm.E2E)
        assert counted == (found.count if found else None)

    def test_counter_born_while_watched_counts_from_zero(self):
        """A series appears with its first observation, as in V0."""
        increases = Increases()
        increases.advance(page({}), 5000.0)
        increase = increases.advance(Page({FINISHED: 7.0}, {key(vllm.E2E): spread(7, 21.0)}, (), 1000.0), 5001.0)

        assert 7.0 == increase.counters[SeriesKey(vllm.FINISHED, "m", "", "stop")]
        assert 7.0 == rise(increase, vllm.E2E).count


class TestEngines:
    def test_engines_are_summed_into_the_backend(self):
        """Data-parallel ranks with different loads: sums, counts and buckets add up."""
        increases = Increases()
        increases.advance(merged(page(requests(), engine="0"), page(requests(), engine="1")), 5000.0)
        increase = increases.advance(
            merged(page(requests(*FIRST), engine="0"), page(requests(*LATER), engine="1")), 5001.0
        )

        queue = rise(increase, vllm.QUEUE)
        assert (7.0, pytest.approx(18.4)) == (queue.count, queue.sum)
        assert histogram([0.1] * 4 + [6.0] * 3).cumulative == queue.cumulative

    def test_counters_of_engines_are_summed_and_reasons_kept_apart(self):
        """`finished_reason` stays, `engine` goes."""
        first = Page({FINISHED: 1.0, FINISHED._replace(engine="3"): 5.0}, {}, (), 1000.0)
        second = Page(
            {FINISHED: 3.0, FINISHED._replace(engine="3"): 9.0, FINISHED._replace(extra="length"): 11.0}, {}, (), 1000.0
        )
        increases = Increases()
        increases.advance(first, 5000.0)
        increase = increases.advance(second, 5001.0)

        merged_key = FINISHED._replace(engine="")
        assert {merged_key: 6.0, merged_key._replace(extra="length"): 11.0} == increase.counters

    def test_poison_in_one_engine_leaves_the_other(self):
        """What engine 1 says is dropped, what engine 0 says is used."""
        increases = Increases()
        increases.advance(merged(page(requests(), engine="0"), page(requests(), engine="1")), 5000.0)
        bad = requests((-UPTIME, 0.2, 1.0, UPTIME))
        increase = increases.advance(merged(page(requests(*FIRST), engine="0"), page(bad, engine="1")), 5001.0)

        assert 4.0 == rise(increase, vllm.QUEUE).count
        assert {"sum_fell": 1} == increase.dropped


class TestRestarts:
    @pytest.mark.parametrize("more", [(), LATER])
    def test_restarted_server_counts_from_zero(self, more):
        """A younger process start, whether its counts are below the old ones or already above."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        increase = increases.advance(served(*LATER, *more, start=5030.0), 5090.0)

        assert increase.restarted
        assert 3.0 + len(more) == rise(increase, vllm.E2E).count
        assert {} == increase.dropped

    def test_restart_shorter_ago_than_the_clocks_differ_is_seen(self):
        """The server's clock runs 20 s behind the exporter's."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        increase = increases.advance(served(*LATER, start=4985.0), 5010.0)

        assert increase.restarted
        assert 3.0 == rise(increase, vllm.E2E).count

    def test_restart_long_before_it_was_noticed_is_only_a_baseline(self):
        """What a server did in two hours of silence belongs into no window of 15 minutes."""
        increases = Increases(longest_gap=900.0)
        increases.advance(served(*FIRST), 5000.0)
        increase = increases.advance(served(*LATER, start=5060.0), 12_000.0)

        assert increase.restarted
        assert {} == increase.histograms
        assert {"gap": 1} == increase.dropped

    def test_fall_without_process_start_is_dropped_as_a_reset(self):
        """Several API server processes tell no start; what fell cannot be placed and becomes the new baseline."""
        increases = Increases()
        increases.advance(served(*FIRST * 5, start=None), 5000.0)
        fallen = increases.advance(served(FIRST[0], start=None), 5001.0)
        after = increases.advance(served(FIRST[0], *LATER, start=None), 5002.0)

        assert fallen.restarted
        assert ({}, {"reset": 1}, 0.0) == (fallen.histograms, fallen.dropped, fallen.seconds)
        assert 3.0 == rise(after, vllm.E2E).count

    def test_fall_within_one_process_is_no_restart_of_it(self):
        """One of Ray's replicas began anew: dropped, but the server's facts still hold."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        fallen = increases.advance(served(FIRST[0]), 5001.0)

        assert not fallen.restarted
        assert {"reset": 1} == fallen.dropped

    def test_gap_longer_than_the_window_is_dropped(self):
        """The increase is real but cannot be placed; the next interval counts again."""
        increases = Increases(longest_gap=900.0)
        increases.advance(served(*FIRST), 5000.0)
        gap = increases.advance(served(*FIRST, *LATER), 5901.0)
        after = increases.advance(served(*FIRST, *LATER, (0.1, 0.1, 0.1, 0.1)), 5902.0)

        assert ({}, {"gap": 1}, 0.0) == (gap.histograms, gap.dropped, gap.seconds)
        assert 1.0 == rise(after, vllm.E2E).count

    def test_gap_of_exactly_the_window_is_used(self):
        """The longest interval that a window can hold."""
        increases = Increases(longest_gap=900.0)
        increases.advance(served(*FIRST), 5000.0)

        assert 3.0 == rise(increases.advance(served(*FIRST, *LATER), 5900.0), vllm.E2E).count


class TestTwoServersBehindOneUrl:
    def alternate(self, starts, polls=12):
        """Two servers answer in turn, one request each per poll; all increases."""
        increases = Increases(since=4990.0)
        rows = [[(0.1, 0.2, 3.0, 0.0)] * 50, [(0.1, 0.2, 3.0, 0.0)] * 9]
        found = []
        for number in range(polls):
            which = number % 2
            rows[which] = [*rows[which], (0.1, 0.2, 3.0, 0.0)]
            found.append(increases.advance(served(*rows[which], start=starts[which]), 5000.0 + number))
        return found

    @pytest.mark.parametrize("starts", [(1000.0, 2000.0), (2000.0, 1000.0), (1000.0, 1020.0), (None, None)])
    def test_no_increase_is_invented(self, starts):
        """Whatever tells them apart, each poll counts at most what the followed server really did."""
        found = self.alternate(starts)

        counted = [one.histograms[SeriesKey(vllm.E2E, "m")].count for one in found if one.histograms]
        assert 5 <= len(counted)
        assert {1.0} == set(counted)

    @pytest.mark.parametrize("starts", [(1000.0, 2000.0), (None, None)])
    def test_the_other_ones_pages_are_counted_and_marked(self, starts):
        """An operator can see that one URL leads to two servers."""
        found = self.alternate(starts)

        assert 5 <= sum(one.foreign for one in found)
        assert all({"other_server": 1} == one.dropped for one in found if one.foreign)

    def test_servers_that_started_together_restart_at_most_once(self):
        """A start that is older than the one followed is no restart."""
        found = self.alternate((4950.0, 4960.0))

        assert 1 >= sum(one.restarted for one in found)
        assert 10.0 >= max(one.histograms[SeriesKey(vllm.E2E, "m")].count for one in found if one.histograms)

    @pytest.mark.parametrize("start", [2000.0, None])
    def test_a_url_that_leads_elsewhere_for_good_is_followed_there(self, start):
        """After a blue-green switch to a server that ran before, its pages become the baseline, and count from then."""
        increases = Increases()
        old = [(0.1, 0.2, 3.0, 0.0)] * 50
        increases.advance(served(*old, start=3000.0 if start else None), 5000.0)
        found = [
            increases.advance(served(*[old[0]] * (9 + number), start=start), 5001.0 + number)
            for number in range(PATIENCE + 3)
        ]

        assert 1 == sum(one.restarted for one in found)
        assert 1.0 == rise(found[-1], vllm.E2E).count
        assert all(rise(one, vllm.E2E) is None or rise(one, vllm.E2E).count == 1.0 for one in found)


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


class TestDamagedPages:
    def test_series_that_a_page_lacked_is_not_counted_from_zero_later(self):
        """The increase over the page before it: 3 requests, not 7."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        increases.advance(page({}, problems={"line": 4}), 5001.0)
        increase = increases.advance(served(*FIRST, *LATER), 5002.0)

        assert 3.0 == rise(increase, vllm.E2E).count
        assert 300.0 == increase.counters[SeriesKey(vllm.PROMPT_TOKENS, "m")]

    def test_series_first_seen_after_a_damaged_page_is_a_baseline(self):
        """Whether it is new cannot be told."""
        increases = Increases()
        increases.advance(page({}, problems={"line": 4}), 5000.0)
        increase = increases.advance(served(*FIRST), 5001.0)

        assert {} == increase.histograms
        assert SeriesKey(vllm.PROMPT_TOKENS, "m") not in increase.counters

    @pytest.mark.parametrize("lost", ["bucket", "sum", "count"])
    def test_lost_line_of_a_histogram_shows_at_the_next_whole_page(self, lost):
        """No increase over zero, no unknown total: the whole page holds both intervals."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        whole = requests(*FIRST, LATER[0])
        one = whole["queue"]
        edges = one.edges[:5] + one.edges[6:] if lost == "bucket" else one.edges
        cumulative = one.cumulative[:5] + one.cumulative[6:] if lost == "bucket" else one.cumulative
        damaged = Histogram(
            edges, cumulative, None if lost == "sum" else one.sum, None if lost == "count" else one.count
        )
        during = increases.advance(page(whole | {"queue": damaged}, problems={"line": 1}), 5001.0)
        after = increases.advance(served(*FIRST, *LATER), 5002.0)

        assert None is rise(during, vllm.QUEUE)
        assert 1.0 == rise(during, vllm.E2E).count
        assert (3.0, pytest.approx(18.0)) == (rise(after, vllm.QUEUE).count, rise(after, vllm.QUEUE).sum)

    def test_baseline_from_a_damaged_first_page_is_replaced_by_a_whole_one(self):
        """The first page lacked the sum; from the second on everything counts."""
        increases = Increases()
        first = requests(*FIRST)
        one = first["queue"]
        first["queue"] = Histogram(one.edges, one.cumulative, None, one.count)
        increases.advance(page(first, problems={"line": 1}), 5000.0)
        unusable = increases.advance(served(*FIRST, LATER[0]), 5001.0)
        after = increases.advance(served(*FIRST, *LATER), 5002.0)

        assert None is rise(unusable, vllm.QUEUE)
        assert (2.0, pytest.approx(12.0)) == (rise(after, vllm.QUEUE).count, rise(after, vllm.QUEUE).sum)

    def test_page_without_its_process_start_is_of_the_same_process(self):
        """The line was damaged; the next page, whose start is known again, goes on."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        increases.advance(served(*FIRST, LATER[0], start=None), 5001.0)
        increase = increases.advance(served(*FIRST, *LATER), 5002.0)

        assert not increase.restarted
        assert 2.0 == rise(increase, vllm.E2E).count

    def test_restart_behind_a_page_without_its_process_start_is_seen(self):
        """The start that was known is remembered."""
        increases = Increases()
        increases.advance(served(*FIRST), 5000.0)
        increases.advance(served(*FIRST, start=None), 5001.0)
        increase = increases.advance(served(*FIRST, *LATER, start=5002.0), 5062.0)

        assert increase.restarted
        assert 7.0 == rise(increase, vllm.E2E).count


class TestAddingUp:
    def test_an_unknown_part_makes_the_total_unknown(self):
        """A total that lacks a part is not a total."""
        known, unknown = histogram([1.0]), Histogram((1.0, inf), (1.0, 1.0), None, 1.0)

        assert histogram([1.0, 3.0]) == add((known, histogram([3.0])))
        assert None is add((Histogram((1.0, inf), (1.0, 1.0), 0.5, 1.0), unknown)).sum

    def test_configs_do_not_matter_to_increases(self):
        """Info labels are no counters."""
        increases = Increases()
        increases.advance(page({}, configs=[config(num_gpu_blocks=5)]), 5000.0)

        assert {} == increases.advance(page({}, configs=[config(num_gpu_blocks=9)]), 5001.0).counters
