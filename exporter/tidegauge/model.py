"""Frozen values that travel from parsing to state to derivation; nothing here computes or reads."""

from collections.abc import Mapping
from typing import NamedTuple

import attrs


class SeriesKey(NamedTuple):
    """One series of a vLLM page: canonical family name (see `tidegauge.vllm`), model, engine, and one extra value.

    `model_name` and `engine` are empty where the page has no such label; `extra` is the value of the family's own
    label (`finished_reason`, `reason`), empty for families without one.
    """

    family: str
    model_name: str = ""
    engine: str = ""
    extra: str = ""


@attrs.frozen
class Histogram:
    """A histogram at one moment, or its increase over a window.

    `edges` are the upper bounds in seconds or tokens, ascending, the last one infinite; `cumulative` counts the
    observations up to each edge; `sum` and `count` are None where the page does not give them.
    """

    edges: tuple[float, ...]
    cumulative: tuple[float, ...]
    sum: float | None
    count: float | None


@attrs.frozen
class CacheConfig:
    """The labels of `cache_config_info` for one engine, as the page spells them (`"None"` means not known)."""

    engine: str
    labels: Mapping[str, str]


@attrs.frozen
class Page:
    """What one `/metrics` page says, in today's names.

    `values` holds gauges and counters, `histograms` the histograms. NaN, and values that cannot be (a negative
    gauge), are left out, and `problems` counts them by reason: `line` (not readable), `duplicate`, `value`, `names`
    (more models or reasons than are kept). `process_start` is unix seconds, None in multiprocess mode. `blind` is true
    for a page that has vLLM's families but no series (statistics off).
    """

    values: Mapping[SeriesKey, float]
    histograms: Mapping[SeriesKey, Histogram]
    cache_configs: tuple[CacheConfig, ...] = ()
    process_start: float | None = None
    problems: Mapping[str, int] = attrs.field(factory=dict)
    blind: bool = False


@attrs.frozen
class EngineFacts:
    """What one engine's startup lines say of its KV cache.

    `kv_cache_tokens` is what the engine really uses (the minimum over its workers; for hybrid models before 0.21
    concurrency x max_model_len); `rule` says how it was found: `printed`, `min_of_workers`,
    `concurrency_x_max_model_len` or `blocks_x_block_size`.
    """

    name: str
    kv_cache_tokens: int | None = None
    rule: str | None = None
    num_gpu_blocks: int | None = None
    block_size: int | None = None
    max_concurrency: float | None = None


@attrs.frozen
class StartupFacts:
    """What the log says of the last start of a server; None is unknown, never a default.

    `max_num_seqs` and `max_num_batched_tokens` hold per engine (data-parallel rank). `started` is false when this
    start is known to have failed, `run` counts the starts seen in this log.
    """

    run: int = 0
    version: str | None = None
    engines: tuple[EngineFacts, ...] = ()
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    data_parallel_size: int | None = None
    started: bool | None = None


@attrs.frozen
class Remembered:
    """Startup facts and the process they belong to (unix start time), as kept on disk."""

    process_start: float
    startup: StartupFacts


@attrs.frozen
class Pinned:
    """Facts that the operator typed into the configuration; they win."""

    kv_cache_capacity_tokens: float | None = None
    max_num_seqs: float | None = None
    max_num_batched_tokens: float | None = None
    max_model_len: float | None = None


@attrs.frozen
class Identity:
    """What tells a server process from another: its start, and its counters at the last poll."""

    backend: str
    at: float
    process_start: float | None
    counters: Mapping[SeriesKey, float]


@attrs.frozen
class Barrier:
    """Requests launched together.

    `ceilings` holds the ceilings in force when it opened, by kind (`client`, `server`); `seconds` is None while it is
    open.
    """

    at: float
    fan_out: int
    seconds: float | None = None
    ceilings: tuple[tuple[str, float], ...] = ()

    def ceiling(self, kind: str) -> float | None:
        """The ceiling of one kind, None if it was not known."""
        return dict(self.ceilings).get(kind)
