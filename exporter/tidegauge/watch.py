"""The heart: polls, logs and callers' events in, figures out; live runs and captures share it. No I/O, no clock."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.derive.backends import evidence_of
from tidegauge.derive.capacity import server_facts
from tidegauge.derive.causes import LONGEST_STEP, Pressure, waiting_seconds
from tidegauge.derive.figures import Figures, derive
from tidegauge.derive.fleet import same_process
from tidegauge.derive.inference import FleetInference
from tidegauge.derive.moves import Reading, reading_of
from tidegauge.derive.settings import Settings
from tidegauge.model import Page
from tidegauge.parsing.events import Batch, Refusal
from tidegauge.parsing.exposition import NotMetrics, PageReader
from tidegauge.state.backend import BackendState, Step
from tidegauge.state.fleets import CallersState


@attrs.frozen
class Booked:
    """What became of one poll: `fresh` if a process answered that was not known, `complaint` if it was no page."""

    fresh: bool
    complaint: str = ""


MOST_FLEETS: Final = 1000
"""Fleets whose largest fan-out is remembered; a model's name comes from outside, and may change with every page."""


class Watch:
    """All backends and fleets.

    *interval* is the usual time between two polls of a backend, in seconds, or that of each backend by name.
    """

    def __init__(
        self,
        states: Sequence[BackendState],
        settings: Settings,
        interval: float | Mapping[str, float] = 1.0,
        callers: CallersState | None = None,
        prefixes: tuple[str, ...] = vllm.PREFIXES,
    ) -> None:
        self.states: dict[str, BackendState] = {}
        self._settings = settings
        self._readers: dict[str, PageReader] = {}
        self._inferences: dict[str, FleetInference] = {}
        self._fed: dict[str, str] = {}
        self._restored: dict[str, int] = {}
        self._refused: Counter[str] = Counter()
        self.follow(states, settings, interval, callers, prefixes)

    def follow(
        self,
        states: Sequence[BackendState],
        settings: Settings,
        interval: float | Mapping[str, float],
        callers: CallersState | None,
        prefixes: tuple[str, ...],
    ) -> None:
        """Follow these from now on, in place of those before; the arguments are those of the class.

        What polls showed of a fleet stays while it has backends and the window is the same; of a backend that left or
        begins anew, nothing does.
        """
        before, self.states = self.states, {state.backend.name: state for state in states}
        self.callers = callers
        if settings.window != self._settings.window:
            self._restored = self.largest_inferred()
            self._inferences.clear()
        self._settings = settings
        self._intervals = interval if isinstance(interval, Mapping) else dict.fromkeys(self.states, interval)
        known = {name for name, state in self.states.items() if before.get(name) is state}
        self._readers = {name: self._readers[name] if name in known else PageReader(prefixes) for name in self.states}
        self._fed = {name: fleet for name, fleet in self._fed.items() if name in known}
        self._leave()
        for fleet, inference in self._inferences.items():
            inference.poll_every(max(self._intervals[name] for name, one in self.states.items() if one.fleet == fleet))
            for name in before.keys() - known:
                inference.forget(name)

    def restore(self, reported: Mapping[str, int], inferred: Mapping[str, int]) -> None:
        """Offer the largest fan-outs seen before, by fleet."""
        # Kept apart: what a caller reports is exact, an inferred barrier may be two that merged.
        self._restored = dict(inferred)
        if self.callers is not None:
            self.callers.restore(reported)

    def largest(self) -> dict[str, int]:
        """The largest fan-out that callers reported, by fleet."""
        return self.callers.largest() if self.callers is not None else {}

    def largest_inferred(self) -> dict[str, int]:
        """The largest fan-out that was inferred, by fleet."""
        seen = {name: one.largest for name, one in self._inferences.items() if one.largest is not None}
        return {**self._restored, **seen}

    def page(self, name: str, at: float, seconds: float, body: str) -> Booked:
        """Take the body of one poll."""
        return self.booked(name, at, seconds, self.read(name, body))

    def read(self, name: str, body: str) -> Page | NotMetrics:
        """What a body says, nothing booked yet; may run on another thread, once at a time for each backend."""
        try:
            return self._readers[name].read(body)
        except NotMetrics as error:
            return error

    def booked(self, name: str, at: float, seconds: float, read: Page | NotMetrics) -> Booked:
        """Take what was read of one poll."""
        if isinstance(read, NotMetrics):
            self.failed(name, at, seconds, read.reason)
            return Booked(fresh=False, complaint=str(read))
        state = self.states[name]
        page = state.within(read, at)
        step = state.page(page, at, seconds)
        if not step.foreign:
            self._waiting(state, page, step)
        if not self._twin(state):
            self._feed(state, reading_of(name, page, step.increase))
        return Booked(step.fresh)

    def failed(self, name: str, at: float, seconds: float, reason: str) -> None:
        """Take a poll that gave no page."""
        self.states[name].failed(reason, seconds)
        self._feed(self.states[name], Reading(name, at, None))

    def finish(self) -> None:
        """The record ends here: no further poll will come."""
        for inference in self._inferences.values():
            inference.finish()

    def take(self, batch: Batch) -> Refusal | None:
        """Book a caller's batch; the reason where it cannot be taken."""
        if self.callers is None:
            return Refusal("fleets", "fleet: callers are not listened to")
        return self.callers.take(batch)

    def refused(self, reason: str) -> None:
        """Count a batch of a caller that was not taken."""
        self._refused[reason] += 1

    def figures(self, now: float) -> Figures:
        """The figures of *now*."""
        histories = [state.history(now) for state in self.states.values()]
        callers = self.callers.snapshots(now) if self.callers is not None else []
        inferred = [one.snapshot(now) for one in self._inferences.values()]
        figures = derive(histories, callers, inferred, self._settings, now)
        return attrs.evolve(figures, refused=dict(self._refused), intervals=dict(self._intervals))

    def _feed(self, state: BackendState, reading: Reading) -> None:
        fleet = state.fleet
        if not fleet:
            return
        if fleet not in self._inferences:
            self._leave()
            members = [name for name, one in self.states.items() if one.fleet in {fleet, ""}]
            interval = max(self._intervals[name] for name in members)
            largest = self._restored.get(fleet)
            self._inferences[fleet] = FleetInference(fleet, self._settings.window, interval, largest)
        inference = self._inferences[fleet]
        self._belongs(reading.backend, fleet)
        # A member that is only known now, or serves another model now, may be polled less often than those before.
        inference.poll_every(max(inference.interval, self._intervals[reading.backend]))
        inference.feed(reading)

    def _belongs(self, backend: str, fleet: str) -> None:
        """Note whose member the backend is: one that serves another model now counts anew, in both fleets.

        Otherwise its counts would go on where they stood if it returned, and Prometheus would take the step from the
        other fleet's for requests.
        """
        before = self._fed.get(backend, fleet)
        self._fed[backend] = fleet
        for one in {before, fleet} & self._inferences.keys() if before != fleet else ():
            self._inferences[one].forget(backend)

    def _twin(self, state: BackendState) -> bool:
        """Whether a target before this one is the same server: then its calls are counted there."""
        own = state.identity()
        before = (one.identity() for one in takewhile(lambda one: one is not state, self.states.values()))
        return own is not None and any(one is not None and same_process(one, own) for one in before)

    def _leave(self) -> None:
        """Let go of fleets that no backend belongs to any more, but for their largest fan-outs."""
        self._restored = self.largest_inferred()
        for name in self._inferences.keys() - {state.fleet for state in self.states.values()}:
            del self._inferences[name]
        for name in list(self._restored)[:-MOST_FLEETS]:
            del self._restored[name]

    def _waiting(self, state: BackendState, page: Page, step: Step) -> None:
        """Book why requests waited since the page before."""
        if step.before is None or not any(
            value > 0 for key, value in page.values.items() if key.family == vllm.WAITING
        ):
            return
        history = state.history(step.increase.at)
        slots = server_facts(evidence_of(history), self._settings.disagree).slots
        per_engine = slots.value / max(history.engines, 1) if slots is not None else None
        pressure = Pressure(per_engine, self._settings.kv_full)
        longest = max(LONGEST_STEP, 2 * self._intervals[state.backend.name])
        causes = waiting_seconds(step.before, page, step.increase.seconds, pressure, longest)
        state.waited(step.increase.at, causes)
