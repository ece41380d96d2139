"""The figures of one backend."""

from collections.abc import Mapping

import attrs

from tidegauge import vllm
from tidegauge.derive.capacity import Evidence, Fact, ServerFacts, first_known, request_capacity, server_facts
from tidegauge.derive.quantiles import observed, quantile
from tidegauge.derive.queueing import Limits, QueueSplit, split_of
from tidegauge.derive.settings import Settings
from tidegauge.derive.stages import Stages, combine, decompose
from tidegauge.model import SeriesKey
from tidegauge.state.backend import WAITED, BackendHistory

LENGTH_QUANTILES = (0.5, 0.95, 0.99)


@attrs.frozen
class ModelFigures:
    """One model on one backend over the window; token lengths by quantile, over the long window."""

    model_name: str
    stages: Stages | None
    queue: QueueSplit | None
    aborted: float | None
    prompt_tokens: Mapping[float, float]
    output_tokens: Mapping[float, float]


@attrs.frozen
class BackendFigures:
    """One backend over the window.

    `waiting_seconds` are those of the window by cause; `hidden_wait` estimates the seconds that preempted requests
    waited again, which vLLM books as decode; `twin_of` names the target that is the same server, if any.
    """

    history: BackendHistory
    models: tuple[ModelFigures, ...]
    facts: ServerFacts
    p90_prompt: Fact | None
    capacity: Mapping[str, float]
    prefix_hit: float | None
    preemptions: float
    waiting_seconds: Mapping[str, float]
    hidden_wait: float | None
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


def evidence_of(history: BackendHistory) -> Evidence:
    """Everything in *history* that tells something of the backend's limits."""
    return Evidence(
        history.backend.pinned,
        history.cache_configs,
        history.startup,
        history.engines,
        history.served,
        history.observed_slots,
    )


def backend_figures(history: BackendHistory, settings: Settings, twin_of: str | None, begin: float) -> BackendFigures:
    """Everything of one backend; *begin* is the unix time at which the window begins."""
    facts = server_facts(evidence_of(history), settings.disagree)
    minimum = settings.limits.min_requests
    p90_prompt = first_known(
        ("config", history.backend.p90_prompt), ("metrics", _p90(history, vllm.PROMPT_LENGTH, minimum))
    )
    p90_output = _p90(history, vllm.OUTPUT_LENGTH, minimum)
    hits, queries = history.totals.counter(vllm.PREFIX_HITS), history.totals.counter(vllm.PREFIX_QUERIES)
    return BackendFigures(
        history=history,
        models=tuple(_model(history, model, settings.limits, begin) for model in history.models),
        facts=facts,
        p90_prompt=p90_prompt,
        capacity=request_capacity(facts, p90_prompt.value if p90_prompt else None, p90_output),
        prefix_hit=hits / queries if queries > 0 else None,
        preemptions=history.totals.counter(vllm.PREEMPTIONS),
        waiting_seconds={key.extra: value for key, value in history.totals.counters.items() if key.family == WAITED},
        hidden_wait=_hidden_wait(history),
        twin_of=twin_of,
    )


def _model(history: BackendHistory, model_name: str, limits: Limits, begin: float) -> ModelFigures:
    totals = history.totals
    stages = decompose(totals, model_name)
    waits = totals.histogram(vllm.QUEUE, model_name)
    split = split_of(waits, stages.e2e if stages else None, limits)
    return ModelFigures(
        model_name,
        stages,
        split,
        _aborted(history, model_name, begin),
        _lengths(history, vllm.PROMPT_LENGTH, model_name, limits.min_requests),
        _lengths(history, vllm.OUTPUT_LENGTH, model_name, limits.min_requests),
    )


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


def _lengths(history: BackendHistory, family: str, model_name: str, minimum: float) -> dict[float, float]:
    lengths = history.lengths.histograms.get(SeriesKey(family, model_name))
    if lengths is None or observed(lengths) < minimum:
        return {}
    return {q: value for q in LENGTH_QUANTILES if (value := quantile(lengths, q)) is not None}


def _hidden_wait(history: BackendHistory) -> float | None:
    """Integral of waiting less the increase of the queue sum, where that is positive and preemptions rose.

    A preempted request waits again, and vLLM books that wait as decode. An estimate.
    """
    if history.totals.counter(vllm.PREEMPTIONS) <= 0 or not history.totals.seconds:
        return None  # from a single page nothing is known of who waited when
    waited = history.totals.counter(WAITED)
    queued = sum(rise.sum or 0.0 for key, rise in history.totals.histograms.items() if key.family == vllm.QUEUE)
    return max(waited - queued, 0.0)
