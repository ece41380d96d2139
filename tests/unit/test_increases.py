"""From page to page: what counts as an increase."""

from math import inf

import pytest

from tests.builders import config, histogram, key, merged, page, requests, spread
from tests.served import FIRST, LATER, UPTIME, rise, served
from tidegauge import vllm
from tidegauge.model import Histogram, Page, SeriesKey
from tidegauge.state.increases import Increases, add

FINISHED = SeriesKey(vllm.FINISHED, "m", "0", "stop")


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
