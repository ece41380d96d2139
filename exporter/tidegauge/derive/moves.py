"""Polls of a fleet's backends, put in order: what each of them saw arrive and leave, and when some must have been busy.

Backends are polled each at its own phase, late, or not at all, so there is no moment at which a whole fleet is known.
Rounding polls to common ticks would put one burst into two ticks and hide a pause that every backend's own polls allow.
So nothing is rounded. A poll says what happened in the interval since the poll before; it is handed on in order of time
as soon as every backend in service has been polled past it, at most one interval later. By then it is known of every
moment before it whether any backend must have been busy then: an interval that some call spent in flight from end to
end covers it. A moment that no such interval covers is one at which the fleet may have been idle.
"""

import heapq
from collections import OrderedDict
from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.model import Page
from tidegauge.state.increases import Increase

OUT_AFTER: Final = 3.5
"""Poll intervals without a page after which a backend is out of service: three polls missed, and half for lateness."""
LEAST_PAUSE: Final = 0.1
"""Poll intervals that a pause must last to count: gauges are as old as an engine step, so finer times mean nothing."""


@attrs.frozen
class Reading:
    """One poll of one backend: unix seconds, calls in flight (running and waiting), and finished since the poll before.

    `in_flight` None is a poll that gave no page; `finished` None says that the counters cannot be compared with the
    poll before (the first page, a gap). With `restarted` the server is another process, and `finished` counts from its
    start. A `blank` page has no gauges: a server of several processes exports none before its first call, so it counts
    as idle until some were seen.
    """

    backend: str
    at: float
    in_flight: float | None
    finished: float | None = None
    restarted: bool = False
    blank: bool = False


def reading_of(backend: str, page: Page, increase: Increase) -> Reading:
    """The reading of one usable page and its increase since the page before."""
    held = [value for key, value in page.values.items() if key.family in (vllm.RUNNING, vllm.WAITING)]
    counts = [value for key, value in page.values.items() if key.family == vllm.FINISHED]
    if not counts or increase.foreign:
        return Reading(backend, increase.at, None)
    left_out = increase.dropped.keys() & {"gap", "reset", "other_server"}
    restarted = increase.restarted and left_out <= {"reset"}
    finished: float | None = sum(value for key, value in increase.counters.items() if key.family == vllm.FINISHED)
    if restarted:
        finished = sum(counts)
    elif left_out or not increase.seconds:
        finished = None
    return Reading(backend, increase.at, sum(held), finished, restarted, blank=not held)


@attrs.frozen
class Move:
    """What one backend did between two polls, at `since` and `at`.

    `before` and `after` are in flight at the two; `arrived` and `finished` happened between them, `departed` left
    without finishing (an abort, a restart), `retracted` arrivals of the move before turned out to be a torn page.
    `restarted` is true where another process took over, `known` is false where arrivals could not be told; `lost`
    is true for the move that ends a backend's service: it was not polled again.
    """

    backend: str
    since: float
    at: float
    before: float
    after: float
    arrived: float = 0.0
    finished: float = 0.0
    departed: float = 0.0
    retracted: float = 0.0
    restarted: bool = False
    known: bool = True
    lost: bool = False

    @property
    def drained(self) -> bool:
        """Whether all that was in flight at first has left, so that the backend may have been idle in between."""
        return self.finished + self.departed >= self.before


@attrs.define
class _Last:
    at: float
    in_flight: float
    blank: bool
    surplus: float


class Moves:
    """Turns readings into moves, in order of time. *interval* is the usual time between two polls, in seconds."""

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self._last: OrderedDict[str, _Last] = OrderedDict()
        self._pending: list[tuple[float, int, Move]] = []
        self._count = 0
        self._clock = float("-inf")
        self._busy = BusySpans(LEAST_PAUSE * interval)

    def feed(self, reading: Reading) -> list[Move]:
        """Take a reading; the moves that are now complete, oldest first. A reading from the past is left out."""
        self._clock = max(self._clock, reading.at)
        last = self._last.get(reading.backend)
        damaged = reading.blank and last is not None and not (last.blank or reading.restarted)
        if reading.in_flight is not None and not damaged and (last is None or reading.at > last.at):
            self._take(reading, reading.in_flight, last)
        self._retire()
        return self._complete(next(iter(self._last.values())).at if self._last else self._clock)

    def rest(self) -> list[Move]:
        """The moves that still wait for a backend to be polled; for the end of a record."""
        return self._complete(self._clock)

    def may_have_paused(self, since: float, at: float) -> bool:
        """Whether the fleet may have been idle for a moment between the two times."""
        return self._busy.leaves_room(since, at)

    def _take(self, reading: Reading, in_flight: float, last: _Last | None) -> None:
        move, surplus = _move(reading, in_flight, last)
        self._last[reading.backend] = _Last(reading.at, in_flight, reading.blank, surplus)
        self._last.move_to_end(reading.backend)
        if not move.drained:
            self._busy.add(move.since, move.at)
        self._push(move)

    def _push(self, move: Move) -> None:
        self._count += 1
        heapq.heappush(self._pending, (move.at, self._count, move))

    def _retire(self) -> None:
        """Stop waiting for backends that have not been polled for long; what they had in flight is not known."""
        oldest = self._clock - OUT_AFTER * self.interval
        while self._last:
            name, last = next(iter(self._last.items()))
            if last.at >= oldest:
                return
            del self._last[name]
            lost = Move(name, last.at, last.at, last.in_flight, 0.0, departed=last.in_flight, known=False, lost=True)
            self._push(lost)

    def _complete(self, horizon: float) -> list[Move]:
        done: list[Move] = []
        while self._pending and self._pending[0][0] <= horizon:
            done.append(heapq.heappop(self._pending)[2])
        if done:
            self._busy.forget(horizon - 2 * OUT_AFTER * self.interval)
        return done


def _move(reading: Reading, now: float, last: _Last | None) -> tuple[Move, float]:
    """The move that a reading ends, and by how much its arrivals may be torn.

    A page is answered while requests are booked, so it may show one of them as finished and still in flight, or as
    neither: one arrival that was none and one departure in the next poll, or the other way round. Such a pair is
    cancelled when it is all that arrived; more than one at once is no torn page.
    """
    at = reading.at
    if last is None or reading.restarted:
        return _first(reading, now, last), 0.0
    if reading.finished is None:
        return Move(reading.backend, last.at, at, last.in_flight, now, departed=last.in_flight, known=False), 0.0
    arrived = reading.finished + now - last.in_flight
    torn = last.surplus == -arrived and abs(arrived) == 1
    return (
        Move(
            reading.backend,
            last.at,
            at,
            last.in_flight,
            now,
            0.0 if torn else max(arrived, 0.0),
            reading.finished,
            0.0 if torn else max(-arrived, 0.0),
            retracted=1.0 if torn and arrived < 0 else 0.0,
        ),
        0.0 if torn or (arrived > 0 and not reading.finished) else arrived,
    )


def _first(reading: Reading, now: float, last: _Last | None) -> Move:
    """The first move of a backend, or of another process in its place: what was in flight before is gone."""
    since, before = (reading.at, 0.0) if last is None else (last.at, last.in_flight)
    if not reading.restarted:
        return Move(reading.backend, since, reading.at, before, now, departed=before, known=False)
    finished = reading.finished or 0.0
    return Move(reading.backend, since, reading.at, before, now, now + finished, finished, before, restarted=True)


class BusySpans:
    """Times at which some backend must have been busy, as few spans as possible."""

    def __init__(self, least: float) -> None:
        """*least* is the shortest gap between spans, in seconds, that counts as one."""
        self._least = least
        self._spans: list[tuple[float, float]] = []

    def add(self, since: float, at: float) -> None:
        """A backend was busy all the time from *since* to *at*."""
        kept = [span for span in self._spans if span[1] < since or span[0] > at]
        touched = [span for span in self._spans if span[1] >= since and span[0] <= at]
        merged = (min([since, *(start for start, _ in touched)]), max([at, *(end for _, end in touched)]))
        self._spans = sorted([*kept, merged])

    def leaves_room(self, since: float, at: float) -> bool:
        """Whether between the two times there is a gap long enough."""
        free = since
        for start, end in self._spans:
            if end <= free:
                continue
            if min(start, at) - free >= self._least:
                return True
            free = max(free, end)
            if free >= at:
                return False
        return at - free >= self._least

    def forget(self, before: float) -> None:
        """Let go of what ended before a time."""
        if self._spans and self._spans[0][1] < before:
            self._spans = [span for span in self._spans if span[1] >= before]
