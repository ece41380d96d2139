"""Default thresholds, each named once; the exporter's configuration and the mixin's `_config` override them."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs


@attrs.frozen
class Threshold:
    """A default with its unit (`ratio`, `requests`, `seconds`, `tokens`, `1`) and what it decides."""

    key: str
    value: float
    unit: str
    meaning: str


_ALL: list[Threshold] = []


def _threshold(key: str, value: float, unit: str, meaning: str) -> Threshold:
    entry = Threshold(key, value, unit, meaning)
    _ALL.append(entry)
    return entry


MIN_REQUESTS = _threshold(
    "min_requests", 20, "requests", "fewer finished requests in the window say nothing: the figure is absent"
)
BIMODAL_LATE_LOW = _threshold(
    "bimodal_late_low", 0.05, "ratio", "below this late share nobody but a few stragglers waited"
)
BIMODAL_LATE_HIGH = _threshold(
    "bimodal_late_high", 0.95, "ratio", "above this late share the queue is saturated, not bimodal"
)
BIMODAL_SPLIT = _threshold(
    "bimodal_split", 10, "1", "mean wait of the late ones over the lowest bucket edge; from here on two modes"
)
PAGE_IMPACT = _threshold("page_impact", 0.10, "ratio", "queue share of end-to-end time from which a split pages")
SKEW = _threshold("skew", 1.5, "1", "slowest over fastest backend of a fleet, by mean end-to-end time")
KV_FULL = _threshold("kv_full", 0.9, "ratio", "KV-cache usage from which waiting is booked to the KV cache")
SOURCES_DISAGREE = _threshold(
    "sources_disagree", 0.01, "ratio", "relative difference of two capacity sources that is worth a warning"
)
CALLER_EDGE_SECONDS = _threshold(
    "caller_edge_seconds", 0.1, "seconds", "a wait for the caller's slot up to this long counts as no wait"
)

THRESHOLDS: tuple[Threshold, ...] = tuple(_ALL)
DEFAULTS: Mapping[str, float] = MappingProxyType({one.key: one.value for one in THRESHOLDS})
"""The thresholds in force, by key, where nothing else is configured."""
