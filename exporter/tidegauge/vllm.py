"""vLLM's own names: metric families in today's spelling, their older spellings and the prefixes they come with.

A family is called by its name without a prefix, counters with `_total`, as today's vLLM exposes it. `ALIASES` maps
what older releases call the same thing. Sources: the metric definitions of vLLM 0.3 to 0.33.
"""

from typing import Final, Literal

from tidegauge import process

Kind = Literal["gauge", "counter", "histogram", "info"]

# --- prefixes ---------------------------------------------------------------------------------------------------
# `vllm_` is what prometheus_client's escaping makes of `vllm:`; Ray adds its own in front of either.
PREFIXES: Final = ("vllm:", "vllm_", "ray_vllm_", "ray_vllm:")

# --- families ---------------------------------------------------------------------------------------------------
E2E: Final = "e2e_request_latency_seconds"
QUEUE: Final = "request_queue_time_seconds"
PREFILL: Final = "request_prefill_time_seconds"
DECODE: Final = "request_decode_time_seconds"
INFERENCE: Final = "request_inference_time_seconds"
TTFT: Final = "time_to_first_token_seconds"
ITL: Final = "inter_token_latency_seconds"
TPOT: Final = "request_time_per_output_token_seconds"
PROMPT_LENGTH: Final = "request_prompt_tokens"
OUTPUT_LENGTH: Final = "request_generation_tokens"
ITERATION_TOKENS: Final = "iteration_tokens_total"  # a histogram, whatever its name says
RUNNING: Final = "num_requests_running"
WAITING: Final = "num_requests_waiting"
WAITING_BY_REASON: Final = "num_requests_waiting_by_reason"
KV_USAGE: Final = "kv_cache_usage_perc"
PREEMPTIONS: Final = "num_preemptions_total"
PREFIX_QUERIES: Final = "prefix_cache_queries_total"
PREFIX_HITS: Final = "prefix_cache_hits_total"
PROMPT_TOKENS: Final = "prompt_tokens_total"
OUTPUT_TOKENS: Final = "generation_tokens_total"
FINISHED: Final = "request_success_total"
REJECTIONS: Final = "admission_rejections_total"
CACHE_INFO: Final = "cache_config_info"

KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(
        (E2E, QUEUE, PREFILL, DECODE, INFERENCE, TTFT, ITL, TPOT, PROMPT_LENGTH, OUTPUT_LENGTH, ITERATION_TOKENS),
        "histogram",
    ),
    **dict.fromkeys((RUNNING, WAITING, WAITING_BY_REASON, KV_USAGE), "gauge"),
    **dict.fromkeys(
        (PREEMPTIONS, PREFIX_QUERIES, PREFIX_HITS, PROMPT_TOKENS, OUTPUT_TOKENS, FINISHED, REJECTIONS), "counter"
    ),
    CACHE_INFO: "info",
}
"""Every family that tidegauge reads."""

ALIASES: Final[dict[str, str]] = {
    "gpu_cache_usage_perc": KV_USAGE,
    "gpu_prefix_cache_queries_total": PREFIX_QUERIES,
    "gpu_prefix_cache_hits_total": PREFIX_HITS,
    "time_per_output_token_seconds": ITL,
}
"""Older spellings; where a page has both, today's wins."""
# --- labels -----------------------------------------------------------------------------------------------------
MODEL_NAME: Final = "model_name"
ENGINE: Final = "engine"
FINISHED_REASON: Final = "finished_reason"
WAITING_REASON: Final = "reason"
DEFERRED: Final = "deferred"
EXTRA_LABELS: Final[dict[str, tuple[str, ...]]] = {
    FINISHED: (FINISHED_REASON,),
    WAITING_BY_REASON: (WAITING_REASON,),
    REJECTIONS: (WAITING_REASON,),
}
"""The labels, beyond model name and engine, that tell series of a family apart."""

PROCESS_START: Final = process.START_TIME.name


def older(family: str) -> list[str]:
    """What earlier releases call the family; most have one name for ever."""
    return [old for old, new in ALIASES.items() if new == family]
