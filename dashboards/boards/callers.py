"""What callers say, and how far it agrees with what the servers show: rows of the board "Waves"."""

from typing import Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.absent import NO_CALLER, NO_EXPORTER
from dashboards.fields import GREY, Column, Panel, Query, coloured
from dashboards.queries import by, otherwise, reads, select
from tidegauge.catalogue import Series
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

NO_BARRIER: Final = f"no barrier seen: steady traffic, or {NO_EXPORTER}"
SOURCES: Final = {"reported": "told by callers", "inferred": "inferred from servers"}
"""Where barriers are known from, the more certain first."""


def limiter() -> p.Row:
    """The ceiling that callers set, why it changed, and what they believe of the servers."""
    return p.Row("The caller's limiter", 8, ((_ceiling(), 8), (_changes(), 8), (_healthy(), 8)), folded=True)


def _ceiling() -> Panel:
    return c.graph(
        14,
        "Caller's ceiling, by source",
        "Reported by callers or read in their limiter's log, configured, or observed as a plateau of requests in "
        f"flight. {reads(ex.CEILING)}",
        "none",
        [
            Query(
                by("max", select(ex.CEILING, ceiling=lb.CLIENT), lb.FLEET, lb.SOURCE),
                "{{fleet}}, {{source}}",
            )
        ],
        stepped=True,
        decimals=0,
        no_value=f"{NO_CALLER}, and no plateau seen",
    )


def _changes() -> Panel:
    told = select(ex.CEILING_CHANGES)
    first = f"{told} unless {told} offset $__rate_interval"  # a reason is counted from its first change on
    untold = f"changes({select(ex.CEILING, ceiling=lb.CLIENT)}[$__rate_interval])"
    return c.graph(
        15,
        "Changes of the ceiling, by reason",
        "Per step of the graph, for the reasons that the limiter's own log gives. Where no such log is followed the "
        f"changes are counted without a reason. {reads(ex.CEILING_CHANGES, ex.CEILING)}",
        "none",
        [
            Query(by("sum", otherwise(first, f"increase({told}[$__rate_interval])"), lb.REASON), "{{reason}}"),
            Query(f"sum({untold} unless on ({lb.FLEET}) {told})", "no reason told"),
        ],
        stack="normal",
        overrides=coloured({"no reason told": GREY}),
        no_value=f"{NO_CALLER}, and no limiter log is followed",
    )


def _healthy() -> Panel:
    return c.graph(
        16,
        "Healthy backends",
        "What the caller believes, and what is. With fewer than are up its ceiling is too low; with more, some of them "
        f"are down, or one server under two names. {reads(ex.CALLER_HEALTHY, rc.FLEET_DISTINCT_UP)}",
        "none",
        [
            Query(by("max", select(ex.CALLER_HEALTHY), lb.FLEET), "{{fleet}}, caller believes"),
            Query(select(rc.FLEET_DISTINCT_UP), "{{fleet}}, up and distinct"),
        ],
        stepped=True,
        decimals=0,
        no_value=f"{NO_CALLER}, and {NO_EXPORTER}",
    )


def sources() -> p.Row:
    """Barriers as callers tell them against those that the servers' pages show."""
    return p.Row("How sure: where barriers are known from", 8, ((_counted(), 9), (_by_source(), 15)), folded=True)


def _counted() -> Panel:
    return c.graph(
        17,
        "Barriers per minute, by source",
        "The two agree where callers tell all their barriers. Fewer inferred ones: barriers closer than two polls "
        f"merge. More: load that no caller tells. {reads(ex.BARRIERS)}",
        "none",
        [
            Query(
                by("sum", f"60 * rate({select(ex.BARRIERS, source=source)}[5m])", lb.FLEET),
                f"{{{{fleet}}}}, {name}",
            )
            for source, name in SOURCES.items()
        ],
        decimals=1,
        no_value=NO_BARRIER,
    )


def _by_source() -> Panel:
    def figure(series: Series, **labels: str) -> str:
        return by("max", select(series, **labels), lb.FLEET, lb.SOURCE)

    return c.table(
        18,
        "Barriers, by fleet and source",
        "How many were seen in 5 minutes; their fan-out and how long they lasted, over the exporter's window. "
        f"{reads(ex.BARRIERS, ex.BARRIER_FANOUT, ex.BARRIER_DURATION)}",
        (lb.FLEET, lb.SOURCE),
        [
            Column("seen", by("max", f"increase({select(ex.BARRIERS)}[5m])", lb.FLEET, lb.SOURCE), "none", decimals=0),
            *(
                Column(f"fan-out, {stat}", figure(ex.BARRIER_FANOUT, stat=stat), "none")
                for stat in ("median", "p90", "max")
            ),
            *(Column(f"lasted, {stat}", figure(ex.BARRIER_DURATION, stat=stat), "s") for stat in ("median", "p90")),
        ],
        widths={**dict.fromkeys(("fan-out, median", "lasted, median"), 125), "fan-out, p90": 105, "fan-out, max": 105},
        no_value=NO_BARRIER,
    )
