"""What fits, what a caller lets through and why requests wait: the exporter's facts, one row per subject."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

REQUEST_CAPACITY = recorded(
    "request_capacity",
    "backend:request_capacity:max",
    "requests",
    "Requests of the basis' size that fit into the backend at once.",
    lb.BACKEND,
    lb.BASIS,
)
FLEET_CAPACITY = recorded(
    "fleet_capacity",
    "fleet:request_capacity:max",
    "requests",
    "Sum of the request capacity over the healthy, distinct backends of the fleet.",
    lb.FLEET,
    lb.BASIS,
)
NARROWEST_CAPACITY = recorded(
    "narrowest_capacity",
    "fleet:narrowest_request_capacity:min",
    "requests",
    "Smallest request capacity among the healthy, distinct backends of the fleet.",
    lb.FLEET,
    lb.BASIS,
)
CEILING = recorded(
    "ceiling", "fleet:ceiling:max", "requests", "Requests that the ceiling lets through at once.", lb.FLEET, lb.CEILING
)
NATURAL_BOUND = recorded(
    "natural_bound", "fleet:natural_bound:max", "requests", "Largest fan-out the load can have.", lb.FLEET
)
CEILING_MARGIN = recorded(
    "ceiling_margin",
    "fleet:ceiling_natural_bound:ratio",
    "1",
    "Ceiling over the natural bound: from 1 on it never binds.",
    lb.FLEET,
    lb.CEILING,
)
CLIPPED = recorded(
    "clipped",
    "fleet:barrier_clipped_ratio:max",
    "ratio",
    "Share of the barriers with a fan-out over the ceiling.",
    lb.FLEET,
    lb.CEILING,
)
CEILING_VERDICT = recorded(
    "ceiling_verdict",
    "fleet:ceiling_state:max",
    "bool",
    "1 for the state the ceiling is in: clips, inert or unmeasured.",
    lb.FLEET,
    lb.CEILING,
    lb.STATE,
)
WAITING_CAUSE = recorded(
    "waiting_cause",
    "backend:waiting_seconds:rate5m",
    "1",
    "Seconds waited per second in the backend, by cause: the mean number of requests that wait for it.",
    lb.BACKEND,
    lb.CAUSE,
)
FLEET_WAITING_CAUSE = recorded(
    "fleet_waiting_cause",
    "fleet:waiting_seconds:rate5m",
    "1",
    "Seconds waited per second before any backend: for a slot of the caller's own limiter.",
    lb.FLEET,
    lb.CAUSE,
)
