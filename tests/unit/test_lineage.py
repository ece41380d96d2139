"""Which page follows which: restarts of one server, and two servers behind one URL."""

import pytest

from tests.served import FIRST, LATER, rise, served
from tidegauge import vllm
from tidegauge.model import SeriesKey
from tidegauge.state.increases import Increases
from tidegauge.state.lineage import PATIENCE


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
