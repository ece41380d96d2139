"""All figures of a moment: the one answer that `/metrics`, the status page and the report are drawn from."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from tidegauge import vllm
from tidegauge.catalogue import thresholds as th
from tidegauge.derive import ceiling as ceilings
from tidegauge.derive.capacity import TRUST, Evidence, ServerFacts, request_capacity, server_facts
from tidegauge.derive.ceiling import CeilingFigures, Order
from tidegauge.derive.fleet import Skew, duplicates, skew
from tidegauge.derive.quantiles import observed, quantile
from tidegauge.derive.queueing import Limits, QueueSplit, split_of
from tidegauge.derive.stages import Stages, combine, decompose
from tidegauge.model import Histogram, SeriesKey
from tidegauge.state.backend import BackendHistory
from tidegauge.state.callers import FleetCallers


@attrs.frozen
class Settings:
    """What derivation needs of the configuration; `rosters` is the configured natural bound by fleet."""

    window: float = 900.0
    limits: Limits = Limits()
    disagree: float = th.SOURCES_DISAGREE.value
    rosters: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen
class ModelFigures:
    """One model on one backend over the window."""

    model_name: str
    stages: Stages | None
    queue: QueueSplit | None
    aborted: float | None


@attrs.frozen
class BackendFigures:
    """One backend; `twin_of` names the target that is the same server, if any."""

    history: BackendHistory
    models: tuple[ModelFigures, ...]
    facts: ServerFacts
    p90_prompt: float | None
    capacity: Mapping[str, float]
    prefix_hit: float | None
    preemptions: float
    twin_of: str | None

    @property
    def name(self) -> str:
        """The backend's name."""
        return self.history.backend.name

    @property
    def counts(self) -> bool:
        """Whether it adds capacity: up, and a server of its own."""
        return bool(self.history.up) and self.twin_of is None

    @property
    def stages(self) -> Stages | None:
        """All its models together."""
        return combine([model.stages for model in self.models if model.stages is not None])


@attrs.frozen
class FleetFigures:
    """The backends a caller treats as one."""

    name: str
    backends: tuple[BackendFigures, ...]
    stages: Stages | None
    skew: Skew | None
    capacity: Mapping[str, float]
    narrowest: Mapping[str, float]
    client_seconds: float | None
    caller_queue: QueueSplit | None
    callers: FleetCallers | None
    fan_out: Order | None
    duration: Order | None
    natural_bound: tuple[float, str] | None
    ceilings: tuple[CeilingFigures, ...]


@attrs.frozen
class Figures:
    """Everything, as of `at` (unix seconds), over the last `window` seconds."""

    at: float
    window: float
    backends: tuple[BackendFigures, ...]
    fleets: tuple[FleetFigures, ...]


def derive(
    histories: Sequence[BackendHistory], callers: Sequence[FleetCallers], settings: Settings, now: float
) -> Figures:
    """All figures from the backends' histories and the callers' reports."""
    twins = duplicates([history.identity for history in histories if history.identity is not None])
    backends = tuple(
        _backend(history, settings, twins.get(history.backend.name), now - settings.window) for history in histories
    )
    reported = {one.fleet: one for one in callers}
    names = dict.fromkeys([*(history.fleet for history in histories if history.fleet), *reported])
    fleets = tuple(
        _fleet(name, tuple(one for one in backends if one.history.fleet == name), reported.get(name), settings)
        for name in names
    )
    return Figures(now, settings.window, backends, fleets)


def _backend(history: BackendHistory, settings: Settings, twin_of: str | None, begin: float) -> BackendFigures:
    evidence = Evidence(history.backend.pinned, history.cache_configs, history.startup, history.engines, history.served)
    facts = server_facts(evidence, settings.disagree)
    minimum = settings.limits.min_requests
    p90_prompt = history.backend.p90_prompt or _p90(history, vllm.PROMPT_LENGTH, minimum)
    hits, queries = history.totals.counter(vllm.PREFIX_HITS), history.totals.counter(vllm.PREFIX_QUERIES)
    return BackendFigures(
        history=history,
        models=tuple(_model(history, model, settings.limits, begin) for model in history.models),
        facts=facts,
        p90_prompt=p90_prompt,
        capacity=request_capacity(facts, p90_prompt, _p90(history, vllm.OUTPUT_LENGTH, minimum)),
        prefix_hit=hits / queries if queries > 0 else None,
        preemptions=history.totals.counter(vllm.PREEMPTIONS),
        twin_of=twin_of,
    )


def _model(history: BackendHistory, model_name: str, limits: Limits, begin: float) -> ModelFigures:
    totals = history.totals
    stages = decompose(totals, model_name)
    waits = totals.histogram(vllm.QUEUE, model_name)
    split = split_of(waits, stages.e2e if stages else None, limits)
    return ModelFigures(model_name, stages, split, _aborted(history, model_name, begin))


def _aborted(history: BackendHistory, model_name: str, begin: float) -> float | None:
    """Requests aborted after their first token: TTFT count - end-to-end count, told only at rest.

    Not told either of a window (from *begin* on) with a restart in it: what was in flight then looks the same.
    """
    if history.gauges.running != 0 or history.gauges.waiting != 0:
        return None
    if history.restarted_at is not None and history.restarted_at >= begin:
        return None
    first, whole = (history.totals.histogram(family, model_name) for family in (vllm.TTFT, vllm.E2E))
    return max((observed(first) if first else 0.0) - (observed(whole) if whole else 0.0), 0.0)


def _p90(history: BackendHistory, family: str, minimum: float) -> float | None:
    """p90 of a token length over the long window; of several models on one backend, the largest."""
    found = []
    for model in history.models:
        lengths = history.lengths.histograms.get(SeriesKey(family, model))
        if lengths is not None and observed(lengths) >= minimum:
            found.append(quantile(lengths, 0.9))
    return max((value for value in found if value is not None), default=None)


def _fleet(
    name: str, backends: tuple[BackendFigures, ...], callers: FleetCallers | None, settings: Settings
) -> FleetFigures:
    counted = [one for one in backends if one.counts]
    distinct = [one for one in backends if one.twin_of is None]
    stages = combine([one.stages for one in distinct if one.stages is not None])
    waits = _from_edge(callers.waits, callers.edge) if callers is not None and callers.waits is not None else None
    client = waits.sum / waits.count if waits is not None and waits.count and waits.sum is not None else None
    whole = client + stages.e2e if client is not None and stages is not None and stages.e2e is not None else None
    barriers = callers.barriers if callers is not None else ()
    bound = _natural_bound(name, callers, settings)
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
        fan_out=ceilings.order([barrier.fan_out for barrier in barriers]),
        duration=ceilings.order([barrier.seconds for barrier in barriers if barrier.seconds is not None]),
        natural_bound=bound,
        ceilings=_ceilings(counted, callers, bound[0] if bound else None),
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


def _natural_bound(name: str, callers: FleetCallers | None, settings: Settings) -> tuple[float, str] | None:
    if name in settings.rosters:
        return float(settings.rosters[name]), "config"
    if callers is not None and callers.largest is not None:
        return float(callers.largest), "reported"
    return None


def _ceilings(
    counted: Sequence[BackendFigures], callers: FleetCallers | None, bound: float | None
) -> tuple[CeilingFigures, ...]:
    found = []
    barriers = callers.barriers if callers is not None else ()
    if callers is None or callers.largest is None:
        bound = None  # a roster alone measures nothing
    if callers is not None and callers.ceiling is not None:
        found.append(ceilings.against("client", callers.ceiling, "reported", barriers, bound))
    slots = [one.facts.max_num_seqs for one in counted]
    known = [slot for slot in slots if slot is not None]
    if known and len(known) == len(slots):
        total = sum(slot.value for slot in known)
        met = [attrs.evolve(barrier, ceilings=(("server", total),)) for barrier in barriers]
        source = max((slot.source for slot in known), key=TRUST.index)
        found.append(ceilings.against("server", total, source, met, bound))
    return tuple(found)


def _from_edge(waits: Histogram, edge: float) -> Histogram:
    """The histogram with *edge* as its lowest bucket."""
    first = waits.edges.index(edge)
    return attrs.evolve(waits, edges=waits.edges[first:], cumulative=waits.cumulative[first:])
