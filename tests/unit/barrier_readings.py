"""What the tests of barriers share: readings made from polls, from a client's record, and from the simulated fleet."""

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from tidegauge.demo.engine import Engine
from tidegauge.demo.simulate import Barrier, Simulation
from tidegauge.demo.workload import Caller
from tidegauge.derive.moves import Reading


def polls(backend: str, rows: Sequence[tuple[float, float | None]], start: float = 0.0, step: float = 1.0):
    """Readings of one backend from (in flight, finished since the poll before)."""
    return [Reading(backend, start + number * step, row[0], row[1]) for number, row in enumerate(rows)]


def resampled(calls: Mapping[str, Sequence[tuple[float, float]]], every: float, phases: Mapping[str, float]):
    """Polls of backends whose calls are known as (sent, ended), *phases* in parts of the interval."""
    sent = [one for served in calls.values() for one, _ in served]
    ended = [one for served in calls.values() for _, one in served]
    readings = []
    for backend, served in calls.items():
        starts, ends = sorted(one for one, _ in served), sorted(one for _, one in served)
        at, before = min(sent) - 4 * every + phases.get(backend, 0.0) * every, None
        while at < max(ended) + 4 * every:
            finished = bisect_right(ends, at)
            rise = None if before is None else finished - before
            readings.append(Reading(backend, at, bisect_right(starts, at) - finished, rise))
            at, before = at + every, finished
    return sorted(readings, key=lambda reading: reading.at)


class SimulatedPolls:
    """Polls each engine of a simulation every so many seconds at its own phase, and misses some if told to."""

    def __init__(
        self, simulation: Simulation, every: float, phases: Sequence[float], missing: float = 0.0, seed: int = 0
    ):
        self.simulation = simulation
        self.readings: list[Reading] = []
        self._every = every
        self._next = [simulation.now + phase * every for phase in phases]
        self._finished: list[float | None] = [None] * len(simulation.fleet)
        self._missing = missing
        self._rng = random.Random(seed)

    def step(self, until: float = float("inf")) -> None:
        """Go to what happens next, a poll included."""
        self.simulation.step(min(until, *self._next))
        for place, engine in enumerate(self.simulation.fleet):
            while self._next[place] <= self.simulation.now:
                self._poll(place, engine)
                self._next[place] += self._every

    def idle(self, seconds: float) -> None:
        until = self.simulation.now + seconds
        while self.simulation.now < until:
            self.step(until)

    def barriers(self, caller: Caller, count: int, pause: Callable[[], float]) -> None:
        """Run so many barriers, with the truth in `simulation.barriers`."""
        self.idle(3 * self._every)
        for calls in islice(caller.barriers(), count):
            opened = self.simulation.now
            self.simulation.launch(calls)
            while self.simulation.outstanding:
                self.step()
            self.simulation.barriers.append(
                Barrier(len(self.simulation.barriers), len(calls), opened, self.simulation.now)
            )
            self.idle(pause())
        self.idle(6 * self._every)

    def steady(self, caller: Caller, rate: float, seconds: float) -> None:
        """Independent calls at a rate."""
        self.idle(10 * self._every)
        start = self.simulation.now
        for offset, call in caller.steady(rate):
            if offset > seconds:
                break
            self.idle(start + offset - self.simulation.now)
            self.simulation.launch([call])
        while self.simulation.outstanding:
            self.step()
        self.idle(10 * self._every)

    def _poll(self, place: int, engine: Engine) -> None:
        if self._rng.random() < self._missing:
            self.readings.append(Reading(f"backend-{place}", self._next[place], None))
            return
        finished = sum(engine.tally.finished_by_reason.values())
        before, self._finished[place] = self._finished[place], finished
        gauges = engine.tally.gauges
        rise = None if before is None else finished - before
        self.readings.append(Reading(f"backend-{place}", self._next[place], gauges.running + gauges.waiting, rise))


def matched(truth: Sequence[tuple[float, int]], found, within: float) -> Iterator[tuple[int, object]]:
    """Each true barrier (opened, fan-out) with the inferred one that opened nearest, once each, None without one."""
    left = list(found)
    for opened, fan_out in truth:
        near = [one for one in left if abs(one.opened_at - opened) <= within]
        best = min(near, key=lambda one: abs(one.opened_at - opened), default=None)
        if best is not None:
            left.remove(best)
        yield fan_out, best
