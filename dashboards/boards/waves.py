"""Board "Waves: what cuts a barrier": fan-out against ceilings, causes of waiting, waits on both sides, the limiter.

One function per panel, in the order of the board.
"""

from typing import Final

from dashboards import ceilings, frame
from dashboards import charts as c
from dashboards import panels as p
from dashboards.boards import callers, waits
from dashboards.boards.callers import NO_BARRIER, SOURCES
from dashboards.fields import (
    BAD,
    BLUE,
    DASHES,
    GOOD,
    GREEN,
    GREY,
    NEUTRAL,
    ORANGE,
    SKY,
    TIMES,
    UNFILLED,
    Json,
    Panel,
    Query,
    coloured,
    override,
    override_all,
    painted,
    steps,
)
from dashboards.queries import FILTERS, by, otherwise, reads, select
from tidegauge.catalogue import Series, places
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

WAITING: Final = "requests wait"
NOTHING_CUT: Final = "no ceiling known, or no barrier seen"
LINES: Final = {
    "fan-out, median": BLUE,
    "fan-out, p90": SKY,
    "fan-out, max": GREY,
    **{f"{whose} ceiling": ceilings.COLOURS[kind] for kind, whose in ceilings.WHOSE.items()},
    "fits, p90 prompt": GREEN,
    "natural bound": ORANGE,
}


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.WAVES,
        "A barrier is a set of requests launched together, after which the caller waits for all of them. A ceiling "
        "below its fan-out cuts it into waves. Barriers and causes of waiting come from the exporter.",
        (
            _verdict(),
            _barriers(),
            waits.causes(),
            waits.lengths(),
            callers.limiter(),
            callers.sources(),
            waits.backends(),
        ),
    )


def _preferred(series: Series, *labels: str, **given: str) -> str:
    """What a fleet's callers told, else what its servers' pages let infer; of all fleets the largest, by the labels."""
    each = dict.fromkeys((lb.FLEET, *labels))
    told = otherwise(*(by("max", select(series, source=source, **given), *each) for source in SOURCES))
    return by("max", told, *labels)


def _verdict() -> p.Row:
    return p.Row(
        "Verdict",
        5,
        (
            (ceilings.verdict(1, "Do ceilings cut barriers"), 6),
            (_margin(), 3),
            (_deepest(), 3),
            (_largest_cause(), 7),
            (_seen(), 5),
        ),
    )


def _margin() -> Panel:
    return c.stat(
        2,
        "Margin",
        "The tightest ceiling over the natural bound, which is the largest fan-out. Below 1 it cuts the largest "
        f"barriers; from 1 on it never binds. {reads(rc.CEILING_MARGIN)}",
        TIMES,
        Query(f"bottomk(1, {by('min', select(rc.CEILING_MARGIN), lb.CEILING)})", "{{ceiling}}", instant=True),
        thresholds=steps((None, NEUTRAL), (0, BAD), (1, GOOD)),
        overrides=ceilings.named(),
        named=True,
        decimals=2,
        no_value=NOTHING_CUT,
    )


def _deepest() -> Panel:
    return c.stat(
        3,
        "Waves",
        "Per barrier, in the median, under the ceiling that cuts deepest, in whichever fleet. One wave is none: all "
        f"requests of the barrier start at once. {reads(ex.BARRIER_WAVES)}",
        "none",
        Query(f"topk(1, {_preferred(ex.BARRIER_WAVES, lb.CEILING, stat='median')})", "{{ceiling}}", instant=True),
        thresholds=steps((None, NEUTRAL), (1, GOOD), (1.5, BAD)),
        overrides=ceilings.named(),
        named=True,
        no_value=NOTHING_CUT,
    )


def _largest_cause() -> Panel:
    return c.stat(
        4,
        "Cause of waiting",
        "The largest one, and its share of all seconds waited in the last 5 minutes, before the servers and in them; "
        "beside it the mean number of requests that wait, for any cause. "
        f"{reads(rc.WAITING_CAUSE, rc.FLEET_WAITING_CAUSE)}",
        "percentunit",
        Query(
            f"topk(1, ({waits.by_cause()}) / on () group_left () (sum({waits.by_cause()}) > 0))",
            "{{cause}}",
            instant=True,
        ),
        Query(f"sum({waits.by_cause()})", WAITING, instant=True),
        overrides=[override(WAITING, unit="none", decimals=1)],
        named=True,
        decimals=0,
        no_value=waits.NOBODY,
    )


def _seen() -> Panel:
    seen = by("max", f"increase({select(ex.BARRIERS)}[5m])", lb.FLEET, lb.SOURCE)
    return c.stat(
        5,
        "Barriers seen",
        "In the last 5 minutes. How sure the figures are: callers tell barriers exactly, the servers' pages show them "
        f"at the poll interval. {reads(ex.BARRIERS)}",
        "none",
        Query(by("sum", seen, lb.SOURCE), "{{source}}", instant=True),
        named=True,
        decimals=0,
        no_value=NO_BARRIER,
    )


def _barriers() -> p.Row:
    return p.Row(
        "Barriers against the ceilings",
        10,
        ((p.repeated(_fan_out(), FILTERS[lb.FLEET]), 24), (_waves(), 8), (_clipped(), 8), (_timeline(), 8)),
    )


def _fan_out() -> Panel:
    capacity = select(rc.FLEET_CAPACITY, basis="p90_prompt")
    return c.graph(
        6,
        f"Fan-out, ceilings and what fits: {FILTERS[lb.FLEET]}",
        "A ceiling below the fan-out cuts barriers into waves; one above the natural bound never binds. What fits is "
        "the KV cache and the slots in requests of the p90 prompt: a ceiling above it makes the servers queue. Fan-out "
        "is told by callers, else inferred. "
        f"{reads(ex.BARRIER_FANOUT, rc.CEILING, rc.FLEET_CAPACITY, rc.NATURAL_BOUND)}",
        "none",
        [
            Query(_preferred(ex.BARRIER_FANOUT, lb.STAT), "fan-out, {{stat}}"),
            *(
                Query(by("max", select(rc.CEILING, ceiling=kind)), f"{whose} ceiling")
                for kind, whose in ceilings.WHOSE.items()
            ),
            Query(by("max", capacity), "fits, p90 prompt"),
            Query(by("max", select(rc.NATURAL_BOUND)), "natural bound"),
        ],
        overrides=[
            UNFILLED,
            *coloured(LINES),
            *(override(name, custom__lineWidth=3) for name in LINES if name.endswith("ceiling")),
        ],
        scale="log2",
        limits=(1, None),
        stepped=True,
        legend="side",
        no_value=NO_BARRIER,
    )


def _waves() -> Panel:
    return c.graph(
        7,
        "Waves per barrier, median and most",
        f"Fan-out over the ceiling, rounded up, for each kind of ceiling. {reads(ex.BARRIER_WAVES)}",
        "none",
        [
            Query(_preferred(ex.BARRIER_WAVES, lb.FLEET, ceiling=kind, stat=stat), f"{whose}, {{{{fleet}}}}, {name}")
            for stat, name in (("median", "median"), ("max", "most"))
            for kind, whose in ceilings.WHOSE.items()
        ],
        overrides=[*_by_kind(), override_all(", most$", custom__lineStyle=DASHES)],
        limits=(1, None),
        stepped=True,
        no_value=NOTHING_CUT,
    )


def _by_kind() -> list[Json]:
    """The colours of both kinds of ceiling, as in the graph above."""
    return [painted(f"^{whose},", ceilings.COLOURS[kind]) for kind, whose in ceilings.WHOSE.items()]


def _clipped() -> Panel:
    return c.graph(
        8,
        "Clipped barriers",
        "Share of the barriers with a fan-out above the ceiling. 0 means that the ceiling never bound in the window. "
        f"{reads(rc.CLIPPED)}",
        "percentunit",
        [Query(select(rc.CLIPPED, ceiling=kind), f"{whose}, {{{{fleet}}}}") for kind, whose in ceilings.WHOSE.items()],
        overrides=_by_kind(),
        limits=(0, 1),
        no_value=NOTHING_CUT,
    )


def _timeline() -> Panel:
    return c.timeline(
        9,
        "State of the ceilings",
        f"Clips is to be mended where the servers have room; inert: what limits is elsewhere. {ceilings.MEANING}",
        [Query(ceilings.state_of(kind, lb.FLEET), f"{whose}, {{{{fleet}}}}") for kind, whose in ceilings.WHOSE.items()],
        ceilings.words(),
        no_value="no ceiling known",
    )
