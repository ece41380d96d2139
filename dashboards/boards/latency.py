"""Board "Where does the latency go": decomposition, gain ceilings, queue split, skew between backends.

One function per panel, in the order of the board: long, and read like the board.
"""

from typing import Final

from dashboards import charts as c
from dashboards import frame
from dashboards import panels as p
from dashboards.fields import (
    BAD,
    GOOD,
    ORANGE,
    STAGE_COLOURS,
    VERMILION,
    WARN,
    Column,
    Json,
    Query,
    coloured,
    state,
    steps,
)
from dashboards.queries import by, otherwise, reads, select, share_of, weighted_mean
from tidegauge.catalogue import Recorded, places
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

CUTS: Final = {"10 %": "0.1", "25 %": "0.25", "50 %": "0.5", "75 %": "0.75", "all of it": "1"}
SIDES: Final = {lb.SERVER: f"{{{{{lb.BACKEND}}}}}", lb.CALLER: f"callers of {{{{{lb.FLEET}}}}}"}
TIMES: Final = "suffix:x"
NO_CALLER: Final = "no caller reports"
NO_SKEW: Final = "needs two busy backends"

_REQUESTS = select(rc.WINDOW_REQUESTS)
_E2E = select(rc.E2E_MEAN)


def _share(stage: str) -> str:
    """Share of end-to-end time over the chosen backends; a stage that begins with `~` is a regular expression."""
    return share_of(select(rc.STAGE_MEAN, stage=stage), _E2E, _REQUESTS, lb.STAGE)


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.LATENCY,
        "Every figure covers requests that finished in the window; a stall shows on other boards.",
        (_verdict(), _stages(), _gains(), _queue(), _backends()),
        extra=[p.choice(lb.CUT, "Cut", CUTS, "0.5")],
    )


def _verdict() -> p.Row:
    panels = (
        (_mean_e2e(), 4),
        (_largest_stage(), 4),
        (_split_verdict(3, lb.SERVER, "Wait in the servers' queue", c.NOTHING), 4),
        (_split_verdict(4, lb.CALLER, "Wait for the caller's slot", NO_CALLER), 4),
        (_slowest(), 5),
        (_unreachable(), 3),
    )
    return p.Row("Verdict", 5, panels)


def _mean_e2e() -> object:
    return c.stat(
        1,
        "Mean end-to-end time",
        f"From arrival at a server to the last token, over the chosen backends. "
        f"{reads(rc.E2E_MEAN, rc.WINDOW_REQUESTS)}",
        "s",
        Query(weighted_mean(_E2E, _REQUESTS)),
    )


def _largest_stage() -> object:
    return c.stat(
        2,
        "Largest stage",
        "The stage with the largest share of end-to-end time: nothing done to another stage can gain more than that "
        f"one has. {reads(rc.STAGE_MEAN, rc.E2E_MEAN, rc.WINDOW_REQUESTS)}",
        "percentunit",
        Query(f"topk(1, {_share('~' + '|'.join(lb.SERVER_STAGES))})", "{{stage}}", instant=True),
        named=True,
        decimals=1,
    )


def _split_verdict(id_: int, where: str, title: str, no_value: str) -> object:
    late, split = select(rc.LATE_RATIO, where=where), select(rc.SPLIT, where=where)
    low, high, factor = (t.value for t in (th.BIMODAL_LATE_LOW, th.BIMODAL_LATE_HIGH, th.BIMODAL_SPLIT))
    bimodal = f"({late} >= bool {low:g}) * ({late} <= bool {high:g}) * ({split} >= bool {factor:g})"
    saturated = f"2 * ({late} > bool {high:g})"
    return c.stat(
        id_,
        title,
        f"Two modes: {low:.0%} to {high:.0%} of the requests waited, and {factor:g} times as long as the rest or more. "
        f"Saturated: more than {high:.0%} waited. The worst of the chosen ones. {reads(rc.LATE_RATIO, rc.SPLIT)}",
        "none",
        Query(by("max", otherwise(f"{bimodal} + {saturated}", saturated))),
        mappings=[state(0, "no split", GOOD), state(1, "two modes", BAD), state(2, "saturated", BAD)],
        no_value=no_value,
    )


def _slowest() -> object:
    return c.stat(
        5,
        "Slowest backend, against the fastest",
        "Mean end-to-end time of the slowest backend over that of the fastest one of its fleet; both served enough "
        f"requests. {reads(rc.FLEET_SLOWEST, rc.FLEET_SKEW)}",
        TIMES,
        Query(
            f"{select(rc.FLEET_SLOWEST)} * 0 + on ({lb.FLEET}) group_left () {select(rc.FLEET_SKEW)}",
            "{{backend}}",
            instant=True,
        ),
        thresholds=steps((None, GOOD), (th.SKEW.value, BAD)),
        named=True,
        decimals=2,
        no_value=NO_SKEW,
    )


def _unreachable() -> object:
    return c.stat(
        6,
        "Backends down",
        f"Backends that neither Prometheus nor the exporter reaches. {reads(rc.BACKEND_UP)}",
        "none",
        Query(f"count({select(rc.BACKEND_UP)}) - sum({select(rc.BACKEND_UP)})"),
        thresholds=steps((None, GOOD), (1, BAD)),
        no_value="no backend known",
    )


def _stages() -> p.Row:
    return p.Row("Decomposition", 12, ((_stage_means(), 12), (_stage_shares(), 12)))


def _stage_means() -> object:
    client = select(ex.STAGE_SECONDS, stage=lb.CLIENT)
    queries = [
        Query(weighted_mean(select(rc.STAGE_MEAN, stage=stage), _REQUESTS, lb.STAGE), "{{stage}}")
        for stage in lb.SERVER_STAGES
    ]
    return c.graph(
        7,
        "Mean time per request, by stage",
        "Stacked, the four server stages make up the end-to-end time. The wait for a slot of the caller's own limiter "
        f"comes before it. {reads(rc.STAGE_MEAN, rc.WINDOW_REQUESTS, ex.STAGE_SECONDS)}",
        "s",
        [Query(by("avg", client, lb.STAGE), "{{stage}}"), *queries],
        stack="normal",
        overrides=coloured(STAGE_COLOURS),
    )


def _stage_shares() -> object:
    return c.graph(
        8,
        "Share of end-to-end time, by stage",
        "Summed time in the stage over summed end-to-end time. The four add up to 1. "
        f"{reads(rc.STAGE_MEAN, rc.E2E_MEAN, rc.WINDOW_REQUESTS)}",
        "percentunit",
        [Query(_share(stage), "{{stage}}") for stage in lb.SERVER_STAGES],
        stack="normal",
        limits=(0, 1),
        overrides=coloured(STAGE_COLOURS),
    )


def _residual() -> object:
    other = select(rc.STAGE_SHARE, stage="other")
    return c.graph(
        9,
        "Residual: what no stage explains",
        "End-to-end less queue, prefill and decode: HTTP, tokeniser, and the wait for the running engine step before "
        f"a request is even queued. The queue figure understates waiting by most of it. {reads(rc.STAGE_SHARE)}",
        "percentunit",
        [Query(by("max", other, lb.BACKEND, lb.MODEL_NAME), "{{backend}} {{model_name}}")],
    )


def _gains() -> p.Row:
    return p.Row(
        "What an optimisation can gain at most, and what no stage explains",
        8,
        ((_gain_ceilings(), 9), (_gain_note(), 6), (_residual(), 9)),
    )


def _gain_ceilings() -> object:
    return c.bars(
        10,
        "Gain ceiling: share of the stage x $cut",
        "The most that end-to-end time can fall when that fraction of the stage is removed. Choose it at the top. "
        f"{reads(rc.STAGE_MEAN, rc.E2E_MEAN, rc.WINDOW_REQUESTS)}",
        "percentunit",
        [Query(f"{_share(stage)} * $cut", "{{stage}}", instant=True) for stage in lb.SERVER_STAGES],
        overrides=coloured(STAGE_COLOURS),
    )


def _gain_note() -> object:
    return c.text(
        11,
        "How to read it",
        "What the gain ceiling says and what it does not.",
        "A plan that removes a fraction of one stage gains at most **share of that stage x fraction**.\n\n"
        "Halving prompts touches only *prefill*; more sequence slots touch only *queue*; a faster model touches "
        "*prefill* and *decode*. A wait for the caller's own slot is in none of them: no server can see it.",
    )


def _queue() -> p.Row:
    return p.Row(
        "Queue: who waits, and how long", 9, ((_late_ratio(), 8), (_late_seconds(), 8), (_waves(), 8), *_p50_p90())
    )


def _both_sides(series: Recorded, **labels: str) -> list[Query]:
    return [Query(select(series, where=where, **labels), legend) for where, legend in SIDES.items()]


def _late_ratio() -> object:
    low, high = th.BIMODAL_LATE_LOW.value, th.BIMODAL_LATE_HIGH.value
    return c.graph(
        12,
        "Late: share of requests that really waited",
        "Longer than the lowest bucket edge. Between the dashed lines the queue is split; above the upper one it is "
        f"saturated. {reads(rc.LATE_RATIO)}",
        "percentunit",
        _both_sides(rc.LATE_RATIO),
        limits=(0, 1),
        marks=steps((None, "transparent"), (low, ORANGE), (high, VERMILION)),
    )


def _late_seconds() -> object:
    return c.graph(
        13,
        "Late: mean wait of those that waited",
        f"A lower bound: each request that was on time is charged the whole edge. {reads(rc.LATE_SECONDS)}",
        "s",
        _both_sides(rc.LATE_SECONDS),
        no_value="nobody waited",
    )


def _waves() -> object:
    return c.graph(
        14,
        "Effective waves",
        "1 / (1 - late): into how many waves a barrier is cut. 1 is none; absent when everyone waits. "
        f"{reads(rc.WAVES)}",
        "none",
        _both_sides(rc.WAVES),
        limits=(1, None),
    )


def _p50_p90() -> tuple[tuple[object, int], ...]:
    return tuple(
        (
            c.graph(
                15 + index,
                f"Wait, p50 and p90: {title}",
                "In the lowest bucket a quantile is that bucket's edge, an upper bound. Far apart means waves; close "
                f"together says nothing. {reads(rc.QUEUE_TIME)}",
                "s",
                [
                    Query(select(rc.QUEUE_TIME, where=where, quantile=quantile), f"{SIDES[where]} {name}")
                    for quantile, name in (("0.5", "p50"), ("0.9", "p90"))
                ],
                no_value=no_value,
            ),
            12,
        )
        for index, (where, title, no_value) in enumerate(
            ((lb.SERVER, "in the servers' queue", c.NOTHING), (lb.CALLER, "for the caller's slot", NO_CALLER))
        )
    )


def _backends() -> p.Row:
    return p.Row(
        "Backends: which one is the odd one out", 8, ((_backend_e2e(), 12), (_skew(), 12), (_backend_table(), 24))
    )


def _backend_e2e() -> object:
    return c.graph(
        17,
        "Mean end-to-end time, by backend",
        f"Every backend that served requests, whatever their number. {reads(rc.E2E_MEAN)}",
        "s",
        [Query(_E2E, "{{backend}} {{model_name}}")],
    )


def _skew() -> object:
    return c.graph(
        18,
        "Skew: slowest over fastest backend",
        f"By mean end-to-end time within a fleet; 1 is even, the dashed line is where it warns. {reads(rc.FLEET_SKEW)}",
        TIMES,
        [Query(select(rc.FLEET_SKEW), "{{fleet}}")],
        limits=(1, None),
        marks=steps((None, "transparent"), (th.SKEW.value, VERMILION)),
        no_value=NO_SKEW,
    )


def _backend_table() -> object:
    def per_backend(series: Recorded, **labels: str) -> str:
        return by("max", select(series, **labels), lb.BACKEND, lb.MODEL_NAME)

    stages = [Column(stage, per_backend(rc.STAGE_MEAN, stage=stage), "s") for stage in lb.SERVER_STAGES]
    late = per_backend(rc.LATE_RATIO, where=lb.SERVER)
    columns = [
        Column("requests", per_backend(rc.WINDOW_REQUESTS), "short"),
        Column("end-to-end", per_backend(rc.E2E_MEAN), "s"),
        *stages,
        Column("late", late, "percentunit", ((None, "transparent"), (th.BIMODAL_LATE_LOW.value, WARN))),
        Column("late by", per_backend(rc.LATE_SECONDS, where=lb.SERVER), "s"),
        Column("waves", per_backend(rc.WAVES, where=lb.SERVER), "none"),
    ]
    read = (rc.WINDOW_REQUESTS, rc.E2E_MEAN, rc.STAGE_MEAN, rc.LATE_RATIO, rc.LATE_SECONDS, rc.WAVES)
    return c.table(
        19,
        "Each backend",
        f"Requests, mean times and the queue split of each backend over the window. {reads(*read)}",
        (lb.BACKEND, lb.MODEL_NAME),
        columns,
    )
