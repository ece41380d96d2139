"""The split of vLLM's own queue time, from its histogram alone, over 5 minutes."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_MODEL = (lb.BACKEND, lb.MODEL_NAME)

QUEUE_REQUESTS_5M = recorded(
    "queue_requests_5m",
    "backend_model:request_queue_time_seconds_count:increase5m",
    "requests",
    "Requests whose queue time was observed in the last 5 minutes.",
    *_MODEL,
)
QUEUE_ON_TIME_5M = recorded(
    "queue_on_time_5m",
    "backend_model:queue_on_time:increase5m",
    "requests",
    "Of those, requests in the lowest bucket: they hardly waited.",
    *_MODEL,
)
QUEUE_EDGE = recorded(
    "queue_edge_native",
    "backend_model:queue_edge_seconds:min",
    "seconds",
    "Lowest bucket edge of the server's queue-time histogram.",
    *_MODEL,
)
