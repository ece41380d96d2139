"""Who is there, what they hold, whether anything moves."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_MODEL = (lb.BACKEND, lb.MODEL_NAME)

BACKEND_COVERED = recorded(
    "backend_covered",
    "backend:tidegauge_backend_up:max",
    "bool",
    "1 where an exporter polls the backend: its figures then replace the native ones.",
    lb.BACKEND,
)
BACKEND_UP = recorded(
    "backend_up", "backend:up:max", "bool", "1 if Prometheus or an exporter reaches the backend, else 0.", lb.BACKEND
)
RUNNING = recorded(
    "running",
    "backend_model:num_requests_running:sum",
    "requests",
    "Requests in the batches of the server, over its engines.",
    *_MODEL,
)
WAITING = recorded(
    "waiting",
    "backend_model:num_requests_waiting:sum",
    "requests",
    "Requests that wait in the server, over its engines.",
    *_MODEL,
)
IN_FLIGHT = recorded(
    "in_flight",
    "backend_model:requests_in_flight:sum",
    "requests",
    "Requests running or waiting in the server, over its engines.",
    *_MODEL,
)
PROGRESS = recorded(
    "progress",
    "backend_model:progress:rate2m",
    "1/s",
    "Tokens and finished requests per second: 0 means that nothing moves.",
    *_MODEL,
)
