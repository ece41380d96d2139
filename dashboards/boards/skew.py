"""Board "Which backend is the odd one out": every signal per backend against the median of its fleet.

One function per panel, in the order of the board.
"""

from typing import Final

from dashboards import charts as c
from dashboards import engines, frame, outliers
from dashboards import panels as p
from dashboards.absent import FEW, FEW_5M, NO_BACKEND, NO_EXPORTER, NO_PAIR, NO_SERVER
from dashboards.fields import (
    BAD,
    GOOD,
    ORANGE,
    PLAIN,
    TIMES,
    VERMILION,
    WARN,
    Column,
    Json,
    Panel,
    Query,
    marks,
    past,
    state,
)
from dashboards.queries import ON_BACKEND, SUBJECT, by, otherwise, per_backend, per_subject, reads, select
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import places
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

NO_LOOKUPS: Final = "no prefix-cache look-ups"
P95: Final = "0.95"
DOWN, UP, TWIN = 0, 1, 2

_MEMBER: Final = select(rc.FLEET_MEMBER)
_TWIN: Final = f"({per_backend(ex.BACKEND_DISTINCT)} == 0)"


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.SKEW,
        f"The grey line is the median of the fleet. At most {outliers.DRAWN} backends are drawn, those farthest "
        "from it over the chosen time; the table has all of them.",
        (_verdict(), _signals(), _table(), _requests(), engines.row(20)),
        extra=engines.variables(),
    )


def _verdict() -> p.Row:
    panels = (
        (outliers.slowest(1, "Slowest"), 4),
        (_odd(2, "queue_late", "Most late", "The largest share of late requests", "percentunit"), 4),
        (_odd(3, "running", "Busiest", "The most requests running, over 5 minutes", "none"), 4),
        (_odd(4, "prefix_hit", "Fewest hits", "The fewest prefix-cache hits", "percentunit"), 4),
        (_counted(), 4),
        (_twins(), 4),
    )
    return p.Row("Verdict: the odd one out, and how far from the other end", 5, panels)


def _odd(id_: int, signal: str, title: str, what: str, unit: str) -> Panel:
    return c.stat(
        id_,
        title,
        f"{what}, and the difference to the other end of its fleet; of several fleets, the one that differs most. "
        f"{outliers.OF_FLEET} {reads(rc.SKEW_WORST, rc.SKEW_DIFFERENCE, rc.FLEET_MEMBER)}",
        unit,
        Query(outliers.odd_one(rc.SKEW_WORST, rc.SKEW_DIFFERENCE, signal=signal), "{{backend}}", instant=True),
        named=True,
        decimals=1,
        no_value=NO_PAIR,
    )


def _counted() -> Panel:
    up = select(rc.BACKEND_UP)
    own = by("sum", otherwise(f"{up} unless {ON_BACKEND} {_TWIN}", f"{up} * 0"))
    return c.stat(
        5,
        "Backends",
        "Named in the exporter's configuration, whatever is chosen; of the chosen ones, reached by Prometheus or an "
        "exporter; and those among them that are no twin of another. Fewer distinct than up: two targets are one "
        f"server. {reads(ex.BACKENDS_CONFIGURED, rc.BACKEND_UP, ex.BACKEND_DISTINCT)}",
        "none",
        Query(by("max", select(ex.BACKENDS_CONFIGURED)), "configured", instant=True),
        Query(by("sum", up), "up", instant=True),
        Query(f"{own} and {by('count', select(ex.BACKEND_DISTINCT))}", "distinct", instant=True),
        named=True,
        no_value=NO_BACKEND,
    )


def _twins() -> Panel:
    down = f"({select(rc.BACKEND_UP)} == 0)"
    all_well = f'label_replace({by("max", select(ex.BACKEND_DISTINCT))} ^ 0, "{lb.BACKEND}", "of all", "", "")'
    found = otherwise(f"{_TWIN} + {TWIN}", down)
    return c.stat(
        6,
        "Twins, down",
        "A twin answers from the same server process as another target: it adds no capacity and is compared with "
        "nothing. Six are named at most; the table has the rest. "
        f"{reads(ex.BACKEND_DISTINCT, rc.BACKEND_UP)}",
        "none",
        Query(f"topk(6, {found}) or on () {all_well}", "{{backend}}", instant=True),
        mappings=[state(DOWN, "down", BAD), state(UP, "none", GOOD), state(TWIN, "twin", WARN)],
        named=True,
        no_value=f"{NO_EXPORTER}: twins cannot be told",
    )


def _signals() -> p.Row:
    low, high = th.BIMODAL_LATE_LOW.value, th.BIMODAL_LATE_HIGH.value
    panels = (
        outliers.graph(
            7,
            "Mean end-to-end time",
            "What a user of the backend feels. Distinct backends with enough requests only.",
            "s",
            rc.FLEET_E2E,
            no_value=FEW,
        ),
        outliers.graph(
            8,
            "Late: share that really waited",
            "High on one backend alone: it gets more, or longer, requests than it has slots or tokens for. Between the "
            "dashed lines its queue is split, above the upper one saturated.",
            "percentunit",
            rc.LATE_RATIO,
            limits=(0, 1),
            marks=marks((low, ORANGE), (high, VERMILION)),
            where=lb.SERVER,
        ),
        outliers.graph(
            9,
            "Prefix-cache hits",
            "Low on one backend alone: the router does not send it the conversations whose prefixes it holds.",
            "percentunit",
            rc.PREFIX_HIT,
            limits=(0, 1),
            no_value=NO_LOOKUPS,
        ),
        outliers.graph(
            10,
            "Requests running",
            "More than the others and slower: the balance is off. As many and slower: the server or its requests are.",
            "short",
            rc.RUNNING,
            no_value=NO_SERVER,
        ),
        outliers.graph(
            11,
            "Requests waiting in the server",
            "A queue on one backend while others have none: the router does not see queues.",
            "short",
            rc.WAITING,
            no_value=NO_SERVER,
        ),
        outliers.graph(
            12,
            "KV-cache usage",
            "Of the backend's fullest engine. From the dashed line on, waiting is booked to the KV cache.",
            "percentunit",
            rc.KV_USAGE,
            limits=(0, 1),
            marks=marks((th.KV_FULL.value, VERMILION)),
            no_value=NO_SERVER,
        ),
    )
    return p.Row("Signals: the farthest from the fleet's median", 9, tuple((panel, 8) for panel in panels))


def _table() -> p.Row:
    return p.Row("Every backend", 11, ((_backends(), 24),))


def _backends() -> Panel:
    against = by("max", outliers.of_median(rc.FLEET_E2E), *SUBJECT)
    standing = otherwise(f"{_TWIN} + {TWIN}", select(rc.BACKEND_UP))
    columns = [
        Column(
            "state",
            by("max", f"{_MEMBER} * {ON_BACKEND} group_left () ({standing})", *SUBJECT),
            "none",
            mappings=(state(DOWN, "down", BAD), state(UP, "up", PLAIN), state(TWIN, "twin", WARN)),
        ),
        Column("distance", f"abs({against} - 1)", "percentunit", decimals=0),
        Column("to median", against, TIMES, decimals=2),
        Column("to fastest", by("max", outliers.of_fastest(), *SUBJECT), TIMES, past(th.SKEW.value, WARN), decimals=2),
        Column("end-to-end", per_subject(rc.FLEET_E2E), "s"),
        Column("requests", per_subject(rc.WINDOW_REQUESTS), "short"),
        Column("late", per_subject(rc.LATE_RATIO, where=lb.SERVER), "percentunit"),
        Column("running", per_subject(rc.RUNNING), "short"),
        Column("waiting", per_subject(rc.WAITING), "short"),
        Column("KV usage", per_subject(rc.KV_USAGE), "percentunit"),
        Column("prefix hits", per_subject(rc.PREFIX_HIT), "percentunit"),
        Column("preempted/s", per_subject(rc.PREEMPTION_RATE), "short"),
        Column("prompt p95", per_subject(rc.PROMPT_LENGTH, quantile=P95), "short"),
        Column("output p95", per_subject(rc.OUTPUT_LENGTH, quantile=P95), "short"),
        Column("TPOT p50", per_subject(rc.TPOT_5M, quantile="0.5"), "s"),
    ]
    read = (
        *(rc.FLEET_MEMBER, rc.BACKEND_UP, ex.BACKEND_DISTINCT, rc.FLEET_E2E, rc.FLEET_SKEW, rc.WINDOW_REQUESTS),
        *(rc.LATE_RATIO, rc.RUNNING, rc.WAITING, rc.KV_USAGE, rc.PREFIX_HIT, rc.PREEMPTION_RATE),
        *(rc.PROMPT_LENGTH, rc.OUTPUT_LENGTH, rc.TPOT_5M),
    )
    return c.table(
        13,
        "Backends by their distance from the median",
        "Distance: how far the end-to-end time is from its fleet's median, as a share of it and whichever way; the "
        "farthest first. To fastest: over the fastest of its fleet, the largest of which is the fleet's skew; orange "
        f"from {th.SKEW.value:g} on, where `VllmBackendSkew` fires, so all but one are where one is faster than the "
        "rest. A dash: too few requests to compare, or a twin. A backend's name leads to where its latency goes. "
        f"{reads(*read)}",
        SUBJECT,
        columns,
        sort=("distance", True),
        widths={
            "distance": 95,
            "to median": 90,
            "to fastest": 90,
            "end-to-end": 95,
            "preempted/s": 105,
            "prefix hits": 95,
            "prompt p95": 95,
            "output p95": 95,
        },
        links={c.HEADINGS[lb.BACKEND]: frame.on_backend(places.LATENCY, "Where its latency goes")},
        no_value=NO_BACKEND,
    )


def _requests() -> p.Row:
    lengths = "Longer than the others': the router, not the server, makes it slow."
    panels = (
        outliers.graph(14, "Prompt length, p95", lengths, "short", rc.PROMPT_LENGTH, no_value=FEW, quantile=P95),
        outliers.graph(15, "Output length, p95", lengths, "short", rc.OUTPUT_LENGTH, no_value=FEW, quantile=P95),
        outliers.graph(
            16,
            "Time per output token, p50",
            "Slower than the others at as many requests running: look at the GPU and its neighbours.",
            "s",
            rc.TPOT_5M,
            no_value=FEW_5M,
            quantile="0.5",
        ),
        outliers.graph(
            17,
            "Preemptions per second",
            "Thrown out of the batch for want of KV cache: longer requests, more of them, or a smaller cache than the "
            "others'.",
            "short",
            rc.PREEMPTION_RATE,
            no_value=NO_SERVER,
        ),
    )
    return p.Row(
        "What each is asked, and what a token costs it", 8, tuple((panel, 12) for panel in panels), folded=True
    )
