"""The families of a vLLM 0.32 page in the order of the page, with its HELP texts and the values of their own labels."""

from typing import Final, Literal

import attrs

from tidegauge import vllm
from tidegauge.demo import tally

PREFIX: Final = "vllm:"
SLEEP_STATE: Final = "engine_sleep_state"
TOKENS_BY_SOURCE: Final = "prompt_tokens_by_source_total"
CACHED_BY_SOURCE: Final = "prompt_tokens_cached_by_source_total"
LOCAL_COMPUTE: Final = "local_compute"
LOCAL_CACHE: Final = "local_cache_hit"
DEVICE: Final = "device"
AWAKE: Final = "awake"
CAPACITY: Final = "capacity"


@attrs.frozen
class Family:
    """One family: its own label, if it has one, and that label's values; `engine` is false where vLLM leaves it out."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    label: str = ""
    values: tuple[str, ...] = ("",)
    engine: bool = True


def _counter(name: str, text: str, label: str = "", values: tuple[str, ...] = ("",), *, engine: bool = True) -> Family:
    return Family(name, "counter", text, label, values, engine)


def _gauge(name: str, text: str, label: str = "", values: tuple[str, ...] = ("",)) -> Family:
    return Family(name, "gauge", text, label, values)


def _histogram(name: str, text: str) -> Family:
    return Family(name, "histogram", text)


_MFU = "(for Model Flops Utilization calculations)."
_EXTERNAL = "from KV connector cross-instance cache sharing, in terms of number of"

FAMILIES: Final = (
    _counter("estimated_flops_per_gpu_total", f"Estimated number of floating point operations per GPU {_MFU}"),
    _counter("estimated_read_bytes_per_gpu_total", f"Estimated number of bytes read from memory per GPU {_MFU}"),
    _counter("estimated_write_bytes_per_gpu_total", f"Estimated number of bytes written to memory per GPU {_MFU}"),
    _gauge(vllm.RUNNING, "Number of requests in model execution batches."),
    _gauge(vllm.WAITING, "Number of requests waiting to be processed."),
    _gauge(
        vllm.WAITING_BY_REASON,
        "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; 'deferred' "
        "= deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all reasons equals "
        "vllm:num_requests_waiting.",
        vllm.WAITING_REASON,
        (CAPACITY, vllm.DEFERRED),
    ),
    _gauge(
        SLEEP_STATE,
        "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; weights_offloaded = "
        "1 means sleep level 1; discard_all = 1 means sleep level 2.",
        "sleep_state",
        (AWAKE, "weights_offloaded", "discard_all"),
    ),
    _gauge(vllm.KV_USAGE, "KV-cache usage. 1 means 100 percent usage."),
    _counter(vllm.PREFIX_QUERIES, "Prefix cache queries, in terms of number of queried tokens."),
    _counter(vllm.PREFIX_HITS, "Prefix cache hits, in terms of number of cached tokens."),
    _counter("external_prefix_cache_queries_total", f"External prefix cache queries {_EXTERNAL} queried tokens."),
    _counter("external_prefix_cache_hits_total", f"External prefix cache hits {_EXTERNAL} cached tokens."),
    _counter("mm_cache_queries_total", "Multi-modal cache queries, in terms of number of queried items."),
    _counter("mm_cache_hits_total", "Multi-modal cache hits, in terms of number of cached items."),
    _counter(vllm.PREEMPTIONS, "Cumulative number of preemption from the engine."),
    _counter(vllm.PROMPT_TOKENS, "Number of prefill tokens processed."),
    _counter(
        TOKENS_BY_SOURCE,
        "Number of prompt tokens by source.",
        "source",
        (LOCAL_COMPUTE, LOCAL_CACHE, "external_kv_transfer"),
    ),
    _counter(tally.CACHED_TOKENS, "Number of cached prompt tokens (local + external)."),
    _counter(
        CACHED_BY_SOURCE,
        "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to DRAM), "
        "disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at admission; sums to "
        "vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.",
        "source",
        (DEVICE, "host", "p2p", "disk", "external_unspecified"),
    ),
    _counter(vllm.OUTPUT_TOKENS, "Number of generation tokens processed."),
    _counter(
        vllm.FINISHED,
        "Count of successfully processed requests.",
        vllm.FINISHED_REASON,
        ("stop", "length", "abort", "error", "repetition"),
    ),
    _counter(
        vllm.REJECTIONS,
        "Number of admission attempts rejected by a queue limit, by reason.",
        vllm.WAITING_REASON,
        ("max_num_queued_reqs", "max_num_queued_tokens"),
        engine=False,
    ),
    _histogram(vllm.PROMPT_LENGTH, "Number of prefill tokens processed."),
    _histogram(vllm.OUTPUT_LENGTH, "Number of generation tokens processed."),
    _histogram(vllm.ITERATION_TOKENS, "Histogram of number of tokens per engine_step."),
    _histogram(tally.MAX_GENERATION, "Histogram of maximum number of requested generation tokens."),
    _histogram(tally.PARAMS_N, "Histogram of the n request parameter."),
    _histogram(tally.PARAMS_MAX_TOKENS, "Histogram of the max_tokens request parameter."),
    _histogram(vllm.TTFT, "Histogram of time to first token in seconds."),
    _histogram(vllm.ITL, "Histogram of inter-token latency in seconds."),
    _histogram(vllm.TPOT, "Histogram of time_per_output_token_seconds per request."),
    _histogram(vllm.E2E, "Histogram of e2e request latency in seconds."),
    _histogram(vllm.QUEUE, "Histogram of time spent in WAITING phase for request."),
    _histogram(vllm.INFERENCE, "Histogram of time spent in RUNNING phase for request."),
    _histogram(vllm.PREFILL, "Histogram of time spent in PREFILL phase for request."),
    _histogram(vllm.DECODE, "Histogram of time spent in DECODE phase for request."),
    _histogram(tally.REQUEST_PREEMPTIONS, "Histogram of the number of times a request was preempted."),
    _histogram(tally.COMPUTED, "Histogram of new KV tokens computed during prefill (excluding cached tokens)."),
)

CACHE_INFO_TEXT: Final = "Information of the LLMEngine CacheConfig"
