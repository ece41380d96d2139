"""Servers that share an instance, exporters that share a server, GPUs whose figures change: nothing is mixed up."""

from tests.rules.cases_bottleneck import SLOW, by_host, gpus, level, server
from tests.rules.promtool import Group, Series, Value, labels, series
from tests.rules.servers import Phase, Server, exporter, polled, split_rows
from tests.rules.steady import Steady
from tidegauge import dcgm, vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

TWO = ("10.0.0.8:10011", "10.0.0.9:10011")


def stages(fleet: str, **shares: float) -> dict[str, float]:
    return {labels(fleet=fleet, stage=stage): value for stage, value in shares.items()}


SHARED = Group(
    "two models on one instance belong to two fleets, each with its own times",
    [
        *Server("a:8000", "sim", [Phase(20, [(10, 3)], prefill=1, decode=5, other=1)]).series(),
        *Server("a:8000", "chat", [Phase(20, [(5, 0)], prefill=1, decode=2.5, other=0.5)]).series(),
        *Server("b:8000", "sim", [Phase(20, [(5, 1)], prefill=1, decode=2, other=0)]).series(),
    ],
    [
        # Of 120 s and of 20 s that all requests of a step take.
        Value(
            rec.FLEET_STAGE_SHARE,
            16,
            stages("sim", queue=0.292, prefill=0.125, decode=0.5, other=0.083)
            | stages("chat", queue=0, prefill=0.25, decode=0.625, other=0.125),
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
SIGNALS = Group(
    "signals are compared within a fleet, over five minutes, model by model",
    [
        *gauged("a:8000", "sim", " ".join(f"{one:g}" for one in RUNS), "0+50x40", 0.2),
        *gauged("b:8000", "sim", "2x40", "0+20x40", 0.4),
        *gauged("a:8000", "chat", "1x40", "0+60x40", 0.7),
        *gauged("b:8000", "chat", "8x40", "0+90x40", 0.1),
        *gauged("c:8000", "chat", "99x40", "0+1x40", 0.1),
        exporter(ex.BACKEND_DISTINCT, "0x40", backend="c:8000"),
        exporter(ex.BACKEND_DISTINCT, "1x40", TWO[0], backend="a:8000"),
        *(
            exporter(ex.KV_CAPACITY, f"{n}x40", backend=f"{b}:8000", source="log")
            for b, n in {"a": 100, "b": 300, "c": 9}.items()
        ),
    ],
    [
        Value(rec.SKEW_RATIO, 16, skews("sim", running=2.5, prefix_hit=2.5) | skews("chat", running=8, prefix_hit=1.5)),
        Value(
            rec.SKEW_DIFFERENCE, 16, skews("sim", running=3, prefix_hit=0.3) | skews("chat", running=7, prefix_hit=0.3)
        ),
        Value(
            rec.SKEW_WORST,
            16,
            {
                labels(fleet="sim", backend="a:8000", model_name="sim", signal="running"): 5,
                labels(fleet="sim", backend="b:8000", model_name="sim", signal="prefix_hit"): 0.2,
                labels(fleet="chat", backend="b:8000", model_name="chat", signal="running"): 8,
                labels(fleet="chat", backend="a:8000", model_name="chat", signal="prefix_hit"): 0.6,
            },
        ),
        # (0.2 x 100 + 0.4 x 300) / 400, and of three.
        Value(rec.FLEET_KV_WEIGHTED, 16, {labels(fleet="sim"): 0.35, labels(fleet="chat"): 0.247}),
    ],
)

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
        Value(rec.P90_P50, 8, {labels(**one): 8 for one in (CALLER, SERVED, OTHER_MODEL)}),
        # 1 / 0.6 and 1 / 0.4; 1 / 0.8 and 1 / 0.7.
        Value(rec.WAVES, 8, {labels(**CALLER): 2.083, labels(**SERVED): 2.083, labels(**OTHER_MODEL): 1.339}),
    ],
)

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


GPUS = Group(
    "GPU figures are those of five minutes; utilisation stands in for what a GPU does not say, GPU by GPU",
    [
        *server("two"), changing("two", 0), changing("two", 0.1, gpu="1"),
        changing("two", -0.1, name=dcgm.DRAM_ACTIVE), changing("two", 0.1, name=dcgm.DRAM_ACTIVE, gpu="1"),
        *server("coarse"), changing("coarse", 0, 100, dcgm.GPU_UTIL), changing("coarse", 0.2, 100, dcgm.GPU_UTIL, "1"),
        # One of two has the better figure; its coarse one is not read.
        *server("mixed"), changing("mixed", 0), changing("mixed", 0.2, 100, dcgm.GPU_UTIL),
        changing("mixed", 0.1, 100, dcgm.GPU_UTIL, "1"),
    ],
    [
        Value(rec.GPU_BUSY, 15.5, by_host(two=0.75, coarse=0.8, mixed=0.75)),
        Value(rec.GPU_SPREAD, 15.5, by_host(two=0.1, coarse=0.2, mixed=0.1)),
        Value(rec.GPU_DRAM, 15.5, by_host(two=0.7)),
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
        *server("slow-full", tpot=SLOW, waiting=5), *gpus("slow-full", 0.95, dram=0.2),
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
            | level("spread-more", "communication"),
            '{backend!="spread:8000"}',
        ),
    ],
)  # fmt: skip

GROUPS = [SHARED, SIGNALS, EXPORTERS, GPUS, LEVELS]
