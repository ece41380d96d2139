"""The workload on a fleet in simulated time: as fast as it computes, the same under the same seed, with the truth kept.

The caller in front of the fleet is the case's: one limiter for all backends, first come first served, `cap` calls in
flight (None: no limiter). A barrier opens when the last call of the one before has returned, after `pause` seconds.
"""

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import count, islice

import attrs

from tidegauge.demo.engine import Engine
from tidegauge.demo.pages import PageWriter
from tidegauge.demo.requests import Finished
from tidegauge.demo.workload import Call, Caller


@attrs.frozen
class Truth:
    """What happened to one call: handed to the limiter, sent to its backend, and the server's stamps, in seconds."""

    call: Call
    submitted: float
    sent: float
    served: Finished

    @property
    def limiter_wait(self) -> float:
        """Seconds the caller's own limiter held the call back; no server can see them."""
        return self.sent - self.submitted


@attrs.frozen
class Barrier:
    """One barrier as the caller saw it."""

    number: int
    fan_out: int
    opened: float
    closed: float


@attrs.frozen
class Scrape:
    """The page of one backend (an index into the fleet) at one moment."""

    ts: float
    backend: int
    page: str


@attrs.define
class _Flight:
    call: Call
    submitted: float
    sent: float = 0.0


class Simulation:
    """A fleet, a caller's limiter and simulated time. `truths` and `barriers` grow while a run goes on."""

    def __init__(self, fleet: Sequence[Engine], cap: int | None) -> None:
        if cap is not None and cap < 1:
            raise ValueError(f"a limiter needs at least one slot, not {cap}")
        self.fleet = tuple(fleet)
        self.cap = cap
        self.now = max(engine.now for engine in fleet)
        self.truths: list[Truth] = []
        self.barriers: list[Barrier] = []
        self._in_flight: dict[str, _Flight] = {}
        self._held: deque[_Flight] = deque()
        self._returns: list[tuple[float, int, Finished]] = []
        self._order = count()

    @property
    def outstanding(self) -> int:
        """Calls that the caller waits for, held back or in flight."""
        return len(self._held) + len(self._in_flight)

    def launch(self, calls: Sequence[Call]) -> None:
        """Hand calls to the limiter now."""
        self._held.extend(_Flight(call, self.now) for call in calls)
        self._send()

    def step(self, until: float) -> None:
        """Go to the next thing that happens, or to `until` if that is earlier."""
        events = [event for engine in self.fleet if (event := engine.next_event()) is not None]
        returns = [self._returns[0][0]] if self._returns else []
        self.now = max(self.now, min([until, *events, *returns]))
        for engine in self.fleet:
            for done in engine.advance(self.now):
                heapq.heappush(self._returns, (done.ended, next(self._order), done))
        while self._returns and self._returns[0][0] <= self.now:
            self._return(heapq.heappop(self._returns)[2])
        self._send()

    def _return(self, done: Finished) -> None:
        flight = self._in_flight.pop(done.request.request_id)
        self.truths.append(Truth(flight.call, flight.submitted, flight.sent, done))

    def _send(self) -> None:
        while self._held and (self.cap is None or len(self._in_flight) < self.cap):
            flight = self._held.popleft()
            flight.sent = self.now
            self._in_flight[flight.call.request.request_id] = flight
            self.fleet[flight.call.backend].submit(flight.call.request, self.now)


def run_barriers(
    simulation: Simulation, caller: Caller, barriers: int, *, pause: float = 0.2, poll: float | None = None
) -> Iterator[Scrape]:
    """Run so many barriers; every `poll` seconds, yield the page of each backend. Iterate to the end to run it all."""
    clock = _Polls(simulation, poll)
    for calls in islice(caller.barriers(), barriers):
        opened = simulation.now
        simulation.launch(calls)
        while simulation.outstanding:
            simulation.step(clock.next)
            yield from clock.due()
        simulation.barriers.append(Barrier(len(simulation.barriers), len(calls), opened, simulation.now))
        yield from idle(simulation, pause, clock=clock)


def run_steady(
    simulation: Simulation, caller: Caller, rate: float, seconds: float, *, poll: float | None = None
) -> Iterator[Scrape]:
    """Send independent calls at `rate` a second for so long, wait for the last answer, and yield pages likewise."""
    clock = _Polls(simulation, poll)
    start = simulation.now
    for offset, call in caller.steady(rate):
        if offset > seconds:
            break
        while simulation.now < start + offset:
            simulation.step(min(clock.next, start + offset))
            yield from clock.due()
        simulation.launch([call])
    while simulation.outstanding:
        simulation.step(clock.next)
        yield from clock.due()


def idle(
    simulation: Simulation, seconds: float, *, poll: float | None = None, clock: "_Polls | None" = None
) -> Iterator[Scrape]:
    """Let time pass without new calls."""
    clock = clock or _Polls(simulation, poll)
    until = simulation.now + seconds
    while simulation.now < until:
        simulation.step(min(clock.next, until))
        yield from clock.due()


class _Polls:
    """When the fleet is scraped next."""

    def __init__(self, simulation: Simulation, every: float | None) -> None:
        self._simulation = simulation
        self._every = every
        self._writers = [PageWriter(engine) for engine in simulation.fleet] if every else []
        self.next = simulation.now if every else float("inf")

    def due(self) -> Iterator[Scrape]:
        if self._every is None or self._simulation.now < self.next:
            return
        for backend, writer in enumerate(self._writers):
            yield Scrape(self.next, backend, writer.page())
        self.next += self._every
