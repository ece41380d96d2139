"""The lines that vLLM 0.32 prints when it starts, while it runs and when it is told to stop. Pure: text from values.

Word for word as a real server prints them, with process prefix, header and source line. Left out are lines that tell of
the machine (threads, weights, compilation), and the end of the configuration line after the pooler.
"""

import time
from collections.abc import Iterator
from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.demo.settings import VERSION, EngineSettings
from tidegauge.demo.tally import CACHED_TOKENS, Tally

DEFAULT_BATCHED_TOKENS: Final = 2048
"""With exactly this value a real server does not print its chunked-prefill line: its once-only logger used it up."""

ROUTES: Final = (
    ("/version", "GET"),
    ("/health", "GET"),
    ("/metrics", "GET"),
    ("/v1/models", "GET"),
    ("/v1/completions", "POST"),
)

_BANNER = (
    "",
    "       █     █     █▄   ▄█",
    " ▄▄ ▄█ █     █     █ ▀▄▀ █  version {version}",
    "  █▄█▀ █     █     █     █  model   {model}",
    "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
)
_API, _CORE = "APIServer", "EngineCore"


@attrs.frozen
class Place:
    """Where a server runs: its address, and the pids that its log lines carry."""

    host: str
    port: int
    api_pid: int
    core_pid: int


def line(process: str, pid: int, source: str, message: str, at: float) -> str:
    """One INFO record; `at` is unix seconds, printed in local time, without year or zone."""
    return f"({process} pid={pid}) INFO {time.strftime('%m-%d %H:%M:%S', time.localtime(at))} [{source}] {message}"


def non_default_args(settings: EngineSettings, place: Place) -> dict[str, object]:
    """What was given on the command line, in vLLM's order."""
    return {
        "model_tag": settings.model_name,
        "host": place.host,
        "port": place.port,
        "model": settings.model_name,
        "max_model_len": settings.max_model_len,
        **({} if settings.prefix_caching else {"enable_prefix_caching": False}),
        "max_num_batched_tokens": settings.max_num_batched_tokens,
        "max_num_seqs": settings.max_num_seqs,
    }


def loading_lines(settings: EngineSettings, place: Place, at: float) -> Iterator[str]:
    """From the banner to the configuration: what is printed before the model is loaded."""

    def api(source: str, message: str) -> str:
        return line(_API, place.api_pid, source, message, at)

    for row in _BANNER:
        yield api("api_utils.py:347", row.format(version=VERSION, model=settings.model_name) + "\r")
    yield api("api_utils.py:347", "")
    yield api("api_utils.py:286", f"non-default args: {non_default_args(settings, place)}")
    yield api("model.py:733", "Resolved architecture: LlamaForCausalLM")
    yield api("model.py:2152", f"Using max model len {settings.max_model_len}")
    if settings.max_num_batched_tokens != DEFAULT_BATCHED_TOKENS:
        chunked = f"Chunked prefill is enabled with max_num_batched_tokens={settings.max_num_batched_tokens}."
        yield api("scheduler.py:307", chunked)
    yield line(_CORE, place.core_pid, "core.py:133", _engine_config(settings), at)


def ready_lines(settings: EngineSettings, place: Place, at: float, took: float) -> Iterator[str]:
    """From the KV cache to the open port, `took` seconds after the engine began to load."""
    size = (
        f"GPU KV cache size: {settings.kv_cache_size_tokens:,} tokens, Maximum concurrency for "
        f"{settings.max_model_len:,} tokens per request: {settings.max_concurrency:.2f}x"
    )
    yield line(_CORE, place.core_pid, "kv_cache_utils.py:2327", size, at)
    init = f"init engine (profile, create kv cache, warmup model) took {took:.2f} s"
    yield line(_CORE, place.core_pid, "core.py:402", init, at)
    for source, message in (
        ("entry.py:136", "Supported tasks: ['generate']"),
        ("entry.py:140", f"Starting vLLM server on http://{place.host}:{place.port}"),
        ("launcher.py:186", "Available routes are:"),
        *(("launcher.py:195", f"Route: {path}, Methods: {method}") for path, method in ROUTES),
    ):
        yield line(_API, place.api_pid, source, message, at)
    yield f"INFO:     Started server process [{place.api_pid}]"
    yield "INFO:     Waiting for application startup."
    yield "INFO:     Application startup complete."


def shutdown_lines(place: Place, at: float) -> Iterator[str]:
    """What a server prints on SIGTERM: it aborts what it has."""
    for source, message in (
        ("launcher.py:254", "[shutdown] API server: shutdown triggered"),
        ("launcher.py:270", "[shutdown] API server: stopping engine client mode=abort timeout=0s"),
        ("launcher.py:304", "[shutdown] API server: shutting down FastAPI HTTP server"),
    ):
        yield line(_API, place.api_pid, source, message, at)
    yield "INFO:     Shutting down"
    yield "INFO:     Waiting for application shutdown."
    yield "INFO:     Application shutdown complete."


class StatsLines:
    """The periodic statistics line: rates since the last one, and silence after two idle intervals."""

    def __init__(self, tally: Tally, place: Place) -> None:
        self._tally = tally
        self._place = place
        self._before = self._counted()
        self._was_idle = False

    def next(self, at: float, seconds: float) -> str | None:
        """The line for the interval of so many seconds that ends `at`, if one is due."""
        counted, gauges = self._counted(), self._tally.gauges
        prompt, output = ((now - then) / seconds for now, then in zip(counted, self._before, strict=True))
        self._before = counted
        was_idle, self._was_idle = self._was_idle, not (prompt or output)
        if was_idle and self._was_idle:
            return None
        queried = sum(asked for asked, _ in self._tally.recent_prefixes)
        hit = sum(found for _, found in self._tally.recent_prefixes)
        message = (
            f"Engine 000: Avg prompt throughput: {prompt:.1f} tokens/s, "
            f"Avg generation throughput: {output:.1f} tokens/s, Running: {gauges.running} reqs, "
            f"Waiting: {gauges.waiting} reqs, GPU KV cache usage: {gauges.kv_usage:.1%}"
        ) + (f", Prefix cache hit rate: {hit / queried:.1%}" if queried else "")
        return line(_API, self._place.api_pid, "loggers.py:335", message, at)

    def _counted(self) -> tuple[int, int]:
        """Prompt tokens computed (without cached ones), tokens generated."""
        counters = self._tally.counters
        return counters[vllm.PROMPT_TOKENS] - counters[CACHED_TOKENS], counters[vllm.OUTPUT_TOKENS]


def _engine_config(settings: EngineSettings) -> str:
    model = settings.model_name
    return (
        f"Initializing a V1 LLM engine (v{VERSION}) with config: model={model!r}, speculative_config=None, "
        f"tokenizer={model!r}, skip_tokenizer_init=False, tokenizer_mode=auto, revision=None, tokenizer_revision=None, "
        f"trust_remote_code=False, dtype=torch.bfloat16, max_seq_len={settings.max_model_len}, download_dir=None, "
        "load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, "
        "decode_context_parallel_size=1, dcp_comm_backend=ag_rs, disable_custom_all_reduce=False, quantization=None, "
        "quantization_config=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, "
        f"served_model_name={model}, enable_prefix_caching={settings.prefix_caching}, enable_chunked_prefill=True, "
        "pooler_config=None"
    )
