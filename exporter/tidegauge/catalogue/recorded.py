"""Series that recording rules write, `level:metric:operations`.

The level is the subject: `backend`, `backend_model`, `fleet`, `fleet_backend`, or `where` for the queue split, whose
subject is a backend and model (`where="server"`) or a fleet (`where="caller"`). The last part says over what: `5m` is
that window of vLLM's own series; `mean` and `window` are the exporter's figure where it covers the backend, else the
native one. Whatever comes after the rules reads the latter.
"""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import Recorded

_ALL: list[Recorded] = []
_MODEL = (lb.BACKEND, lb.MODEL_NAME)
_SPLIT = (lb.WHERE, lb.BACKEND, lb.MODEL_NAME, lb.FLEET)


def _recorded(key: str, name: str, unit: str, help_: str, *labels: str) -> Recorded:
    entry = Recorded(key, name, help_, labels, unit)
    _ALL.append(entry)
    return entry


# --- health ----------------------------------------------------------------------------------------------------
BACKEND_COVERED = _recorded(
    "backend_covered",
    "backend:tidegauge_backend_up:max",
    "bool",
    "1 where an exporter polls the backend: its figures then replace the native ones.",
    lb.BACKEND,
)
BACKEND_UP = _recorded(
    "backend_up", "backend:up:max", "bool", "1 if Prometheus or an exporter reaches the backend, else 0.", lb.BACKEND
)
IN_FLIGHT = _recorded(
    "in_flight",
    "backend_model:requests_in_flight:sum",
    "requests",
    "Requests running or waiting in the server, over its engines.",
    *_MODEL,
)
PROGRESS = _recorded(
    "progress",
    "backend_model:progress:rate2m",
    "1/s",
    "Tokens and finished requests per second: 0 means that nothing moves.",
    *_MODEL,
)

# --- stages ----------------------------------------------------------------------------------------------------
E2E_MEAN_5M = _recorded(
    "e2e_mean_5m",
    "backend_model:e2e_request_latency_seconds:mean5m",
    "seconds",
    "Mean end-to-end time of requests finished in the last 5 minutes.",
    *_MODEL,
)
STAGE_MEAN_5M = _recorded(
    "stage_mean_5m",
    "backend_model:stage_seconds:mean5m",
    "seconds",
    "Mean time that requests finished in the last 5 minutes spent in the stage.",
    *_MODEL,
    lb.STAGE,
)
STAGE_SHARE_5M = _recorded(
    "stage_share_5m",
    "backend_model:stage_share:mean5m",
    "ratio",
    "Share of the stage in end-to-end time over 5 minutes; the four server stages add up to 1.",
    *_MODEL,
    lb.STAGE,
)
WINDOW_REQUESTS = _recorded(
    "window_requests",
    "backend_model:window_requests:window",
    "requests",
    "Requests finished in the window that the stage means cover.",
    *_MODEL,
)
E2E_MEAN = _recorded(
    "e2e_mean", "backend_model:e2e_seconds:mean", "seconds", "Mean end-to-end time over the stage window.", *_MODEL
)
STAGE_MEAN = _recorded(
    "stage_mean",
    "backend_model:stage_seconds:mean",
    "seconds",
    "Mean time in the stage over the stage window.",
    *_MODEL,
    lb.STAGE,
)
STAGE_SHARE = _recorded(
    "stage_share",
    "backend_model:stage_share:mean",
    "ratio",
    "Share of the stage in end-to-end time over the stage window; the four server stages add up to 1.",
    *_MODEL,
    lb.STAGE,
)

# --- queue time of the servers, from vLLM's histogram ------------------------------------------------------------
QUEUE_REQUESTS_5M = _recorded(
    "queue_requests_5m",
    "backend_model:request_queue_time_seconds_count:increase5m",
    "requests",
    "Requests whose queue time was observed in the last 5 minutes.",
    *_MODEL,
)
QUEUE_ON_TIME_5M = _recorded(
    "queue_on_time_5m",
    "backend_model:queue_on_time:increase5m",
    "requests",
    "Of those, requests in the lowest bucket: they hardly waited.",
    *_MODEL,
)
QUEUE_EDGE = _recorded(
    "queue_edge_native",
    "backend_model:queue_edge_seconds:min",
    "seconds",
    "Lowest bucket edge of the server's queue-time histogram.",
    *_MODEL,
)
QUEUE_LATE_RATIO_5M = _recorded(
    "queue_late_ratio_5m",
    "backend_model:queue_late_ratio:increase5m",
    "ratio",
    "Share of requests that waited longer than the lowest edge; absent with too few requests.",
    *_MODEL,
)
QUEUE_LATE_SECONDS_5M = _recorded(
    "queue_late_seconds_5m",
    "backend_model:queue_late_seconds:mean5m",
    "seconds",
    "Mean wait of the requests that waited, a lower bound; absent if none did.",
    *_MODEL,
)
QUEUE_WAVES_5M = _recorded(
    "queue_waves_5m",
    "backend_model:queue_effective_waves:increase5m",
    "1",
    "1 / (1 - late ratio); absent if nobody was on time.",
    *_MODEL,
)
QUEUE_TIME_5M = _recorded(
    "queue_time_5m",
    "backend_model:queue_time_seconds:quantile5m",
    "seconds",
    "Quantile of the queue time, in the lowest bucket that bucket's edge.",
    *_MODEL,
    lb.QUANTILE,
)

# --- the split, wherever the wait is ---------------------------------------------------------------------------------
LATE_RATIO = _recorded(
    "late_ratio", "where:queue_late_ratio:window", "ratio", "Share of requests that really waited.", *_SPLIT
)
LATE_SECONDS = _recorded(
    "late_seconds",
    "where:queue_late_seconds:window",
    "seconds",
    "Mean wait of the requests that waited, a lower bound.",
    *_SPLIT,
)
EDGE = _recorded(
    "edge", "where:queue_edge_seconds:window", "seconds", "Waits up to this long count as no wait.", *_SPLIT
)
WAVES = _recorded(
    "waves", "where:queue_effective_waves:window", "1", "Waves that a barrier is cut into: 1 / (1 - late).", *_SPLIT
)
QUEUE_TIME = _recorded(
    "queue_time", "where:queue_time_seconds:window", "seconds", "Clamped quantile of the wait.", *_SPLIT, lb.QUANTILE
)
IMPACT = _recorded(
    "impact", "where:queue_impact_ratio:window", "ratio", "Wait as a share of the time that it delays.", *_SPLIT
)
SPLIT = _recorded(
    "split", "where:queue_split:ratio", "1", "Mean wait of the late ones over the edge: two modes from 10 on.", *_SPLIT
)
P90_P50 = _recorded(
    "p90_p50",
    "where:queue_time_p90_p50:ratio",
    "1",
    "p90 over p50 of the wait, both clamped: a fingerprint, never a verdict.",
    *_SPLIT,
)

# --- fleet -----------------------------------------------------------------------------------------------------
FLEET_E2E = _recorded(
    "fleet_e2e",
    "fleet_backend:e2e_seconds:mean",
    "seconds",
    "Mean end-to-end time of each distinct backend of the fleet that served enough requests.",
    lb.FLEET,
    *_MODEL,
)
FLEET_SLOWEST = _recorded(
    "fleet_slowest",
    "fleet_backend:e2e_seconds:slowest",
    "seconds",
    "The same, of the slowest backend only: its labels name it.",
    lb.FLEET,
    *_MODEL,
)
FLEET_SKEW = _recorded(
    "fleet_skew",
    "fleet:e2e_seconds:max_min_ratio",
    "1",
    "Slowest over fastest backend of the fleet by mean end-to-end time.",
    lb.FLEET,
)

RECORDED: tuple[Recorded, ...] = tuple(_ALL)
