"""All figures of a moment: the one answer that `/metrics`, the status page and the report are drawn from."""

from collections.abc import Mapping, Sequence

import attrs

from tidegauge.derive.backends import BackendFigures, backend_figures
from tidegauge.derive.fleet import duplicates
from tidegauge.derive.fleets import FleetFigures, fleet_figures
from tidegauge.derive.inference import Inferred
from tidegauge.derive.settings import Settings
from tidegauge.state.backend import BackendHistory
from tidegauge.state.callers import FleetCallers


@attrs.frozen
class Loading:
    """The reading of the configuration: whether the last one `succeeded`, and the unix time `at` which one last did."""

    succeeded: bool
    at: float


@attrs.frozen
class Figures:
    """Everything, as of `at` (unix seconds), over the last `window` seconds, judged by `thresholds` (by key).

    `refused` counts callers' batches; `loading` is None where there is no configuration to read; `intervals` are the
    seconds between two polls, by backend.
    """

    at: float
    window: float
    thresholds: Mapping[str, float]
    backends: tuple[BackendFigures, ...]
    fleets: tuple[FleetFigures, ...]
    refused: Mapping[str, int] = attrs.field(factory=dict)
    loading: Loading | None = None
    intervals: Mapping[str, float] = attrs.field(factory=dict)


def derive(
    histories: Sequence[BackendHistory],
    callers: Sequence[FleetCallers],
    inferred: Sequence[Inferred],
    settings: Settings,
    now: float,
) -> Figures:
    """All figures from the backends' histories, the callers' reports and what the servers show of the load."""
    twins = duplicates([history.identity for history in histories if history.identity is not None])
    backends = tuple(
        backend_figures(history, settings, twins.get(history.backend.name), now - settings.window)
        for history in histories
    )
    reported = {one.fleet: one for one in callers}
    seen = {one.fleet: one for one in inferred}
    names = dict.fromkeys([*(history.fleet for history in histories if history.fleet), *reported])
    fleets = tuple(
        fleet_figures(
            name,
            tuple(one for one in backends if one.history.fleet == name),
            reported.get(name),
            seen.get(name),
            settings,
        )
        for name in names
    )
    return Figures(now, settings.window, settings.thresholds, backends, fleets)
