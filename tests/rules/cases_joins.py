"""Servers that share an instance, exporters that share a server, GPUs whose figures change: nothing is mixed up."""

from tests.rules.cases_bottleneck import SLOW, by_host, gpus, level, server
from tests.rules.promtool import Group, Series, Value, labels, series
from tests.rules.servers import Phase, Server, exporter, polled, split_rows
from tests.rules.steady import MODERN, Steady
from tidegauge import dcgm, vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

TWO = ("10.0.0.8:10011", "10.0.0.9:10011")


def stages(fleet: str, **shares: float) -> dict[str, float]:
    return {labels(fleet=fleet, stage=stage): value for stage, value in shares.items()}


def counted(instance: str, model: str, rise: float) -> list[Series]:
    """Token counters and preemptions of a server."""
    names = {"engine": "0", "instance": instance, "job": "vllm", "model_name": model}
    return Steady(
        names, counters={vllm.PROMPT_TOKENS: 30 * rise, vllm.OUTPUT_TOKENS: 3 * rise, vllm.PREEMPTIONS: rise}
    ).series()


def phased(instance: str, model: str, count: float, **means: float) -> list[Series]:
    """A server whose requests take so long in each stage."""
    queue = means.pop("queue")
    whole = Server(instance, model, [Phase(20, [(count, queue)], **means)]).series()  # type: ignore[arg-type]
    return [one for one in whole if "tokens" not in one["series"]]


SHARED = Group(
    "two models on one instance belong to two fleets, each with its own times and rates; fast requests count too",
    [
        *phased("a:8000", "sim", 10, queue=3, prefill=1, decode=5, other=1),
        *phased("a:8000", "chat", 5, queue=0, prefill=1, decode=2.5, other=0.5),
        *phased("b:8000", "sim", 5, queue=1, prefill=1, decode=2, other=0),
        *phased("a:8000", "fast", 2, queue=0.002, prefill=0.003, decode=0.004, other=0.001),
        *phased("b:8000", "fast", 2, queue=0.001, prefill=0.001, decode=0.002, other=0),
        # One of two exporters takes it for a twin; the other one knows better.
        exporter(ex.BACKEND_DISTINCT, "1x40", TWO[0], backend="b:8000"),
        exporter(ex.BACKEND_DISTINCT, "0x40", TWO[1], backend="b:8000"),
        *counted("a:8000", "sim", 2),
        *counted("a:8000", "chat", 5),
        *counted("b:8000", "sim", 1),
    ],
    [
        # Of 120 s, 20 s and 0.028 s that all requests of a step take.
        Value(
            rec.FLEET_STAGE_SHARE,
            16,
            stages("sim", queue=0.292, prefill=0.125, decode=0.5, other=0.083)
            | stages("chat", queue=0, prefill=0.25, decode=0.625, other=0.125)
            | stages("fast", queue=0.214, prefill=0.286, decode=0.429, other=0.071),
        ),
        Value(rec.FLEET_SKEW, 16, {labels(fleet="sim"): 2.5, labels(fleet="fast"): 2.5}),
        Value(rec.FLEET_PROMPT_RATE, 16, {labels(fleet="sim"): 3, labels(fleet="chat"): 5}),
        Value(rec.FLEET_OUTPUT_RATE, 16, {labels(fleet="sim"): 0.3, labels(fleet="chat"): 0.5}),
        Value(rec.FLEET_PREEMPTION_RATE, 16, {labels(fleet="sim"): 0.1, labels(fleet="chat"): 0.167}),
        Value(
            rec.FLEET_FINISHED_RATE,
            16,
            {
                labels(fleet="sim", finished_reason="length"): 0.5,
                labels(fleet="chat", finished_reason="length"): 0.167,
                labels(fleet="fast", finished_reason="length"): 0.133,
            },
            '{finished_reason="length"}',
        ),
    ],
)

INFORMED = Group(
    "an exporter's fleet goes before the model's name; one that names none has no say",
    [
        *counted("a:8000", "sim", 1),
        *phased("a:8000", "sim", 1, queue=0, prefill=1),
        *phased("b:8000", "sim", 1, queue=0, prefill=1),
        *phased("c:8000", "sim", 1, queue=0, prefill=1),
        exporter(ex.BACKEND_INFO, "1x40", TWO[0], backend="a:8000", fleet="left", version="0.31.0"),
        exporter(ex.BACKEND_INFO, "1x40", TWO[1], backend="a:8000", fleet="", version="0.32.0"),
        exporter(ex.BACKEND_INFO, "1x40", TWO[0], backend="b:8000", fleet="same", version="0.31.0"),
        exporter(ex.BACKEND_INFO, "1x40", TWO[1], backend="b:8000", fleet="same", version="0.32.0"),
    ],
    [
        Value(
            rec.FLEET_MEMBER,
            16,
            {
                labels(fleet="left", backend="a:8000", model_name="sim"): 1,
                labels(fleet="same", backend="b:8000", model_name="sim"): 1,
                labels(fleet="sim", backend="c:8000", model_name="sim"): 1,
            },
        ),
    ],
)


def gauged(instance: str, model: str, running: str, hits: str, usage: float) -> list[Series]:
    """A server with a queue that nobody is late in, and gauges."""
    names = {"engine": "0", "instance": instance, "job": "vllm", "model_name": model}
    return [
        series(f"vllm:{vllm.RUNNING}", running, **names),
        *Steady(names, gauges={vllm.WAITING: 0, vllm.KV_USAGE: usage}).series(),
        series(f"vllm:{vllm.PREFIX_HITS}", hits, **names),
        series(f"vllm:{vllm.PREFIX_QUERIES}", "0+100x40", **names),
    ]


def skews(fleet: str, **values: float) -> dict[str, float]:
    return {labels(fleet=fleet, signal=signal): value for signal, value in values.items()}


# Over the last five minutes 4 and 6 run, and 5 at their far end; over half and twice of them others.
RUNS = [9.0] * 22 + [5.0] + [4.0] * 5 + [6.0] * 5 + [6.0] * 8


def runs(scale: float) -> str:
    return " ".join(f"{one * scale:g}" for one in RUNS)


def queued(instance: str, model: str, late: float) -> list[Series]:
    """A server of which *late* of ten requests a step wait 12 s."""
    whole = Server(instance, model, [Phase(20, [(10 - late, 0), (late, 12)])]).series()
    return [one for one in whole if "queue_time" in one["series"]]


SIGNALS = Group(
    "signals are compared within a fleet, over five minutes, model by model; twins are left out",
    [
        *gauged("a:8000", "sim", runs(1), "0+50x40", 0.2), *queued("a:8000", "sim", 4),
        *gauged("b:8000", "sim", runs(0.4), "0+20x40", 0.4), *queued("b:8000", "sim", 1),
        *gauged("a:8000", "chat", runs(0.2), "0+60x40", 0.7), *queued("a:8000", "chat", 5),
        *gauged("b:8000", "chat", runs(1.6), "0+90x40", 0.1), *queued("b:8000", "chat", 8),
        *gauged("c:8000", "chat", "99x40", "0+1x40", 0.1), *queued("c:8000", "chat", 9),
        # Alone but for a twin, so there is nothing to compare.
        *gauged("d:8000", "one", "5x40", "0+60x40", 0.1), *queued("d:8000", "one", 2),
        *gauged("e:8000", "one", "9x40", "0+10x40", 0.1), *queued("e:8000", "one", 6),
        # One signal to compare, and others that only one of them has.
        *gauged("g:8000", "half", "5x40", "0+60x40", 0.1),
        *(one for one in gauged("h:8000", "half", "2x40", "", 0.1) if "prefix" not in one["series"]),
        exporter(ex.BACKEND_DISTINCT, "0x40", backend="c:8000"),
        *gauged("f:8000", "chat", "0.01x40", "0+99x40", 0.1),
        *queued("f:8000", "chat", 0.1),
        exporter(ex.BACKEND_DISTINCT, "0x40", backend="e:8000"),
        exporter(ex.BACKEND_DISTINCT, "0x40", backend="f:8000"),
        exporter(ex.BACKEND_DISTINCT, "1x40", TWO[0], backend="a:8000"),
        exporter(ex.BACKEND_DISTINCT, "0x40", TWO[1], backend="a:8000"),
        *(
            exporter(ex.KV_CAPACITY, f"{tokens}x40", backend=backend, source="log")
            for backend, tokens in (("a:8000", 100), ("b:8000", 300), ("c:8000", 9), ("f:8000", 9))
        ),
    ],
    [
        Value(rec.SKEW_RATIO, 16,
            skews("half", running=2.5)
            | skews("sim", queue_late=4, running=2.5, prefix_hit=2.5)
            | skews("chat", queue_late=1.6, running=8, prefix_hit=1.5)),
        Value(rec.SKEW_DIFFERENCE, 16,
            skews("half", running=3)
            | skews("sim", queue_late=0.3, running=3, prefix_hit=0.3)
            | skews("chat", queue_late=0.3, running=7, prefix_hit=0.3)),
        Value(rec.SKEW_WORST, 16, {
            labels(fleet=fleet, backend=f"{backend}:8000", model_name=fleet, signal=signal): value
            for fleet, signal, backend, value in (
                ("half", "running", "g", 5),
                    ("sim", "queue_late", "a", 0.4), ("sim", "running", "a", 5), ("sim", "prefix_hit", "b", 0.2),
                ("chat", "queue_late", "b", 0.8), ("chat", "running", "b", 8), ("chat", "prefix_hit", "a", 0.6),
            )
        }),
        Value(rec.FLEET_KV_MAX, 16, {labels(fleet=f): usage for f, usage in
            (("sim", 0.4), ("chat", 0.7), ("one", 0.1), ("half", 0.1))}),
        # (0.2 x 100 + 0.4 x 300) / 400, and of four.
        Value(rec.FLEET_KV_WEIGHTED, 16, {labels(fleet="sim"): 0.35, labels(fleet="chat"): 0.244}),
    ],
)  # fmt: skip

CALLER = {"where": "caller", "fleet": "f"}
SERVED = {"where": "server", "backend": "a:8000", "model_name": "m"}
OTHER_MODEL = {**SERVED, "model_name": "n"}


def said(subject: dict[str, str], by: tuple[float, float]) -> list[Series]:
    """What two exporters say of one split, scaled."""
    return [
        one
        for instance, scale in zip(TWO, by, strict=True)
        for one in split_rows(
            40, late=0.4 * scale, late_seconds=10 * scale, edge=0.3 * scale, impact=0.48 * scale, p50=scale,
            p90=8 * scale, instance=instance, **subject,
        )
    ]  # fmt: skip


def each(value: float, **more: str) -> dict[str, float]:
    """The mean of the two exporters, for each subject; the other model has half."""
    return {
        labels(**CALLER, **more): value,
        labels(**SERVED, **more): value,
        labels(**OTHER_MODEL, **more): value / 2,
    }


EXPORTERS = Group(
    "what two exporters say of a split is averaged, by subject",
    [
        polled("a:8000", 40),
        *said(CALLER, (1, 1.5)),
        *said(SERVED, (1, 1.5)),
        *said(OTHER_MODEL, (0.5, 0.75)),
    ],
    [
        Value(rec.LATE_RATIO, 8, each(0.5)),
        Value(rec.LATE_SECONDS, 8, each(12.5)),
        Value(rec.IMPACT, 8, each(0.6)),
        Value(rec.QUEUE_TIME, 8, each(1.25, quantile="0.5"), '{quantile="0.5"}'),
        Value(rec.QUEUE_TIME, 8, each(10, quantile="0.9"), '{quantile="0.9"}'),
        Value(rec.SPLIT, 8, {labels(**one): 33.333 for one in (CALLER, SERVED, OTHER_MODEL)}),
        # 1 / 0.6 and 1 / 0.4; 1 / 0.8 and 1 / 0.7.
        Value(rec.WAVES, 8, {labels(**CALLER): 2.083, labels(**SERVED): 2.083, labels(**OTHER_MODEL): 1.339}),
    ],
)

# 0.4 over the last five minutes and at their far end, 0 over half of them.
LEAVING = "1x20 0.4 1x3 0x14"
# 0.7 over the last five minutes and at their far end; 0.8 over half of them, less over twice.
BUSY = [0.1] * 21 + [0.7] + [0.6] * 5 + [0.8] * 5 + [0.8] * 9


def changing(host: str, more: float, scale: float = 1, name: str = dcgm.SM_ACTIVE, gpu: str = "0") -> Series:
    """A GPU's figure that changes."""
    values = " ".join(f"{(one + more) * scale:g}" for one in BUSY)
    return series(name, values, Hostname=host, gpu=gpu, job="dcgm", instance=f"{host}:9400")


def loaded(host: str, waiting: str, running: str, **more: float) -> list[Series]:
    """A server whose queue changes."""
    kept = [one for one in server(host, **more) if "num_requests" not in one["series"]]  # type: ignore[arg-type]
    names = {"engine": "0", "instance": f"{host}:8000", "job": "vllm", "model_name": "sim"}
    return [*kept, series(f"vllm:{vllm.WAITING}", waiting, **names), series(f"vllm:{vllm.RUNNING}", running, **names)]


def before_011(host: str, tokens: dict[float, float]) -> list[Series]:
    """A server without the mean time per token of a request."""
    names = {"engine": "0", "instance": f"{host}:8000", "job": "vllm", "model_name": "sim"}
    kept = [one for one in server(host) if vllm.TPOT not in one["series"]]
    return [*kept, *Steady(names, {"time_per_output_token_seconds": tokens}).series()]


GPUS = Group(
    "GPU figures are those of five minutes; utilisation does not stand in for what a GPU does not say",
    [
        *server("two"), changing("two", 0), changing("two", 0.1, gpu="1"),
        changing("two", -0.1, name=dcgm.DRAM_ACTIVE), changing("two", 0.1, name=dcgm.DRAM_ACTIVE, gpu="1"),
        *server("coarse"), changing("coarse", 0, 100, dcgm.GPU_UTIL), changing("coarse", 0.2, 100, dcgm.GPU_UTIL, "1"),
        # Below the limit over five minutes, above it in half of them.
        *server("below"), changing("below", 0.2, 100, dcgm.GPU_UTIL),
        # Above it over five minutes, below it over ten.
        *server("above"), changing("above", 0.25, 100, dcgm.GPU_UTIL),
        # Work of the first half, which counts; and what GPUs that do nothing show.
        *server("leaving"), *gpus("leaving", 0.8),
        series(dcgm.SM_ACTIVE, LEAVING, Hostname="leaving", gpu="1", job="dcgm"),
        series(dcgm.DRAM_ACTIVE, "0.2x40", Hostname="leaving", gpu="1", job="dcgm"),
        *server("quiet", running=0), changing("quiet", 0, 0.01), changing("quiet", 0, name=dcgm.DRAM_ACTIVE),
        # One of two has the better figure.
        *server("mixed"), changing("mixed", 0), changing("mixed", 0.2, 100, dcgm.GPU_UTIL),
        changing("mixed", 0.1, 100, dcgm.GPU_UTIL, "1"),
    ],
    [
        Value(rec.GPU_BUSY, 15.5, by_host(two=0.75, mixed=0.7, leaving=0.6, quiet=0.007)),
        Value(rec.GPU_SPREAD, 15.5, by_host(two=0.1, leaving=0.4)),
        Value(rec.GPU_DRAM, 15.5, by_host(two=0.7, leaving=0.4, quiet=0.7)),
        Value(
            rec.BOTTLENECK,
            15.5,
            level("two", "none") | level("coarse", "none") | level("below", "none")
            | level("above", "unknown", "unseen") | level("mixed", "none")
            | level("leaving", "communication") | level("quiet", "none"),
        ),
    ],
)  # fmt: skip

LEVELS = Group(
    "a queue counts when it was there for five minutes, and a server is idle when it was for as long",
    [
        *loaded("queued", "0x16 5x30", "4x40"),
        # Empty once, four minutes ago.
        *loaded("paused", "5x22 0 5x30", "4x40"),
        *loaded("idle", "0x40", "4x16 0x30"),
        *loaded("busy", "0x40", "0x22 4 0x30"),
        *server("slow", tpot=SLOW), *gpus("slow", 0.95),
        *server("slow-full", tpot=SLOW, waiting=5), *gpus("slow-full", 0.95, dram=0.45),
        *server("crowded", waiting=5),
        *gpus("crowded", 0.6),
        *server("half-full", kv=0.5, waiting=5), *server("one", waiting=1),
        # A server of before 0.11 has the time between tokens only.
        *before_011("old-slow", SLOW), *gpus("old-slow", 0.97),
        *before_011("old-fast", {0.03: 20}), *gpus("old-fast", 0.97),
        *server("starved", tpot=SLOW), *gpus("starved", 0.95, dram=0.1),
        *server("sleepy", tpot=SLOW), *gpus("sleepy", 0.6, dram=0.1),
        *server("not-slow", waiting=5), *gpus("not-slow", 0.95),
        *server("spread"), *gpus("spread", 0.9, 0.7),
        *server("spread-more"), *gpus("spread-more", 0.95, 0.7),
    ],
    [
        Value(
            rec.BOTTLENECK,
            15,
            level("queued", "scheduling", "unseen") | level("paused", "unknown", "unseen")
            | level("idle", "none", "unseen") | level("busy", "unknown", "unseen")
            | level("slow", "compute") | level("slow-full", "compute") | level("not-slow", "none")
            | level("one", "scheduling", "unseen")
            | level("crowded", "scheduling") | level("old-slow", "compute") | level("old-fast", "none")
            | level("half-full", "scheduling", "unseen") | level("starved", "false_compute") | level("sleepy", "none")
            | level("spread-more", "communication"),
            '{backend!="spread:8000"}',
        ),
    ],
)  # fmt: skip

# What comes ninety seconds, three and six minutes before the end: in five minutes the first two.
STEPS_OF = [0.0] * 28 + [300.0] * 6 + [360.0] * 4 + [370.0] * 3
PULSES = Group(
    "what the exporter counts is counted over five minutes",
    [
        exporter(ex.ARRIVALS, STEPS_OF, backend="a:8000"),
        exporter(ex.WAITING_SECONDS, STEPS_OF, backend="a:8000", cause="kv_cache"),
        exporter(ex.WAITING_SECONDS, STEPS_OF, fleet="f", cause="caller"),
    ],
    [
        Value(rec.ARRIVAL_RATE, 20, {labels(backend="a:8000"): 0.2}, to=0.2),
        Value(rec.FLEET_WAITING_CAUSE, 20, {labels(fleet="f", cause="caller"): 0.2}, to=0.2),
        Value(rec.WAITING_CAUSE, 20, {labels(backend="a:8000", cause="kv_cache"): 0.2}, to=0.2),
    ],
)

BOUNDS = Group(
    "a margin needs a bound, and one call is one",
    [
        *(exporter(ex.CEILING, "4x20", fleet=fleet, ceiling="client", source="config") for fleet in ("one", "none")),
        exporter(ex.NATURAL_BOUND, "1x20", fleet="one", source="observed"),
        exporter(ex.NATURAL_BOUND, "0x20", fleet="none", source="observed"),
    ],
    [Value(rec.CEILING_MARGIN, 5, {labels(fleet="one", ceiling="client"): 4})],
)

UNASKED = Group(
    "nobody asked is no ratio over any window",
    Steady(MODERN, {vllm.TTFT: {1: 0}, vllm.TPOT: {0.03: 0}, vllm.E2E: {1: 0}}).series(),
    [Value(one, 10, {}) for one in (rec.SLO_30M, rec.SLO_2H, rec.SLO_6H, rec.SLO_1D, rec.SLO_3D)],
)

TOLD = {**MODERN, "instance": "10.0.0.2:8000"}
SILENT = Group(
    "a server of which only gauges are known belongs to its fleet",
    [
        *Steady(MODERN, gauges={vllm.RUNNING: 0, vllm.WAITING: 0}).series(),
        *Steady(TOLD, gauges={vllm.RUNNING: 0, vllm.WAITING: 0}).series(),
        exporter(ex.BACKEND_INFO, "1x40", backend=TOLD["instance"], fleet="world", version="0.32.0"),
    ],
    [
        Value(
            rec.FLEET_MEMBER,
            10,
            {
                labels(fleet="/models/sim", backend=MODERN["instance"], model_name="/models/sim"): 1,
                labels(fleet="world", backend=TOLD["instance"], model_name="/models/sim"): 1,
            },
        )
    ],
)

GROUPS = [SILENT, PULSES, BOUNDS, UNASKED, SHARED, INFORMED, SIGNALS, EXPORTERS, GPUS, LEVELS]
