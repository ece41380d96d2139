"""Why and how long requests wait, before the servers and in them: rows of the board "Waves"."""

from typing import Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.absent import NO_CALLER, NO_EXPORTER, NO_NATIVE, NOTHING
from dashboards.fields import CAUSE_COLOURS, ORANGE, STAGE_COLOURS, WARN, Column, Panel, Query, coloured, past
from dashboards.queries import STEP, buckets, by, native, otherwise, per_backend, reads, select, weighted_mean
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

NOBODY: Final = f"nobody waited, or {NO_EXPORTER}"

SMEARED: Final = "Columns narrower than four scrapes share out what those four saw."


def per_step(rates: str, *labels: str) -> str:
    """What rates come to between two points of a graph: over all points it adds up to what was counted.

    A rate over `STEP` sees two scrapes at least; the growth over the same would count what points overlap in twice.
    """
    return f"{by('sum', rates, *labels)} * $__interval_ms / 1000"


def by_cause() -> str:
    """Requests that wait, by cause, over callers and servers."""
    return otherwise(*(by("sum", select(one), lb.CAUSE) for one in (rc.WAITING_CAUSE, rc.FLEET_WAITING_CAUSE)))


def causes() -> p.Row:
    """By cause, and what of the decode stage is a wait."""
    return p.Row("Why requests wait", 9, ((_by_cause(), 14), (_hidden(), 10)))


def _by_cause() -> Panel:
    return c.graph(
        10,
        "Requests waiting, by cause",
        "Seconds waited per second, which is the mean number of requests that wait. `caller` waits for the caller's "
        "own slot and no server sees it; the others wait in a server: raise `max_num_seqs` only where it is "
        f"`sequence_slots`. {reads(rc.WAITING_CAUSE, rc.FLEET_WAITING_CAUSE)}",
        "none",
        [Query(by("sum", select(one), lb.CAUSE), "{{cause}}") for one in (rc.FLEET_WAITING_CAUSE, rc.WAITING_CAUSE)],
        stack="normal",
        overrides=coloured(CAUSE_COLOURS),
        decimals=1,
        no_value=NOBODY,
    )


def _hidden() -> Panel:
    return c.graph(
        11,
        "Decode, and the wait hidden in it",
        "A preempted request waits again, and vLLM books that as decode. The hidden wait is an estimate, per finished "
        "request, and too high while many wait that have not finished; without preemptions there is no line. "
        f"{reads(rc.STAGE_MEAN, rc.WINDOW_REQUESTS, ex.HIDDEN_WAIT)}",
        "s",
        [
            Query(weighted_mean(select(rc.STAGE_MEAN, stage="decode"), select(rc.WINDOW_REQUESTS)), "decode"),
            Query(
                f"{by('sum', by('max', select(ex.HIDDEN_WAIT), lb.BACKEND))} / (sum({select(rc.WINDOW_REQUESTS)}) > 0)",
                "hidden wait, estimated",
            ),
        ],
        overrides=coloured({"decode": STAGE_COLOURS["decode"], "hidden wait, estimated": ORANGE}),
    )


def lengths() -> p.Row:
    """How long, in the servers' own buckets and in those of the caller's slot."""
    return p.Row("How long they wait", 10, ((_server_waits(), 12), (_caller_waits(), 12)))


def _server_waits() -> Panel:
    name = f"vllm:{vllm.QUEUE}_bucket"
    return c.heatmap(
        12,
        "Wait in the servers' queue",
        "Requests of each column by the time they queued, in the servers' own buckets; below the lowest edge nothing "
        f"is known. Two bands are two waves. Choose one backend where servers have other buckets. {SMEARED} "
        f"Reads `{name}`.",
        "s",
        Query(per_step(native(f"rate({name}%s{STEP})"), "le")),
        no_value=f"{NOTHING}, or {NO_NATIVE}",
    )


def _caller_waits() -> Panel:
    name = f"{ex.CALLER_WAIT.name}_bucket"
    return c.heatmap(
        13,
        "Wait for the caller's slot",
        "Requests of each column by the time their caller's limiter held them back, before any server saw them. "
        f"{SMEARED} Reads `{name}`.",
        "s",
        Query(per_step(f"rate({buckets(ex.CALLER_WAIT)}{STEP})", "le")),
        no_value=NO_CALLER,
    )


def backends() -> p.Row:
    """Each backend with its causes; folded."""
    return p.Row("Which backend makes them wait", 9, ((_by_backend(), 24),), folded=True)


def _by_backend() -> Panel:
    causes = [cause for cause in lb.CAUSES if cause != lb.CALLER]
    return c.table(
        19,
        "Requests waiting in each backend, by cause",
        f"Seconds waited per second over 5 minutes, and the mean wait of the late ones. "
        f"{reads(rc.WAITING_CAUSE, rc.LATE_RATIO, rc.LATE_SECONDS)}",
        (lb.BACKEND,),
        [
            Column(
                "all causes",
                by("sum", select(rc.WAITING_CAUSE), lb.BACKEND),
                "none",
                past(1, WARN),
            ),
            *(Column(cause, per_backend(rc.WAITING_CAUSE, cause=cause), "none") for cause in causes),
            Column("late", per_backend(rc.LATE_RATIO, where=lb.SERVER), "percentunit"),
            Column("late by", per_backend(rc.LATE_SECONDS, where=lb.SERVER), "s"),
        ],
        sort=("all causes", True),
        no_value=NOBODY,
    )
