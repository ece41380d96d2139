"""What the callers of one fleet report: barriers, the limiter's ceiling, waits for a slot."""

from bisect import bisect_left
from collections import Counter, OrderedDict, deque
from collections.abc import Mapping
from math import inf
from typing import Final

import attrs

from tidegauge.catalogue import exported
from tidegauge.model import Barrier, Histogram, SeriesKey
from tidegauge.parsing.events import BarrierClosed, BarrierOpened, Batch, Ceiling, Event, Healthy, Wait
from tidegauge.state.increases import Increase
from tidegauge.state.limiter import Limiter, LimiterState
from tidegauge.state.namesakes import Namesakes
from tidegauge.state.windows import Window

EDGES: Final = (*exported.CALLER_WAIT.buckets, inf)
OPEN_BARRIERS: Final = 10_000
CLOSED_BARRIERS: Final = 50_000
CALLERS_PER_FLEET: Final = 100
_WAIT: Final = SeriesKey("caller_wait")


@attrs.frozen
class FleetCallers:
    """A fleet's callers at one moment.

    `barriers` are those of the window, oldest first; `waits` is the window's histogram of waits for a slot,
    `all_waits` the one since start, `edge` the wait up to which nothing counts as a wait; `ceiling` and `healthy` are
    the smallest that callers report who were heard of within the window; where none does, `ceiling` is the one of the
    limiter's log, and `ceiling_source` says so. `conflicts` counts the signs that two processes use one name.
    """

    fleet: str
    barriers: tuple[Barrier, ...]
    barriers_total: int
    largest: int | None
    ceiling: float | None
    healthy: float | None
    waits: Histogram | None
    all_waits: Histogram
    results: Mapping[str, int]
    edge: float
    ceiling_source: str = "reported"
    limiter: Limiter | None = None
    conflicts: int = 0


class FleetCallersState:
    """Collects the events of one fleet's callers over *span* seconds; memory is bounded whatever they send."""

    def __init__(
        self, fleet: str, span: float, edge: float, largest: int | None = None, callers: int = CALLERS_PER_FLEET
    ) -> None:
        self.fleet = fleet
        self.most_callers = callers
        self.largest = largest
        self._span = span
        self._edge = edge
        self._edges = tuple(sorted({edge, *EDGES}))
        self._window = Window(span)
        self._open: OrderedDict[tuple[str, str], Barrier] = OrderedDict()
        self._closed: deque[Barrier] = deque(maxlen=CLOSED_BARRIERS)
        self._barriers_total = 0
        self._ceilings: dict[str, tuple[float, float]] = {}
        self._healthy: dict[str, tuple[float, float]] = {}
        self._heard: OrderedDict[str, float] = OrderedDict()
        self._all = Histogram(self._edges, (0.0,) * len(self._edges), 0.0, 0.0)
        self._results: Counter[str] = Counter()
        self._namesakes = Namesakes()
        self._done: OrderedDict[tuple[str, str], Barrier] = OrderedDict()
        self.limiter: LimiterState | None = None

    @property
    def silent(self) -> bool:
        """Whether no caller has told anything yet."""
        return not self._results

    def opened(self, caller: str, barrier_id: str, at: float, fan_out: int) -> None:
        """A barrier opened; an id that is already open is a duplicate and changes nothing.

        So is one that was closed, if it opened at the same moment; at another it is a barrier of its own.
        """
        key = (caller, barrier_id)
        known = self._open.get(key) or self._done.get(key)
        again = known is not None and (known.at, known.fan_out) == (at, fan_out)
        if key in self._open or again:
            self._results["duplicate"] += 1
            if not again:
                self._namesakes.clash()
            return
        self._open[key] = Barrier(at, fan_out, None, self._met(caller))
        self.largest = max(self.largest or 0, fan_out)
        self._barriers_total += 1
        self._results["accepted"] += 1
        if len(self._open) > OPEN_BARRIERS:
            self._closed.append(self._open.popitem(last=False)[1])
            self._results["abandoned"] += 1

    def _met(self, caller: str) -> tuple[tuple[str, float], ...]:
        """The ceiling that a barrier of *caller* meets: its own, else the one of the limiter's log."""
        if caller in self._ceilings:
            return (("client", self._ceilings[caller][1]),)
        logged = self.limiter.ceiling if self.limiter is not None else None
        return (("client", logged),) if logged is not None else ()

    def closed(self, caller: str, barrier_id: str, at: float) -> None:
        """The barrier's last call returned."""
        key = (caller, barrier_id)
        barrier = self._open.pop(key, None)
        if barrier is None:
            self._results["duplicate" if key in self._done else "unmatched"] += 1
            return
        self._closed.append(attrs.evolve(barrier, seconds=max(at - barrier.at, 0.0)))
        self._results["accepted"] += 1
        self._done[key] = barrier
        self._done.move_to_end(key)
        if len(self._done) > OPEN_BARRIERS:
            self._done.popitem(last=False)

    def waited(self, at: float, waits: tuple[float, ...]) -> None:
        """Requests waited so many seconds each for their caller's slot."""
        if not waits:
            return
        rise = _histogram(waits, self._edges)
        self._window.add(Increase(at, 0.0, {}, {_WAIT: rise}))
        self._all = Histogram(
            self._edges,
            tuple(a + b for a, b in zip(self._all.cumulative, rise.cumulative, strict=True)),
            (self._all.sum or 0.0) + sum(waits),
            (self._all.count or 0.0) + len(waits),
        )
        self._results["accepted"] += 1

    def ceiling(self, caller: str, at: float, value: float) -> None:
        """The caller's limiter lets so many requests through at once."""
        self._latest(self._ceilings, caller, at, value)

    def healthy(self, caller: str, at: float, value: float) -> None:
        """The caller believes so many backends to be healthy."""
        self._latest(self._healthy, caller, at, value)

    def admits(self, batch: Batch) -> bool:
        """Whether the batch's caller is known, or there is room for one more beside those of the window."""
        if batch.caller in self._heard or len(self._heard) < self.most_callers:
            return True
        newest = max((event.at for event in batch.events), default=-inf)
        return next(iter(self._heard.values())) < newest - self._span

    def take(self, batch: Batch) -> None:
        """Take each event of a batch."""
        self._namesakes.meet(batch.caller, batch.instance)
        for event in batch.events:
            self.book(batch.caller, event, batch.instance)

    def book(self, caller: str, event: Event, instance: str = "") -> None:
        """Take one event of *caller*; barriers of its processes do not meet where it says which *instance* it is."""
        self._hear(caller, event.at)
        match event:
            case BarrierOpened():
                self.opened(caller, f"{instance} {event.id}", event.at, event.fan_out)
            case BarrierClosed():
                self.closed(caller, f"{instance} {event.id}", event.at)
            case Wait():
                self.waited(event.at, event.seconds)
            case Ceiling():
                self.ceiling(caller, event.at, event.value)
            case Healthy():
                self.healthy(caller, event.at, event.value)

    def snapshot(self, now: float) -> FleetCallers:
        """The fleet's callers as of *now*; what is older than the window has left."""
        self._forget(now - self._span)
        told = _smallest(self._ceilings)
        limiter = self.limiter.snapshot() if self.limiter is not None else None
        return FleetCallers(
            fleet=self.fleet,
            barriers=tuple(sorted((*self._closed, *self._open.values()), key=lambda barrier: barrier.at)),
            barriers_total=self._barriers_total,
            largest=self.largest,
            ceiling=limiter.ceiling if told is None and limiter is not None else told,
            healthy=_smallest(self._healthy),
            waits=self._window.total(now).histograms.get(_WAIT),
            all_waits=self._all,
            results=dict(self._results),
            edge=self._edge,
            ceiling_source="log" if told is None and limiter is not None else "reported",
            limiter=limiter,
            conflicts=self._namesakes.conflicts,
        )

    def _forget(self, oldest: float) -> None:
        """Let go of what is older than *oldest*: barriers by their opening, callers by their last word."""
        if any(barrier.at < oldest for barrier in self._closed):
            recent = [barrier for barrier in self._closed if barrier.at >= oldest]
            self._closed = deque(recent, maxlen=CLOSED_BARRIERS)
        for key in [key for key, barrier in self._open.items() if barrier.at < oldest]:
            del self._open[key]
            self._results["abandoned"] += 1
        for key in [key for key, barrier in self._done.items() if barrier.at < oldest]:
            del self._done[key]
        for caller in [caller for caller, at in self._heard.items() if at < oldest]:
            del self._heard[caller]
            self._silence(caller)

    def _latest(self, table: dict[str, tuple[float, float]], caller: str, at: float, value: float) -> None:
        if caller in table and table[caller][0] > at:
            self._results["out_of_order"] += 1
            return
        if table.get(caller) == (at, value):
            self._results["duplicate"] += 1
            return
        table[caller] = (at, value)
        self._results["accepted"] += 1
        self._hear(caller, at)

    def _hear(self, caller: str, at: float) -> None:
        """Note that *caller* lives; of too many, those not heard of for longest are forgotten."""
        self._heard[caller] = max(at, self._heard.get(caller, at))
        self._heard.move_to_end(caller)
        while len(self._heard) > self.most_callers:
            self._silence(self._heard.popitem(last=False)[0])

    def _silence(self, caller: str) -> None:
        self._ceilings.pop(caller, None)
        self._healthy.pop(caller, None)
        self._namesakes.forget(caller)


def _smallest(table: Mapping[str, tuple[float, float]]) -> float | None:
    return min((value for _, value in table.values()), default=None)


def _histogram(values: tuple[float, ...], edges: tuple[float, ...]) -> Histogram:
    counts = [0] * len(edges)
    for value in values:
        counts[bisect_left(edges, value)] += 1
    running, cumulative = 0, []
    for count in counts:
        running += count
        cumulative.append(float(running))
    return Histogram(edges, tuple(cumulative), sum(values), float(len(values)))
