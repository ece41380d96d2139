"""Which fleet a server is in."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

FLEET_MEMBER = recorded(
    "fleet_member",
    "fleet_backend:member:info",
    "bool",
    "1 for each backend and model, with the fleet the exporter names, else the model name.",
    lb.FLEET,
    lb.BACKEND,
    lb.MODEL_NAME,
)
