"""Backends of a fleet held against each other."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_MODEL = (lb.BACKEND, lb.MODEL_NAME)

FLEET_E2E = recorded(
    "fleet_e2e",
    "fleet_backend:e2e_seconds:mean",
    "seconds",
    "Mean end-to-end time of each distinct backend of the fleet that served enough requests.",
    lb.FLEET,
    *_MODEL,
)
FLEET_SLOWEST = recorded(
    "fleet_slowest",
    "fleet_backend:e2e_seconds:slowest",
    "seconds",
    "The same, of the slowest backend only: its labels name it.",
    lb.FLEET,
    *_MODEL,
)
FLEET_SKEW = recorded(
    "fleet_skew",
    "fleet:e2e_seconds:max_min_ratio",
    "1",
    "Slowest over fastest backend of the fleet by mean end-to-end time.",
    lb.FLEET,
)
