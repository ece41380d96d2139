"""One would-be barrier while it is under way, and the ceiling that the last ones ran into.

What is known of a barrier's course: its calls are launched at once, as many as the caller's ceiling allows; while the
caller holds calls back, each completion is replaced by one of them; then in-flight falls until none is left, and only
then the next barrier opens. So a barrier's in-flight rises, stays, and falls.
"""

from collections import deque
from statistics import multimode
from typing import Final

import attrs

from tidegauge.derive.moves import Move

LONG: Final = 2.5
"""Poll intervals from which on a move may hide one barrier's end and the next one's beginning: two polls missed."""
ENOUGH: Final = 3
"""Barriers larger than a ceiling that it takes to show it: one launch in the middle of a poll looks like a ceiling."""
RECENT: Final = 16
"""Barriers over which a ceiling is looked for: a caller that changes its ceiling is followed within so many."""


@attrs.define
class Part:
    """One backend's part in a barrier: `owed` was in flight before its first call, `peak` the most in flight since."""

    owed: float
    calls: float = 0.0
    finished: float = 0.0
    peak: float = 0.0

    @property
    def fresh(self) -> bool:
        """Whether none of its calls has finished: as far as this backend tells, the launch may still be going on."""
        return self.finished <= self.owed


@attrs.define
class Segment:
    """A would-be barrier: `since` is the last time at which it had not opened, `first` the poll that showed it.

    `late` calls came when their backend had been polled since the launch, `launched_with` was in flight in the fleet
    when the first of them did. `waits_for` are backends that went out of service while it opened: their part cannot be
    seen.
    """

    since: float
    first: float
    parts: dict[str, Part] = attrs.field(factory=dict)
    fan_out: float = 0.0
    departed: float = 0.0
    late: float = 0.0
    launched_with: float | None = None
    peak: float = 0.0
    blurred: bool = False
    waits_for: set[str] = attrs.field(factory=set)

    @property
    def opened_at(self) -> float:
        """The middle of the interval in which it opened."""
        return (self.since + self.first) / 2

    def launched(self, backend: str) -> bool:
        """Whether the backend's part of the launch is over: some of its calls have finished."""
        part = self.parts.get(backend)
        return part is not None and part.calls > 0 and not part.fresh

    @property
    def replaced(self) -> float:
        """How many calls came in place of completed ones: those after the launch that did not raise in-flight."""
        return self.late - (0.0 if self.launched_with is None else self.peak - self.launched_with)

    def take(self, move: Move, interval: float) -> bool:
        """Book what a backend did; whether its arrivals came after its launch."""
        part = self.parts.get(move.backend)
        late = move.arrived > 0 and self.launched(move.backend)
        if part is None:
            part = self.parts[move.backend] = Part(owed=move.before)
        elif move.arrived:
            self.late += move.arrived
            if self.launched_with is None:
                self.launched_with = self.peak
        if move.arrived:
            self.waits_for.discard(move.backend)
        self.blurred |= self._hides(move, interval)
        part.calls += move.arrived
        part.finished += move.finished
        part.peak = max(part.peak, move.after)
        self.fan_out += move.arrived - move.retracted
        self.departed += move.departed
        return late

    @staticmethod
    def _hides(move: Move, interval: float) -> bool:
        """Whether fan-out may be wrong: nothing is known of a long time, or lost calls may have been sent again."""
        unknown = not move.known and not move.lost and (move.since < move.at or move.after > 0)
        long = move.arrived > 0 and move.drained and move.at - move.since > LONG * interval
        again = move.restarted and move.before > 0 and move.arrived > 0
        return unknown or long or again


@attrs.frozen
class _Past:
    peak: float
    peaks: dict[str, float]
    fan_out: float
    replaced: float


class Ceilings:
    """The most that was in flight during the last barriers, of the fleet and of each backend."""

    def __init__(self) -> None:
        self._past: deque[_Past] = deque(maxlen=RECENT)
        self._high: deque[bool] = deque(maxlen=4 * RECENT)
        self._fleet = 0.0
        self._backends: dict[str, float] = {}

    def exhausted(self, in_flight: float, move: Move, segment: Segment) -> bool:
        """Whether the caller of an open barrier can have held no call back, so that arrivals belong to the next one.

        While a caller holds calls back, a slot is empty only from a completion until the call that replaces it shows.
        That half of the slots are empty at the moment of a poll does not happen; in the fall at the end of a barrier
        in-flight goes from the ceiling to nothing, and polls find it in the lower half at least as often as in the
        upper. So half, of the fleet and of the backend, is where the two are told apart with the widest margin on both
        sides. Without a ceiling the largest barrier takes its place.

        For the same reason, arrivals at more than half are replacements if there is a ceiling, and then they are many
        to a barrier. While barriers outnumber them there is none, and arrivals that raise in-flight are the next
        barrier too: the fall was too quick to be seen.
        """
        part = segment.parts.get(move.backend)
        mine = max(self._backends.get(move.backend, 0.0), part.peak if part else 0.0)
        low = in_flight < max(self._fleet, segment.peak) / 2 and move.before < mine / 2
        if low:
            return True
        next_one = 2 * sum(self._high) < len(self._high) and move.after > move.before
        self._high.append(True)
        return next_one

    def opened(self) -> None:
        """A barrier opened."""
        self._high.append(False)

    def close(self, segment: Segment) -> float | None:
        """Take a finished barrier; the ceiling that its caller ran into, None if it did not.

        The last barriers are judged together, those larger than the height at which most peaks lie: if that is a
        ceiling, the calls beyond it came in place of completed ones. At least half of them must be seen to (polls miss
        some), and most of those barriers must show some and peak as near to it as a count of that size can be told (two
        standard deviations). Two barriers seen as one look clipped too, and so does a launch in the middle of a poll,
        but they are few.
        """
        peaks = {name: part.peak for name, part in segment.parts.items()}
        self._past.append(_Past(segment.peak, peaks, segment.fan_out, segment.replaced))
        self._recount()
        height = self._height()
        larger = [past for past in self._past if past.fan_out > height]
        beyond = sum(past.fan_out - height for past in larger)
        like = sum(past.replaced > 0 and abs(past.peak - height) <= 2 * height**0.5 for past in larger)
        real = 2 * sum(past.replaced for past in larger) >= beyond and 2 * like > len(larger) >= ENOUGH
        return height if real and segment.fan_out > height else None

    def _height(self) -> float:
        """The commonest peak of the last barriers that saw replacement, the larger of two; of all, if none did."""
        seen = [past.peak for past in self._past if past.replaced > 0] or [past.peak for past in self._past]
        return max(multimode(seen))

    def _recount(self) -> None:
        self._fleet = max(past.peak for past in self._past)
        self._backends = {}
        for past in self._past:
            for name, peak in past.peaks.items():
                self._backends[name] = max(self._backends.get(name, 0.0), peak)
