"""How many requests a backend can hold at once, from facts whose source is always named.

Prefix-cache hits are left out on purpose: they save work for the requests that hit, and a capacity that counts on
them over-promises as soon as the mix changes.
"""

from collections.abc import Sequence
from math import floor, isfinite

import attrs

from tidegauge.catalogue import thresholds as th
from tidegauge.model import CacheConfig, Pinned, StartupFacts


@attrs.frozen
class Fact:
    """A number about a server and where it came from (a value of the `source` label)."""

    value: float
    source: str


@attrs.frozen
class ServerFacts:
    """What is known of one backend; None is unknown.

    Numbers hold for the whole backend, engines summed, but `max_num_batched_tokens` and `max_model_len`, which hold
    for one engine.
    """

    kv_tokens: Fact | None = None
    kv_disagree: bool | None = None
    max_num_seqs: Fact | None = None
    max_num_batched_tokens: Fact | None = None
    max_model_len: Fact | None = None

    @property
    def slots(self) -> Fact | None:
        """The sequence slots where they limit; what was only observed is a lower bound and limits nothing."""
        known = self.max_num_seqs
        return known if known is not None and known.source != "observed" else None


def kv_from_metrics(configs: Sequence[CacheConfig], engines: int = 1) -> float | None:
    """Sum of `kv_cache_size_tokens` over the engines (vLLM 0.24 and later); None unless each of *engines* tells."""
    sizes = [_number(config.labels.get("kv_cache_size_tokens")) for config in configs]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) >= max(engines, 1) else None


def kv_from_blocks(configs: Sequence[CacheConfig]) -> float | None:
    """`num_gpu_blocks` x `block_size`: the last resort, wrong for hybrid models.

    The block count is already the sum over data-parallel engines and is repeated on each, so one is taken.
    """
    for config in configs:
        blocks, size = _number(config.labels.get("num_gpu_blocks")), _number(config.labels.get("block_size"))
        if blocks and size:
            return blocks * size
    return None


def kv_from_log(startup: StartupFacts | None, engines: int) -> float | None:
    """Sum of the engines' own lines; None if one of *engines* printed none, or the start failed."""
    if startup is None or startup.started is False:
        return None
    sizes = [engine.kv_cache_tokens for engine in startup.engines if engine.kv_cache_tokens is not None]
    return float(sum(sizes)) if len(sizes) >= _ranks(engines, startup) else None


def _ranks(engines: int, startup: StartupFacts) -> int:
    """Data-parallel ranks behind this endpoint: those on its page, before the first page those that the log names.

    The page wins: behind an external load balancer each endpoint serves one rank of a larger deployment, whose whole
    size its log names.
    """
    return engines or startup.data_parallel_size or 1


@attrs.frozen
class Evidence:
    """Everything that tells something of one backend's limits.

    `engines` is the number of data-parallel ranks on the page, 0 before the first one; `served` is what the server's
    own endpoints say, per engine; `observed_seqs` the plateau of running requests.
    """

    pinned: Pinned = Pinned()
    configs: Sequence[CacheConfig] = ()
    startup: StartupFacts | None = None
    engines: int = 1
    served: Pinned = Pinned()
    observed_seqs: float | None = None


def server_facts(evidence: Evidence, disagree: float = th.SOURCES_DISAGREE.value) -> ServerFacts:
    """The facts in order of trust: configuration, metrics, log, the server's own endpoints, observation.

    Per-engine limits are multiplied by the number of engines. *disagree* is the relative difference of two KV
    capacities from which `kv_disagree` is true.
    """
    pinned, served, startup = evidence.pinned, evidence.served, evidence.startup
    log = startup if startup is not None and startup.started is not False else StartupFacts()
    ranks = _ranks(evidence.engines, log)
    printed, labelled, blocks = (
        kv_from_log(startup, evidence.engines),
        kv_from_metrics(evidence.configs, evidence.engines),
        kv_from_blocks(evidence.configs),
    )
    kv = first_known(
        ("config", pinned.kv_cache_capacity_tokens), ("metrics", labelled), ("log", printed), ("metrics", blocks)
    )
    # Blocks x size is known to be off for some models: it is no witness against a better source.
    witnesses = [value for value in (pinned.kv_cache_capacity_tokens, labelled, printed) if value]
    return ServerFacts(
        kv_tokens=kv,
        kv_disagree=max(witnesses) - min(witnesses) > disagree * min(witnesses) if witnesses else None,
        max_num_seqs=first_known(
            ("config", pinned.max_num_seqs),
            ("log", _times(log.max_num_seqs, ranks)),
            ("server_info", _times(served.max_num_seqs, ranks)),
            ("observed", evidence.observed_seqs),
        ),
        max_num_batched_tokens=first_known(
            ("config", pinned.max_num_batched_tokens),
            ("log", log.max_num_batched_tokens),
            ("server_info", served.max_num_batched_tokens),
        ),
        max_model_len=first_known(
            ("config", pinned.max_model_len), ("log", log.max_model_len), ("server_info", served.max_model_len)
        ),
    )


def request_capacity(facts: ServerFacts, p90_prompt: float | None, p90_output: float | None) -> dict[str, float]:
    """Requests that fit at once, by basis; a basis that lacks an input is absent.

    `p90_prompt`: min(floor(KV / p90 prompt), slots), so 14 for 1,490,818 tokens, 100,000 and 160;
    `p90_prompt_and_output`: likewise with what the answer adds; `context_window`: min(KV / longest context, slots),
    unrounded, 11.37 for 131,072. Unknown slots limit nothing here.
    """
    if facts.kv_tokens is None:
        return {}
    kv = facts.kv_tokens.value
    slots = facts.slots.value if facts.slots else None
    capacity: dict[str, float] = {}
    if p90_prompt:
        capacity["p90_prompt"] = _capped(floor(kv / p90_prompt), slots)
    if p90_prompt and p90_output:
        capacity["p90_prompt_and_output"] = _capped(floor(kv / (p90_prompt + p90_output)), slots)
    if facts.max_model_len is not None and facts.max_model_len.value > 0:
        capacity["context_window"] = _capped(kv / facts.max_model_len.value, slots)
    return capacity


def _capped(requests: float, slots: float | None) -> float:
    return float(requests if slots is None else min(requests, slots))


def first_known(*candidates: tuple[str, float | None]) -> Fact | None:
    """The first of the sources, the most trusted first, that gives a figure."""
    return next((Fact(float(value), source) for source, value in candidates if value), None)


def _times(value: float | None, ranks: int) -> float | None:
    return None if value is None else value * ranks


def _number(text: str | None) -> float | None:
    """A positive number, None for anything else that a label may say (`None`, an empty text)."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if isfinite(value) and value > 0 else None
