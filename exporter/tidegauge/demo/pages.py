"""An engine's counters as the /metrics page of vLLM 0.32: its families, labels, label order, buckets and numbers."""

from collections.abc import Iterator
from typing import Final

from tidegauge import vllm
from tidegauge.demo import families
from tidegauge.demo.engine import Engine
from tidegauge.demo.exposition import Block, buckets, created, head, labels, number
from tidegauge.demo.families import FAMILIES, PREFIX, Family
from tidegauge.demo.settings import EngineSettings
from tidegauge.demo.tally import CACHED_TOKENS, Tally
from tidegauge.demo.weblayer import ProcessFacts, WebTally, process_lines, python_lines

CONTENT_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"
"""What vLLM's /metrics route answers whatever it is asked for."""

ENGINE: Final = "0"

_UNSET = (
    *("cache_hit_alignment_tokens", "hash_block_size", "kv_cache_layout", "kv_cache_memory_bytes"),
    *("kv_offloading_size", "mamba_block_size", "mamba_page_size_padded", "num_cpu_blocks"),
    *("num_gpu_blocks_override", "prefix_match_unit", "skip_page_size_padded", "sliding_window"),
)
_OFF = (
    *("enable_mamba_shared_prefix_checkpoint", "is_attention_free", "kv_sharing_fast_prefill"),
    *("use_kda_recoverssm", "use_replayssm", "user_specified_block_size"),
)


def cache_config_labels(settings: EngineSettings) -> dict[str, str]:
    """The labels of `cache_config_info`, values as Python prints them; there is no model name among them."""
    return {
        **dict.fromkeys(_UNSET, "None"),
        **dict.fromkeys(_OFF, "False"),
        "_block_size_resolved": "True",
        "block_size": str(settings.block_size),
        "cache_dtype": "auto",
        "effective_attention_block_size": str(settings.block_size),
        "enable_prefix_caching": str(settings.prefix_caching),
        vllm.ENGINE: ENGINE,
        "gpu_memory_utilization": "0.92",
        "kv_cache_dtype_skip_layers": "[]",
        "kv_cache_max_concurrency": str(settings.max_concurrency),
        "kv_cache_size_tokens": str(settings.kv_cache_size_tokens),
        "kv_offloading_backend": "native",
        "mamba_cache_dtype": "auto",
        "mamba_cache_mode": "none",
        "mamba_ssm_cache_dtype": "float32",
        "num_gpu_blocks": str(settings.num_blocks),
        "prefix_cache_retention_interval": "0",
        "prefix_caching_hash_algo": "sha256",
        "replayssm_buffer_len": "16",
        "swa_bounded_replay": "True",
    }


class PageWriter:
    """Writes the pages of one engine; `web` holds the HTTP counts of the server around it, if there is one."""

    def __init__(self, engine: Engine, web: WebTally | None = None) -> None:
        self._engine = engine
        self._web = web or WebTally(engine.started)
        self._blocks = [block for family in FAMILIES for block in self._family(family)]
        info = PREFIX + vllm.CACHE_INFO
        self._cache_info = (
            f"{head(info, families.CACHE_INFO_TEXT, 'gauge')}\n{info}{labels(cache_config_labels(engine.settings))} 1.0"
        )
        self._python = "\n".join(python_lines())

    def page(self, process: ProcessFacts | None = None) -> str:
        """The page at this moment."""
        process = process or ProcessFacts(self._engine.started)
        blocks = (block() for block in self._blocks)
        parts = (self._python, *process_lines(process), *blocks, self._cache_info, *self._web.lines())
        return "\n".join(parts) + "\n"

    def _family(self, family: Family) -> Iterator[Block]:
        name = PREFIX + family.name
        base = {vllm.MODEL_NAME: self._engine.settings.model_name} | ({vllm.ENGINE: ENGINE} if family.engine else {})
        tally = self._engine.tally
        series = {
            labels(base | ({family.label: value} if family.label else {})): (family.name, value)
            for value in family.values
        }
        yield _text(head(name, family.text, family.kind))
        if family.kind == "histogram":
            yield buckets(name, base, tally.histograms[family.name])
        else:
            for own, key in series.items():
                yield _sample(f"{name}{own} ", tally, key)
        if family.kind != "gauge":
            stem = name if family.kind == "counter" else f"{name}_total"
            yield _text(created(stem, family.text, dict.fromkeys(series, self._engine.started)))


def _text(text: str) -> Block:
    return lambda: text


def _sample(start: str, tally: Tally, key: tuple[str, str]) -> Block:
    return lambda: start + number(_value(tally, *key))


def _value(tally: Tally, family: str, label: str) -> float:
    """What a counter or gauge reads now; those that this model does not move stay 0, as on an ordinary server."""
    readings: dict[tuple[str, str], float] = {
        (vllm.RUNNING, ""): tally.gauges.running,
        (vllm.WAITING, ""): tally.gauges.waiting,
        (vllm.WAITING_BY_REASON, families.CAPACITY): tally.gauges.waiting,
        (vllm.KV_USAGE, ""): tally.gauges.kv_usage,
        (families.SLEEP_STATE, families.AWAKE): 1,
        (families.TOKENS_BY_SOURCE, families.LOCAL_CACHE): tally.counters[CACHED_TOKENS],
        (families.TOKENS_BY_SOURCE, families.LOCAL_COMPUTE): tally.counters[vllm.PROMPT_TOKENS]
        - tally.counters[CACHED_TOKENS],
        (families.CACHED_BY_SOURCE, families.DEVICE): tally.counters[vllm.PREFIX_HITS],
        (vllm.FINISHED, label): tally.finished_by_reason[label],
    }
    return readings.get((family, label), 0 if label else tally.counters[family])
