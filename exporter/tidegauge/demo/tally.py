"""What a vLLM server counts: counters, gauges and histograms, observed at the moments at which vLLM observes them."""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.demo.requests import Finished

LATENCY: Final = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
FIRST_TOKEN: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
    *(160, 640, 2560),
)
TOKEN_GAP: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
STEP_TOKENS: Final = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
CHOICES: Final = (1, 2, 5, 10, 20)
PREEMPTION_COUNTS: Final = (1, 2, 3, 4, 5, 10, 20)

MAX_GENERATION: Final = "request_max_num_generation_tokens"
PARAMS_N: Final = "request_params_n"
PARAMS_MAX_TOKENS: Final = "request_params_max_tokens"
REQUEST_PREEMPTIONS: Final = "request_num_preemptions"
COMPUTED: Final = "request_prefill_kv_computed_tokens"
CACHED_TOKENS: Final = "prompt_tokens_cached_total"


def token_edges(max_model_len: int) -> tuple[float, ...]:
    """The 1-2-5 series up to `max_model_len`, as vLLM builds its token buckets."""
    edges: list[float] = []
    power = 1
    while True:
        for mantissa in (1, 2, 5):
            if mantissa * power > max_model_len:
                return tuple(edges)
            edges.append(mantissa * power)
        power *= 10


class Distribution:
    """A histogram: finite upper edges, observations per bucket (the last one unbounded), their sum."""

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = tuple(float(edge) for edge in edges)
        self.buckets = [0] * (len(edges) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.buckets[bisect_left(self.edges, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def cumulative(self) -> list[int]:
        """Observations up to each edge, the last one unbounded."""
        return list(accumulate(self.buckets))


@attrs.define
class Gauges:
    """State at the end of the last engine step: gauges do not move in between."""

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0


class Tally:
    """Everything that one engine has counted since its start.

    `counters` go by vLLM's family name, `finished_by_reason` by finish reason; `recent_prefixes` holds queried and hit
    tokens of the last thousand requests, as the periodic log line wants them.
    """

    def __init__(self, max_model_len: int) -> None:
        tokens = token_edges(max_model_len)
        self.gauges = Gauges()
        self.counters: Counter[str] = Counter()
        self.finished_by_reason: Counter[str] = Counter()
        self.recent_prefixes: deque[tuple[int, int]] = deque(maxlen=1000)
        self.histograms = {
            vllm.PROMPT_LENGTH: Distribution(tokens),
            vllm.OUTPUT_LENGTH: Distribution(tokens),
            vllm.ITERATION_TOKENS: Distribution(STEP_TOKENS),
            MAX_GENERATION: Distribution(tokens),
            PARAMS_N: Distribution(CHOICES),
            PARAMS_MAX_TOKENS: Distribution(tokens),
            vllm.TTFT: Distribution(FIRST_TOKEN),
            vllm.ITL: Distribution(TOKEN_GAP),
            vllm.TPOT: Distribution(TOKEN_GAP),
            vllm.E2E: Distribution(LATENCY),
            vllm.QUEUE: Distribution(LATENCY),
            vllm.INFERENCE: Distribution(LATENCY),
            vllm.PREFILL: Distribution(LATENCY),
            vllm.DECODE: Distribution(LATENCY),
            REQUEST_PREEMPTIONS: Distribution(PREEMPTION_COUNTS),
            COMPUTED: Distribution(tokens),
        }

    def admitted(self, prompt_tokens: int, cached_tokens: int) -> None:
        """A request was scheduled for the first time, with the prefix cache on."""
        self.counters[vllm.PREFIX_QUERIES] += prompt_tokens
        self.counters[vllm.PREFIX_HITS] += cached_tokens
        self.recent_prefixes.append((prompt_tokens, cached_tokens))

    def first_token(self, prompt_tokens: int, cached_tokens: int, waited: float) -> None:
        """A request's first token is out; `waited` seconds since its arrival. The whole prompt is counted now."""
        self.counters[vllm.PROMPT_TOKENS] += prompt_tokens
        self.counters[CACHED_TOKENS] += cached_tokens
        self.histograms[vllm.TTFT].observe(waited)

    def step(self, prompt_tokens: int, output_tokens: int) -> None:
        """A step gave outputs: newly computed prompt tokens of prompts that ended in it, and tokens generated."""
        self.counters[vllm.OUTPUT_TOKENS] += output_tokens
        self.histograms[vllm.ITERATION_TOKENS].observe(prompt_tokens + output_tokens)

    def finished(self, done: Finished) -> None:
        """A request finished: only now do the per-request histograms see it."""
        self.finished_by_reason[done.reason] += 1
        observed = {
            vllm.PROMPT_LENGTH: done.request.prompt_tokens,
            vllm.OUTPUT_LENGTH: done.output_tokens,
            MAX_GENERATION: done.output_tokens,
            PARAMS_N: 1,
            PARAMS_MAX_TOKENS: done.request.max_tokens,
            vllm.TPOT: done.time_per_output_token,
            vllm.E2E: done.e2e,
            vllm.QUEUE: done.queue,
            vllm.INFERENCE: done.inference,
            vllm.PREFILL: done.prefill,
            vllm.DECODE: done.decode,
            REQUEST_PREEMPTIONS: done.preemptions,
            COMPUTED: done.request.prompt_tokens - done.cached_tokens,
        }
        for family, value in observed.items():
            self.histograms[family].observe(value)
