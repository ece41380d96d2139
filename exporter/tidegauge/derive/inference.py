"""One fleet's load as its servers show it, poll by poll: barriers inferred, arrivals, burstiness.

Incremental, so that live runs and captures share it; memory is bounded by the window and the number of backends.
"""

from collections import deque
from collections.abc import Mapping
from typing import Final

import attrs

from tidegauge.derive.barriers import BarrierTracker, Confidence, InferredBarrier
from tidegauge.derive.burstiness import ArrivalRates
from tidegauge.derive.moves import Reading
from tidegauge.model import Barrier

KEPT: Final = 50_000
_BURST_SPAN: Final = 900.0


@attrs.frozen
class Inferred:
    """A fleet at one moment.

    `barriers` are those of the window, oldest first, each with the plateau it ran into as its client ceiling;
    `plateau` is the last one seen in the window, `largest` the largest fan-out ever; `arrivals` and `departed` count
    requests by backend since the start.
    """

    fleet: str
    barriers: tuple[Barrier, ...]
    barriers_total: int
    largest: int | None
    plateau: float | None
    confidence: Confidence
    burstiness: float | None
    arrivals: Mapping[str, float]
    departed: Mapping[str, float]


class FleetInference:
    """Follows one fleet over *span* seconds; *interval* is the usual time between two polls of a backend."""

    def __init__(self, fleet: str, span: float, interval: float, largest: int | None = None) -> None:
        self.fleet = fleet
        self.largest = largest
        self._span = span
        self._tracker = BarrierTracker(interval)
        self._rates = ArrivalRates(_BURST_SPAN)
        self._barriers: deque[InferredBarrier] = deque(maxlen=KEPT)
        self._total = 0
        self._last: dict[str, Reading] = {}
        self._arrivals: dict[str, float] = {}
        self._departed: dict[str, float] = {}

    def feed(self, reading: Reading) -> None:
        """Take one poll of one backend."""
        found = self._tracker.feed(reading)
        self._barriers.extend(found)
        self._total += len(found)
        self.largest = max([self.largest or 0, *(barrier.fan_out for barrier in found)]) or None
        self._count(reading)

    def snapshot(self, now: float) -> Inferred:
        """The fleet as of *now*; what is older than the window has left."""
        while self._barriers and self._barriers[0].opened_at < now - self._span:
            self._barriers.popleft()
        plateaus = [barrier.plateau for barrier in self._barriers if barrier.plateau is not None]
        return Inferred(
            fleet=self.fleet,
            barriers=tuple(_barrier(barrier) for barrier in self._barriers),
            barriers_total=self._total,
            largest=self.largest,
            plateau=plateaus[-1] if plateaus else None,
            confidence=self._tracker.confidence(),
            burstiness=self._rates.value(now),
            arrivals=dict(self._arrivals),
            departed=dict(self._departed),
        )

    def _count(self, reading: Reading) -> None:
        """Arrivals are what finished and what is in flight more than before; below zero, that many left unfinished."""
        last = self._last.get(reading.backend)
        if reading.in_flight is None:
            return
        self._last[reading.backend] = reading
        name = reading.backend
        self._arrivals.setdefault(name, 0.0)
        self._departed.setdefault(name, 0.0)
        if reading.finished is None or last is None or last.in_flight is None:
            return
        before = 0.0 if reading.restarted else last.in_flight
        arrived = reading.finished + reading.in_flight - before
        self._arrivals[name] += max(arrived, 0.0)
        self._departed[name] += max(-arrived, 0.0) + (last.in_flight if reading.restarted else 0.0)
        self._rates.add(last.at, reading.at, max(arrived, 0.0))


def _barrier(one: InferredBarrier) -> Barrier:
    ceilings = (("client", one.plateau),) if one.plateau is not None else ()
    return Barrier(one.opened_at, one.fan_out, one.seconds, ceilings)
