"""Servers of a fleet as its exporter counts them, and what arrives at them together."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

FLEET_DISTINCT_UP = recorded(
    "fleet_distinct_up",
    "fleet:backends_distinct_up:count",
    "1",
    "Servers of the fleet that the exporter reaches, each counted once; absent where it reaches none.",
    lb.FLEET,
)
FLEET_ARRIVAL_RATE = recorded(
    "fleet_arrival_rate",
    "fleet:arrivals:rate5m",
    "requests/s",
    "Requests per second that arrive at the fleet, from the exporter.",
    lb.FLEET,
)
