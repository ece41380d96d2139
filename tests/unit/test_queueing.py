"""Queue time: split, not spread. Every row of the table in the definitions, on vLLM's real buckets."""

from math import inf

import attrs
import pytest

from tests.builders import PHASE_EDGES, histogram
from tidegauge.catalogue.thresholds import DEFAULTS
from tidegauge.derive.quantiles import observed, quantile
from tidegauge.derive.queueing import Limits, split_of
from tidegauge.model import Histogram

LIMITS = Limits.of(DEFAULTS)
WAVE = 4.0  # seconds of service per wave


def split(waits, total=60.0, **limits):
    return split_of(histogram(waits), total, attrs.evolve(LIMITS, **limits))


def waves(number, slots=30):
    """The waits of *number* full waves of *slots* requests."""
    return [wave * WAVE for wave in range(number) for _ in range(slots)]


TABLE = [
    pytest.param([0.002] * 100, 0.0, 1.0, False, id="idle, 2 ms"),
    pytest.param([0.2] * 100, 0.0, 1.0, False, id="idle, 200 ms"),
    pytest.param([0.0] * 60 + [12.0] * 40, 0.40, 1.67, True, id="60 % at 0 s, 40 % at 12 s"),
    pytest.param([0.0] * 45 + [12.0] * 55, 0.55, 2.22, True, id="45 % at 0 s, 55 % at 12 s"),
    pytest.param([0.0] * 95 + [60.0] * 5, 0.05, 1.05, True, id="95 % at 0 s, 5 % at 60 s"),
    pytest.param(waves(2), 0.5, 2.0, True, id="2 waves"),
    pytest.param(waves(3), 0.667, 3.0, True, id="3 waves"),
    pytest.param(waves(4), 0.75, 4.0, True, id="4 waves"),
    pytest.param(waves(8), 0.875, 8.0, True, id="8 waves"),
    pytest.param(waves(16), 0.9375, 16.0, True, id="16 waves"),
    pytest.param([20.0] * 100, 1.0, None, False, id="everyone waits 20 s"),
]


class TestTheTable:
    @pytest.mark.parametrize(("waits", "late", "effective", "bimodal"), TABLE)
    def test_row(self, waits, late, effective, bimodal):
        """Late share, effective waves and the verdict."""
        found = split(waits)

        assert late == pytest.approx(found.late_share, abs=5e-4)
        assert effective == (pytest.approx(found.waves, abs=5e-3) if found.waves is not None else None)
        assert bimodal is found.bimodal

    def test_everyone_late_is_saturated_not_bimodal(self):
        """That is another alert; 16 waves are not there yet."""
        assert split([20.0] * 100).saturated
        assert not split(waves(16)).saturated
        assert split([0.0] * 4 + [20.0] * 96).saturated

    @pytest.mark.parametrize(("late", "expected"), [(29 - 16, 1.81), (13, 1.81)])
    def test_29_requests_over_16_slots(self, late, expected):
        """The case's barrier: 13 of 29 wait a whole wave."""
        assert expected == pytest.approx(split([0.0] * 16 + [12.0] * late).waves, abs=5e-3)

    @pytest.mark.parametrize("number", range(2, 17))
    def test_effective_waves_are_monotone_in_depth(self, number):
        """Unlike the ratio, which falls back to 2-3 from three waves on."""
        assert number == pytest.approx(split(waves(number)).waves)

    def test_ratio_is_blind_where_late_share_is_not(self):
        """Sixteen waves have a smaller ratio than two: the ratio never pages alone."""
        assert split(waves(2)).ratio > 10
        assert split(waves(16)).ratio < 3
        assert split(waves(16)).bimodal


class TestTheCase:
    CASE = [0.05] * 464 + [25.0] * 11 + [32.0] * 53

    def test_p50_p90_and_ratio_print_as_published(self):
        """528 requests: p50 0.3 s, p90 30 s, two orders of magnitude apart."""
        found = split(self.CASE, 20.47)

        assert (528, "0.3", "30", "100") == (
            found.requests,
            f"{found.quantiles[0.5]:.1f}",
            f"{found.quantiles[0.9]:.0f}",
            f"{found.ratio:.0f}",
        )
        assert found.bimodal
        assert found.pages

    def test_idle_server_prints_the_edge_twice(self):
        """0.3 / 0.3 = 1, and not 0.27 / 0.15 = 1.8."""
        found = split([0.002] * 50)

        assert (0.3, 0.3, 0.3, 1.0) == (*found.quantiles.values(), found.ratio)


class TestLateMean:
    def test_each_on_time_request_is_charged_the_edge(self):
        """A lower bound of the true 12 s: (480 - 0.3 x 60) / 40."""
        found = split([0.0] * 60 + [12.0] * 40)

        assert 11.55 == pytest.approx(found.late_mean)
        assert 38.5 == pytest.approx(found.split)

    def test_bound_is_tight_when_on_time_requests_wait_the_edge(self):
        """Then it is the mean itself."""
        assert 12.0 == pytest.approx(split([0.3] * 60 + [12.0] * 40).late_mean)

    def test_bound_never_falls_below_the_edge(self):
        """Who is late waited longer than the edge, whatever the charge says."""
        assert 0.3 == split([0.0] * 95 + [0.4] * 5).late_mean

    def test_nobody_late_has_no_late_mean(self):
        """Absent, not 0."""
        found = split([0.1] * 50)

        assert (None, None) == (found.late_mean, found.split)


class TestVerdict:
    def test_a_late_mean_of_ten_edges_is_bimodal_and_less_is_not(self):
        """The threshold is inclusive; 3 s for vLLM's edge of 0.3."""
        assert split([0.3] * 50 + [3.0] * 50).bimodal
        assert not split([0.3] * 50 + [2.99] * 50).bimodal

    @pytest.mark.parametrize(("late", "expected"), [(4, False), (5, True), (95, True), (96, False)])
    def test_late_share_from_5_to_95_percent(self, late, expected):
        """Both ends are in."""
        assert expected is split([0.0] * (100 - late) + [60.0] * late).bimodal

    def test_thresholds_are_configurable(self):
        """Every one of them."""
        waits = [0.0] * 60 + [12.0] * 40

        assert not split(waits, late_low=0.41).bimodal
        assert not split(waits, late_high=0.39).bimodal
        assert not split(waits, split=39).bimodal
        assert None is split(waits, min_requests=101)

    def test_a_page_needs_a_split_and_an_impact(self):
        """Queue share of end-to-end from 10 % on; the same split with long answers costs nothing."""
        waits = [0.0] * 60 + [12.0] * 40  # a mean of 4.8 s

        assert split(waits, 47.9).pages
        assert not split(waits, 48.1).pages
        assert not split(waits, None).pages
        assert split(waits, 19.2, impact=0.25).pages
        assert not split(waits, 19.2, impact=0.251).pages
        assert split(waits, 48.1).bimodal

    def test_a_large_ratio_alone_does_not_page(self):
        """p90 / p50 of 11 with an impact of 25 %, yet the late mean says one broad mode."""
        waits = [0.05] * 60 + [1.0] * 25 + [4.9] * 15
        found = split(waits, 4.0)

        assert found.ratio > 10
        assert found.impact > 0.1
        assert not found.pages

    @pytest.mark.parametrize(("count", "known"), [(19, False), (20, True)])
    def test_too_few_requests_say_nothing(self, count, known):
        """Absent, not 0; 20 by default."""
        assert known is (split([5.0] * count) is not None)


class TestWhereItCannotBeTold:
    def test_histogram_without_sum_buckets_or_finite_edge_is_none(self):
        """No figure is made up."""
        assert None is split_of(None, 1.0, LIMITS)
        assert None is split_of(Histogram(PHASE_EDGES, (50.0,) * 22, None, 50.0), 1.0, LIMITS)
        assert None is split_of(Histogram((), (), 10.0, 50.0), 1.0, LIMITS)
        assert None is split_of(Histogram((inf,), (50.0,), 10.0, 50.0), 1.0, LIMITS)

    def test_torn_count_is_no_negative_share(self):
        """The bucket has one more than the count."""
        assert 0.0 == split_of(Histogram((0.3, inf), (51.0, 51.0), 5.0, 50.0), 1.0, LIMITS).late_share

    def test_custom_buckets_move_the_edge(self):
        """A server started with other buckets: its lowest edge is what counts."""
        found = split_of(histogram([0.0] * 60 + [12.0] * 40, (0.05, 1.0, 30.0, inf)), 60.0, LIMITS)

        assert (0.05, 0.05) == (found.edge, found.quantiles[0.5])
        assert 238.5 == pytest.approx(found.split)


class TestQuantiles:
    def test_interpolates_above_the_lowest_bucket_as_prometheus_does(self):
        """Half way into (2, 5]."""
        assert 3.5 == quantile(Histogram((1.0, 2.0, 5.0, inf), (10.0, 40.0, 60.0, 100.0), 0.0, 100.0), 0.5)

    def test_lowest_bucket_gives_its_edge(self):
        """An upper bound."""
        assert 1.0 == quantile(Histogram((1.0, 2.0, inf), (50.0, 90.0, 100.0), 0.0, 100.0), 0.5)

    @pytest.mark.parametrize("edges", [(1.0, 2.0, inf), (1.0, 2.0)])
    def test_beyond_the_last_finite_edge_gives_that_edge(self, edges):
        """A lower bound, with or without the +Inf bucket, never infinity."""
        cumulative = (10.0, 40.0, 90.0)[: len(edges)]

        assert 2.0 == quantile(Histogram(edges, cumulative, 0.0, 100.0), 0.9)

    def test_nothing_observed_is_none(self):
        """Nor is there a quantile of buckets without an edge."""
        assert None is quantile(histogram([]), 0.5)
        assert None is quantile(Histogram((inf,), (3.0,), 1.0, 3.0), 0.5)
        assert None is quantile(Histogram((), (), 1.0, 3.0), 0.5)

    def test_count_is_the_last_bucket_where_the_page_has_none(self):
        """Or nothing."""
        assert 7.0 == observed(Histogram((1.0, inf), (3.0, 7.0), 1.0, None))
        assert 0.0 == observed(Histogram((), (), None, None))
