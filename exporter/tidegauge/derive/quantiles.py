"""Quantiles of bucketed histograms."""

from bisect import bisect_left
from math import isfinite

from tidegauge.model import Histogram


def quantile(histogram: Histogram, q: float) -> float | None:
    """The *q* quantile by linear interpolation within its bucket, as Prometheus does it, with two differences.

    In the lowest bucket the answer is that bucket's edge, an upper bound: what lies below an edge cannot be told
    apart, and interpolating there invents digits. Beyond the last finite edge the answer is that edge, a lower bound.
    None if nothing was observed, or the histogram has no finite edge.
    """
    count = observed(histogram)
    finite = [(edge, upto) for edge, upto in zip(histogram.edges, histogram.cumulative, strict=True) if isfinite(edge)]
    if not count or not finite:
        return None
    rank = q * count
    index = bisect_left(finite, rank, key=lambda pair: pair[1])
    if index in (0, len(finite)):
        return finite[min(index, len(finite) - 1)][0]
    (low, before), (high, upto) = finite[index - 1], finite[index]
    return low + (high - low) * (rank - before) / (upto - before)


def observed(histogram: Histogram) -> float:
    """Number of observations: the count where given, else what the last bucket holds."""
    if histogram.count is not None:
        return histogram.count
    return histogram.cumulative[-1] if histogram.cumulative else 0.0
