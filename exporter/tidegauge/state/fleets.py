"""The callers of all fleets: which fleet an event is booked for, and how many of both there may be."""

from collections.abc import Mapping

from tidegauge.parsing.events import Batch, Refusal
from tidegauge.state.callers import CALLERS_PER_FLEET, FleetCallers, FleetCallersState
from tidegauge.state.limiter import LimiterState


class CallersState:
    """All fleets' callers; at most *max_fleets* fleets, so that a label set cannot grow without bound.

    A fleet has at most *max_callers* callers within the span.
    """

    def __init__(self, span: float, edge: float, max_fleets: int, max_callers: int = CALLERS_PER_FLEET) -> None:
        self._span = span
        self._edge = edge
        self._max_fleets = max_fleets
        self._max_callers = max_callers
        self._fleets: dict[str, FleetCallersState] = {}
        self._restored: Mapping[str, int] = {}

    def restore(self, largest: Mapping[str, int]) -> None:
        """Offer the largest fan-outs seen before the exporter's restart."""
        self._restored = dict(largest)

    def largest(self) -> dict[str, int]:
        """The largest fan-out seen, by fleet."""
        seen = {name: fleet.largest for name, fleet in self._fleets.items() if fleet.largest is not None}
        return {**self._restored, **seen}

    def allow(self, max_fleets: int, max_callers: int) -> None:
        """Other bounds from now on; fleets that are too many then stay, and none is added."""
        self._max_fleets, self._max_callers = max_fleets, max_callers
        for fleet in self._fleets.values():
            fleet.most_callers = max_callers

    def unfollow(self, fleet: str, file: str) -> None:
        """A limiter log of a fleet is followed no more; a fleet that nothing else told of leaves with it."""
        known = self._fleets.get(fleet)
        if known is not None and known.limiter is not None and known.limiter.forget(file):
            known.limiter = None
            if known.silent:
                del self._fleets[fleet]

    def limiter(self, fleet: str) -> LimiterState:
        """Where the limiter logs of a configured fleet are booked."""
        state = self._fleet(fleet)
        if state.limiter is None:
            state.limiter = LimiterState()
        return state.limiter

    def take(self, batch: Batch) -> Refusal | None:
        """Book a caller's batch; the reason where it cannot be taken."""
        if batch.fleet not in self._fleets and len(self._fleets) >= self._max_fleets:
            most = f"the {self._max_fleets} fleets configured"
            return Refusal("fleets", f"fleet: {batch.fleet} would be one more than {most}")
        fleet = self._fleet(batch.fleet)
        if not fleet.admits(batch):
            most = f"the {self._max_callers} callers that a fleet may have"
            return Refusal("callers", f"caller: {batch.caller} would be one more than {most}")
        fleet.take(batch)
        return None

    def _fleet(self, name: str) -> FleetCallersState:
        fleet = self._fleets.get(name)
        if fleet is None:
            largest = self._restored.get(name)
            fleet = FleetCallersState(name, self._span, self._edge, largest, self._max_callers)
            self._fleets[name] = fleet
        return fleet

    def snapshots(self, now: float) -> list[FleetCallers]:
        """Every fleet as of *now*."""
        return [fleet.snapshot(now) for fleet in self._fleets.values()]
