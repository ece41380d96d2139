"""What callers say, and how far it agrees with what the servers show: rows of the board "Waves"."""

from typing import Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.absent import NO_CALLER, NO_EXPORTER
from dashboards.fields import GREY, Column, Panel, Query, coloured, override_all
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
    told, before = _now_and_before(select(ex.CEILING_CHANGES), lb.FLEET, lb.REASON)
    ceiling, earlier = _now_and_before(select(ex.CEILING, ceiling=lb.CLIENT), lb.FLEET, lb.SOURCE)
    moved = by("max", f"{ceiling} != bool {earlier}", lb.FLEET)
    return c.graph(
        15,
        "Changes of the ceiling, by reason",
        "Each bar counts the changes since the bar before, for the reasons that the limiter's own log gives. Where no "
        "such log is followed there is no reason, and of the changes between two bars one is counted. "
        f"{reads(ex.CEILING_CHANGES, ex.CEILING)}",
        "none",
        [
            # What has just appeared, or less than it was before, has grown from nothing.
            Query(by("sum", otherwise(f"{told} - {before} >= 0", told), lb.REASON), "{{reason}}"),
            Query(f"sum({moved} unless on ({lb.FLEET}) {told})", "no reason told"),
        ],
        stack="normal",
        overrides=[override_all(".", custom__drawStyle="bars"), *coloured({"no reason told": GREY})],
        decimals=0,
        no_value=f"{NO_CALLER}, and no limiter log is followed",
    )


def _now_and_before(selector: str, *labels: str) -> tuple[str, str]:
    """A value at each point of a graph, and the one at the point before, beyond gaps of up to an hour."""
    return by("max", selector, *labels), by("max", f"last_over_time({selector}[1h] offset $__interval)", *labels)


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
                by("max", f"60 * rate({select(ex.BARRIERS, source=source)}[5m])", lb.FLEET),
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
