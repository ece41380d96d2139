"""One fleet's load as its servers show it, poll by poll: barriers inferred, arrivals, burstiness.

Incremental, so that live runs and captures share it; memory is bounded by the window and the number of backends.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Final

import attrs

from tidegauge.derive.barriers import BarrierTracker, Confidence, InferredBarrier
from tidegauge.derive.moves import Move, Reading
from tidegauge.model import Barrier

KEPT: Final = 50_000
LATEST: Final = 10
"""Barriers that tell the ceiling in force."""
FEW: Final = 10
"""Barriers below which their p90 is the largest of them: nothing is known of how often it is reached."""
LONGEST_BURSTS: Final = 86_400.0
"""Seconds of arrivals that are kept for burstiness at most, whatever the window."""


@attrs.frozen
class Grounds:
    """What the fan-out of the window's inferred barriers rests on.

    `few` says that they are fewer than FEW. `maybe_merged` of them may be several seen as one; `largest_maybe_merged`
    says so of the largest, of whose calls at most `largest_in_flight` were seen at once.
    """

    few: bool
    maybe_merged: int
    largest_maybe_merged: bool
    largest_in_flight: int


def grounds_of(barriers: Sequence[InferredBarrier]) -> Grounds | None:
    """What *barriers* tell of how sure their fan-out is, None for none."""
    if not barriers:
        return None
    # Of two that are as large, one that is sure to be a single barrier settles it.
    largest = max(barriers, key=lambda one: (one.fan_out, not one.maybe_merged))
    merged = sum(one.maybe_merged for one in barriers)
    return Grounds(len(barriers) < FEW, merged, largest.maybe_merged, round(largest.peak))


@attrs.frozen
class Inferred:
    """A fleet at one moment.

    `barriers` are those of the window, oldest first, each with the plateau it ran into as its client ceiling, and
    `grounds` what their fan-out rests on, None without one; `plateau` is the ceiling in force as observed (see
    `plateau_of`), `largest` the largest fan-out ever; `arrivals` and `departed` count requests by backend since the
    start.
    """

    fleet: str
    barriers: tuple[Barrier, ...]
    grounds: Grounds | None
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
        self.interval = interval
        self._span = span
        self._tracker = self._begun()
        self._barriers: deque[InferredBarrier] = deque(maxlen=KEPT)
        self._total = 0
        self._arrivals: dict[str, float] = {}
        self._departed: dict[str, float] = {}
        self._owed: dict[str, float] = {}

    def feed(self, reading: Reading) -> None:
        """Take one poll of one backend."""
        self._take(self._tracker.feed(reading))

    def poll_every(self, interval: float) -> None:
        """Take another usual time between two polls: what is under way is given up, what is known stays."""
        if interval != self.interval:
            self.interval = interval
            self._tracker = self._begun()

    def forget(self, backend: str) -> None:
        """The backend is polled no more, or another is under its name: its counts begin anew."""
        self._arrivals.pop(backend, None)
        self._departed.pop(backend, None)
        self._owed.pop(backend, None)

    def finish(self) -> None:
        """The record ends here: what only waited for another backend's poll counts now."""
        self._take(self._tracker.finish())

    def snapshot(self, now: float) -> Inferred:
        """The fleet as of *now*; what is older than the window has left."""
        while self._barriers and self._barriers[0].opened_at < now - self._span:
            self._barriers.popleft()
        return Inferred(
            fleet=self.fleet,
            barriers=tuple(_barrier(barrier) for barrier in self._barriers),
            grounds=grounds_of(self._barriers),
            barriers_total=self._total,
            largest=self.largest,
            plateau=plateau_of(self._barriers),
            confidence=self._tracker.confidence(),
            burstiness=self._tracker.burstiness(now),
            arrivals=dict(self._arrivals),
            departed=dict(self._departed),
        )

    def _begun(self) -> BarrierTracker:
        return BarrierTracker(self.interval, min(self._span, LONGEST_BURSTS), self._count)

    def _take(self, found: Sequence[InferredBarrier]) -> None:
        self._barriers.extend(found)
        self._total += len(found)
        self.largest = max([self.largest or 0, *(barrier.fan_out for barrier in found)]) or None

    def _count(self, move: Move) -> None:
        if move.lost:
            return
        name = move.backend
        arrived, departed = (move.arrived, move.departed) if move.known else (0.0, 0.0)
        # An arrival that turned out to be a torn page is made good by the next one: a counter never falls.
        owed = self._owed.pop(name, 0.0) + move.retracted
        if owed > arrived:
            self._owed[name] = owed - arrived
        self._arrivals[name] = self._arrivals.get(name, 0.0) + max(arrived - owed, 0.0)
        self._departed[name] = self._departed.get(name, 0.0) + departed


def plateau_of(barriers: Sequence[InferredBarrier]) -> float | None:
    """The caller's ceiling in force: the plateau of most of the latest barriers that are larger than the last one seen.

    None where fewer than two of them, or fewer than half, ran into one: a single plateau may be chance, and a ceiling
    that later and larger barriers do not meet has been raised.
    """
    last = next((barrier.plateau for barrier in reversed(barriers) if barrier.plateau is not None), None)
    if last is None:
        return None
    larger = [barrier.plateau for barrier in barriers if barrier.fan_out > last][-LATEST:]
    met = [plateau for plateau in larger if plateau is not None]
    return median_low(met) if len(met) >= max(2, len(larger) / 2) else None


def _barrier(one: InferredBarrier) -> Barrier:
    ceilings = (("client", one.plateau),) if one.plateau is not None else ()
    return Barrier(one.opened_at, one.fan_out, one.seconds, ceilings)
