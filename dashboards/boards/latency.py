"""Board "Where does the latency go": six answers, decomposition, gain ceilings, the queue's split, backends.

One function per panel, in the order of the board.
"""

from typing import Final

from dashboards import charts as c
from dashboards import frame, outliers, questions
from dashboards import panels as p
from dashboards.absent import NO_PAIR
from dashboards.fields import (
    BLUE,
    DASHES,
    GREEN,
    ORANGE,
    STAGE_COLOURS,
    TIMES,
    VERMILION,
    WARN,
    Column,
    Json,
    Panel,
    Query,
    coloured,
    marks,
    override_all,
    painted,
    past,
)
from dashboards.queries import (
    AT_END,
    INSTANCE,
    ON_SUBJECT,
    observed,
    otherwise,
    per_subject,
    reads,
    reads_in,
    select,
    weighted_mean,
)
from dashboards.questions import REQUESTS, share
from tidegauge.catalogue import Recorded, places
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

CUTS: Final = {f"{percent} %": f"{percent / 100:g}" for percent in (10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90)}
CALLERS: Final = f"callers of {{{{{lb.FLEET}}}}}"
WINDOW: Final = "15m"
"""What the exporter's means cover, unless it is configured otherwise."""
LONGEST: Final = {"1st": BLUE, "2nd": ORANGE, "3rd": GREEN}
"""The places of the servers whose wait is drawn at two quantiles, each with its colour."""


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.LATENCY,
        "Every figure of latency covers requests that finished in the window; a stall shows on other boards.",
        (questions.row(), _stages(), _queue(), _backends(), _residuals()),
        extra=[p.choice(lb.CUT, "Cut", CUTS, "0.5")],
    )


def _stages() -> p.Row:
    panels = ((_stage_means(), 7), (_stage_shares(), 7), (_gain_ceilings(), 10))
    return p.Row("Decomposition, and what an optimisation can gain at most", 12, panels)


def _client() -> str:
    """The mean wait for a slot of the caller's own limiter, over all requests that the exporters were told of."""
    requests = f"increase({observed(ex.CALLER_WAIT)}[{WINDOW}]) > 0"
    wait = select(ex.STAGE_SECONDS, stage=lb.CLIENT)
    return weighted_mean(wait, f"({requests})", lb.STAGE, on=f"on (job, {INSTANCE}, {lb.FLEET})")


def _stage_means() -> Panel:
    means = [
        _client(),
        *(weighted_mean(select(rc.STAGE_MEAN, stage=stage), REQUESTS, lb.STAGE) for stage in lb.SERVER_STAGES),
    ]
    return c.graph(
        7,
        "Mean time, by stage",
        "Per request. Stacked, the four server stages make up the end-to-end time. The wait for a slot of the caller's "
        f"own limiter comes before it. {reads_in(*means)}",
        "s",
        [Query(mean, "{{stage}}") for mean in means],
        stack="normal",
        overrides=coloured(STAGE_COLOURS),
    )


def _stage_shares() -> Panel:
    return c.graph(
        8,
        "Share of time, by stage",
        "Summed time in the stage over summed end-to-end time. The four add up to 1; other is what no stage of the "
        f"engine explains. {reads(rc.STAGE_MEAN, rc.E2E_MEAN, rc.WINDOW_REQUESTS)}",
        "percentunit",
        [Query(share(stage), "{{stage}}") for stage in lb.SERVER_STAGES],
        stack="normal",
        limits=(0, 1),
        overrides=coloured(STAGE_COLOURS),
    )


def _gain_ceilings() -> Panel:
    every = "~" + "|".join(lb.SERVER_STAGES)
    mean = weighted_mean(select(rc.STAGE_MEAN, stage=every), REQUESTS, lb.STAGE)
    columns = [
        Column("mean", otherwise(mean, _client()), "s"),
        Column("share", share(every), "percentunit", decimals=1),
        Column("gain", f"{share(every)} * $cut", "percentunit", decimals=1),
        Column("that is", f"({mean}) * $cut", "s"),
    ]
    return c.table(
        10,
        "Gain ceiling: share of the stage x $cut",
        "The most that end-to-end time can fall when that part of the stage is taken away: choose it at the top. "
        "Shorter prompts touch only prefill, more sequence slots only queue, a faster model prefill and decode. The "
        "wait for the caller's own slot (client) is in none of them: no server can see it, and it comes on top. "
        f"{reads_in(*(column.expr for column in columns))}",
        (lb.STAGE,),
        columns,
        sort=("gain", True),
        widths={"mean": 80, "share": 65, "gain": 70, "that is": 80},
    )


def _queue() -> p.Row:
    panels = ((_late_ratio(), 8), (_late_seconds(), 8), (_waves(), 8), (_p50_p90(), 24))
    return p.Row("Queue: who waits, and how long", 9, panels)


def _both_sides(series: Recorded) -> list[Query]:
    """The servers that are farthest from the others, and the callers."""
    return [
        Query(outliers.farthest(series, where=lb.SERVER), "{{backend}}"),
        Query(select(series, where=lb.CALLER), CALLERS),
    ]


def _late_ratio() -> Panel:
    low, high = th.BIMODAL_LATE_LOW.value, th.BIMODAL_LATE_HIGH.value
    return c.graph(
        12,
        "Late: share that really waited",
        "Longer than the lowest bucket edge. Between the dashed lines the queue is split; above the upper one it is "
        f"saturated. {_few()} {reads(rc.LATE_RATIO, rc.FLEET_MEMBER)}",
        "percentunit",
        _both_sides(rc.LATE_RATIO),
        limits=(0, 1),
        marks=marks((low, ORANGE), (high, VERMILION)),
        legend="list",
    )


def _few() -> str:
    return f"Of the servers, the {outliers.DRAWN} that are farthest from the median of their fleet."


def _late_seconds() -> Panel:
    return c.graph(
        13,
        "Late: mean wait of those that waited",
        "A lower bound: each request that was on time is charged the whole edge. "
        f"{_few()} {reads(rc.LATE_SECONDS, rc.FLEET_MEMBER)}",
        "s",
        _both_sides(rc.LATE_SECONDS),
        legend="list",
        no_value="nobody waited",
    )


def _waves() -> Panel:
    return c.graph(
        14,
        "Effective waves",
        "1 / (1 - late): into how many waves a barrier is cut. 1 is none; absent when everyone waits. "
        f"{_few()} {reads(rc.WAVES, rc.FLEET_MEMBER)}",
        "none",
        _both_sides(rc.WAVES),
        limits=(1, None),
        legend="list",
    )


def _p50_p90() -> Panel:
    def wait(quantile: str, where: str) -> str:
        return select(rc.QUEUE_TIME, where=where, quantile=quantile)

    longest = zip(LONGEST, _longest(f"max_over_time({wait('0.9', lb.SERVER)}{AT_END})"), strict=True)
    servers = [(f"{place} {{{{backend}}}}", f" and {ON_SUBJECT} {one}", lb.SERVER) for place, one in longest]
    return c.graph(
        15,
        "Wait, p50 against p90",
        "Of each server p90 and, dashed, p50 in one colour, on a log axis: far apart means waves, close together says "
        "nothing. In the lowest bucket a quantile is its edge, an upper bound. Of the servers, the "
        f"{len(LONGEST)} with the longest p90. {reads(rc.QUEUE_TIME)}",
        "s",
        [
            Query(f"{wait(quantile, where)}{chosen}", f"{whose}, {name}")
            for whose, chosen, where in (*servers, (CALLERS, "", lb.CALLER))
            for quantile, name in (("0.9", "p90"), ("0.5", "p50"))
        ],
        scale="log",
        limits=(None, None),
        legend="list",
        overrides=[
            *(painted(f"^{place} ", colour) for place, colour in LONGEST.items()),
            painted("^callers of ", STAGE_COLOURS[lb.CLIENT]),
            override_all(", p50$", custom__lineStyle=DASHES),
        ],
    )


def _longest(waited: str) -> list[str]:
    """One server of the longest wait for each place in `LONGEST`; servers that waited alike take one place each."""
    found: list[str] = []
    for _ in LONGEST:
        found.append(f"topk(1, {' unless '.join((waited, *found))})")
    return found


def _backends() -> p.Row:
    panels = ((_backend_e2e(), 12), (_skew(), 12), (_backend_table(), 24))
    return p.Row("Backends: each of them, slowest first", 9, panels, folded=True)


def _backend_e2e() -> Panel:
    return outliers.graph(
        17,
        "Mean end-to-end time, by backend",
        f"Whatever the number of its requests. {_few()}",
        "s",
        rc.E2E_MEAN,
    )


def _skew() -> Panel:
    return c.graph(
        18,
        "Skew: slowest over fastest backend",
        f"By mean end-to-end time within a fleet; 1 is even, the dashed line is where it warns. {reads(rc.FLEET_SKEW)}",
        TIMES,
        [Query(select(rc.FLEET_SKEW), "{{fleet}}")],
        limits=(1, None),
        marks=marks((th.SKEW.value, VERMILION)),
        no_value=NO_PAIR,
    )


def _backend_table() -> Panel:
    stages = [Column(stage, per_subject(rc.STAGE_MEAN, stage=stage), "s") for stage in lb.SERVER_STAGES]
    late = per_subject(rc.LATE_RATIO, where=lb.SERVER)
    columns = [
        Column("requests", per_subject(rc.WINDOW_REQUESTS), "short"),
        Column("end-to-end", per_subject(rc.E2E_MEAN), "s"),
        *stages,
        Column("late", late, "percentunit", past(th.BIMODAL_LATE_LOW.value, WARN)),
        Column("late by", per_subject(rc.LATE_SECONDS, where=lb.SERVER), "s"),
        Column("waves", per_subject(rc.WAVES, where=lb.SERVER), "none"),
    ]
    read = (rc.WINDOW_REQUESTS, rc.E2E_MEAN, rc.STAGE_MEAN, rc.LATE_RATIO, rc.LATE_SECONDS, rc.WAVES)
    return c.table(
        19,
        "Each backend",
        f"Requests, mean times and the queue split of each backend over the window. {reads(*read)}",
        (lb.BACKEND, lb.MODEL_NAME),
        columns,
        sort=("end-to-end", True),
        widths={"end-to-end": 105},
        links={"Backend": frame.on_backend(places.SKEW, "Against the others")},
    )


def _residuals() -> p.Row:
    return p.Row("Residual: what no stage explains", 9, ((_residual(), 24),), folded=True)


def _residual() -> Panel:
    return c.graph(
        9,
        "Residual, by backend",
        "End-to-end less queue, prefill and decode: HTTP, tokeniser, and the wait for the running engine step before "
        "a request is even queued. The queue figure understates waiting by most of it. "
        f"{_few()} {reads(rc.STAGE_SHARE, rc.FLEET_MEMBER)}",
        "percentunit",
        [Query(outliers.farthest(rc.STAGE_SHARE, stage="other"), "{{backend}} {{model_name}}")],
        legend="list",
    )
