"""The figures of one fleet: its backends together, its barriers, the ceilings held against them."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from tidegauge.catalogue.labels import FACT_SOURCES
from tidegauge.derive import ceiling as ceilings
from tidegauge.derive.backends import BackendFigures
from tidegauge.derive.ceiling import BarrierFigures, Ceiling, State
from tidegauge.derive.fleet import Skew, skew
from tidegauge.derive.inference import Inferred
from tidegauge.derive.queueing import QueueSplit, split_of
from tidegauge.derive.settings import Settings
from tidegauge.derive.stages import Stages, combine
from tidegauge.model import Barrier, Histogram
from tidegauge.state.callers import FleetCallers


@attrs.frozen
class FleetFigures:
    """The backends a caller treats as one.

    `barriers` holds one entry per source that knows the fleet's barriers, the exact one (`reported`) first; `states`
    is the state of each ceiling by kind; `natural_bound` the largest fan-out the load can have and its source.
    """

    name: str
    backends: tuple[BackendFigures, ...]
    stages: Stages | None
    skew: Skew | None
    capacity: Mapping[str, float]
    narrowest: Mapping[str, float]
    client_seconds: float | None
    caller_queue: QueueSplit | None
    callers: FleetCallers | None
    inferred: Inferred | None
    barriers: tuple[BarrierFigures, ...]
    natural_bound: tuple[float, str] | None
    ceilings: tuple[Ceiling, ...]
    states: Mapping[str, State]


def fleet_figures(
    name: str,
    backends: tuple[BackendFigures, ...],
    callers: FleetCallers | None,
    inferred: Inferred | None,
    settings: Settings,
) -> FleetFigures:
    """Everything of one fleet; *callers* and *inferred* are None where nobody reported and nothing was polled."""
    counted = [one for one in backends if one.counts]
    distinct = [one for one in backends if one.twin_of is None]
    stages = combine([one.stages for one in distinct if one.stages is not None])
    waits = _from_edge(callers.waits, callers.edge) if callers is not None and callers.waits is not None else None
    client = waits.sum / waits.count if waits is not None and waits.count and waits.sum is not None else None
    whole = client + stages.e2e if client is not None and stages is not None and stages.e2e is not None else None
    sources = _sources(callers, inferred)
    bound = _natural_bound(settings.rosters.get(name), callers, inferred)
    known = _ceilings(name, counted, callers, inferred, settings)
    return FleetFigures(
        name=name,
        backends=backends,
        stages=stages,
        skew=skew(_means(distinct, settings.limits.min_requests)),
        capacity=_over(counted, sum),
        narrowest=_over(counted, min),
        client_seconds=client,
        caller_queue=split_of(waits, whole, settings.limits),
        callers=callers,
        inferred=inferred,
        barriers=tuple(ceilings.figures(source, total, barriers, known) for source, total, barriers in sources),
        natural_bound=bound,
        ceilings=known,
        states={one.kind: ceilings.state_of(one.value, bound[0] if bound and sources else None) for one in known},
    )


def _means(backends: Sequence[BackendFigures], minimum: float) -> dict[str, float]:
    return {
        one.name: one.stages.e2e
        for one in backends
        if one.stages is not None and one.stages.e2e is not None and one.stages.requests >= minimum
    }


def _over(backends: Sequence[BackendFigures], fold: Callable[[Iterable[float]], float]) -> dict[str, float]:
    """Capacity by basis over the backends, only where every one of them has it."""
    bases = set.intersection(*(set(one.capacity) for one in backends)) if backends else set()
    return {basis: fold([one.capacity[basis] for one in backends]) for basis in sorted(bases)}


def _sources(callers: FleetCallers | None, inferred: Inferred | None) -> list[tuple[str, int, tuple[Barrier, ...]]]:
    """Source, barriers since the start and barriers of the window, of whoever ever saw one."""
    found: list[tuple[str, int, tuple[Barrier, ...]]] = []
    if callers is not None and callers.largest is not None:
        found.append(("reported", callers.barriers_total, callers.barriers))
    if inferred is not None and inferred.largest is not None:
        found.append(("inferred", inferred.barriers_total, inferred.barriers))
    return found


def _natural_bound(
    roster: int | None, callers: FleetCallers | None, inferred: Inferred | None
) -> tuple[float, str] | None:
    """The roster, unless a barrier was seen that exceeds it; else the largest fan-out seen, by the exact source."""
    largest, source = None, ""
    if callers is not None and callers.largest is not None:
        largest, source = callers.largest, "reported"
    elif inferred is not None and inferred.largest is not None:
        largest, source = inferred.largest, "inferred"
    if roster is not None and (largest is None or largest <= roster):
        return float(roster), "config"
    return (float(largest), source) if largest is not None else None


def _ceilings(
    name: str,
    counted: Sequence[BackendFigures],
    callers: FleetCallers | None,
    inferred: Inferred | None,
    settings: Settings,
) -> tuple[Ceiling, ...]:
    """The callers' ceiling (reported, else configured, else the plateau observed) and the servers' sequence slots."""
    found = []
    if callers is not None and callers.ceiling is not None:
        found.append(Ceiling("client", callers.ceiling, callers.ceiling_source))
    elif name in settings.ceilings:
        found.append(Ceiling("client", float(settings.ceilings[name]), "config"))
    elif inferred is not None and inferred.plateau is not None:
        found.append(Ceiling("client", inferred.plateau, "observed"))
    slots = [one.facts.slots for one in counted]
    known = [slot for slot in slots if slot is not None]
    if known and len(known) == len(slots):
        # A sum is no better than its worst part.
        source = max((slot.source for slot in known), key=FACT_SOURCES.index)
        found.append(Ceiling("server", sum(slot.value for slot in known), source))
    return tuple(found)


def _from_edge(waits: Histogram, edge: float) -> Histogram:
    """The histogram with *edge* as its lowest bucket."""
    first = waits.edges.index(edge)
    return attrs.evolve(waits, edges=waits.edges[first:], cumulative=waits.cumulative[first:])
