"""Latencies that cannot be true: a monotonic clock booked as a duration, or a negative one.

A `_sum` that falls while its `_count` rises is no restart, and an observation as large as the host's uptime is no
latency. What cannot be true is left out and counted, never averaged in.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Final

from tidegauge import vllm
from tidegauge.model import Histogram, SeriesKey

PHASES: Final = (vllm.QUEUE, vllm.PREFILL, vllm.DECODE)
LATENCIES: Final = (vllm.E2E, *PHASES, vllm.INFERENCE)
TORN_SECONDS: Final = 60.0
"""The least that a torn page may be off by, see `_torn`."""


def drop_poisoned(
    rises: dict[SeriesKey, Histogram], page: Mapping[SeriesKey, Histogram], uptime: float
) -> dict[str, int]:
    """Take the latency histograms of a model out of *rises* where one of them cannot be true; how often, by reason.

    *page* holds the histograms as they stand, *uptime* is the age of the process in seconds.
    """
    dropped: dict[str, int] = {}
    for owner in {key._replace(family="") for key in rises if key.family in LATENCIES}:
        keys = [owner._replace(family=family) for family in LATENCIES]
        group = {key.family: rises[key] for key in keys if key in rises}
        reason = _poison(group, _torn(page.get(owner._replace(family=vllm.E2E))), uptime)
        if reason:
            dropped[reason] = dropped.get(reason, 0) + 1
            # Time to first token is held against end-to-end to find the aborted ones: both or neither.
            for key in (*keys, owner._replace(family=vllm.TTFT)):
                rises.pop(key, None)
    return dropped


def _torn(e2e: Histogram | None) -> float:
    """What one observation may be worth that a page has in one sum and not yet in a count or another sum.

    vLLM answers a scrape while it books requests, so a page can be torn by one of them; twice the longest request so
    far is a generous measure of it, and far below the host uptimes that poison sums.
    """
    if e2e is None:
        return TORN_SECONDS
    filled = [
        edge
        for edge, below, upto in zip(e2e.edges, (0.0, *e2e.cumulative), e2e.cumulative, strict=False)
        if upto > below and isfinite(edge)
    ]
    return max(2 * max(filled, default=0.0), TORN_SECONDS)


def _poison(group: Mapping[str, Histogram], torn: float, uptime: float) -> str | None:
    """Why the latency rises of one engine cannot be true, or None.

    A stage lies within its request, and all of a request's histograms move at once, so no stage's sum can rise by
    more than end-to-end does (a margin covers vLLM's use of two clocks); no request is older than its process; and a
    sum that is less than its buckets allow has something negative in it.
    """
    for rise in group.values():
        if rise.sum is not None and rise.sum < 0:
            return "sum_fell"
        if rise.sum is not None and rise.sum < _least(rise) - torn:
            return "impossible"
        if rise.sum is not None and isfinite(uptime) and rise.sum > _most(rise, uptime) + torn:
            return "impossible"
    e2e = group.get(vllm.E2E)
    if e2e is None or e2e.sum is None or e2e.count is None:
        return None
    limit = e2e.sum * 1.05 + 0.1 * e2e.count + torn
    stages = [rise.sum for family, rise in group.items() if family != vllm.E2E and rise.count == e2e.count]
    return "impossible" if any(total is not None and total > limit for total in stages) else None


def _least(rise: Histogram) -> float:
    """The smallest sum that the bucket counts allow when no observation is negative."""
    lower = (0.0, *rise.edges)
    counts = (upto - below for upto, below in zip(rise.cumulative, (0.0, *rise.cumulative), strict=False))
    return sum(count * edge for count, edge in zip(counts, lower, strict=False))


def _most(rise: Histogram, uptime: float) -> float:
    """The largest sum that the bucket counts allow when no observation exceeds *uptime* seconds."""
    total = below = 0.0
    for edge, cumulative in zip(rise.edges, rise.cumulative, strict=True):
        total += (cumulative - below) * min(edge, uptime)
        below = cumulative
    beyond = (rise.count or below) - below
    return (total + max(beyond, 0.0) * uptime) * 1.000001 + 0.001
