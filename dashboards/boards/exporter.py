"""Board "Can the figures be trusted": the exporter itself, what it reads, and who sees each backend.

One function per panel, in the order of the board.
"""

from typing import Final

from dashboards import charts as c
from dashboards import footprint, frame, intake
from dashboards import panels as p
from dashboards.absent import NO_BACKEND, NO_EXPORTER, NO_LOG
from dashboards.fields import BAD, GOOD, NEUTRAL, WARN, Column, Json, Panel, Query, counted, past, state
from dashboards.queries import INSTANCE, ON_BACKEND, ON_TARGET, RANGE, by, otherwise, per_backend, reads, select
from tidegauge.catalogue import Series, places
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

ALONE, BOTH, NATIVE_ONLY, POLLED_ONLY, EMPTY, GONE = range(-1, 5)
COVERAGE: Final = (
    state(ALONE, "Prometheus", NEUTRAL),
    state(BOTH, "both", GOOD),
    state(NATIVE_ONLY, "Prometheus only", WARN),
    state(POLLED_ONLY, "exporter only", WARN),
    state(EMPTY, "no series of vLLM", BAD),
    state(GONE, "down", BAD),
)
_NATIVE: Final = by("group", select(rc.RUNNING, model_name="~.+"), lb.BACKEND)
_POLLED: Final = per_backend(ex.BACKEND_UP)
_KNOWN: Final = f"last_over_time({ex.BUILD_INFO.name}[1d])"
_UP: Final = f"(up and {ON_TARGET} {_KNOWN})"
"""Targets that were an exporter within a day, whatever their job is called."""


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.EXPORTER,
        "Rules and boards work without the exporter, on vLLM's own series; where it polls a backend, its figures "
        "replace them. This board says whether they can be trusted.",
        (_verdict(), _exporters(), _each(), intake.polls(), intake.reading(), intake.callers(), footprint.row()),
    )


def _verdict() -> p.Row:
    panels = (
        (_up(), 5),
        (_failing(), 4),
        (_configuration(), 5),
        (_logs(), 5),
        (_disagree(), 5),
    )
    return p.Row("Verdict", 4, panels)


def _up() -> Panel:
    return c.stat(
        1,
        "Exporter",
        "Whether Prometheus reaches the exporter; of several, the worst. An exporter that was not scraped for a day is "
        f"forgotten. Reads `up` of the targets that had `{ex.BUILD_INFO.name}`.",
        "none",
        Query(by("min", _UP), instant=True),
        mappings=[state(1, "up", GOOD), state(0, "down", BAD)],
        no_value=NO_EXPORTER,
    )


def _failing() -> Panel:
    return c.stat(
        2,
        "Failing",
        "Backends whose last poll gave no usable page. Barriers, causes and capacity of these are missing. "
        f"{reads(ex.BACKEND_UP)}",
        "none",
        Query(f"count({_POLLED}) - sum({_POLLED})", instant=True),
        thresholds=counted(BAD),
        mappings=[state(0, "none", GOOD)],
        no_value=NO_EXPORTER,
    )


def _configuration() -> Panel:
    return c.stat(
        3,
        "Configuration",
        "Refused: the file was read again and could not be used, so the one before stays in force; the exporter's log "
        f"names the key. {reads(ex.CONFIG_LOADED)}",
        "none",
        Query(by("min", select(ex.CONFIG_LOADED)), instant=True),
        mappings=[state(1, "in force", GOOD), state(0, "refused", BAD)],
        no_value=intake.NOT_TOLD,
    )


def _logs() -> Panel:
    up, limiters = per_backend(ex.LOG_UP), by("max", select(ex.LIMITER_LOG_UP), lb.FLEET)
    lost = otherwise(f"{up} == 0", f"{limiters} == 0")
    return c.stat(
        4,
        "Logs unread",
        "Startup logs of backends and logs of limiters that are configured and cannot be read. Capacity and ceilings "
        f"then rest on weaker sources. {reads(ex.LOG_UP, ex.LIMITER_LOG_UP)}",
        "none",
        Query(otherwise(f"count({lost})", f"count({otherwise(up, limiters)}) * 0"), instant=True),
        thresholds=counted(WARN),
        mappings=[state(0, "none", GOOD)],
        no_value=NO_LOG,
    )


def _disagree() -> Panel:
    return c.stat(
        5,
        "KV disputed",
        "Backends of which two sources of the KV capacity differ: a configured value that is out of date, or the log "
        f"of another server. {reads(ex.KV_DISAGREE)}",
        "none",
        Query(by("sum", per_backend(ex.KV_DISAGREE)), instant=True),
        thresholds=counted(WARN),
        mappings=[state(0, "none", GOOD)],
        no_value="no capacity known",
    )


def _exporters() -> p.Row:
    return p.Row("Exporters, and what fires", 6, ((_exporter_table(), 13), (frame.alerts(6, "Tidegauge.+"), 11)))


def _exporter_table() -> Panel:
    running = by("max", select(ex.BUILD_INFO), INSTANCE, lb.VERSION)
    gone = f'label_replace({by("group", _KNOWN, INSTANCE)}, "{lb.VERSION}", "-", "", "")'
    version = f"({running} or on ({INSTANCE}) {gone})"

    def each(expr: str, op: str = "max") -> str:
        return f"{by(op, expr, INSTANCE)} * on ({INSTANCE}) group_left ({lb.VERSION}) {version}"

    loaded = (state(1, "in force", GOOD), state(0, "refused", BAD))
    columns = [
        # With one column alone its values would have another name: there is always a second.
        Column("", version, "none"),
        Column("state", each(_UP, "min"), "none", mappings=(state(1, "up", GOOD), state(0, "down", BAD))),
        Column("config", each(select(ex.CONFIG_LOADED), "min"), "none", mappings=loaded),
        Column("read", f"{each(select(ex.CONFIG_LOADED_AT))} * 1000", "dateTimeFromNow"),
        Column("window", each(select(ex.WINDOW_SECONDS)), "s"),
        Column("backends", each(select(ex.BACKENDS_CONFIGURED)), "none"),
    ]
    read = (ex.BUILD_INFO, ex.CONFIG_LOADED, ex.CONFIG_LOADED_AT, ex.WINDOW_SECONDS, ex.BACKENDS_CONFIGURED)
    return c.table(
        7,
        "Each exporter",
        "Its version, when the configuration in force was read, the window of its figures and the backends that it is "
        f"to poll. Two exporters on one backend are counted once by the rules. {reads(*read)} Besides, `up`.",
        (INSTANCE, lb.VERSION),
        columns,
        widths={INSTANCE: 150, "read": 130},
        no_value=NO_EXPORTER,
    )


def _each() -> p.Row:
    return p.Row("Each backend: who sees it, and what became of its input in the chosen time", 9, ((_table(), 24),))


def _coverage() -> str:
    """Who sees each backend, as a number; the words are in COVERAGE."""
    known = per_backend(rc.BACKEND_UP)
    neither = f"unless {ON_BACKEND} {_NATIVE} unless {ON_BACKEND} {_POLLED}"
    return otherwise(
        f"({_NATIVE} and {ON_BACKEND} {_POLLED}) * {BOTH}",
        f"({_NATIVE} unless on () {ex.BACKEND_UP.name}) * {ALONE}",
        f"({_NATIVE} unless {ON_BACKEND} {_POLLED}) * {NATIVE_ONLY}",
        f"({_POLLED} unless {ON_BACKEND} {_NATIVE}) * 0 + {POLLED_ONLY}",
        f"({known} == 1 {neither}) * {EMPTY}",
        f"({known} == 0 {neither}) + {GONE}",
    )


def _table() -> Panel:
    never = f"{_POLLED} * 0"  # a counter that never counted is absent

    def counted(series: Series) -> str:
        return otherwise(f"round({by('sum', f'increase({select(series)}{RANGE})', lb.BACKEND)})", never)

    failures = by("sum", f"rate({select(ex.SCRAPE_FAILURES)}{RANGE})", lb.BACKEND)
    failed = otherwise(f"{failures} * {per_backend(ex.POLL_INTERVAL)}", never)
    parsed = by("sum", select(ex.LOG_LINES, result="parsed"), lb.BACKEND)
    some = past(0.5, WARN)
    columns = [
        Column("seen by", _coverage(), "none", mappings=COVERAGE),
        Column(
            "reached", per_backend(rc.BACKEND_UP), "none", mappings=(state(1, "yes", GOOD), state(0, "by nobody", BAD))
        ),
        Column("last poll", _POLLED, "none", mappings=(state(1, "a page", GOOD), state(0, "failed", BAD))),
        Column("polls failed", failed, "percentunit", (*past(0.001, WARN), (0.1, BAD))),
        Column("poll took", per_backend(ex.SCRAPE_DURATION), "s"),
        Column("of every", per_backend(ex.POLL_INTERVAL), "s"),
        Column("restarts", counted(ex.RESTARTS), "short", some),
        Column("page faults", counted(ex.PAGE_PROBLEMS), "short", some),
        Column("dropped", counted(ex.INTERVALS_DROPPED), "short", some),
        Column("log", per_backend(ex.LOG_UP), "none", mappings=(state(1, "read", GOOD), state(0, "unreadable", WARN))),
        Column("lines parsed", otherwise(parsed, f"{per_backend(ex.LOG_UP)} * 0"), "short"),
        Column(
            "KV sources",
            per_backend(ex.KV_DISAGREE),
            "none",
            mappings=(state(0, "agree", GOOD), state(1, "differ", WARN)),
        ),
    ]
    read = (
        *(rc.RUNNING, rc.BACKEND_UP, ex.BACKEND_UP, ex.SCRAPE_FAILURES, ex.SCRAPE_DURATION, ex.POLL_INTERVAL),
        *(ex.RESTARTS, ex.PAGE_PROBLEMS, ex.INTERVALS_DROPPED, ex.LOG_UP, ex.LOG_LINES, ex.KV_DISAGREE),
    )
    return c.table(
        9,
        "Each backend",
        "Seen by: whether Prometheus has vLLM's series of it, and whether the exporter polls it. Prometheus only: add "
        "it to the exporter's configuration. Exporter only: no scrape job has it. One server under two names, seen by "
        "one each: the exporter's name for it must be the value of the label that rules take for the backend. "
        "A dash: the exporter does not poll it, or no log of it is configured, or its KV size is not known. "
        f"{reads(*read)}",
        (lb.BACKEND,),
        columns,
        sort=("seen by", True),
        widths={"seen by": 150, "polls failed": 95, "page faults": 95, "lines parsed": 105, "KV sources": 95},
        no_value=NO_BACKEND,
    )
