"""Quantiles of bucketed histograms."""

from bisect import bisect_left
from math import isinf

from tidegauge.model import Histogram


def quantile(histogram: Histogram, q: float) -> float | None:
    """The *q* quantile by linear interpolation within its bucket, as Prometheus does it, with two differences.

    In the lowest bucket the answer is that bucket's edge, an upper bound: what lies below an edge cannot be told
    apart, and interpolating there invents digits. Beyond the last finite edge the answer is that edge, a lower bound.
    None if nothing was observed.
    """
    count = observed(histogram)
    if not count or not histogram.cumulative:
        return None
    rank = q * count
    index = bisect_left(histogram.cumulative, rank)
    if index == 0:
        return histogram.edges[0]
    if index >= len(histogram.edges) or isinf(histogram.edges[index]):
        return histogram.edges[min(index, len(histogram.edges)) - 1]
    low, high = histogram.edges[index - 1], histogram.edges[index]
    before, upto = histogram.cumulative[index - 1], histogram.cumulative[index]
    return low + (high - low) * (rank - before) / (upto - before)


def observed(histogram: Histogram) -> float:
    """Number of observations: the count where given, else what the last bucket holds."""
    if histogram.count is not None:
        return histogram.count
    return histogram.cumulative[-1] if histogram.cumulative else 0.0
