"""Queue time: split, not spread.

Every figure exists for two places: vLLM's own queue, and the caller's limiter that holds requests back before
vLLM sees them.
"""

from collections.abc import Mapping
from math import inf
from typing import Final, Self

import attrs

from tidegauge.catalogue import thresholds as th
from tidegauge.derive.quantiles import observed, quantile
from tidegauge.model import Histogram

QUANTILES: Final = (0.5, 0.9, 0.99)


@attrs.frozen
class Limits:
    """Thresholds of the split."""

    min_requests: float
    late_low: float
    late_high: float
    split: float
    impact: float

    @classmethod
    def of(cls, thresholds: Mapping[str, float]) -> Self:
        """Those among all *thresholds* by key."""
        return cls(
            min_requests=thresholds[th.MIN_REQUESTS.key],
            late_low=thresholds[th.BIMODAL_LATE_LOW.key],
            late_high=thresholds[th.BIMODAL_LATE_HIGH.key],
            split=thresholds[th.BIMODAL_SPLIT.key],
            impact=thresholds[th.PAGE_IMPACT.key],
        )


@attrs.frozen
class QueueSplit:
    """The wait of requests at one place over a window.

    `late_share` is the share that waited longer than `edge` seconds; `late_mean` their mean wait, a lower bound
    (None if nobody was late); `waves` = 1 / (1 - late share), None where infinite; `split` = late mean / edge;
    `impact` the wait's share of the time it delays; `quantiles` by order, clamped to the lowest edge; `pages` whether
    the split is worth waking somebody: it is bimodal and it costs.
    """

    requests: float
    edge: float
    mean: float
    late_share: float
    late_mean: float | None
    waves: float | None
    quantiles: dict[float, float]
    impact: float | None
    bimodal: bool
    saturated: bool
    pages: bool

    @property
    def split(self) -> float | None:
        """Late mean over edge."""
        return None if self.late_mean is None else self.late_mean / self.edge

    @property
    def ratio(self) -> float:
        """p90 over p50, both clamped: the fingerprint operators know, never a page's only condition."""
        return self.quantiles[0.9] / self.quantiles[0.5]


def split_of(waits: Histogram | None, total_mean: float | None, limits: Limits) -> QueueSplit | None:
    """The split of *waits*; *total_mean* is the mean time that the wait is a part of, for the impact.

    None when the window holds fewer than `limits.min_requests` requests, or the histogram lacks its sum or its buckets.
    """
    if waits is None or waits.sum is None or not waits.edges or not 0 < waits.edges[0] < inf:
        return None
    count = observed(waits)
    if count < max(limits.min_requests, 1):
        return None
    edge, on_time = waits.edges[0], min(waits.cumulative[0], count)
    late = count - on_time
    late_share = late / count
    late_mean = max((waits.sum - edge * on_time) / late, edge) if late > 0 else None
    quantiles = {q: value for q in QUANTILES if (value := quantile(waits, q)) is not None}
    mean = waits.sum / count
    impact = mean / total_mean if total_mean else None
    bimodal = (
        limits.late_low <= late_share <= limits.late_high and late_mean is not None and late_mean / edge >= limits.split
    )
    return QueueSplit(
        requests=count,
        edge=edge,
        mean=mean,
        late_share=late_share,
        late_mean=late_mean,
        waves=1 / (1 - late_share) if on_time > 0 else None,
        quantiles=quantiles,
        impact=impact,
        bimodal=bimodal,
        saturated=late_share > limits.late_high,
        pages=bimodal and impact is not None and impact >= limits.impact,
    )
