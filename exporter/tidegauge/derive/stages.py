"""Where the time of finished requests went: queue, prefill, decode and the residual."""

from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.catalogue.labels import SERVER_STAGES
from tidegauge.state.windows import Totals

_FAMILY: Final = {"queue": vllm.QUEUE, "prefill": vllm.PREFILL, "decode": vllm.DECODE}
ENGINE_STAGES: Final = tuple(_FAMILY)


@attrs.frozen
class Stages:
    """Mean seconds per finished request and stage.

    A stage is absent where the server's version does not export it; `other` needs all three. `hidden_queue` is the
    estimate mean TTFT - mean queue - mean prefill of the wait before a request is stamped as queued, None where
    aborts make it meaningless.
    """

    requests: float
    e2e: float | None
    seconds: dict[str, float]
    hidden_queue: float | None = None

    def share(self, stage: str) -> float | None:
        """Share of the stage in end-to-end time."""
        if self.e2e is None or self.e2e <= 0 or stage not in self.seconds:
            return None
        return self.seconds[stage] / self.e2e

    def engine_share(self, stage: str) -> float | None:
        """Share of the stage in queue + prefill + decode."""
        known = [self.seconds[name] for name in ENGINE_STAGES if name in self.seconds]
        if len(known) < len(ENGINE_STAGES) or sum(known) <= 0 or stage not in ENGINE_STAGES:
            return None
        return self.seconds[stage] / sum(known)

    def gain_ceiling(self, stage: str, cut: float) -> float | None:
        """Largest end-to-end gain of removing *cut* (0 to 1] of the stage: share x cut."""
        share = self.share(stage)
        return None if share is None else share * cut


def mean(totals: Totals, family: str, model_name: str) -> float | None:
    """Increase of the sum over the increase of the count, None if nothing was observed."""
    rise = totals.histogram(family, model_name)
    if rise is None or not rise.count or rise.sum is None:
        return None
    return rise.sum / rise.count


def decompose(totals: Totals, model_name: str) -> Stages | None:
    """The stages of one model's finished requests in the window; None if none finished."""
    e2e_rise = totals.histogram(vllm.E2E, model_name)
    e2e = mean(totals, vllm.E2E, model_name)
    seconds: dict[str, float] = {
        stage: value for stage, family in _FAMILY.items() if (value := mean(totals, family, model_name)) is not None
    }
    if e2e is None and not seconds:
        return None
    requests = e2e_rise.count if e2e_rise is not None and e2e_rise.count else _any_count(totals, model_name)
    if e2e is not None and len(seconds) == len(ENGINE_STAGES):
        seconds["other"] = max(e2e - sum(seconds.values()), 0.0)
    return Stages(requests, e2e, seconds, _hidden_queue(totals, model_name, seconds, requests))


def combine(parts: list[Stages]) -> Stages | None:
    """One set of stages over several backends, weighted by their requests; a stage some backend lacks is left out."""
    usable = [part for part in parts if part.requests > 0]
    if not usable:
        return None
    requests = sum(part.requests for part in usable)
    common = set.intersection(*(set(part.seconds) for part in usable))
    seconds: dict[str, float] = {
        stage: sum(part.seconds[stage] * part.requests for part in usable) / requests
        for stage in SERVER_STAGES
        if stage in common
    }
    e2es = [part.e2e for part in usable]
    known = [value for value in e2es if value is not None]
    e2e = None
    if len(known) == len(usable):
        e2e = sum(value * part.requests for value, part in zip(known, usable, strict=True)) / requests
    return Stages(requests, e2e, seconds)


def _any_count(totals: Totals, model_name: str) -> float:
    counts = [rise.count or 0.0 for family in _FAMILY.values() if (rise := totals.histogram(family, model_name))]
    return max(counts, default=0.0)


def _hidden_queue(totals: Totals, model_name: str, seconds: dict[str, float], requests: float) -> float | None:
    ttft = totals.histogram(vllm.TTFT, model_name)
    if ttft is None or ttft.sum is None or ttft.count != requests or not {"queue", "prefill"} <= seconds.keys():
        return None
    return max(ttft.sum / requests - seconds["queue"] - seconds["prefill"], 0.0)
