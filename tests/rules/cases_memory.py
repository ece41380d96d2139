"""KV-cache usage, prefix hits and preemptions, in today's names and in those of the removal calendar."""

from tests.rules.promtool import Group, Value, labels
from tests.rules.servers import exporter
from tests.rules.steady import MODERN, OLD, RAY, STEPS, Steady, backend
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

TWIN = {**MODERN, "instance": "10.0.0.2:8000"}
RANK = {**TWIN, "engine": "1"}
BOTH = {**MODERN, "instance": "10.0.0.6:8000", "model_name": "both-names"}
PIDS = {**MODERN, "instance": "10.0.0.7:8000", "model_name": "processes"}
COLD = {**MODERN, "instance": "10.0.0.9:8000", "model_name": "cold"}
EMPTY = {vllm.RUNNING: 0, vllm.WAITING: 0}


def caching(hits: float, queries: float, prefix: str = "") -> dict[str | tuple[str, str, str], float]:
    """The prefix cache's counters."""
    return {f"{prefix}{vllm.PREFIX_HITS}": hits, f"{prefix}{vllm.PREFIX_QUERIES}": queries}


SERVERS = [
    Steady(MODERN, counters={**caching(583, 1000), vllm.PREEMPTIONS: 0}, gauges={vllm.KV_USAGE: 0.2, **EMPTY}),
    Steady(TWIN, counters={**caching(500, 1000), vllm.PREEMPTIONS: 3}, gauges={vllm.KV_USAGE: 0.6, **EMPTY}),
    Steady(RANK, counters={**caching(0, 250), vllm.PREEMPTIONS: 6}, gauges={vllm.KV_USAGE: 0.3, **EMPTY}),
    Steady(OLD, counters={**caching(716, 1000, "gpu_"), vllm.PREEMPTIONS: 1.5},
        gauges={"gpu_cache_usage_perc": 0.8, **EMPTY}),
    # 0.9.2 to 0.10.2 have both; today's name is read.
    Steady(BOTH, counters={**caching(1, 10), **caching(9, 10, "gpu_")},
        gauges={vllm.KV_USAGE: 0.55, "gpu_cache_usage_perc": 0.99, **EMPTY}),
    Steady(PIDS, gauges={(vllm.KV_USAGE, "pid", "11"): 0, (vllm.KV_USAGE, "pid", "12"): 0.35, **EMPTY}),
    Steady(RAY, counters=caching(10, 40), gauges={vllm.KV_USAGE: 0.1, **EMPTY}),
    Steady({**RAY, "WorkerId": "91bd"}, counters=caching(10, 40), gauges={vllm.KV_USAGE: 0.45, **EMPTY}),
    Steady(COLD, counters=caching(0, 0), gauges={vllm.KV_USAGE: 0, **EMPTY}),
]  # fmt: skip

MEMORY = Group(
    "the KV cache of each server and of the fleets, weighed by capacity where all capacities are known",
    [
        *(one for server in SERVERS for one in server.series()),
        exporter(ex.KV_CAPACITY, f"300000x{STEPS}", backend=MODERN["instance"], source="metrics"),
        exporter(ex.KV_CAPACITY, f"300000x{STEPS}", "10.0.0.5:10010", backend=MODERN["instance"], source="metrics"),
        exporter(ex.KV_CAPACITY, f"100000x{STEPS}", backend=TWIN["instance"], source="log"),
        exporter(ex.KV_CAPACITY, f"50000x{STEPS}", backend=OLD["instance"], source="config"),
    ],
    [
        Value(rec.KV_USAGE, 8, {
            backend(MODERN): 0.2,
            backend(TWIN): 0.6,
            backend(OLD): 0.8,
            backend(BOTH): 0.55,
            backend(PIDS): 0.35,
            backend(RAY): 0.45,
            backend(COLD): 0,
        }),
        Value(rec.FLEET_KV_MAX, 8, {
            labels(fleet="/models/sim"): 0.6,
            labels(fleet="old"): 0.8,
            labels(fleet="both-names"): 0.55,
            labels(fleet="processes"): 0.35,
            labels(fleet="qwen"): 0.45,
            labels(fleet="cold"): 0,
        }),
        Value(rec.FLEET_KV_WEIGHTED, 8, {labels(fleet="/models/sim"): 0.3, labels(fleet="old"): 0.8}),
        Value(rec.KV_CAPACITY, 8, {
            labels(backend=MODERN["instance"]): 300000,
            labels(backend=TWIN["instance"]): 100000,
            labels(backend=OLD["instance"]): 50000,
        }),
        Value(rec.PREFIX_HIT, 8, {
            backend(MODERN): 0.583,
            backend(TWIN): 0.4,
            backend(OLD): 0.716,
            backend(BOTH): 0.1,
            backend(RAY): 0.25,
        }),
        Value(rec.PREEMPTION_RATE, 8, {backend(MODERN): 0, backend(TWIN): 0.3, backend(OLD): 0.05}),
        Value(rec.FLEET_PREEMPTION_RATE, 8, {labels(fleet="/models/sim"): 0.3, labels(fleet="old"): 0.05}),
    ],
)  # fmt: skip

HALF_KNOWN = Group(
    "a fleet of which one capacity is unknown has no weighted usage",
    [
        *(one for server in SERVERS[:2] for one in server.series()),
        exporter(ex.KV_CAPACITY, f"300000x{STEPS}", backend=MODERN["instance"], source="metrics"),
    ],
    [Value(rec.FLEET_KV_WEIGHTED, 8, {}), Value(rec.FLEET_KV_MAX, 8, {labels(fleet="/models/sim"): 0.6})],
)

GROUPS = [MEMORY, HALF_KNOWN]
