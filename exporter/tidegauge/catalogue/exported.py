"""Series that the exporter exposes on `/metrics`."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import Kind, Series

_ALL: list[Series] = []
_SPLIT = (lb.BACKEND, lb.MODEL_NAME, lb.FLEET, lb.WHERE)


def _series(key: str, kind: Kind, help_: str, *labels: str, buckets: tuple[float, ...] = ()) -> Series:
    suffix = "_total" if kind == "counter" else ""
    entry = Series(key, f"tidegauge_{key}{suffix}", kind, help_, labels, buckets)
    _ALL.append(entry)
    return entry


# --- the exporter itself and its sources -----------------------------------------------------------------------
BUILD_INFO = _series("build_info", "gauge", "Version of tidegauge; always 1.", lb.VERSION)
WINDOW_SECONDS = _series("window_seconds", "gauge", "Length of the window that the windowed figures cover.")
BACKENDS_CONFIGURED = _series("backends_configured", "gauge", "Backends that the configuration names.")
CONFIG_LOADED = _series(
    "config_last_reload_successful",
    "gauge",
    "1 if the configuration could be used when it was last read, at the start or at SIGHUP, else 0.",
)
CONFIG_LOADED_AT = _series(
    "config_last_reload_success_timestamp_seconds",
    "gauge",
    "Unix time at which the configuration in force was read.",
)
BACKEND_UP = _series("backend_up", "gauge", "1 if the last poll of the backend gave a usable page, else 0.", lb.BACKEND)
BACKEND_DISTINCT = _series(
    "backend_distinct",
    "gauge",
    "1 if the backend is a server of its own, 0 if another target answers from the same server process.",
    lb.BACKEND,
)
BACKEND_INFO = _series(
    "backend_info",
    "gauge",
    "The backend's fleet and vLLM version (empty if unknown); always 1.",
    lb.BACKEND,
    lb.FLEET,
    lb.VERSION,
)
POLL_INTERVAL = _series("poll_interval_seconds", "gauge", "Time between two polls of the backend.", lb.BACKEND)
SCRAPE_DURATION = _series(
    "scrape_duration_seconds", "gauge", "Time the last poll of the backend took, failed or not.", lb.BACKEND
)
SCRAPE_FAILURES = _series(
    "scrape_failures", "counter", "Polls of the backend that gave no usable page.", lb.BACKEND, lb.REASON
)
PAGE_PROBLEMS = _series(
    "page_problems",
    "counter",
    "Faults in pages that were otherwise used: lines, duplicate series, values or names that were left out.",
    lb.BACKEND,
    lb.REASON,
)
LOG_LINES = _series("log_lines", "counter", "Lines of the backend's log by what became of them.", lb.BACKEND, lb.RESULT)
LOG_UP = _series("log_up", "gauge", "1 if the backend's configured log can be read, else 0.", lb.BACKEND)
INTERVALS_DROPPED = _series(
    "intervals_dropped",
    "counter",
    "Poll intervals left out of the windows because their figures cannot be true.",
    lb.BACKEND,
    lb.REASON,
)
RESTARTS = _series("backend_restarts", "counter", "Restarts of the backend seen by its counters.", lb.BACKEND)

# --- facts about a server --------------------------------------------------------------------------------------
KV_CAPACITY = _series(
    "kv_cache_capacity_tokens",
    "gauge",
    "Tokens that the KV cache of the backend holds, summed over its engines, from the most trusted source.",
    lb.BACKEND,
    lb.SOURCE,
)
KV_DISAGREE = _series(
    "kv_cache_sources_disagree",
    "gauge",
    "1 if two sources of the KV capacity differ by more than sources_disagree, else 0.",
    lb.BACKEND,
)
MAX_NUM_SEQS = _series(
    "max_num_seqs",
    "gauge",
    "Requests that the backend runs at once at most, over its engines; observed is a lower bound.",
    lb.BACKEND,
    lb.SOURCE,
)
MAX_BATCHED_TOKENS = _series(
    "max_num_batched_tokens", "gauge", "Token budget of one engine step.", lb.BACKEND, lb.SOURCE
)
MAX_MODEL_LEN = _series("max_model_len_tokens", "gauge", "Longest context a request may have.", lb.BACKEND, lb.SOURCE)
P90_PROMPT = _series(
    "p90_prompt_tokens",
    "gauge",
    "Prompt length that request capacity counts with: configured, else the p90 over the long window.",
    lb.BACKEND,
    lb.SOURCE,
)
REQUEST_CAPACITY = _series(
    "request_capacity",
    "gauge",
    "Requests of the basis' size that fit into the backend at once; prefix-cache hits are left out.",
    lb.BACKEND,
    lb.BASIS,
)
FLEET_REQUEST_CAPACITY = _series(
    "fleet_request_capacity",
    "gauge",
    "Sum of the request capacity over the healthy, distinct backends of the fleet.",
    lb.FLEET,
    lb.BASIS,
)
NARROWEST_REQUEST_CAPACITY = _series(
    "narrowest_request_capacity",
    "gauge",
    "Smallest request capacity among the healthy, distinct backends: what a limiter with equal shares must use.",
    lb.FLEET,
    lb.BASIS,
)

# --- latency of finished requests over the window --------------------------------------------------------------
WINDOW_REQUESTS = _series(
    "window_requests", "gauge", "Requests that finished in the window.", lb.BACKEND, lb.MODEL_NAME
)
STAGE_SECONDS = _series(
    "stage_seconds",
    "gauge",
    "Mean time a request finished in the window spent in the stage; client is the caller's limiter, per fleet.",
    lb.BACKEND,
    lb.MODEL_NAME,
    lb.FLEET,
    lb.STAGE,
)
STAGE_SHARE = _series(
    "stage_share",
    "gauge",
    "Share of the stage in end-to-end time; the four server stages add up to 1.",
    lb.BACKEND,
    lb.MODEL_NAME,
    lb.STAGE,
)
E2E_SECONDS = _series(
    "e2e_seconds",
    "gauge",
    "Mean time from arrival at the server to the end of requests finished in the window.",
    lb.BACKEND,
    lb.MODEL_NAME,
)

# --- queue time: split, not spread -----------------------------------------------------------------------------
QUEUE_TIME = _series(
    "queue_time_seconds",
    "summary",  # the one type that may have a quantile label
    "Quantile of the wait; in the lowest bucket it is that bucket's edge, an upper bound.",
    *_SPLIT,
    lb.QUANTILE,
)
QUEUE_P90_P50 = _series("queue_time_p90_p50_ratio", "gauge", "p90 over p50 of the wait, both clamped.", *_SPLIT)
QUEUE_LATE_RATIO = _series(
    "queue_late_ratio", "gauge", "Share of requests that waited longer than the lowest bucket edge.", *_SPLIT
)
QUEUE_LATE_SECONDS = _series(
    "queue_late_seconds", "gauge", "Mean wait of the requests that waited, a lower bound.", *_SPLIT
)
QUEUE_WAVES = _series(
    "queue_effective_waves", "gauge", "1 / (1 - late ratio): waves that a barrier is cut into.", *_SPLIT
)
QUEUE_BIMODAL = _series(
    "queue_bimodal", "gauge", "1 if most requests wait nothing and some a whole wave, else 0.", *_SPLIT
)
QUEUE_EDGE = _series("queue_edge_seconds", "gauge", "Lowest bucket edge: waits up to it count as none.", *_SPLIT)
QUEUE_IMPACT = _series(
    "queue_impact_ratio",
    "gauge",
    "Wait as a share of the time it delays: queue of end-to-end, or slot wait of slot wait plus end-to-end.",
    *_SPLIT,
)

# --- load and why requests wait --------------------------------------------------------------------------------
ARRIVALS = _series("arrivals", "counter", "Requests that arrived at the backend, counted poll by poll.", lb.BACKEND)
ARRIVAL_BURSTINESS = _series(
    "arrival_burstiness",
    "gauge",
    "P99 of arrivals per second over their mean, in the window.",
    lb.FLEET,
)
DEPARTED_UNFINISHED = _series(
    "departed_unfinished", "counter", "Requests that left the backend without finishing.", lb.BACKEND
)
WAITING_SECONDS = _series(
    "waiting_seconds",
    "counter",
    "Seconds that requests waited: in a backend, booked to one cause per poll; for the caller's own slots, per fleet.",
    lb.BACKEND,
    lb.FLEET,
    lb.CAUSE,
)
HIDDEN_WAIT = _series(
    "hidden_wait_seconds",
    "gauge",
    "Estimate of the seconds that preempted requests waited again in the window, which vLLM books as decode.",
    lb.BACKEND,
)
PROMPT_LENGTH = _series(
    "prompt_tokens",
    "summary",
    "Quantile of the prompt length of finished requests, over the long window.",
    lb.BACKEND,
    lb.MODEL_NAME,
    lb.QUANTILE,
)
OUTPUT_LENGTH = _series(
    "output_tokens",
    "summary",
    "Quantile of the output length of finished requests, over the long window.",
    lb.BACKEND,
    lb.MODEL_NAME,
    lb.QUANTILE,
)

# --- barriers, ceilings, callers -------------------------------------------------------------------------------
BARRIERS = _series("barriers", "counter", "Barriers seen.", lb.FLEET, lb.SOURCE)
BARRIER_FANOUT = _series(
    "barrier_fanout", "gauge", "Requests launched at once per barrier in the window.", lb.FLEET, lb.SOURCE, lb.STAT
)
BARRIER_WAVES = _series(
    "barrier_waves",
    "gauge",
    "Waves per barrier in the window: fan-out over the ceiling, rounded up.",
    lb.FLEET,
    lb.SOURCE,
    lb.CEILING,
    lb.STAT,
)
BARRIER_CLIPPED = _series(
    "barrier_clipped_ratio",
    "gauge",
    "Share of the barriers in the window with a fan-out over the ceiling.",
    lb.FLEET,
    lb.SOURCE,
    lb.CEILING,
)
BARRIER_DURATION = _series(
    "barrier_duration_seconds", "gauge", "Time from a barrier's start to its end.", lb.FLEET, lb.SOURCE, lb.STAT
)
CEILING = _series(
    "ceiling", "gauge", "Requests in flight that the ceiling lets through.", lb.FLEET, lb.CEILING, lb.SOURCE
)
NATURAL_BOUND = _series(
    "natural_bound",
    "gauge",
    "Largest fan-out the load can have: the roster, else the largest seen.",
    lb.FLEET,
    lb.SOURCE,
)
CEILING_STATE = _series(
    "ceiling_state",
    "gauge",
    "State-set of the ceiling: clips, inert or unmeasured; 1 for the state it is in.",
    lb.FLEET,
    lb.CEILING,
    lb.STATE,
)
CALLER_HEALTHY = _series(
    "caller_healthy_backends", "gauge", "Backends that the caller believes to be healthy.", lb.FLEET
)
CALLER_WAIT = _series(
    "caller_wait_seconds",
    "histogram",
    "Wait of a request for a slot of its caller's limiter.",
    lb.FLEET,
    buckets=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 240, 480),
)
CALLER_EVENTS = _series(
    "caller_events", "counter", "Events that callers sent, by what became of them.", lb.FLEET, lb.RESULT
)
CALLER_CONFLICTS = _series(
    "caller_conflicts",
    "counter",
    "Signs that two processes of the fleet report under one name: each spoke after the other, or their ids clashed.",
    lb.FLEET,
)
BATCHES_REFUSED = _series(
    "caller_batches_refused", "counter", "Batches of callers' events that were refused, by why.", lb.REASON
)
CEILING_CHANGES = _series(
    "ceiling_changes",
    "counter",
    "Changes of the ceiling in the fleet's limiter logs, by the reason they give; other beyond 20 reasons.",
    lb.FLEET,
    lb.REASON,
)
LIMITER_LOG_LINES = _series(
    "limiter_log_lines",
    "counter",
    "Lines of the fleet's limiter logs: parsed, ignored (the pattern does not match) or dropped.",
    lb.FLEET,
    lb.RESULT,
)
LIMITER_LOG_UP = _series(
    "limiter_log_up", "gauge", "1 if all limiter logs of the fleet can be read and matched, else 0.", lb.FLEET
)

EXPORTED: tuple[Series, ...] = tuple(_ALL)
