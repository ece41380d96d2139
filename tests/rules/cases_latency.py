"""Quantiles of what a request feels, on four kinds of server at once, each with numbers of its own."""

from tests.rules.promtool import Group, Value
from tests.rules.steady import MODERN, OLD, RAY, Steady, backend
from tidegauge import vllm
from tidegauge.catalogue import recorded as rec

RANKS = {**MODERN, "instance": "10.0.0.2:8000", "model_name": "ranks"}
FEW = {**MODERN, "instance": "10.0.0.3:8000", "model_name": "few"}
OWN = {**MODERN, "instance": "10.0.0.5:8000", "model_name": "own-buckets"}
REPLICA = {**RAY, "ReplicaId": "x7t0aa2c", "WorkerId": "91bd"}


def three(names: dict[str, str], *values: float) -> dict[str, float]:
    """The label sets of p50, p90 and p99."""
    return {backend(names, quantile=q): v for q, v in zip(("0.5", "0.9", "0.99"), values, strict=True)}


SERVERS = [
    Steady(MODERN, {
        vllm.TTFT: {0.2: 6, 0.9: 3, 2: 1},
        vllm.ITL: {0.008: 60, 0.03: 39, 0.2: 1},
        vllm.TPOT: {0.03: 8, 0.06: 2},
        vllm.E2E: {0.2: 5, 4: 4, 12: 1},
        vllm.QUEUE: {0: 10},
    }),
    # Two data-parallel ranks, which are one backend.
    Steady(RANKS, {vllm.TTFT: {0.05: 4}, vllm.E2E: {8: 4}, vllm.QUEUE: {0: 4}, vllm.TPOT: {0.03: 4}}),
    Steady({**RANKS, "engine": "1"}, {vllm.TTFT: {3: 4}, vllm.E2E: {18: 4}, vllm.QUEUE: {0: 4}, vllm.TPOT: {0.03: 4}}),
    # No engine label, fewer edges, the per-token histogram under its old name, no mean per request.
    Steady(
        OLD,
        {
            vllm.TTFT: {0.3: 20},
            "time_per_output_token_seconds": {0.02: 90, 0.4: 10},
            vllm.E2E: {35: 20},
            vllm.QUEUE: {0: 9},
        },
        edges={vllm.E2E: (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60), vllm.QUEUE: (0.3, 0.5, 60)},
    ),
    # Two replicas on one node are told apart by Ray's labels only.
    Steady(RAY, {vllm.TTFT: {0.6: 3}}),
    Steady(REPLICA, {vllm.TTFT: {1.5: 1}}),
    Steady(FEW, {vllm.TTFT: {0.2: 1}, vllm.ITL: {0.03: 1}, vllm.TPOT: {0.03: 1}, vllm.E2E: {4: 1}, vllm.QUEUE: {0: 1}}),
    # Buckets of its own: what is below the edge is the edge.
    Steady(
        OWN,
        {vllm.ITL: {0.01: 50, 0.3: 50}, vllm.E2E: {0.5: 19, 3: 1}, vllm.QUEUE: {0: 20}},
        edges={vllm.ITL: (0.2, 0.4), vllm.E2E: (1, 5), vllm.QUEUE: (1, 5)},
    ),
]  # fmt: skip

QUANTILES = Group(
    "quantiles interpolate within vLLM's buckets, and are the edge in the lowest one",
    [one for server in SERVERS for one in server.series()],
    [
        Value(
            rec.TTFT_5M,
            8,
            three(MODERN, 0.225, 1, 2.35)
            | three(RANKS, 0.06, 4.5, 4.95)
            | three(OLD, 0.375, 0.475, 0.498)
            | three(RAY, 0.667, 1.9, 2.44),
        ),
        Value(rec.ITL_5M, 8, three(MODERN, 0.01, 0.0442, 0.05) | three(OLD, 0.0183, 0.025, 0.39)
            | three(OWN, 0.2, 0.36, 0.396), to=0.0001),
        Value(rec.TPOT_5M, 8, three(MODERN, 0.0406, 0.0625, 0.0738) | three(RANKS, 0.0375, 0.0475, 0.0498), to=0.0001),
        Value(rec.E2E_5M, 8, three(MODERN, 0.3, 5, 14.5) | three(RANKS, 10, 19, 19.9) | three(OLD, 35, 39, 39.9)
            | three(OWN, 1, 1, 4.2)),
        Value(rec.TOKEN_EDGE, 8, {
            backend(MODERN): 0.01,
            backend(RANKS): 0.01,
            backend(OLD): 0.01,
            backend(FEW): 0.01,
            backend(OWN): 0.2,
        }),
    ],
)  # fmt: skip

IDLE = Group(
    "a server without requests has no quantiles, rather than NaN",
    Steady(MODERN, {vllm.TTFT: {1: 0}, vllm.TPOT: {1: 0}, vllm.ITL: {1: 0}, vllm.E2E: {1: 0}}).series(),
    [Value(one, 8, {}) for one in (rec.TTFT_5M, rec.TPOT_5M, rec.ITL_5M, rec.E2E_5M)],
)

GROUPS = [QUANTILES, IDLE]
