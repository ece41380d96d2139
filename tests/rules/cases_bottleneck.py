"""The one level that each backend is at, with GPU figures and without."""

from tests.rules.promtool import Group, Series, Value, labels, series
from tests.rules.servers import exporter
from tests.rules.steady import Steady
from tidegauge import dcgm, vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

SLOW, FAST = {0.06: 20}, {0.03: 20}


def server(
    host: str,
    *,
    port: int = 8000,
    model: str = "sim",
    kv: float | None = 0.2,
    running: int = 8,
    waiting: int = 0,
    preempted: float = 0,
    tpot: dict[float, float] | None = None,
) -> list[Series]:
    """A server, on a host of its own unless another port is given."""
    names = {"engine": "0", "instance": f"{host}:{port}", "job": "vllm", "model_name": model}
    usage = {} if kv is None else {vllm.KV_USAGE: kv}
    gauges = {**usage, vllm.RUNNING: running, vllm.WAITING: waiting}
    return [
        series("up", "1x40", instance=f"{host}:{port}", job="vllm"),
        *Steady(names, {vllm.TPOT: tpot or FAST}, {vllm.PREEMPTIONS: preempted}, gauges).series(),
    ]


def gpus(host: str, *busy: float, dram: float = 0.6, pod: str = "") -> list[Series]:
    """DCGM's series of the GPUs of a host: SM activity of each, and one figure for memory."""
    found = []
    for number, value in enumerate(busy):
        names = {"Hostname": host, "gpu": str(number), "job": "dcgm", "instance": f"{host}:9400", "pod": pod}
        found += [
            series(dcgm.SM_ACTIVE, f"{value:g}x40", **names),
            series(dcgm.DRAM_ACTIVE, f"{dram:g}x40", **names),
            series(dcgm.GPU_UTIL, "100x40", **names),
        ]
    return found


def level(host: str, name: str, gpu: str = "seen") -> dict[str, float]:
    """The row of a backend."""
    return {labels(backend=f"{host}:8000", level=name, gpu=gpu): 1}


def by_host(**values: float) -> dict[str, float]:
    """A figure per backend."""
    return {labels(backend=f"{host.replace('_', '-')}:8000"): value for host, value in values.items()}


WITH_GPUS = Group(
    "with GPU figures every level can be told",
    [
        *server("sched", waiting=5), *gpus("sched", 0.3, 0.4),
        *server("full", kv=0.95, waiting=5), *gpus("full", 0.97),
        *server("preempts", preempted=1), *gpus("preempts", 0.6),
        *server("compute", tpot=SLOW, waiting=3), *gpus("compute", 0.97, 0.97),
        *server("false", tpot=SLOW), *gpus("false", 0.98, 0.98, dram=0.4),
        *server("uneven", tpot=SLOW), *gpus("uneven", 0.99, 0.7),
        *server("fine"), *gpus("fine", 0.7, 0.8),
        *server("busy"), *gpus("busy", 0.96),
        *server("idle", running=0), *gpus("idle", 0, 0),
    ],
    [
        Value(rec.BOTTLENECK, 8, level("sched", "scheduling") | level("full", "memory") | level("preempts", "memory")
            | level("compute", "compute") | level("false", "false_compute") | level("uneven", "communication")
            | level("fine", "none") | level("busy", "none") | level("idle", "none")),
        Value(rec.GPU_BUSY, 8, by_host(sched=0.35, full=0.97, preempts=0.6, compute=0.97, false=0.98, uneven=0.845,
            fine=0.75, busy=0.96, idle=0)),
        Value(rec.GPU_SPREAD, 8, by_host(sched=0.1, compute=0, false=0, uneven=0.29, fine=0.1)),
        Value(rec.GPU_DRAM, 8, by_host(sched=0.6, full=0.6, preempts=0.6, compute=0.6, false=0.4, uneven=0.6, fine=0.6,
            busy=0.6, idle=0.6)),
    ],
)  # fmt: skip

WITHOUT_GPUS = Group(
    "without GPU figures scheduling and memory can be told, and a loaded server that shows neither cannot",
    [
        *server("sched", waiting=5),
        *server("full", kv=0.9),
        *server("loaded", tpot=SLOW),
        *server("idle", running=0),
        # Waiting without a word on the KV cache may be either.
        *server("silent", kv=None, waiting=5),
        series("up", "0x40", instance="down:8000", job="vllm"),
    ],
    [
        Value(rec.BOTTLENECK, 8, level("sched", "scheduling", "unseen") | level("full", "memory", "unseen")
            | level("loaded", "unknown", "unseen") | level("idle", "none", "unseen")
            | level("silent", "unknown", "unseen") | level("down", "unknown", "unseen")),
        Value(rec.GPU_BUSY, 8, {}),
    ],
)  # fmt: skip

# Requests waiting on average, by cause: added over half a minute.
BURSTS = Group(
    "a queue that no scrape meets is seen by the exporter's polls, and counts for what it waits for",
    [
        *(row for host in ("slots", "both", "few", "memory", "deferred") for row in server(host)),
        exporter(ex.WAITING_SECONDS, "0+30x40", backend="slots:8000", cause="sequence_slots"),
        exporter(ex.WAITING_SECONDS, "0+18x40", backend="both:8000", cause="prefill_budget"),
        exporter(ex.WAITING_SECONDS, "0+12x40", backend="both:8000", cause="unknown"),
        exporter(ex.WAITING_SECONDS, "0+29x40", backend="few:8000", cause="sequence_slots"),
        exporter(ex.WAITING_SECONDS, "0+90x40", backend="memory:8000", cause="kv_cache"),
        exporter(ex.WAITING_SECONDS, "0+60x40", backend="deferred:8000", cause="deferred"),
    ],
    [
        Value(rec.BOTTLENECK, 8, level("slots", "scheduling", "unseen") | level("both", "scheduling", "unseen")
            | level("few", "unknown", "unseen") | level("memory", "unknown", "unseen")
            | level("deferred", "unknown", "unseen")),
    ],
)  # fmt: skip


def stock(host: str, *utilised: float, dram: float | None = None) -> list[Series]:
    """The GPUs of a host by DCGM's stock counters, which have no SM activity; in percent."""
    names = {"Hostname": host, "job": "dcgm", "instance": f"{host}:9400"}
    memory = [] if dram is None else [series(dcgm.DRAM_ACTIVE, f"{dram:g}x40", gpu="0", **names)]
    found = [series(dcgm.GPU_UTIL, f"{value:g}x40", gpu=str(gpu), **names) for gpu, value in enumerate(utilised)]
    return [*memory, *found]


STOCK = Group(
    "utilisation near 100 % proves no level and rules none out; far from it, the GPUs are not busy",
    [
        *server("sched", waiting=20), *stock("sched", 99),
        *server("copies", tpot=SLOW), *stock("copies", 99, dram=0.15),
        *server("loaded", tpot=SLOW), *stock("loaded", 95),
        *server("full", kv=0.95), *stock("full", 99),
        *server("uneven"), *stock("uneven", 99, 60),
        *server("fine"), *stock("fine", 94),
        *server("queued", waiting=20), *stock("queued", 55, 65),
        *server("idle", running=0), *stock("idle", 0),
    ],
    [
        Value(rec.BOTTLENECK, 8, level("sched", "scheduling", "unseen") | level("copies", "unknown", "unseen")
            | level("loaded", "unknown", "unseen") | level("full", "memory", "unseen")
            | level("uneven", "unknown", "unseen") | level("fine", "none") | level("queued", "scheduling")
            | level("idle", "none")),
        Value(rec.GPU_BUSY, 8, {}),
        Value(rec.GPU_SPREAD, 8, {}),
        Value(rec.GPU_DRAM, 8, by_host(copies=0.15)),
    ],
)  # fmt: skip


def beside(host: str, *numbers: int, active: str = "0x40", dram: float = 0) -> list[Series]:
    """Other GPUs of a host, in little or nobody's use at minute 8."""
    found = []
    for number in numbers:
        names = {"Hostname": host, "gpu": str(number), "job": "dcgm", "instance": f"{host}:9400"}
        found += [series(dcgm.SM_ACTIVE, active, **names), series(dcgm.DRAM_ACTIVE, f"{dram:g}x40", **names)]
    return found


SHARED_HOSTS = Group(
    "GPUs that do nothing do not count, and GPUs of several backends are not held against each other",
    [
        *server("half", tpot=SLOW), *gpus("half", 0.98, 0.96), *beside("half", 2, 3, active="0.01x40"),
        *server("left"), *gpus("left", 0.8, 0.8), *beside("left", 2, active="0.9x4 0x35"),
        *server("leaving"), *gpus("leaving", 0.8, 0.8), *beside("leaving", 2, active="0.8x9 0x30"),
        *server("one"), *gpus("one", 0.8), *beside("one", 1, active="0.01x40"),
        *server("alone"), *gpus("alone", 0.8), *beside("alone", 1, active="0.9x4 0x35"),
        *server("barely"), *gpus("barely", 0.5), *beside("barely", 1, active="0.012x40", dram=0.2),
        *server("pair"), *server("pair", port=8001, running=0), *gpus("pair", 0.9, 0.3),
        *server("twice", waiting=5), *server("twice", port=8001), *gpus("twice", 0.9, 0),
        *server("unused", running=0), *beside("unused", 0, 1),
    ],
    [
        Value(rec.BOTTLENECK, 8, level("half", "compute") | level("left", "none") | level("leaving", "communication")
            | level("one", "none") | level("alone", "none") | level("barely", "communication") | level("pair", "none")
            | {labels(backend="pair:8001", level="none", gpu="seen"): 1} | level("twice", "scheduling")
            | {labels(backend="twice:8001", level="none", gpu="seen"): 1} | level("unused", "none")),
        Value(rec.GPU_SPREAD, 8, by_host(half=0.02, left=0, barely=0.488), '{backend!="leaving:8000"}'),
        Value(rec.GPU_BUSY, 8, by_host(half=0.97, left=0.8, one=0.8, alone=0.8, barely=0.256, pair=0.6, twice=0.9,
            unused=0) | {labels(backend="pair:8001"): 0.6, labels(backend="twice:8001"): 0.9},
            '{backend!="leaving:8000"}'),
        Value(rec.GPU_DRAM, 8, by_host(half=0.6, left=0.6, one=0.6, alone=0.6, barely=0.4, unused=0),
            '{backend!~"(leaving|pair|twice):.*"}'),
    ],
)  # fmt: skip


def second(host: str, **more: float) -> list[Series]:
    """Another model of the same server."""
    return server(host, model="second", **more)[1:]  # type: ignore[arg-type]


def renamed(host: str, tpot: dict[float, float]) -> list[Series]:
    """A server that was idle and is loaded since it started again under another name, two minutes before minute 8."""
    up, *idle = server(host, running=0, tpot={0.06: 0})
    _, *loaded = server(host, model="second", tpot=tpot)
    before = [{**one, "values": one["values"].removesuffix("x40") + "x11 stale"} for one in idle]
    return [up, *before, *({**one, "values": f"_x12 {one['values']}"} for one in loaded)]


MODELS = Group(
    "an idle model does not hide what holds its server back; a server is idle when all of its models are",
    [
        *server("full", kv=0.97, waiting=5, preempted=1), *second("full", running=0, kv=0),
        *server("late", tpot=SLOW), *second("late", running=0, kv=0), *gpus("late", 0.97),
        *server("queued", waiting=5), *second("queued", running=0, kv=0),
        *renamed("renamed", SLOW), *gpus("renamed", 0.97),
        *server("idle", running=0), *second("idle", running=0),
    ],
    [
        Value(rec.BOTTLENECK, 8, level("full", "memory", "unseen") | level("late", "compute")
            | level("queued", "scheduling", "unseen") | level("renamed", "compute") | level("idle", "none", "unseen")),
    ],
)  # fmt: skip

GROUPS = [WITH_GPUS, WITHOUT_GPUS, BURSTS, STOCK, SHARED_HOSTS, MODELS]
