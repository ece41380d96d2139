"""What the exporter takes in, as rows of its board: polls, pages, logs, what callers and limiters tell.

What is left out shows as well. A counter that never counted is absent: its panel says so.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from dashboards import charts as c
from dashboards import outliers
from dashboards import panels as p
from dashboards.absent import NO_CALLER, NO_EXPORTER, NO_LOG
from dashboards.fields import (
    BLUE,
    GOOD,
    GREY,
    ORANGE,
    PER_MINUTE,
    PURPLE,
    SKY,
    UNFILLED,
    VERMILION,
    WARN,
    Column,
    Panel,
    Query,
    coloured,
    dashed,
    marks,
    past,
    state,
)
from dashboards.queries import AT_END, RANGE, STEP, by, otherwise, per_backend, reads, select
from tidegauge.catalogue import Series
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb

NOT_TOLD: Final = f"{NO_EXPORTER} tells"
NEVER: Final = f"none since the exporter started, or {NO_EXPORTER}"
LINES: Final = {"parsed": BLUE, "ignored": GREY, "dropped": VERMILION}
EVENTS: Final = {
    "accepted": BLUE,
    "duplicate": SKY,
    "unmatched": ORANGE,
    "out_of_order": PURPLE,
    "abandoned": VERMILION,
}

_POLLED: Final = per_backend(ex.BACKEND_UP)


def polls() -> p.Row:
    """How many backends answer, how many polls fail and why, how long they take."""
    return p.Row("Polls", 8, ((_reached(), 8), (_failures(), 8), (_duration(), 8)))


def _reached() -> Panel:
    return c.graph(
        8,
        "Backends polled",
        "Those the configuration names, those whose last poll gave a page, and those that are servers of their own: "
        "less than up means that two names lead to one server. "
        f"{reads(ex.BACKENDS_CONFIGURED, ex.BACKEND_UP, ex.BACKEND_DISTINCT)}",
        "none",
        [
            Query(by("max", select(ex.BACKENDS_CONFIGURED)), "configured"),
            Query(by("sum", _POLLED), "up"),
            Query(by("sum", f"{per_backend(ex.BACKEND_DISTINCT)} * ({_POLLED} > 0)"), "up and distinct"),
        ],
        overrides=[UNFILLED, *coloured({"up": BLUE, "up and distinct": ORANGE}), dashed("^configured$", GREY)],
        stepped=True,
        legend="list",
        decimals=0,
        no_value=NO_EXPORTER,
    )


def _failures() -> Panel:
    polls = f"sum(1 / {by('min', select(ex.POLL_INTERVAL), lb.BACKEND)})"
    failed = by("sum", f"rate({select(ex.SCRAPE_FAILURES)}{STEP})", lb.REASON)
    return c.graph(
        10,
        "Polls that failed, by reason",
        "Share of the polls of all chosen backends that gave no usable page. Timeouts: the server answers late, or the "
        "page is long. Refused and connection: it is down, or away. HTTP 401 and 403: the exporter lacks a credential. "
        f"{reads(ex.SCRAPE_FAILURES, ex.POLL_INTERVAL)}",
        "percentunit",
        [Query(f"{failed} / on () group_left () {polls}", "{{reason}}")],
        stack="normal",
        legend="list",
        no_value=NEVER,
    )


def _duration() -> Panel:
    share = f"({per_backend(ex.SCRAPE_DURATION)} / {by('min', select(ex.POLL_INTERVAL), lb.BACKEND)})"
    mean = " / ".join(
        by(op, f"avg_over_time({select(series)}{AT_END})", lb.BACKEND)
        for op, series in (("max", ex.SCRAPE_DURATION), ("min", ex.POLL_INTERVAL))
    )
    return c.graph(
        11,
        "Poll duration over interval",
        f"The {outliers.DRAWN} slowest backends over the chosen time. At the dashed line a poll takes as long as its "
        "interval and the next one is skipped: barriers blur. "
        f"{reads(ex.SCRAPE_DURATION, ex.POLL_INTERVAL)}",
        "percentunit",
        [
            Query(f"quantile(0.5, {share})", "median"),
            Query(f"{share} and on ({lb.BACKEND}) topk({outliers.DRAWN}, {mean})", "{{backend}}"),
        ],
        overrides=outliers.LOOK,
        marks=marks((1, VERMILION)),
        legend="list",
        no_value=NOT_TOLD,
    )


def reading() -> p.Row:
    """Faults of pages, lines of logs, intervals that were not used."""
    return p.Row("What was read, and what was left out", 8, ((_faults(), 8), (_lines(), 8), (_dropped(), 8)))


def _counted(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    *counters: tuple[Series, str],
    colours: Mapping[str, str] = MappingProxyType({}),
    stack: Literal["none", "normal"] = "none",
    no_value: str,
) -> Panel:
    """Counters per minute: each by its label that is given with it, or in all under the name that is given instead."""
    queries = []
    for series, name in counters:
        parted = name in series.labels
        rate = by("sum", f"rate({select(series)}{STEP})", *((name,) if parted else ()))
        queries.append(Query(f"60 * {rate}", f"{{{{{name}}}}}" if parted else name))
    return c.graph(
        id_,
        title,
        f"{description} {reads(*(series for series, _ in counters))}",
        PER_MINUTE,
        queries,
        stack=stack,
        overrides=coloured(colours),
        legend="list",
        no_value=no_value,
    )


def _faults() -> Panel:
    return _counted(
        12,
        "Faults in pages",
        "Lines, duplicates, values or names that were left out of pages that were used otherwise. The server's release "
        "is newer than this exporter, or a proxy cuts its pages.",
        (ex.PAGE_PROBLEMS, lb.REASON),
        stack="normal",
        no_value=NEVER,
    )


def _lines() -> Panel:
    return _counted(
        13,
        "Lines of startup logs",
        "Parsed lines hold facts: a few at each start of a server. Dropped: too long, or not text. Ignored is what "
        "most lines are.",
        (ex.LOG_LINES, lb.RESULT),
        colours=LINES,
        no_value=NO_LOG,
    )


def _dropped() -> Panel:
    return _counted(
        14,
        "Intervals dropped, restarts",
        "Intervals between two polls whose figures cannot be true are left out of the windows, never averaged in. A "
        "restart begins a new history.",
        (ex.INTERVALS_DROPPED, lb.REASON),
        (ex.RESTARTS, "restarts"),
        colours={"restarts": BLUE},
        no_value=NO_EXPORTER,
    )


def callers() -> p.Row:
    """What came of the events of callers and of the lines of limiters' logs; folded."""
    panels = ((_events(), 6), (_refused(), 7), (_limiter_lines(), 6), (_fleets(), 5))
    return p.Row("Callers and limiters: what they told the exporter", 8, panels, folded=True)


def _events() -> Panel:
    return _counted(
        15,
        "Events of callers",
        "Accepted is what counts. Unmatched: an end without a beginning. Abandoned: a barrier that was never closed. "
        "Out of order and duplicate: two processes under one name, or a clock that jumps.",
        (ex.CALLER_EVENTS, lb.RESULT),
        colours=EVENTS,
        no_value=NO_CALLER,
    )


def _refused() -> Panel:
    return _counted(
        16,
        "Batches refused, conflicts",
        "Whole batches that were not taken: the caller gets the reason as the answer. Conflicts: two processes that "
        "report under one name.",
        (ex.BATCHES_REFUSED, lb.REASON),
        (ex.CALLER_CONFLICTS, "conflicts"),
        colours={"conflicts": VERMILION},
        no_value=NO_CALLER,
    )


def _limiter_lines() -> Panel:
    return _counted(
        17,
        "Lines of limiters' logs",
        "Only ignored ones, and never one that is parsed: the configured pattern does not fit the log.",
        (ex.LIMITER_LOG_LINES, lb.RESULT),
        colours=LINES,
        no_value="no limiter log configured",
    )


def _fleets() -> Panel:
    readable = by("max", select(ex.LIMITER_LOG_UP), lb.FLEET)
    conflicts = by("sum", f"increase({select(ex.CALLER_CONFLICTS)}{RANGE})", lb.FLEET)
    heard = otherwise(select(ex.CALLER_EVENTS), select(ex.LIMITER_LOG_LINES))
    columns = [
        Column("", by("group", heard, lb.FLEET), "none"),
        Column("limiter log", readable, "none", mappings=(state(1, "read", GOOD), state(0, "unreadable", WARN))),
        Column("conflicts", conflicts, "short", past(0.5, WARN)),
    ]
    return c.table(
        18,
        "Each fleet",
        "Whether its limiter's logs can be read and matched, and signs of two callers under one name in the chosen "
        f"time. {reads(ex.LIMITER_LOG_UP, ex.CALLER_CONFLICTS, ex.CALLER_EVENTS, ex.LIMITER_LOG_LINES)}",
        (lb.FLEET,),
        columns,
        no_value=NO_CALLER,
    )
