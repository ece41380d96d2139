"""Board "Before and after": two windows side by side, what else moved between them, and both on one time axis.

One function per panel, in the order of the board: long, and read like the board.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from dashboards import charts as c
from dashboards import confounders as cf
from dashboards import frame
from dashboards import panels as p
from dashboards import windows as w
from dashboards.absent import NO_BACKEND, NO_NATIVE, NO_PAIR
from dashboards.fields import BLUE, GREY, PURPLE, TEXT, Column, Json, Panel, Query, fixed, override
from dashboards.queries import by, reads, reads_in, select, weighted_mean
from dashboards.windows import WINDOWS, Window
from tidegauge import vllm
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import places
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

OFFSETS: Final = ("15m", "1h", "6h", "1d", "7d")
"""How much earlier the first window is, as a duration of PromQL: one that is typed means the same."""
Look = tuple[str, Json]
"""Colour and style of a line."""
LOOKS_BEFORE: Final[Sequence[Look]] = (
    (GREY, {"fill": "dash", "dash": [8, 6]}),
    (TEXT, {"fill": "dot", "dash": [0, 6]}),
)
"""The first and the second of a panel: without a hue and with gaps, told apart by shade and pattern."""
LOOKS_AFTER: Final[Sequence[Look]] = ((BLUE, {"fill": "solid"}), (PURPLE, {"fill": "solid"}))
NO_BEFORE: Final = "no data in one of the windows"
FIGURE_WIDTH: Final = 200
LEAST: Final = 0.001
"""Changes are rounded to a tenth of a percent."""
CAVEAT: Final = """\
**After** is the time range of the dashboard, **before** the same length, earlier by what is chosen at the top, or \
typed there: `8m`, `2h`, `1d12h`.

Two windows that follow each other are **no A/B test**: the load was not split between them. And **nothing is \
repeated**, so how much the figures scatter by themselves is not known. Compare several ranges before you believe one.

While anything on the left moved, the difference cannot be credited to a change of yours; what is not known may have \
moved."""

Figures = Mapping[str, Callable[[Window], str]]
TIMES: Final[Figures] = {
    "end-to-end, mean": lambda one: w.mean(one, vllm.E2E),
    **{f"{stage}, mean": partial(w.mean, family=family) for stage, family in w.PHASES.items()},
    "other, mean": w.other,
    "caller's slot, mean": w.caller_mean,
    "slot and end-to-end, mean": lambda one: f"{w.caller_mean(one)} + {w.mean(one, vllm.E2E)}",
    "queue, p90": lambda one: w.worst(one, vllm.QUEUE, rc.QUEUE_EDGE),
    "caller's slot, p90": w.caller_p90,
    "first token, p90": lambda one: w.worst(one, vllm.TTFT),
    "time per token, p90": lambda one: w.worst(one, vllm.TPOT, rc.TOKEN_EDGE),
}
SHARES: Final[Figures] = {
    **{f"{stage}, of end-to-end": partial(w.share, stage=stage) for stage in lb.SERVER_STAGES},
    "late in the servers": w.late,
    "late at the caller's slot": w.caller_late,
    "prefix-cache hit": w.prefix_hit,
}
LOADS: Final[Figures] = {
    "requests": w.requests,
    "requests per second": lambda one: w.rate(one, f"{vllm.E2E}_count"),
    "prompt tokens per second": lambda one: w.rate(one, vllm.PROMPT_TOKENS),
    "output tokens per second": lambda one: w.rate(one, vllm.OUTPUT_TOKENS),
    "preemptions": lambda one: w.total(one, vllm.PREEMPTIONS),
    "waves in the servers": lambda one: w.waves(w.late(one)),
    "waves at the caller's slot": lambda one: w.waves(w.caller_late(one)),
    "skew, slowest over fastest": w.skew,
}


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.COMPARISON,
        "The dashboard's range against one of the same length before it. Two windows that follow each other are no A/B "
        "test, and nothing is repeated: no difference is credited while anything else moved.",
        (_credit(), _figures(), _loads(), _over_time()),
        extra=[p.choice(w.OFFSET, "Before is earlier by", {one: one for one in OFFSETS}, "1h")],
    )


def _credit() -> p.Row:
    panels = ((_verdict(), 5), (_confounders(), 12), (_caveat(), 7))
    return p.Row("Can a difference be credited to a change?", 12, panels)


def _verdict() -> Panel:
    return c.stat(
        1,
        "Verdict",
        f"Comparable: every confounder is known and none moved by more than {cf.TOLERANCE:.0%}. Cannot tell: of those "
        f"that are known none moved. Not enough data: fewer than {th.MIN_REQUESTS.value:g} requests in one of the "
        "windows, as vLLM's own series count them. Windows overlap: choose a shorter range or an earlier window. "
        f"{reads_in(cf.verdict())}",
        "none",
        Query(w.checked(cf.verdict()), instant=True),
        mappings=cf.verdict_words(),
        colour="background",
    )


def _confounders() -> Panel:
    return c.table(
        2,
        "Confounders: what else moved",
        f"Moved: by more than {cf.TOLERANCE:.0%} of what it was, about what some hundred requests differ by chance; a "
        "fact about servers, on any one of them and at any time; restarts, any, also between the windows. Unknown: no "
        f"exporter, or a server that does not say. Facts are shown as they were at the least. {reads_in(cf.states())}",
        (cf.FIGURE,),
        [
            *(_column(window.name, cf.values(window), "short") for window in WINDOWS),
            _column("moved?", cf.states(), "none", mappings=tuple(cf.state_words())),
        ],
        sort=("moved?", True),
        widths={cf.FIGURE: FIGURE_WIDTH},
    )


def _caveat() -> Panel:
    return c.text(3, "What this cannot show", "What to keep in mind when two windows are compared.", CAVEAT)


def _figures() -> p.Row:
    times = _table(
        4,
        "Times",
        "Means are over all requests of the window. A p90 of the servers is that of the backend where it is longest; "
        "in the lowest bucket it is that bucket's edge.",
        "s",
        TIMES,
    )
    shares = _table(
        5,
        "Shares",
        "The change is in points: after less before. Late: waited longer than the lowest bucket edge in the servers, "
        f"longer than {th.CALLER_EDGE_SECONDS.value:g} s for the caller's slot.",
        "percentunit",
        SHARES,
    )
    return p.Row("Before and after", 13, ((times, 12), (shares, 12)))


def _loads() -> p.Row:
    loads = _table(
        6,
        "Load, waves and skew",
        "Requests are those that finished. Waves are 1 / (1 - late). Skew is by mean end-to-end time, of the fleet "
        "where it is largest.",
        "short",
        LOADS,
    )
    return p.Row("Load, and each backend", 11, ((loads, 9), (_each(), 15)))


def _table(id_: int, title: str, description: str, unit: str, figures: Figures) -> Panel:
    known = by("group", select(rc.BACKEND_UP))
    order = _rows({name: f"{known} * {place}" for place, name in enumerate(figures)})
    before, after = ({name: of(window) for name, of in figures.items()} for window in WINDOWS)
    heading, difference, decimals = ("points", _points, 1) if unit == "percentunit" else ("change", _change, None)
    changes = {name: difference(before[name], after[name]) for name in figures}
    return c.table(
        id_,
        title,
        f"{description} {reads_in(order, *after.values())}",
        (cf.FIGURE,),
        [
            _column("before", _rows(before), unit, decimals=decimals),
            _column("after", _rows(after), unit, decimals=decimals),
            _column(heading, _rows(changes), "percentunit", decimals=1),
        ],
        order=order,
        widths={cf.FIGURE: FIGURE_WIDTH},
        no_value=NO_BACKEND,
    )


def _column(title: str, expr: str, unit: str, **rest: Any) -> Column:
    return Column(title, w.checked(expr), unit, **rest)


def _rows(exprs: Mapping[str, str]) -> str:
    return " or ".join(cf.named(name, expr) for name, expr in exprs.items())


def _change(before: str, after: str) -> str:
    """After over before, less 1; nothing where it was 0 before."""
    return f"round(({after}) / (({before}) != 0) - 1, {LEAST:g})"


def _points(before: str, after: str) -> str:
    return f"round(({after}) - ({before}), {LEAST:g})"


def _each() -> Panel:
    before, after = (w.each_mean(window) for window in WINDOWS)
    mean = tuple(_column(f"E2E {window.name}", w.each_mean(window), "s") for window in WINDOWS)
    hit = tuple(
        _column(f"hit {window.name}", w.each_prefix_hit(window), "percentunit", decimals=1) for window in WINDOWS
    )
    count = tuple(_column(f"reqs {window.name}", w.each_requests(window), "short") for window in WINDOWS)
    return c.table(
        7,
        "Each backend, before and after",
        "Mean end-to-end time (E2E), prefix-cache hit and requests (reqs). A change that helps one backend and harms "
        f"another is a matter of routing. {reads_in(after, hit[1].expr)}",
        (lb.BACKEND, lb.MODEL_NAME),
        [*mean, _column("change", _change(before, after), "percentunit", decimals=1), *hit, *count],
        sort=("E2E after", True),
        widths=dict.fromkeys((f"E2E {window.name}" for window in WINDOWS), 95),
        links={"Backend": frame.on_backend(places.SKEW, "Against the others")},
        no_value=f"{NO_BEFORE}, or {NO_NATIVE}",
    )


def _over_time() -> p.Row:
    panels = (_e2e(), _late(), _waits(), _first_token(), _throughput(), _skew())
    return p.Row("On one time axis: after as a solid line, before broken", 8, tuple((one, 8) for one in panels))


def _overlaid(  # noqa: PLR0913, PLR0917  # what tells one of these panels from another
    id_: int,
    title: str,
    description: str,
    unit: str,
    lines: Mapping[str, Callable[[str], str]],
    limits: tuple[float | None, float | None] = (0, None),
    no_value: str = NO_BEFORE,
) -> Panel:
    """Each line is an expression, given what shifts its selectors; the first is blue, the second purple."""
    queries, looks = [], []
    for (name, line), *both in zip(lines.items(), LOOKS_BEFORE, LOOKS_AFTER, strict=False):
        for window, (colour, style) in zip(WINDOWS, both, strict=True):
            label = f"{name} {window.name}".strip()
            queries.append(Query(w.checked(line(window.shift)), label))
            looks.append(override(label, color=fixed(colour), custom__lineStyle=style, custom__fillOpacity=0))
    return c.graph(
        id_, title, description, unit, queries, overrides=looks, limits=limits, legend="list", no_value=no_value
    )


def _e2e() -> Panel:
    def line(shift: str) -> str:
        return weighted_mean(f"{select(rc.E2E_MEAN)}{shift}", f"{select(rc.WINDOW_REQUESTS)}{shift}")

    return _overlaid(
        8,
        "Mean end-to-end time",
        f"Weighed by requests. {reads(rc.E2E_MEAN, rc.WINDOW_REQUESTS)}",
        "s",
        {"": line},
    )


def _late() -> Panel:
    def servers(shift: str) -> str:
        late = f"max without (where) ({select(rc.LATE_RATIO, where=lb.SERVER)}{shift})"
        return weighted_mean(late, f"{select(rc.WINDOW_REQUESTS)}{shift}")

    return _overlaid(
        9,
        "Late: share that really waited",
        f"Of the servers weighed by requests, of the callers the largest. {reads(rc.LATE_RATIO, rc.WINDOW_REQUESTS)}",
        "percentunit",
        {"servers": servers, "callers": lambda shift: f"max({select(rc.LATE_RATIO, where=lb.CALLER)}{shift})"},
        (0, 1),
    )


def _waits() -> Panel:
    def longest(where: str) -> Callable[[str], str]:
        return lambda shift: f"max({select(rc.QUEUE_TIME, where=where, quantile='0.9')}{shift})"

    return _overlaid(
        10,
        "Wait, p90",
        "The longest of the chosen servers, and of the callers; in the lowest bucket that bucket's edge. "
        f"{reads(rc.QUEUE_TIME)}",
        "s",
        {"servers": longest(lb.SERVER), "callers": longest(lb.CALLER)},
    )


def _first_token() -> Panel:
    return _overlaid(
        11,
        "Time to the first token, p90",
        f"The longest of the chosen servers, over 5 minutes. {reads(rc.TTFT_5M)}",
        "s",
        {"": lambda shift: f"max({select(rc.TTFT_5M, quantile='0.9')}{shift})"},
    )


def _throughput() -> Panel:
    return _overlaid(
        12,
        "Output tokens per second",
        f"Over the chosen servers, over 5 minutes. {reads(rc.OUTPUT_RATE)}",
        "short",
        {"": lambda shift: f"sum({select(rc.OUTPUT_RATE)}{shift})"},
    )


def _skew() -> Panel:
    return _overlaid(
        13,
        "Skew: slowest over fastest backend",
        f"Of the fleet where it is largest; 1 is even. {reads(rc.FLEET_SKEW)}",
        "suffix:x",
        {"": lambda shift: f"max({select(rc.FLEET_SKEW)}{shift})"},
        (1, None),
        NO_PAIR,
    )
