"""Servers whose traffic comes in pulses, so that each window holds other requests than half and twice that window.

Between pulses the counters stand still, at the far end of each window above all: there the generations of Prometheus
disagree. They also scale an increase differently, by a ninth at five minutes: means, shares and quantiles do not see
it, and counts are compared coarsely.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from tests.rules.promtool import Series, labels, series
from tests.rules.steady import DEFAULT_EDGES, EDGES
from tidegauge import vllm

STEPS = 80
AT = STEPS / 2
"""The minute of the checks."""

# The step, counted backwards, at which a pulse has come. In 2, 5, 10, 15 and 30 minutes there are 4, 10, 20, 30 and 60.
BACK = {"now": 2, "five": 6, "ten": 12, "fifteen": 21, "thirty": 44}
WITHIN = {"2m": ("now",), "5m": ("now", "five"), "15m": ("now", "five", "ten", "fifteen")}
SECONDS: Mapping[str, Mapping[str, float]] = {
    "now": {
        vllm.QUEUE: 0.1, vllm.PREFILL: 0.4, vllm.DECODE: 3, vllm.E2E: 4, vllm.TTFT: 0.6, vllm.TPOT: 0.03,
        vllm.ITL: 0.04, vllm.PROMPT_LENGTH: 300, vllm.OUTPUT_LENGTH: 30,
    },
    "five": {
        vllm.QUEUE: 8, vllm.PREFILL: 0.6, vllm.DECODE: 5, vllm.E2E: 14, vllm.TTFT: 9, vllm.TPOT: 0.06,
        vllm.ITL: 0.09, vllm.PROMPT_LENGTH: 700, vllm.OUTPUT_LENGTH: 70,
    },
    "ten": {
        vllm.QUEUE: 20, vllm.PREFILL: 2, vllm.DECODE: 8, vllm.E2E: 35, vllm.TTFT: 25, vllm.TPOT: 0.12,
        vllm.ITL: 0.18, vllm.PROMPT_LENGTH: 1500, vllm.OUTPUT_LENGTH: 150,
    },
    "fifteen": {
        vllm.QUEUE: 1, vllm.PREFILL: 5, vllm.DECODE: 16, vllm.E2E: 25, vllm.TTFT: 7, vllm.TPOT: 0.25,
        vllm.ITL: 0.35, vllm.PROMPT_LENGTH: 3000, vllm.OUTPUT_LENGTH: 300,
    },
    "thirty": {
        vllm.QUEUE: 70, vllm.PREFILL: 9, vllm.DECODE: 90, vllm.E2E: 200, vllm.TTFT: 90, vllm.TPOT: 0.6,
        vllm.ITL: 0.8, vllm.PROMPT_LENGTH: 4000, vllm.OUTPUT_LENGTH: 4000,
    },
}  # fmt: skip
RISE = {"now": 0.25, "five": 1, "ten": 3, "fifteen": 1, "thirty": 1}
"""What a pulse adds to plain counters, per request: a rate over half or twice a window must be another."""
FAMILIES = tuple(SECONDS["now"])


@attrs.frozen
class Pulsed:
    """A server with *requests* per pulse; *slower* scales what the requests take.

    `poisoned` are pulses at which the sums of `families` fall by half while their counts rise; `restarts` are pulses
    before which the process starts again. An `old` server has the names of the removal calendar.
    """

    host: str
    model: str
    requests: Mapping[str, float]
    slower: float = 1
    engines: Sequence[str] = ("0",)
    poisoned: Sequence[str] = ()
    restarts: Sequence[str] = ()
    families: Sequence[str] = FAMILIES
    old: bool = False
    counters: Mapping[str, float] = attrs.Factory(dict)

    @property
    def key(self) -> str:
        return labels(backend=f"{self.host}:8000", model_name=self.model)

    def count(self, window: str) -> float:
        return sum(self.requests.get(pulse, 0) for pulse in WITHIN[window])

    def total(self, family: str, window: str) -> float:
        return sum(self.requests.get(p, 0) * SECONDS[p][family] * self.slower for p in WITHIN[window])

    def mean(self, family: str, window: str) -> float:
        return self.total(family, window) / self.count(window)

    def upto(self, family: str, window: str, edge: float) -> float:
        return sum(self.requests.get(p, 0) for p in WITHIN[window] if SECONDS[p][family] * self.slower <= edge)

    def quantile(self, order: float, family: str, window: str) -> float:
        """By interpolation in the bucket that holds it."""
        rank, below, low = order * self.count(window), 0.0, 0.0
        for edge in DEFAULT_EDGES.get(family, EDGES):
            held = self.upto(family, window, edge)
            if held >= rank:
                return low + (edge - low) * (rank - below) / (held - below)
            below, low = held, edge
        return low

    def clamped(self, order: float, family: str, window: str, edge: float) -> float:
        return max(self.quantile(order, family, window), edge)

    def series(self) -> list[Series]:
        return [one for engine in self.engines for one in self._engine(engine)]

    def _engine(self, engine: str) -> Iterator[Series]:
        names = {"engine": engine, "instance": f"{self.host}:8000", "job": "vllm", "model_name": self.model}
        share = 1 / len(self.engines)
        calendar = {new: former for former, new in vllm.ALIASES.items()} if self.old else {}

        def rising(name: str, rise: Callable[[str], float], *, poisoned: bool = False, **extra: str) -> Series:
            return series(f"vllm:{name}", self._values(rise, share, poisoned=poisoned), **names, **extra)

        for family in FAMILIES:
            if self.old and family == vllm.TPOT:
                continue
            yield from self._histogram(family, calendar.get(family, family), rising)
        for counter, each in self.counters.items():
            yield rising(calendar.get(counter, counter), lambda p, n=each: n * RISE[p])
        yield rising(vllm.FINISHED, lambda p: RISE[p], finished_reason="stop")
        for gauge in (vllm.RUNNING, vllm.WAITING):
            yield series(f"vllm:{gauge}", f"0x{STEPS}", **names)

    def _histogram(self, family: str, name: str, rising: Callable[..., Series]) -> Iterator[Series]:
        def took(pulse: str) -> float:
            return SECONDS[pulse][family] * self.slower

        yield rising(f"{name}_count", lambda _: 1)
        yield rising(f"{name}_sum", took, poisoned=family in self.families)
        for edge in DEFAULT_EDGES.get(name, EDGES):
            yield rising(f"{name}_bucket", lambda p, e=edge: took(p) <= e, le=str(float(edge)))
        yield rising(f"{name}_bucket", lambda _: 1, le="+Inf")

    def _values(self, rise: Callable[[str], float], share: float, *, poisoned: bool) -> list[float]:
        arrivals = {STEPS - back: pulse for pulse, back in BACK.items()}
        value, values = 100000.0, []
        for step in range(STEPS + 1):
            pulse = arrivals.get(step)
            if pulse and pulse in self.restarts:
                value = 0
            if pulse:
                value += self.requests.get(pulse, 0) * rise(pulse) * share
            if pulse and poisoned and pulse in self.poisoned:
                value /= 2
            values.append(value)
        return values
