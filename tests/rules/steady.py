"""Steady traffic of one server, family by family, on the label sets of real servers and of the scrapes around them.

Everything is per step of 30 s, so that five minutes hold ten steps and a quarter of an hour thirty.
"""

from collections.abc import Iterator, Mapping, Sequence

import attrs

from tests.rules.promtool import Series, labels, series
from tests.rules.servers import EDGES
from tidegauge import vllm

STEPS = 40
TTFT_EDGES = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
    640,
    2560,
)
TOKEN_EDGES = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
LENGTHS_8K = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
LENGTHS_128K = (*LENGTHS_8K, 10000, 20000, 50000, 100000)
DEFAULT_EDGES = {
    vllm.TTFT: TTFT_EDGES,
    vllm.TPOT: TOKEN_EDGES,
    vllm.ITL: TOKEN_EDGES,
    "time_per_output_token_seconds": TOKEN_EDGES[:13],
    vllm.PROMPT_LENGTH: LENGTHS_8K,
    vllm.OUTPUT_LENGTH: LENGTHS_8K,
}  # fmt: skip

# What Prometheus stores of a 0.32 server; of an early 0.8, which has no engine label; and of a replica under Ray Serve,
# whose names the scrape configuration has brought to vLLM's.
MODERN = {"engine": "0", "instance": "10.0.0.1:8000", "job": "vllm", "model_name": "/models/sim"}
OLD = {"instance": "10.0.0.8:8000", "job": "prod/vllm", "model_name": "old"}
RAY = {
    "Component": "core_worker",
    "NodeAddress": "10.0.0.4",
    "ReplicaId": "vwgzq1bk",
    "SessionName": "session_2026-11-30_08-00-00_000000_1",
    "WorkerId": "3f2a",
    "engine": "0",
    "instance": "10.0.0.4:8080",
    "job": "ray-vllm",
    "model_name": "qwen",
}


def backend(names: Mapping[str, str], **more: str) -> str:
    """The label set of a recorded series about the server with these native labels."""
    return labels(backend=names["instance"], model_name=names["model_name"], **more)


@attrs.frozen
class Steady:
    """A server; numbers are per step.

    `histograms` maps a family to {value: observations}; `counters` a family, or (family, label, value), to its rise;
    `gauges` likewise to a value. Families are given in the spelling of the server.
    """

    names: Mapping[str, str]
    histograms: Mapping[str, Mapping[float, float]] = attrs.Factory(dict)
    counters: Mapping[str | tuple[str, str, str], float] = attrs.Factory(dict)
    gauges: Mapping[str | tuple[str, str, str], float] = attrs.Factory(dict)
    edges: Mapping[str, Sequence[float]] = attrs.Factory(dict)
    steps: int = STEPS

    def series(self) -> list[Series]:
        return [
            *(one for family, seen in self.histograms.items() for one in self._histogram(family, seen)),
            *(self._plain(key, f"0+{rise:g}x{self.steps}") for key, rise in self.counters.items()),
            *(self._plain(key, f"{value:g}x{self.steps}") for key, value in self.gauges.items()),
        ]

    def _plain(self, key: str | tuple[str, str, str], values: str) -> Series:
        family, *extra = [key] if isinstance(key, str) else key
        return series(f"vllm:{family}", values, **self.names, **({extra[0]: extra[1]} if extra else {}))

    def _histogram(self, family: str, seen: Mapping[float, float]) -> Iterator[Series]:
        total = sum(seen.values())
        for edge in self.edges.get(family, DEFAULT_EDGES.get(family, EDGES)):
            upto = sum(count for value, count in seen.items() if value <= edge)
            yield self._rising(f"{family}_bucket", upto, le=str(float(edge)))
        yield self._rising(f"{family}_bucket", total, le="+Inf")
        yield self._rising(f"{family}_count", total)
        yield self._rising(f"{family}_sum", sum(value * count for value, count in seen.items()))

    def _rising(self, name: str, rise: float, **extra: str) -> Series:
        return series(f"vllm:{name}", f"0+{rise:.12g}x{self.steps}", **self.names, **extra)
