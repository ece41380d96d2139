"""Throughput, lengths, refusals, aborts and arrivals."""

from tests.rules.promtool import Group, Value, labels, series
from tests.rules.servers import exporter, polled
from tests.rules.steady import LENGTHS_128K, MODERN, OLD, RAY, STEPS, Steady, backend
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

TWIN = {**MODERN, "instance": "10.0.0.2:8000"}
RANK = {**TWIN, "engine": "1"}
FEW = {**MODERN, "instance": "10.0.0.3:8000", "model_name": "few"}


def load(names: dict[str, str], prompt: float, output: float, **reasons: float) -> Steady:
    """A server with these tokens a step, and requests finished by reason."""
    finished = {(vllm.FINISHED, vllm.FINISHED_REASON, reason): rise for reason, rise in reasons.items()}
    tokens = {vllm.PROMPT_TOKENS: prompt, vllm.OUTPUT_TOKENS: output}
    return Steady(names, counters={**tokens, **finished}, gauges={vllm.RUNNING: 0, vllm.WAITING: 0})


THROUGHPUT = Group(
    "tokens and requests per second, by backend and by fleet",
    [
        one
        for server in (
            load(MODERN, 30000, 900, stop=6, length=3, abort=0, error=0, repetition=0),
            load(TWIN, 1500, 60, stop=3, error=3),
            load(RANK, 1500, 30, stop=6),
            load(OLD, 600, 6000, length=30),
            load(RAY, 0, 0, stop=0),
        )
        for one in server.series()
    ],
    [
        Value(rec.PROMPT_RATE, 8, {backend(MODERN): 1000, backend(TWIN): 100, backend(OLD): 20, backend(RAY): 0}),
        Value(rec.OUTPUT_RATE, 8, {backend(MODERN): 30, backend(TWIN): 3, backend(OLD): 200, backend(RAY): 0}),
        Value(rec.REQUEST_RATE, 8, {backend(MODERN): 0.3, backend(TWIN): 0.4, backend(OLD): 1, backend(RAY): 0}),
        Value(rec.FLEET_PROMPT_RATE, 8, {
            labels(fleet="/models/sim"): 1100, labels(fleet="old"): 20, labels(fleet="qwen"): 0,
        }),
        Value(rec.FLEET_OUTPUT_RATE, 8, {
            labels(fleet="/models/sim"): 33, labels(fleet="old"): 200, labels(fleet="qwen"): 0,
        }),
        Value(rec.FLEET_FINISHED_RATE, 8, {
            labels(fleet="/models/sim", finished_reason="stop"): 0.5,
            labels(fleet="/models/sim", finished_reason="length"): 0.1,
            labels(fleet="/models/sim", finished_reason="error"): 0.1,
            labels(fleet="/models/sim", finished_reason="abort"): 0,
            labels(fleet="/models/sim", finished_reason="repetition"): 0,
            labels(fleet="old", finished_reason="length"): 1,
            labels(fleet="qwen", finished_reason="stop"): 0,
        }),
    ],
)  # fmt: skip

IN_FLIGHT = Group(
    "requests in flight are their mean over the five minutes of the throughput, whatever they were before or are now",
    [
        series(f"vllm:{vllm.RUNNING}", "100x5 8 4x4 12x4", **MODERN),
        series(f"vllm:{vllm.WAITING}", "1x16", **MODERN),
        *Steady(TWIN, gauges={vllm.RUNNING: 2, vllm.WAITING: 0}).series(),
        *Steady(RANK, gauges={vllm.RUNNING: 3, vllm.WAITING: 2}).series(),
    ],
    [Value(rec.IN_FLIGHT_5M, 8, {backend(MODERN): 9, backend(TWIN): 7})],
)

LENGTHS = Group(
    "lengths per backend, whose buckets depend on its longest context",
    [
        one
        for server in (
            Steady(MODERN, {
                vllm.PROMPT_LENGTH: {900: 5, 1500: 4, 4000: 1}, vllm.OUTPUT_LENGTH: {40: 9, 150: 1},
            }),
            Steady(TWIN, {vllm.PROMPT_LENGTH: {80000: 10}, vllm.OUTPUT_LENGTH: {3: 10}},
                edges={vllm.PROMPT_LENGTH: LENGTHS_128K, vllm.OUTPUT_LENGTH: LENGTHS_128K}),
            Steady(FEW, {vllm.PROMPT_LENGTH: {900: 0.6}, vllm.OUTPUT_LENGTH: {40: 0.6}}),
        )
        for one in server.series()
    ],
    [
        Value(rec.PROMPT_LENGTH, 16, {
            backend(MODERN, quantile="0.5"): 1000,
            backend(MODERN, quantile="0.95"): 3500,
            backend(MODERN, quantile="0.99"): 4700,
            backend(TWIN, quantile="0.5"): 75000,
            backend(TWIN, quantile="0.95"): 97500,
            backend(TWIN, quantile="0.99"): 99500,
        }),
        Value(rec.OUTPUT_LENGTH, 16, {
            backend(MODERN, quantile="0.5"): 36.667,
            backend(MODERN, quantile="0.95"): 150,
            backend(MODERN, quantile="0.99"): 190,
            backend(TWIN, quantile="0.5"): 3.5,
            backend(TWIN, quantile="0.95"): 4.85,
            backend(TWIN, quantile="0.99"): 4.97,
        }),
    ],
)  # fmt: skip

REJECTIONS = Group(
    "refusals by reason, without the reasons that refuse nobody",
    [
        one
        for server in (
            Steady(MODERN, counters={
                (vllm.REJECTIONS, "reason", "max_num_queued_reqs"): 3,
                (vllm.REJECTIONS, "reason", "max_num_queued_tokens"): 0,
            }),
            Steady(TWIN, counters={(vllm.REJECTIONS, "reason", "max_num_queued_tokens"): 15}),
        )
        for one in server.series()
    ],
    [Value(rec.REJECTION_RATE, 8, {
        backend(MODERN, reason="max_num_queued_reqs"): 0.1,
        backend(TWIN, reason="max_num_queued_tokens"): 0.5,
    })],
)  # fmt: skip

ABORTS = Group(
    "aborted: the exporter's count where it covers the backend, else what was begun, not finished and does not run",
    [
        *Steady(MODERN, {vllm.TTFT: {1: 12}, vllm.E2E: {4: 10}}, gauges={vllm.RUNNING: 7, vllm.WAITING: 5}).series(),
        *Steady(TWIN, {vllm.TTFT: {1: 10}, vllm.E2E: {4: 10}}, gauges={vllm.RUNNING: 9, vllm.WAITING: 0}).series(),
        *Steady(OLD, {vllm.TTFT: {1: 12}, vllm.E2E: {4: 10}}, gauges={vllm.RUNNING: 0, vllm.WAITING: 0}).series(),
        polled(OLD["instance"], STEPS),
        exporter(ex.DEPARTED_UNFINISHED, f"0+4x{STEPS}", backend=OLD["instance"]),
        exporter(ex.DEPARTED_UNFINISHED, f"0+3x{STEPS}", "10.0.0.7:10010", backend=OLD["instance"]),
    ],
    [Value(rec.ABORTED, 16, {
        labels(backend=MODERN["instance"]): 53,
        labels(backend=TWIN["instance"]): 0,
        labels(backend=OLD["instance"]): 120,
    })],
)  # fmt: skip

ARRIVALS = Group(
    "arrivals and burstiness are the exporter's, once however many exporters there are",
    [
        exporter(ex.ARRIVALS, f"0+60x{STEPS}", backend="a:8000"),
        exporter(ex.ARRIVALS, f"0+30x{STEPS}", "10.0.0.7:10010", backend="a:8000"),
        exporter(ex.ARRIVALS, f"0+9x{STEPS}", backend="b:8000"),
        exporter(ex.ARRIVAL_BURSTINESS, f"29x{STEPS}", fleet="world"),
        exporter(ex.ARRIVAL_BURSTINESS, f"25x{STEPS}", "10.0.0.7:10010", fleet="world"),
        exporter(ex.ARRIVAL_BURSTINESS, f"1.5x{STEPS}", fleet="chat"),
    ],
    [
        Value(rec.ARRIVAL_RATE, 8, {labels(backend="a:8000"): 2, labels(backend="b:8000"): 0.3}),
        Value(rec.BURSTINESS, 8, {labels(fleet="world"): 29, labels(fleet="chat"): 1.5}),
    ],
)

GROUPS = [THROUGHPUT, IN_FLIGHT, LENGTHS, REJECTIONS, ABORTS, ARRIVALS]
