"""The split wherever the wait is: exporter's figure where it covers the backend, else the native one."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_SPLIT = (lb.WHERE, lb.BACKEND, lb.MODEL_NAME, lb.FLEET)

LATE_RATIO = recorded(
    "late_ratio", "where:queue_late_ratio:window", "ratio", "Share of requests that really waited.", *_SPLIT
)
LATE_SECONDS = recorded(
    "late_seconds",
    "where:queue_late_seconds:window",
    "seconds",
    "Mean wait of the requests that waited, a lower bound.",
    *_SPLIT,
)
WAVES = recorded(
    "waves", "where:queue_effective_waves:window", "1", "Waves that a barrier is cut into: 1 / (1 - late).", *_SPLIT
)
QUEUE_TIME = recorded(
    "queue_time", "where:queue_time_seconds:window", "seconds", "Clamped quantile of the wait.", *_SPLIT, lb.QUANTILE
)
IMPACT = recorded(
    "impact", "where:queue_impact_ratio:window", "ratio", "Wait as a share of the time that it delays.", *_SPLIT
)
SPLIT = recorded(
    "split", "where:queue_split:ratio", "1", "Mean wait of the late ones over the edge: two modes from 10 on.", *_SPLIT
)
