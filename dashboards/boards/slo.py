"""Board "Is it good enough": service levels per model, the error budget, how fast it burns, latencies against targets.

One function per panel, in the order of the board.
"""

from collections.abc import Mapping
from typing import Final

from dashboards import charts as c
from dashboards import frame
from dashboards import panels as p
from dashboards.absent import FEW_5M, NO_SERVER
from dashboards.fields import (
    BAD,
    BLUE,
    GOOD,
    GREEN,
    GREY,
    NEUTRAL,
    ORANGE,
    PLAIN,
    SKY,
    TIMES,
    UNFILLED,
    VERMILION,
    WARN,
    Column,
    Json,
    Panel,
    Query,
    coloured,
    dashed,
    marks,
    override_all,
    state,
    steps,
)
from dashboards.queries import by, reads, select
from tidegauge.catalogue import Recorded, limits, places
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

LEVELS: Final[Mapping[str, tuple[str, Recorded]]] = {
    "ttft": ("TTFT", rc.TTFT_5M),
    "tpot": ("TPOT", rc.TPOT_5M),
    "e2e": ("E2E", rc.E2E_5M),
}
"""The service levels: how the board calls each, and the quantiles of what it judges."""
BURNING: Final = {
    "5 min": (rc.SLO_5M, SKY),
    "1 h": (rc.SLO_1H, BLUE),
    "6 h": (rc.SLO_6H, GREEN),
    "3 d": (rc.SLO_3D, GREY),
}
QUANTILES: Final = {"0.9": "p90", "0.99": "p99"}
SEVERITIES: Final = {"critical": VERMILION, "warning": ORANGE}
LOW: Final = 0.25
UNUSED: Final = "no request in 3 days"
IDLE: Final = "idle: no request was judged"

_SUBJECT: Final = (lb.MODEL_NAME, lb.SLI)
_WHOLE: Final = "Of whole models, whichever of their backends are chosen."
_FACTORS: Final = " / ".join(f"{rate.factor:g}" for rate in limits.BURN_RATES)
_ROOMY: Final = override_all(".", custom__fillOpacity=0, custom__axisSoftMax=1)
"""Besides, room up to a burn rate of 1: a budget that hardly burns is to look like one."""
_LEFT: Final = steps((None, NEUTRAL), (-1e6, BAD), (0, WARN), (LOW, GOOD))
"""Colours of what is left; the base is seen where nothing is known."""


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.SLO,
        "A share of requests is to be within a target, for each model. Objectives and targets are those of the rules' "
        "configuration (slo, sloByModel); the boards read them from Prometheus. A choice of backends narrows the "
        "latencies alone: shares, budgets and burn rates are those of whole models.",
        (_verdict(), _models(), _burning(), _latencies(), _budget(), _attainment()),
    )


def _burn(series: Recorded, **labels: str) -> str:
    """How many times faster than allowed requests missed the target."""
    return f"(1 - {select(series, **labels)}) / (1 - {select(rc.SLO_OBJECTIVE, **labels)})"


def _left(**labels: str) -> str:
    """What is left of the budget: 1 untouched, 0 spent, below that overspent."""
    return by("min", f"1 - {_burn(rc.SLO_3D, **labels)}", *_SUBJECT)


def _least(series: Recorded, *keys: str, **labels: str) -> str:
    """The worse where a label beyond those of a model tells several apart, as clusters: the smaller share or target."""
    return by("min", select(series, **labels), *(keys or _SUBJECT))


def _strictest(*keys: str, **labels: str) -> str:
    """The objective likewise."""
    return by("max", select(rc.SLO_OBJECTIVE, **labels), *(keys or _SUBJECT))


def _verdict() -> p.Row:
    ids = {sli: 1 + index for index, sli in enumerate(LEVELS)}
    panels = (*((_budget_left(id_, sli), 4) for sli, id_ in ids.items()), (_judged(), 4), (_alerts(), 8))
    return p.Row("Verdict: what is left of the error budget of three days, for the model with the least", 5, panels)


def _budget_left(id_: int, sli: str) -> Panel:
    name, _ = LEVELS[sli]
    return c.stat(
        id_,
        f"{name} budget",
        "Of the requests that may miss the target in three days, the part that did not: 100 % is untouched, negative "
        "is overspent. A history that is shorter counts as far as it goes. Of several models, the one with the least. "
        f"{_WHOLE} {reads(rc.SLO_3D, rc.SLO_OBJECTIVE)}",
        "percentunit",
        Query(f"bottomk(1, {_left(sli=sli)})", "{{model_name}}", instant=True),
        thresholds=_LEFT,
        named=True,
        decimals=1,
        no_value=UNUSED,
    )


def _judged() -> Panel:
    return c.stat(
        4,
        "Judged",
        "Requests per second that finished, over all chosen models. While it is 0 the models are idle: there is no "
        f"share within a target, neither good nor bad. {_WHOLE} {reads(rc.SLO_TOTAL)}",
        "reqps",
        Query(by("sum", select(rc.SLO_TOTAL, sli="e2e")), instant=True),
        mappings=[state(0, "idle", NEUTRAL)],
        no_value=NO_SERVER,
    )


def _alerts() -> Panel:
    return frame.alerts(5, "Vllm.+BudgetBurn")


def _models() -> p.Row:
    return p.Row("Each model: the share within the target over every window, and what is left", 9, ((_table(), 24),))


def _table() -> Panel:
    windows = {
        "5 min": rc.SLO_5M,
        "30 min": rc.SLO_30M,
        "1 h": rc.SLO_1H,
        "2 h": rc.SLO_2H,
        "6 h": rc.SLO_6H,
        "1 d": rc.SLO_1D,
        "3 d": rc.SLO_3D,
    }
    asked, judged = _least(rc.SLO_ASKED), _least(rc.SLO_JUDGED)
    colours = [(step["value"], step["color"]) for step in _LEFT["steps"][1:]]
    columns = [
        Column("judged", by("sum", select(rc.SLO_TOTAL), *_SUBJECT), "reqps", mappings=(state(0, "idle", NEUTRAL),)),
        Column("target", judged, "s"),
        Column("asked", f"{asked} != {judged}", "s"),
        Column("objective", _strictest(), "percentunit"),
        *(Column(name, _least(series), "percentunit") for name, series in windows.items()),
        Column("budget left", _left(), "percentunit", ((None, PLAIN), *colours)),
    ]
    read = (rc.SLO_TOTAL, rc.SLO_JUDGED, rc.SLO_ASKED, rc.SLO_OBJECTIVE, *windows.values())
    return c.table(
        6,
        "Share of requests within the target",
        "The target is the one that is judged: the bucket edge at or below the one asked for, which is shown where it "
        "differs, so that the share never flatters. Idle: nothing was judged in the last 5 minutes. A dash: a window "
        "without a request, or a target that is asked for as it is judged. Where several clusters have a model of one "
        f"name, the worst of their figures. {_WHOLE} {reads(*read)}",
        _SUBJECT,
        columns,
        sort=("budget left", False),
        no_value=NO_SERVER,
    )


def _burning() -> p.Row:
    panels = tuple((_burn_rate(7 + index, sli), 8) for index, sli in enumerate(LEVELS))
    return p.Row("Burn: how many times too fast the budget goes, for the model that burns fastest", 8, panels)


def _burn_rate(id_: int, sli: str) -> Panel:
    name, _ = LEVELS[sli]
    factors = sorted((rate.factor, SEVERITIES.get(rate.severity, SKY)) for rate in limits.BURN_RATES)
    return c.graph(
        id_,
        f"{name}: burn rate",
        "At 1 the budget of a month lasts a month. Dashed: the factors from which an alert fires "
        f"({_FACTORS}), orange a warning, vermilion a page; each needs a long and a short window above it. "
        f"{_WHOLE} {reads(*(series for series, _ in BURNING.values()), rc.SLO_OBJECTIVE)}",
        TIMES,
        [Query(by("max", _burn(series, sli=sli)), window) for window, (series, _) in BURNING.items()],
        overrides=[_ROOMY, *coloured({window: colour for window, (_, colour) in BURNING.items()})],
        marks=marks(*factors),
        legend="list",
        decimals=1,
        no_value=IDLE,
    )


def _latencies() -> p.Row:
    panels = tuple((_latency(10 + index, sli), 8) for index, sli in enumerate(LEVELS))
    return p.Row("Latency against its target, at the slowest backend of each model", 9, panels)


def _latency(id_: int, sli: str) -> Panel:
    name, series = LEVELS[sli]
    quantiles = [
        Query(by("max", select(series, quantile=value), lb.MODEL_NAME), f"{short} {{{{{lb.MODEL_NAME}}}}}")
        for value, short in QUANTILES.items()
    ]
    return c.graph(
        id_,
        f"{name}: quantiles and target",
        "Of requests in 5 minutes; quantiles of several servers cannot be merged, so this is the slowest one's. A "
        "quantile in the lowest bucket is that bucket's edge. Requests above the dashed line spend the budget: at an "
        f"objective of 95 % one in twenty may. {reads(series, rc.SLO_JUDGED)}",
        "s",
        [*quantiles, Query(_least(rc.SLO_JUDGED, lb.MODEL_NAME, sli=sli), f"target {{{{{lb.MODEL_NAME}}}}}")],
        overrides=[UNFILLED, override_all("^p99 ", custom__lineWidth=1), dashed("^target ", VERMILION)],
        limits=(None, None),
        scale="log",
        legend="list",
        no_value=FEW_5M,
    )


def _budget() -> p.Row:
    return p.Row("Error budget over time", 9, ((_budget_over_time(), 16), (_note(), 8)))


def _budget_over_time() -> Panel:
    return c.graph(
        13,
        "Budget left over three days",
        "1 is untouched, 0 is spent, negative is overspent. It comes back as the bad hours leave the window. "
        f"{_WHOLE} {reads(rc.SLO_3D, rc.SLO_OBJECTIVE)}",
        "percentunit",
        [Query(_left(), "{{sli}} {{model_name}}")],
        overrides=[override_all(".", custom__fillOpacity=0, custom__axisSoftMin=0)],
        limits=(None, 1),
        marks=marks((0, VERMILION)),
        legend="list",
        no_value=UNUSED,
    )


def _note() -> Panel:
    return c.text(
        14,
        "How to read it",
        "What budget and burn rate mean.",
        "**Budget**: the requests that may be late; one in twenty at 95 %. **Burn**: how many times faster it goes.\n\n"
        "- Budget low, burn low: a bad time that is over.\n"
        "- Burn high over 5 min and 1 h: it happens now.\n"
        "- Only TTFT: queue or prefill.\n"
        "- TPOT: a large batch, or long prompts in it.\n"
        "- Only E2E: long answers.",
    )


def _attainment() -> p.Row:
    panels = tuple((_attained(15 + index, sli), 8) for index, sli in enumerate(LEVELS))
    return p.Row("Share within the target over time, per model", 8, panels, folded=True)


def _attained(id_: int, sli: str) -> Panel:
    name, _ = LEVELS[sli]
    return c.graph(
        id_,
        f"{name}: share within the target",
        "Over 5 minutes; dashed is the objective. A gap is a time without requests. "
        f"{_WHOLE} {reads(rc.SLO_5M, rc.SLO_OBJECTIVE)}",
        "percentunit",
        [
            Query(_least(rc.SLO_5M, lb.MODEL_NAME, sli=sli), "{{model_name}}"),
            Query(_strictest(lb.MODEL_NAME, sli=sli), "objective {{model_name}}"),
        ],
        overrides=[UNFILLED, dashed("^objective ", VERMILION)],
        limits=(None, 1),
        legend="list",
        no_value=IDLE,
    )
