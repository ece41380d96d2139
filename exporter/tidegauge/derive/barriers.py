"""Barriers inferred from the servers alone: fan-out, duration, and the caller's plateau.

Arrivals of a backend between two polls are what finished plus the change of what is in flight, never below 0. They are
cut into barriers by what can be said of the moment between two of them: the whole fleet was idle. A call in flight over
a whole interval proves that it was not, and every arrival up to there belongs to the barrier that is open. Where the
fleet may have been idle, arrivals open the next barrier, unless

- they are the rest of the launch: the backend has finished none of its calls yet (it may have been polled in the middle
  of the launch, or its page may be an engine step old), or has seen none yet and is polled for the first time since;
- fleet and backend are above half of what they hold at most: then arrivals replace completions under the caller's
  ceiling (see `Ceilings.exhausted`).

After an observed drain (nothing in flight anywhere) arrivals always open a barrier. No threshold depends on how long
calls take or how many there are; times are in poll intervals, counts against counts.

Resolution: a pause that falls between two polls of a backend under a ceiling, with in-flight above half before and
after, is not seen, and two barriers become one. See docs/barriers.md for what poll interval a spacing needs.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

import attrs

from tidegauge.derive.burstiness import ArrivalRates
from tidegauge.derive.moves import LEAST_PAUSE, Move, Moves, Reading
from tidegauge.derive.segments import Ceilings, Segment
from tidegauge.derive.steadiness import Arrivals, Steadiness

HELD: Final = 256
"""Would-be barriers that are kept until it is sure that they are barriers; older ones are given up."""


@attrs.frozen
class InferredBarrier:
    """A barrier as the servers saw it: unix seconds, each time right to one poll interval.

    `fan_out` counts calls over all backends; at most `peak` were in flight at once, and `replaced` of them came in
    place of completed ones. `plateau` is the caller's ceiling as observed, None where the barrier did not run into one;
    `departed` of its calls (or of those before them) left without finishing.
    """

    opened_at: float
    seconds: float
    fan_out: int
    peak: float
    replaced: float
    plateau: float | None = None
    departed: int = 0

    @property
    def clipped(self) -> bool:
        """Whether the caller's limiter held calls back."""
        return self.plateau is not None

    @property
    def maybe_merged(self) -> bool:
        """Whether it may be several seen as one.

        Those show more calls than were ever in flight at once, some of them in place of completed ones. So does one
        barrier whose caller held calls back: the servers alone cannot tell the two apart.
        """
        return self.replaced > 0 and self.fan_out > self.peak


@attrs.frozen
class Confidence:
    """How sure a fleet's barriers are.

    `log_ratio` is the log likelihood ratio of bursts to steady traffic over the last would-be barriers, `sure`
    whether it is enough. `counts` tells what became of would-be barriers: `barriers` were reported; `blurred` ones
    are real but a missing poll, a restart or an outage hides part of them; `steady` ones look like steady traffic;
    `unsure` ones were given up. `waiting` ones are held until it is sure, `open` is the fan-out so far of the one
    under way.
    """

    log_ratio: float
    sure: bool
    counts: Mapping[str, int]
    waiting: int
    open: int | None


class BarrierTracker:
    """Follows one fleet. *interval* is the usual time between two polls, *window* that of burstiness, both in seconds.

    The same readings in the same order give the same barriers, live or from captures. *moved* hears of every move that
    the readings come to, in order. Memory is bounded by the number of backends.
    """

    def __init__(self, interval: float, window: float = 900.0, moved: Callable[[Move], None] = lambda _: None) -> None:
        self._interval = interval
        self._moved = moved
        self._rates = ArrivalRates(window)
        self._moves = Moves(interval)
        self._in_flight: dict[str, float] = {}
        self._total = 0.0
        self._settled = self._ended = float("-inf")
        self._lost: dict[str, float] = {}
        self._segment: Segment | None = None
        self._ceilings = Ceilings()
        self._steadiness = Steadiness(interval)
        self._held: deque[InferredBarrier | None] = deque()
        self._counts: Counter[str] = Counter()

    def feed(self, reading: Reading) -> list[InferredBarrier]:
        """Take one poll of one backend, in order of time; the barriers that are now over and sure, oldest first."""
        return self._take(self._moves.feed(reading))

    def finish(self) -> list[InferredBarrier]:
        """The record ends here: barriers that were only waiting for the next poll."""
        return [*self._take(self._moves.rest()), *self._settle()]

    def _take(self, moves: Iterable[Move]) -> list[InferredBarrier]:
        found: list[InferredBarrier] = []
        for move in moves:
            self._moved(move)
            if move.at > self._settled + LEAST_PAUSE * self._interval:
                found += self._settle()
                self._settled = move.at
            found += self._follow(move)
        return found

    def burstiness(self, now: float) -> float | None:
        """P99 of the fleet's arrivals per second over their mean, None if nothing arrived in the window."""
        return self._rates.value(now)

    def confidence(self) -> Confidence:
        """How sure the fleet's barriers are as of the last poll."""
        waiting = sum(barrier is not None for barrier in self._held)
        fan_out = None if self._segment is None else round(self._segment.fan_out)
        steadiness = self._steadiness
        return Confidence(steadiness.log_ratio, steadiness.sure, dict(self._counts), waiting, fan_out)

    def _follow(self, move: Move) -> list[InferredBarrier]:
        found: list[InferredBarrier] = []
        if move.lost:
            self._outage(move)
        elif move.arrived > 0 or (not move.known and move.after > 0):
            found += self._arrival(move)
        late = self._segment.take(move, self._interval) if self._segment else False
        if move.known:
            self._rates.add(move.since, move.at, move.arrived)
            self._steadiness.add(Arrivals(move.at, move.at - move.since, move.arrived, self._total, late))
        self._count(move)
        self._ended = (move.since + move.at) / 2
        return found

    def _settle(self) -> list[InferredBarrier]:
        """Look at the fleet as the polls up to now left it.

        Backends that are polled together are looked at together: half of them would be old and half new.
        """
        segment = self._segment
        if segment is None:
            return []
        segment.peak = max(segment.peak, self._total)
        return self._close(segment, self._ended) if self._drained(segment) else []

    def _outage(self, move: Move) -> None:
        """A backend went out of service: if its part of a launch was not seen yet, it never will be."""
        self._lost[move.backend] = move.at
        segment = self._segment
        if segment is not None and move.backend not in segment.parts:
            segment.blurred = True
            segment.waits_for.add(move.backend)

    def _count(self, move: Move) -> None:
        self._total += move.after - self._in_flight.get(move.backend, 0.0)
        self._in_flight[move.backend] = move.after
        if move.lost:
            del self._in_flight[move.backend]
        else:
            self._lost.pop(move.backend, None)

    def _arrival(self, move: Move) -> list[InferredBarrier]:
        """Calls arrived: they may open a barrier, and thereby close the one before."""
        before = self._segment
        since = max(move.since, move.at - self._interval)
        if before is None:
            self._open(move, since, blurred=not move.known)
            return []
        if not self._opens(before, move):
            return []
        found = self._close(before, since)
        self._open(move, since, blurred=bool(before.waits_for))
        return found

    def _opens(self, segment: Segment, move: Move) -> bool:
        """Whether arrivals open the next barrier; the rules are at the head of this module."""
        if not move.known or move.since < segment.since or not move.drained:
            return False
        if not self._moves.may_have_paused(max(move.since, segment.since), move.at):
            return False
        part = segment.parts.get(move.backend)
        if part is not None and part.calls:
            launching = part.fresh
        else:
            first_poll = move.since <= segment.first + LEAST_PAUSE * self._interval
            launching = first_poll or move.backend in segment.waits_for
        return not launching and (self._total <= 0 or self._ceilings.exhausted(self._total, move, segment))

    def _open(self, move: Move, since: float, *, blurred: bool) -> None:
        self._lost = {name: at for name, at in self._lost.items() if at >= since - self._interval}
        missing = set(self._lost)
        self._ceilings.opened()
        self._segment = Segment(since, move.at, blurred=blurred or bool(missing), waits_for=missing)

    def _drained(self, segment: Segment) -> bool:
        """Whether every backend in service has been polled since the launch, and nothing is in flight."""
        return self._total <= 0 and not segment.waits_for and self._in_flight.keys() <= segment.parts.keys()

    def _close(self, segment: Segment, at: float) -> list[InferredBarrier]:
        self._segment = None
        fan_out = round(segment.fan_out)
        episode = self._steadiness.close()
        if fan_out <= 0 and not segment.blurred:
            return self._hold(None, None)
        plateau = self._ceilings.close(segment)
        seconds = max(at - segment.opened_at, 0.0)
        barrier = InferredBarrier(
            segment.opened_at, seconds, fan_out, segment.peak, segment.replaced, plateau, round(segment.departed)
        )
        reason = "blurred" if segment.blurred else "steady" if episode.steady else None
        return self._hold(barrier if reason is None else None, reason)

    def _hold(self, barrier: InferredBarrier | None, reason: str | None) -> list[InferredBarrier]:
        """Keep a would-be barrier until the evidence is enough, then give those out that carry it."""
        if reason is not None:
            self._counts[reason] += 1
        self._held.append(barrier)
        keep = self._steadiness.run if self._steadiness.sure else HELD
        while len(self._held) > keep:
            self._counts["unsure"] += self._held.popleft() is not None
        if not self._steadiness.sure:
            return []
        found = [held for held in self._held if held is not None]
        self._held.clear()
        self._counts["barriers"] += len(found)
        return found


def usual_interval(times: Mapping[str, Sequence[float]]) -> float:
    """The usual time between two polls of a backend, in seconds, from the times of each backend's polls; at least 1 ms.

    Raises ValueError if no backend was polled twice.
    """
    steps = [b - a for polls in times.values() for a, b in pairwise(polls)]
    if not steps:
        msg = "barriers need at least two polls of a backend"
        raise ValueError(msg)
    return max(median(steps), 1e-3)


def infer(readings: Iterable[Reading]) -> tuple[list[InferredBarrier], Confidence]:
    """The barriers of a fleet's whole record (of captures given together), in order of time, and how sure they are.

    Of a record with fewer than two polls of any backend nothing is known.
    """
    ordered = sorted(readings, key=lambda reading: reading.at)
    times: dict[str, list[float]] = {}
    for reading in ordered:
        times.setdefault(reading.backend, []).append(reading.at)
    if all(len(polls) < 2 for polls in times.values()):
        return [], Confidence(0.0, sure=False, counts={}, waiting=0, open=None)
    tracker = BarrierTracker(usual_interval(times))
    found = [barrier for reading in ordered for barrier in tracker.feed(reading)]
    found += tracker.finish()
    return found, tracker.confidence()
