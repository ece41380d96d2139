"""What a caller knows, as metrics of its own process; needs prometheus_client.

    from prometheus_client import start_http_server
    from tidegauge.caller import Reporter
    from tidegauge.caller.metrics import CallerMetrics

    start_http_server(9400)
    reporter = Reporter(None, fleet="agents", caller="sim-1", metrics=CallerMetrics())

Names, labels and buckets are those of the exporter's own series. A series appears once its figure was told.
"""

import math
import statistics
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 240.0, 480.0, math.inf)
_MOST: Final = 10_000
_SPACE: Final = "tidegauge"
_WAITED: Final = (
    "Seconds that requests waited: in a backend, booked to one cause per poll; for the caller's own slots, per fleet."
)


class _Fleet:
    """What was told of one fleet."""

    def __init__(self) -> None:
        self.waits = [0] * len(BUCKETS)
        self.waited = 0.0
        self.barriers = 0
        self.fan_outs: deque[tuple[float, int]] = deque(maxlen=_MOST)
        self.states: dict[str, float] = {}


class CallerMetrics(Collector):
    """The metrics of all reporters of one process; share one among the reporters of a registry.

    Fan-outs cover the last `window` seconds, 10,000 barriers at most; the others are counters, a histogram and
    states. Raises ValueError if the registry has such series already.
    """

    def __init__(
        self,
        registry: CollectorRegistry = REGISTRY,
        *,
        window: float = 900.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._window = window
        self._clock = clock
        self._fleets: dict[str, _Fleet] = {}
        # Reentrant, unlike the locks of prometheus_client: a signal handler may tell something while its thread does.
        self._lock = threading.RLock()
        registry.register(self)

    def told(self, fleet: str, event: Mapping[str, Any]) -> None:
        """Take one event, as the reporter sends it."""
        with self._lock:
            known = self._fleets.setdefault(fleet, _Fleet())
            match event["type"]:
                case "wait":
                    known.waits[bisect_left(BUCKETS, event["seconds"])] += 1
                    known.waited += event["seconds"]
                case "barrier_opened":
                    known.barriers += 1
                    known.fan_outs.append((self._clock(), event["fan_out"]))
                case "ceiling" | "healthy" as kind:
                    known.states[kind] = event["value"]

    def describe(self) -> list[Metric]:
        """The families without samples, by which a registry finds names that it has already."""
        return list(_families([], 0.0))

    def collect(self) -> Iterator[Metric]:
        """The families of the moment, those without a sample left out."""
        with self._lock:
            families = list(_families(sorted(self._fleets.items()), self._clock() - self._window))
        return (family for family in families if family.samples)


def _families(fleets: Sequence[tuple[str, _Fleet]], oldest: float) -> Iterator[Metric]:
    yield from _waits([(name, fleet) for name, fleet in fleets if any(fleet.waits)])
    yield from _barriers([(name, fleet) for name, fleet in fleets if fleet.barriers], oldest)
    yield from _states(fleets)


def _waits(fleets: Sequence[tuple[str, _Fleet]]) -> Iterator[Metric]:
    text = "Wait of a request for a slot of its caller's limiter."
    waits = HistogramMetricFamily(_name("caller_wait_seconds"), text, labels=("fleet",))
    waited = CounterMetricFamily(_name("waiting_seconds"), _WAITED, labels=("fleet", "cause"))
    for name, fleet in fleets:
        edges = ["+Inf" if math.isinf(edge) else str(edge) for edge in BUCKETS]
        buckets = list(zip(edges, accumulate(fleet.waits), strict=True))
        waits.add_metric((name,), buckets=buckets, sum_value=fleet.waited)
        waited.add_metric((name, "caller"), fleet.waited)
    yield waits
    yield waited


def _barriers(fleets: Sequence[tuple[str, _Fleet]], oldest: float) -> Iterator[Metric]:
    labels = ("fleet", "source")
    barriers = CounterMetricFamily(_name("barriers"), "Barriers seen.", labels=labels)
    text = "Requests launched at once per barrier in the window."
    fan_outs = GaugeMetricFamily(_name("barrier_fanout"), text, labels=(*labels, "stat"))
    for name, fleet in fleets:
        barriers.add_metric((name, "reported"), fleet.barriers)
        recent = sorted(fan_out for at, fan_out in fleet.fan_outs if at >= oldest)
        for stat, value in _order(recent) if recent else ():
            fan_outs.add_metric((name, "reported", stat), value)
    yield barriers
    yield fan_outs


def _states(fleets: Sequence[tuple[str, _Fleet]]) -> Iterator[Metric]:
    text = "Requests in flight that the ceiling lets through."
    ceiling = GaugeMetricFamily(_name("ceiling"), text, labels=("fleet", "ceiling", "source"))
    text = "Backends that the caller believes to be healthy."
    healthy = GaugeMetricFamily(_name("caller_healthy_backends"), text, labels=("fleet",))
    for name, fleet in fleets:
        if "ceiling" in fleet.states:
            ceiling.add_metric((name, "client", "reported"), fleet.states["ceiling"])
        if "healthy" in fleet.states:
            healthy.add_metric((name,), fleet.states["healthy"])
    yield ceiling
    yield healthy


def _name(key: str) -> str:
    return f"{_SPACE}_{key}"


def _order(ranked: Sequence[int]) -> tuple[tuple[str, float], ...]:
    """Median, p90 (nearest rank) and maximum of ascending values, as the exporter has them."""
    p90 = ranked[math.ceil(0.9 * len(ranked)) - 1]
    return ("median", statistics.median(ranked)), ("p90", p90), ("max", ranked[-1])
