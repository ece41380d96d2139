"""The heart: polls, logs and callers' events in, figures out; live runs and captures share it. No I/O, no clock."""

from collections.abc import Mapping, Sequence

import attrs

from tidegauge import vllm
from tidegauge.derive.backends import evidence_of
from tidegauge.derive.capacity import server_facts
from tidegauge.derive.causes import Pressure, waiting_seconds
from tidegauge.derive.figures import Figures, derive
from tidegauge.derive.inference import FleetInference
from tidegauge.derive.moves import Reading, reading_of
from tidegauge.derive.settings import Settings
from tidegauge.model import Page
from tidegauge.parsing.events import Batch
from tidegauge.parsing.exposition import NotMetrics, PageReader
from tidegauge.state.backend import BackendState, Step
from tidegauge.state.callers import CallersState


@attrs.frozen
class Booked:
    """What became of one poll: `fresh` if a process answered that was not known, `complaint` if it was no page."""

    fresh: bool
    complaint: str = ""


class Watch:
    """All backends and fleets. *interval* is the usual time between two polls of a backend, in seconds."""

    def __init__(
        self,
        states: Sequence[BackendState],
        settings: Settings,
        interval: float = 1.0,
        callers: CallersState | None = None,
        prefixes: tuple[str, ...] = vllm.PREFIXES,
    ) -> None:
        self.states = {state.backend.name: state for state in states}
        self.callers = callers
        self._settings = settings
        self._interval = interval
        self._readers = {name: PageReader(prefixes) for name in self.states}
        self._inferences: dict[str, FleetInference] = {}
        self._restored: Mapping[str, int] = {}

    def restore(self, largest: Mapping[str, int]) -> None:
        """Offer the largest fan-outs seen before, by fleet."""
        self._restored = dict(largest)
        if self.callers is not None:
            self.callers.restore(largest)

    def largest(self) -> dict[str, int]:
        """The largest fan-out seen, by fleet, reported or inferred."""
        seen = {name: one.largest for name, one in self._inferences.items() if one.largest is not None}
        told = self.callers.largest() if self.callers is not None else {}
        # What a caller reports is exact; an inferred barrier may be two that merged.
        return {**self._restored, **seen, **told}

    def page(self, name: str, at: float, seconds: float, body: str) -> Booked:
        """Take the body of one poll."""
        state = self.states[name]
        try:
            page = self._readers[name].read(body)
        except NotMetrics as error:
            self.failed(name, at, seconds, "not_metrics")
            return Booked(fresh=False, complaint=str(error))
        step = state.page(page, at, seconds)
        if not step.foreign:
            self._waiting(state, page, step)
        self._feed(state, reading_of(name, page, step.increase))
        return Booked(step.fresh)

    def failed(self, name: str, at: float, seconds: float, reason: str) -> None:
        """Take a poll that gave no page."""
        self.states[name].failed(reason, seconds)
        self._feed(self.states[name], Reading(name, at, None))

    def take(self, batch: Batch) -> str | None:
        """Book a caller's batch; the reason where it cannot be taken."""
        return self.callers.take(batch) if self.callers is not None else "fleet: callers are not listened to"

    def figures(self, now: float) -> Figures:
        """The figures of *now*."""
        histories = [state.history(now) for state in self.states.values()]
        callers = self.callers.snapshots(now) if self.callers is not None else []
        inferred = [one.snapshot(now) for one in self._inferences.values()]
        return derive(histories, callers, inferred, self._settings, now)

    def _feed(self, state: BackendState, reading: Reading) -> None:
        fleet = state.fleet
        if not fleet:
            return
        inference = self._inferences.get(fleet)
        if inference is None:
            window = self._settings.window
            inference = FleetInference(fleet, window, self._interval, self._restored.get(fleet))
            self._inferences[fleet] = inference
        inference.feed(reading)

    def _waiting(self, state: BackendState, page: Page, step: Step) -> None:
        """Book why requests waited since the page before."""
        if step.before is None or not any(
            value > 0 for key, value in page.values.items() if key.family == vllm.WAITING
        ):
            return
        history = state.history(step.increase.at)
        slots = server_facts(evidence_of(history), self._settings.disagree).max_num_seqs
        certain = slots.value / max(history.engines, 1) if slots is not None and slots.source != "observed" else None
        pressure = Pressure(certain, self._settings.kv_full)
        causes = waiting_seconds(step.before, page, step.increase.seconds, pressure)
        state.waited(step.increase.at, causes)
