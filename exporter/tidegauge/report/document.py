"""The report as plain data: stable keys, documented in `docs/report.md`; unknown is null."""

from typing import Any, Final

from tidegauge.catalogue.labels import SERVER_STAGES
from tidegauge.derive.backends import BackendFigures, ModelFigures
from tidegauge.derive.capacity import Fact
from tidegauge.derive.ceiling import BarrierFigures, Order
from tidegauge.derive.figures import Figures
from tidegauge.derive.fleets import FleetFigures
from tidegauge.derive.inference import Inferred
from tidegauge.derive.queueing import QueueSplit
from tidegauge.derive.stages import ENGINE_STAGES, Stages

FORMAT: Final = 1
CUTS: Final = (0.1, 0.25, 0.5, 0.75, 1.0)

Document = dict[str, Any]


def document(figures: Figures) -> Document:
    """The whole report; times in seconds, shares 0 to 1."""
    return {
        "format": FORMAT,
        "at": figures.at,
        "window_seconds": figures.window,
        "thresholds": dict(figures.thresholds),
        "fleets": [_fleet(fleet) for fleet in figures.fleets],
        "backends": [_backend(backend) for backend in figures.backends],
    }


def _fleet(fleet: FleetFigures) -> Document:
    callers = fleet.callers
    return {
        "name": fleet.name,
        "backends": [one.name for one in fleet.backends],
        "distinct": sum(one.twin_of is None for one in fleet.backends),
        "up": sum(bool(one.history.up) for one in fleet.backends),
        "stages": _stages(fleet.stages),
        "client_seconds": fleet.client_seconds,
        "skew": {"ratio": fleet.skew.ratio, "highest": fleet.skew.highest, "lowest": fleet.skew.lowest}
        if fleet.skew
        else None,
        "request_capacity": dict(fleet.capacity),
        "narrowest_request_capacity": dict(fleet.narrowest),
        "caller_queue": _queue(fleet.caller_queue),
        "barriers": [_barriers(one) for one in fleet.barriers],
        "inference": _inference(fleet.inferred),
        "burstiness": fleet.inferred.burstiness if fleet.inferred else None,
        "natural_bound": {"value": fleet.natural_bound[0], "source": fleet.natural_bound[1]}
        if fleet.natural_bound
        else None,
        "ceilings": [
            {"ceiling": one.kind, "value": one.value, "source": one.source, "state": fleet.states[one.kind]}
            for one in fleet.ceilings
        ],
        "caller_healthy_backends": callers.healthy if callers else None,
    }


def _backend(backend: BackendFigures) -> Document:
    history = backend.history
    return {
        "name": backend.name,
        "fleet": history.fleet,
        "up": history.up,
        "covered_seconds": history.covered,
        "twin_of": backend.twin_of,
        "version": history.version,
        "engines": history.engines,
        "running": history.gauges.running,
        "waiting": history.gauges.waiting,
        "kv_cache_usage": history.gauges.kv_usage,
        "kv_cache_capacity_tokens": _fact(backend.facts.kv_tokens),
        "kv_cache_sources_disagree": backend.facts.kv_disagree,
        "max_num_seqs": _fact(backend.facts.max_num_seqs),
        "max_num_batched_tokens": _fact(backend.facts.max_num_batched_tokens),
        "max_model_len": _fact(backend.facts.max_model_len),
        "p90_prompt_tokens": backend.p90_prompt.value if backend.p90_prompt else None,
        "request_capacity": dict(backend.capacity),
        "prefix_hit": backend.prefix_hit,
        "preemptions": backend.preemptions,
        "waiting_seconds": dict(backend.waiting_seconds),
        "hidden_wait_seconds": backend.hidden_wait,
        "restarts": history.counts.restarts,
        "failed_polls": dict(history.counts.failures),
        "last_failure": history.counts.last_failure,
        "dropped_intervals": dict(history.counts.dropped),
        "models": [_model(model) for model in backend.models],
    }


def _model(model: ModelFigures) -> Document:
    return {
        "model_name": model.model_name,
        "stages": _stages(model.stages),
        "queue": _queue(model.queue),
        "aborted_after_first_token": model.aborted,
        "prompt_tokens": {str(q): value for q, value in model.prompt_tokens.items()},
        "output_tokens": {str(q): value for q, value in model.output_tokens.items()},
    }


def _stages(stages: Stages | None) -> Document | None:
    if stages is None:
        return None
    return {
        "requests": stages.requests,
        "e2e_seconds": stages.e2e,
        "seconds": {stage: stages.seconds.get(stage) for stage in SERVER_STAGES},
        "share": {stage: stages.share(stage) for stage in SERVER_STAGES},
        "engine_share": {stage: stages.engine_share(stage) for stage in ENGINE_STAGES},
        "gain_ceiling": {stage: {str(cut): stages.gain_ceiling(stage, cut) for cut in CUTS} for stage in SERVER_STAGES},
        "hidden_queue_seconds": stages.hidden_queue,
    }


def _queue(queue: QueueSplit | None) -> Document | None:
    if queue is None:
        return None
    return {
        "requests": queue.requests,
        "edge_seconds": queue.edge,
        "mean_seconds": queue.mean,
        "late_ratio": queue.late_share,
        "late_seconds": queue.late_mean,
        "effective_waves": queue.waves,
        "split": queue.split,
        "quantiles": {str(q): value for q, value in queue.quantiles.items()},
        "p90_p50_ratio": queue.ratio,
        "impact_ratio": queue.impact,
        "bimodal": queue.bimodal,
        "saturated": queue.saturated,
        "pages": queue.pages,
    }


def _barriers(one: BarrierFigures) -> Document:
    return {
        "source": one.source,
        "count": one.count,
        "total": one.total,
        "fan_out": _order(one.fan_out),
        "duration_seconds": _order(one.duration),
        "waves": {kind: _order(order) for kind, order in one.waves.items()},
        "clipped_ratio": dict(one.clipped),
    }


def _inference(inferred: Inferred | None) -> Document | None:
    if inferred is None:
        return None
    found, grounds = inferred.confidence, inferred.grounds
    return {
        "sure": found.sure,
        "counts": dict(found.counts),
        "grounds": {
            "few": grounds.few,
            "maybe_merged": grounds.maybe_merged,
            "largest_maybe_merged": grounds.largest_maybe_merged,
            "largest_in_flight": grounds.largest_in_flight,
        }
        if grounds
        else None,
    }


def _order(order: Order | None) -> Document | None:
    return None if order is None else {"median": order.median, "p90": order.p90, "max": order.max}


def _fact(fact: Fact | None) -> Document | None:
    return None if fact is None else {"value": fact.value, "source": fact.source}
