"""Board "What holds a backend back": the level of each backend over time, and the evidence that decides it.

One function per panel, in the order of the board: long, and read like the board.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from dashboards import charts as c
from dashboards import frame, outliers
from dashboards import panels as p
from dashboards.absent import FEW_5M, NO_BACKEND, NO_SERVER
from dashboards.fields import (
    BAD,
    GOOD,
    NEUTRAL,
    ORANGE,
    PLAIN,
    PURPLE,
    SKY,
    VERMILION,
    WARN,
    YELLOW,
    Column,
    Json,
    Panel,
    Query,
    coloured,
    counted,
    dashed,
    marks,
    past,
    state,
)
from dashboards.queries import AT_END, ON_BACKEND, by, otherwise, per_backend, reads, select
from tidegauge.catalogue import Recorded, limits, places
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th


@attrs.frozen
class Level:
    """How the board shows a level: its number, its words and its colour."""

    code: int
    words: str
    colour: str


LEVELS: Final[Mapping[str, Level]] = {
    "scheduling": Level(1, "scheduling (L1)", VERMILION),
    "memory": Level(2, "memory (L2)", ORANGE),
    "compute": Level(3, "compute (L3)", PURPLE),
    "false_compute": Level(4, "false compute", YELLOW),
    "communication": Level(5, "communication (L4)", SKY),
    "none": Level(0, "none", GOOD),
    "unknown": Level(-1, "not enough evidence", NEUTRAL),
}
UNSEEN: Final = 10
"""What is added to a level's number where no GPU figure was part of the evidence."""
SHOWN: Final = 20
NO_GPU: Final = (
    "no DCGM data: its exporter is not scraped, has no profiling figures, or its host label leads to no backend"
)
P90: Final = "0.9"

_ALERTS: Final = ("Vllm.+Bound", "VllmCommunication.+", "VllmKVCache.+", "VllmPreempting")


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.BOTTLENECK,
        "One level per backend at a time; the first that its evidence shows: memory, communication, false compute, "
        "compute, scheduling. GPU figures are those of NVIDIA's DCGM exporter; without them a loaded backend that "
        "neither waits nor runs out of KV cache is not judged.",
        (_verdict(), _over_time(), _each(), _evidence(), _gpus(), _all()),
    )


def _verdict() -> p.Row:
    panels = ((_counted(), 11), (_unseen(), 4), (frame.alerts(3, *_ALERTS), 9))
    return p.Row("Verdict: backends at each level", 5, panels)


def _counts(*, instant: bool) -> list[Query]:
    """How many backends are at each level."""
    return [
        Query(by("count", f"{select(rc.BOTTLENECK, level=name)} == 1", lb.LEVEL), level.words, instant)
        for name, level in LEVELS.items()
    ]


_COLOURS: Final = coloured({level.words: level.colour for level in LEVELS.values()})


def _counted() -> Panel:
    return c.stat(
        1,
        "Backends at each level",
        f"How many backends are at it now; a level that none is at is left out. {reads(rc.BOTTLENECK)}",
        "none",
        *_counts(instant=True),
        overrides=_COLOURS,
        named=True,
        no_value=NO_BACKEND,
    )


def _unseen() -> Panel:
    known = by("count", select(rc.BOTTLENECK))
    return c.stat(
        2,
        "GPU unseen",
        "Backends that are judged without GPU figures: compute and communication cannot be told there. "
        f"{reads(rc.BOTTLENECK)}",
        "none",
        Query(otherwise(by("count", select(rc.BOTTLENECK, gpu="unseen")), f"{known} * 0"), instant=True),
        thresholds=counted(NEUTRAL),
        mappings=[state(0, "none", GOOD)],
        no_value=NO_BACKEND,
    )


def _code(**labels: str) -> str:
    """The number of each backend's level."""
    return by(
        "max",
        " or ".join(f"{select(rc.BOTTLENECK, level=name, **labels)} * {level.code}" for name, level in LEVELS.items()),
        lb.BACKEND,
    )


def _over_time() -> p.Row:
    return p.Row("Level of each backend, and what to do about it", 13, ((_timeline(), 12), (_note(), 12)))


def _timeline() -> Panel:
    words = [state(level.code, level.words, level.colour) for level in LEVELS.values()]
    unseen = [
        state(level.code + UNSEEN, f"{level.words}, GPU unseen", level.colour)
        for name, level in LEVELS.items()
        if name != "unknown"
    ]
    return c.timeline(
        4,
        "Level over time",
        f"A bar for each of the {SHOWN} backends that were held back longest in the chosen time. GPU unseen: DCGM had "
        "no figure for it, so levels that only GPUs tell are left out. Not enough evidence: it is loaded, and no "
        "figure that decides a level is past its limit; GPU figures would say more. Requests that wait in bursts "
        "decide none: see the board of waves. "
        f"{reads(rc.BOTTLENECK)}",
        [Query(f"({_code(gpu='seen')} or {_unseen_code()}) and {ON_BACKEND} {_held_longest()}", "{{backend}}")],
        [*words, *unseen],
        no_value=NO_BACKEND,
    )


def _held_longest() -> str:
    """Backends by the time they spent at a level that is one."""
    held = "|".join(name for name, level in LEVELS.items() if level.code > 0)

    def time(**labels: str) -> str:
        return by("sum", f"count_over_time({select(rc.BOTTLENECK, **labels)}{AT_END})", lb.BACKEND)

    return f"topk({SHOWN}, {otherwise(time(level=f'~{held}'), f'{time()} * 0')})"


def _unseen_code() -> str:
    """The same for what was judged without GPU figures; what is unknown is so for want of them, and says so already."""
    unknown = by("max", select(rc.BOTTLENECK, gpu="unseen", level="unknown"), lb.BACKEND)
    return f"({_code(gpu='unseen')} + {UNSEEN} unless {unknown}) or {unknown} * {LEVELS['unknown'].code}"


def _note() -> Panel:
    return c.text(
        5,
        "What it means, and what to do next",
        "The levels, the evidence for each and the next step.",
        f"| level | evidence | next |\n|---|---|---|\n"
        f"| **scheduling (L1)** | requests wait, one on average, KV and GPUs free | slots, token budget: *Waves* |\n"
        f"| **memory (L2)** | KV at {th.KV_FULL.value:.0%}, or preemptions | fewer, shorter requests: *Capacity* |\n"
        f"| **compute (L3)** | SMs at {limits.GPU_BUSY:.0%}, tokens late | fewer at once; profiler |\n"
        f"| **false compute** | the same, DRAM below {limits.GPU_DRAM_LOW:.0%} | CPU, CUDA graphs; profiler |\n"
        f"| **communication (L4)** | GPUs {limits.GPU_SPREAD:.0%} apart | throttling, links, NCCL; profiler |\n"
        f"| **not enough evidence** | loaded, no GPU data | scrape DCGM's exporter |\n\n"
        f"What runs inside the GPUs is not seen here: for L3 and L4 hand the backend and a minute of its bar to a "
        f"profiler, vLLM's torch profiler for kernels or Nsight Systems for waits between ranks.",
    )


def _each() -> p.Row:
    return p.Row("Each backend now, with its evidence", 8, ((_table(), 24),))


def _table() -> Panel:
    seen = f"{per_backend(rc.BOTTLENECK, gpu='seen')} or {per_backend(rc.BOTTLENECK, gpu='unseen')} * 0"
    words = tuple(state(level.code, level.words, level.colour) for level in LEVELS.values())
    busy, spread, low = limits.GPU_BUSY, limits.GPU_SPREAD, limits.GPU_DRAM_LOW
    columns = [
        Column("level", _code(), "none", mappings=words),
        Column("GPU data", seen, "none", mappings=(state(1, "seen", GOOD), state(0, "unseen", NEUTRAL))),
        Column("running", per_backend(rc.RUNNING), "short"),
        Column("waiting", per_backend(rc.WAITING), "short"),
        Column("KV usage", per_backend(rc.KV_USAGE), "percentunit", past(th.KV_FULL.value, WARN)),
        Column("preempted/s", per_backend(rc.PREEMPTION_RATE), "short", past(1e-9, WARN)),
        Column("TPOT p90", per_backend(rc.TPOT_5M, quantile=P90), "s"),
        Column("SM active", per_backend(rc.GPU_BUSY), "percentunit", past(busy, WARN)),
        Column("GPU spread", per_backend(rc.GPU_SPREAD), "percentunit", past(spread, WARN)),
        Column(
            "DRAM active",
            per_backend(rc.GPU_DRAM),
            "percentunit",
            (*past(1e-9, WARN), (low, PLAIN)),
        ),
    ]
    read = (rc.BOTTLENECK, rc.RUNNING, rc.WAITING, rc.KV_USAGE, rc.PREEMPTION_RATE, rc.TPOT_5M, *_OF_GPUS)
    return c.table(
        6,
        "Level and evidence",
        "The evidence behind each level; orange is past its limit. A dash is what is not measured: GPUs without DCGM, "
        f"quantiles of too few requests. {reads(*read)}",
        (lb.BACKEND,),
        columns,
        sort=("level", True),
        widths={"level": 165},
        no_value=NO_BACKEND,
    )


def _evidence() -> p.Row:
    full = marks((th.KV_FULL.value, VERMILION))
    waiting = outliers.graph(
        7,
        "Requests waiting",
        "Scheduling (L1) where it never reaches 0 for 5 minutes while KV cache and GPUs are free.",
        "short",
        rc.WAITING,
        no_value=NO_SERVER,
    )
    usage = outliers.graph(
        8,
        "KV-cache usage",
        "Memory (L2) from the dashed line on: of the backend's fullest engine.",
        "percentunit",
        rc.KV_USAGE,
        limits=(0, 1),
        marks=full,
        no_value=NO_SERVER,
    )
    preempted = outliers.graph(
        9,
        "Preemptions per second",
        "Memory (L2) as soon as there are any: requests that were thrown out of the batch compute their prompt again.",
        "short",
        rc.PREEMPTION_RATE,
        no_value=NO_SERVER,
    )
    panels = ((waiting, 6), (usage, 6), (preempted, 6), (_tokens(), 6))
    return p.Row("Evidence from vLLM: scheduling and memory", 9, panels)


def _tokens() -> Panel:
    target = by("max", select(rc.SLO_ASKED, sli="tpot"), lb.MODEL_NAME)
    return c.graph(
        10,
        "TPOT p90 and its target",
        "Mean time per output token of a request. Compute (L3) where it is late while the GPUs are busy. "
        f"{reads(rc.TPOT_5M, rc.SLO_ASKED, rc.FLEET_MEMBER)}",
        "s",
        [
            Query(outliers.median(rc.TPOT_5M, quantile=P90), "median of {{fleet}}"),
            Query(outliers.farthest(rc.TPOT_5M, quantile=P90), "{{backend}}"),
            Query(target, "target of {{model_name}}"),
        ],
        overrides=[*outliers.LOOK, dashed("^target of ", VERMILION)],
        legend="list",
        no_value=FEW_5M,
    )


_OF_GPUS: Final = (rc.GPU_BUSY, rc.GPU_SPREAD, rc.GPU_DRAM)


def _gpus() -> p.Row:
    busy = _gpu(
        11,
        "SM active",
        f"Share of time that a backend's GPUs computed. From the dashed line on, {limits.GPU_BUSY:.0%}, they are busy: "
        "compute (L3) if tokens are late as well.",
        rc.GPU_BUSY,
        (limits.GPU_BUSY, BAD),
    )
    spread = _gpu(
        12,
        "GPU spread",
        "Busiest less idlest GPU of a backend: communication (L4) above the dashed line, as all wait for the slowest. "
        "A backend with one GPU has none.",
        rc.GPU_SPREAD,
        (limits.GPU_SPREAD, BAD),
        no_value=f"{NO_GPU}; or one GPU each",
    )
    memory = _gpu(
        13,
        "DRAM active",
        "Share of time that the GPU's memory was busy. Below the dashed line busy SMs do not compute: false compute.",
        rc.GPU_DRAM,
        (limits.GPU_DRAM_LOW, BAD),
    )
    return p.Row("Evidence from the GPUs: compute and communication", 8, ((busy, 8), (spread, 8), (memory, 8)))


def _gpu(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int, title: str, description: str, series: Recorded, mark: tuple[float, str], *, no_value: str = NO_GPU
) -> Panel:
    """The backends farthest from the median of all chosen ones: GPU figures have no model and no fleet."""
    mean = f"avg_over_time({select(series)}{AT_END})"
    distance = f"abs({mean} - scalar(quantile(0.5, {mean})))"
    return c.graph(
        id_,
        title,
        f"{description} {reads(series)}",
        "percentunit",
        [
            Query(f"quantile(0.5, {select(series)})", "median"),
            Query(f"{select(series)} and {ON_BACKEND} topk({outliers.DRAWN}, {distance})", "{{backend}}"),
        ],
        overrides=outliers.LOOK,
        limits=(0, 1),
        marks=marks(mark),
        legend="list",
        no_value=no_value,
    )


def _all() -> p.Row:
    return p.Row("All backends: how many are at each level, over time", 8, ((_counted_over_time(), 24),), folded=True)


def _counted_over_time() -> Panel:
    return c.graph(
        14,
        "Backends at each level, over time",
        f"Stacked, they make up all backends that are known. {reads(rc.BOTTLENECK)}",
        "none",
        _counts(instant=False),
        stack="normal",
        overrides=_COLOURS,
        stepped=True,
        legend="list",
        decimals=0,
        no_value=NO_BACKEND,
    )
