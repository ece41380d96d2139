"""Board "How much fits": facts with their sources, request capacity on three bases, what is let in and in flight.

One function per panel, in the order of the board: long, and read like the board.
"""

from typing import Final

from dashboards import charts as c
from dashboards import frame, outliers
from dashboards import panels as p
from dashboards.absent import NO_BACKEND, NO_CAPACITY, NO_CEILING, NO_EXPORTER, NO_SERVER
from dashboards.facts import DOUBT, columns, doubt, of_members
from dashboards.fields import (
    BLUE,
    GOOD,
    GREEN,
    KNOWN,
    NEUTRAL,
    ORANGE,
    PURPLE,
    SKY,
    UNFILLED,
    VERMILION,
    WARN,
    Column,
    Json,
    Panel,
    Query,
    counted,
    dashed,
    marks,
    override,
    painted,
    past,
    steps,
)
from dashboards.queries import ON_BACKEND, ON_FLEET, by, per_backend, reads, select
from tidegauge.catalogue import Recorded, places
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

BASES: Final = {
    "p90 prompt": "p90_prompt",
    "p90 prompt and output": "p90_prompt_and_output",
    "full context": "context_window",
}
FLEET: Final = f"{{{{{lb.FLEET}}}}}"

_BASIS: Final = f"${lb.BASIS}"
_TWIN: Final = f"({by('max', select(ex.BACKEND_DISTINCT, backend='~.+'), lb.BACKEND)} == 0)"
_IN_FLIGHT: Final = by("sum", f"{outliers.whole(rc.IN_FLIGHT)} unless {ON_BACKEND} {_TWIN}", lb.FLEET)
"""Of the whole fleet, twins counted once."""
_FITS: Final = select(rc.FLEET_CAPACITY, basis=_BASIS)
_NARROWEST: Final = select(rc.NARROWEST_CAPACITY, basis=_BASIS)
_EQUAL: Final = f"{_NARROWEST} * {ON_FLEET} group_left () {select(rc.FLEET_DISTINCT_UP)}"
_LET_IN: Final = select(rc.CEILING, ceiling=lb.CLIENT)
_OWN: Final = select(rc.REQUEST_CAPACITY, basis=_BASIS)
_TWINS: Final = (ex.BACKEND_DISTINCT,)
_SHARES: Final = (rc.NARROWEST_CAPACITY, rc.FLEET_DISTINCT_UP)
_OVERFULL: Final = steps((None, NEUTRAL), (0, GOOD), (1.0001, WARN))
"""All that fits is as much as may be; a threshold includes its bound."""
_OVERRUN: Final = steps(*KNOWN, (1.0001, WARN))
"""A ceiling far below all that fits is no good either."""
_OWN_IN_FLIGHT: Final = by("sum", select(rc.IN_FLIGHT), lb.BACKEND)
_OWN_IN_USE: Final = of_members(f"{_OWN_IN_FLIGHT} / {ON_BACKEND} {_OWN}")
_ROOM: Final = of_members(f"floor(clamp_min({_OWN} - {ON_BACKEND} {_OWN_IN_FLIGHT}, 0))")
_NEEDS: Final = (
    "Not known without the KV size and the size that is chosen for a request: the last table tells which lacks."
)


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.CAPACITY,
        "What fits is made of facts that vLLM prints or that are configured; the exporter reads them, and without one "
        "they are not known. Choose at the top what one request is assumed to hold. Prefix-cache hits are left out: a "
        "capacity that counts on them promises too much as soon as the mix changes.",
        (_verdict(), _fleets(), _load(), _backends()),
        extra=[p.choice(lb.BASIS, "A request holds", BASES, lb.BASES[0])],
    )


def _verdict() -> p.Row:
    panels = (
        (_doubts(), 4),
        (_fleet_capacity(), 4),
        (_narrowest(), 4),
        (_equal_shares(), 4),
        (_in_use(), 5),
        (_ceiling_share(), 3),
    )
    return p.Row("Verdict", 5, panels)


def _doubts() -> Panel:
    members = by("group", select(rc.FLEET_MEMBER), lb.BACKEND)
    unknown = f"count({members} unless {ON_BACKEND} {select(rc.KV_CAPACITY)}) or count({members}) * 0"
    polled = by("count", of_members(select(rc.BACKEND_COVERED)))
    return c.stat(
        1,
        "In doubt",
        "Unknown: nobody knows the KV capacity, and no figure below counts the backend. Disputed: two sources tell "
        "different capacities, so one of them is wrong. The last table names them, first. "
        f"{reads(rc.FLEET_MEMBER, rc.BACKEND_COVERED, rc.KV_CAPACITY, ex.KV_DISAGREE)}",
        "none",
        Query(f"({unknown}) and {polled}", "unknown", instant=True),
        Query(by("sum", of_members(per_backend(ex.KV_DISAGREE))), "disputed", instant=True),
        overrides=[override("unknown", thresholds=counted(NEUTRAL)), override("disputed", thresholds=counted(WARN))],
        named=True,
        no_value=NO_EXPORTER,
    )


def _fleet_capacity() -> Panel:
    return c.stat(
        2,
        "Fleet fits",
        "Requests of the chosen size that the healthy, distinct backends hold at once; of several fleets, the four "
        f"largest. {_NEEDS} {reads(rc.FLEET_CAPACITY)}",
        "none",
        Query(f"topk(4, {_FITS})", FLEET, instant=True),
        named=True,
        no_value=NO_CAPACITY,
    )


def _narrowest() -> Panel:
    healthy = f"({select(rc.BACKEND_UP)} == 1)"
    return c.stat(
        3,
        "Narrowest",
        "The healthy, distinct backend that holds the fewest requests of the chosen size: what a limiter that gives "
        f"each backend the same share must use. {_NEEDS} "
        f"{reads(rc.REQUEST_CAPACITY, rc.FLEET_MEMBER, rc.BACKEND_UP, *_TWINS)}",
        "none",
        Query(
            f"bottomk(1, {of_members(_OWN)} and {ON_BACKEND} {healthy} unless {ON_BACKEND} {_TWIN})",
            "{{backend}}",
            instant=True,
        ),
        named=True,
        no_value=NO_CAPACITY,
    )


def _equal_shares() -> Panel:
    return c.stat(
        4,
        "Equal shares",
        "The narrowest backend times the distinct backends up: the ceiling of a limiter that gives each backend the "
        f"same share; a larger one overruns the narrowest. {_NEEDS} {reads(*_SHARES)}",
        "none",
        Query(f"topk(4, {_EQUAL})", FLEET, instant=True),
        named=True,
        no_value=NO_CAPACITY,
    )


def _in_use() -> Panel:
    return c.stat(
        5,
        "In use",
        "Requests running or waiting in the servers over what fits: of the fullest fleet, and of the fullest backend. "
        "What is left to 100 % is room in KV cache and slots for requests of the chosen size, in requests in the first "
        "table; how many of them are still fast enough, the knee on the board of load tells. Above 100 %, requests "
        f"wait or preempt each other once all hold as much as assumed. {_NEEDS} "
        f"{reads(rc.IN_FLIGHT, rc.FLEET_MEMBER, rc.FLEET_CAPACITY, rc.REQUEST_CAPACITY, *_TWINS)}",
        "percentunit",
        Query(f"topk(1, {_IN_FLIGHT} / {ON_FLEET} {_FITS})", FLEET, instant=True),
        Query(f"topk(1, {_OWN_IN_USE})", "{{backend}}", instant=True),
        thresholds=_OVERFULL,
        named=True,
        decimals=0,
        no_value=NO_CAPACITY,
    )


def _ceiling_share() -> Panel:
    return c.stat(
        6,
        "Ceiling",
        "What the caller's limiter lets through at once over what fits. Above 100 % it does not protect the KV cache; "
        "far below, the servers have room that it withholds: whether it does harm, the board of waves tells. The "
        f"largest of the fleets. {_NEEDS} {reads(rc.CEILING, rc.FLEET_CAPACITY)}",
        "percentunit",
        Query(f"topk(1, {_LET_IN} / {ON_FLEET} {_FITS})", FLEET, instant=True),
        thresholds=_OVERRUN,
        named=True,
        decimals=0,
        no_value=NO_CEILING,
    )


def _fleets() -> p.Row:
    return p.Row("Fleet: what is let in and in flight, against what fits", 10, ((_against(), 14), (_by_basis(), 10)))


def _against() -> Panel:
    return c.graph(
        7,
        "Requests in flight, against what fits",
        "Dashed: what fits into the fleet, what a limiter with equal shares may let in, and what the caller's does let "
        "in. In flight above what fits: expect waiting and preemptions. "
        f"{reads(rc.IN_FLIGHT, rc.FLEET_MEMBER, rc.FLEET_CAPACITY, *_SHARES, rc.CEILING, *_TWINS)}",
        "short",
        [
            Query(_IN_FLIGHT, f"in flight, {FLEET}"),
            Query(_FITS, f"fits, {FLEET}"),
            Query(_EQUAL, f"equal shares, {FLEET}"),
            Query(_LET_IN, f"caller's ceiling, {FLEET}"),
        ],
        overrides=[
            painted("^in flight", BLUE),
            dashed("^fits", GREEN),
            dashed("^equal shares", ORANGE),
            dashed("^caller's ceiling", PURPLE),
        ],
        no_value=NO_SERVER,
    )


def _by_basis() -> Panel:
    return c.graph(
        8,
        "What fits into the fleet, on each basis",
        "The p90 prompt: nine of ten requests are no longer. With output: what a request holds when it ends. Full "
        "context: every request as long as the server allows, which never fails. A line that sinks: prompts grew "
        f"longer, or a backend is missing. {_NEEDS} {reads(rc.FLEET_CAPACITY)}",
        "short",
        [Query(select(rc.FLEET_CAPACITY, basis=basis), f"{title}, {FLEET}") for title, basis in BASES.items()],
        overrides=[painted(f"^{title},", colour) for title, colour in zip(BASES, (GREEN, SKY, BLUE), strict=True)],
        no_value=NO_CAPACITY,
    )


def _load() -> p.Row:
    return p.Row("How full the KV caches are", 9, ((_kv_usage(), 8), (_preemptions(), 8), (_fullest(), 8)))


def _kv_usage() -> Panel:
    return c.graph(
        9,
        "KV usage: fullest and weighed",
        "A usage is a share of a backend's own cache, so it is never summed. Shown are the fullest backend of each "
        "fleet, and the mean in which each counts by its capacity, absent unless all capacities are known. Far apart: "
        f"the load is uneven. {reads(rc.FLEET_KV_MAX, rc.FLEET_KV_WEIGHTED)}",
        "percentunit",
        [
            Query(select(rc.FLEET_KV_MAX), f"fullest of {FLEET}"),
            Query(select(rc.FLEET_KV_WEIGHTED), f"weighed, {FLEET}"),
        ],
        overrides=[
            painted("^fullest", BLUE),
            painted("^weighed", SKY),
        ],
        limits=(0, 1),
        marks=marks((th.KV_FULL.value, VERMILION)),
        no_value=NO_SERVER,
    )


def _preemptions() -> Panel:
    return outliers.graph(
        10,
        "Preemptions per second",
        "More fits on paper than in the cache: requests are thrown out of the batch and computed again. Any at all "
        "means that a lower ceiling would do the same work with less waste.",
        "short",
        rc.PREEMPTION_RATE,
        no_value=NO_SERVER,
    )


def _fullest() -> Panel:
    chosen = outliers.highest(rc.IN_FLIGHT)
    return c.graph(
        11,
        "In flight over what fits, by backend",
        f"The {outliers.DRAWN} backends with most in flight; the table has all. One alone above 100 %: it gets more of "
        f"the load than its share of the capacity. {_NEEDS} "
        f"{reads(rc.IN_FLIGHT, rc.REQUEST_CAPACITY, rc.FLEET_MEMBER)}",
        "percentunit",
        [Query(f"{by('sum', chosen, lb.BACKEND)} / {ON_BACKEND} {_OWN}", "{{backend}}")],
        overrides=[UNFILLED],
        legend="list",
        no_value=NO_CAPACITY,
    )


def _backends() -> p.Row:
    return p.Row("Each backend", 9, ((_held(), 24), (_known(), 24)))


def _of_member(series: Recorded, **labels: str) -> str:
    return of_members(per_backend(series, **labels))


def _held() -> Panel:
    fits = [Column(title, _of_member(rc.REQUEST_CAPACITY, basis=key), "none") for title, key in BASES.items()]
    columns_ = [
        *fits,
        Column("in flight", _OWN_IN_FLIGHT, "none"),
        Column("in use", _OWN_IN_USE, "percentunit", past(1, WARN)),
        Column("room", _ROOM, "none"),
        Column("KV usage", _of_member(rc.KV_USAGE), "percentunit", past(th.KV_FULL.value, WARN)),
        Column("preempted/s", _of_member(rc.PREEMPTION_RATE), "short"),
    ]
    read = (rc.REQUEST_CAPACITY, rc.IN_FLIGHT, rc.KV_USAGE, rc.PREEMPTION_RATE)
    return c.table(
        12,
        "Requests that fit, and those in flight",
        "How many the backend holds at once on each basis, at most its sequence slots; in use: in flight over the "
        "chosen basis, the fullest first; room: what is left of it, in requests. A dash: not known. A backend's name "
        "leads to how it differs from the others. "
        f"{reads(*read, rc.FLEET_MEMBER)}",
        (lb.BACKEND,),
        columns_,
        sort=("in use", True),
        widths={"p90 prompt and output": 165},
        links={c.HEADINGS[lb.BACKEND]: frame.on_backend(places.SKEW, "How it differs from the others")},
        no_value=NO_BACKEND,
    )


def _known() -> Panel:
    columns_ = [
        doubt(),
        *columns(ex.KV_CAPACITY, "KV tokens", "locale"),
        *columns(ex.MAX_NUM_SEQS, "max_num_seqs", "none"),
        *columns(ex.MAX_BATCHED_TOKENS, "max_num_batched_tokens", "locale"),
        *columns(ex.MAX_MODEL_LEN, "max_model_len", "locale"),
        *columns(ex.P90_PROMPT, "p90 prompt", "locale"),
    ]
    read = (ex.KV_CAPACITY, ex.KV_DISAGREE, ex.MAX_NUM_SEQS, ex.MAX_BATCHED_TOKENS, ex.MAX_MODEL_LEN, ex.P90_PROMPT)
    return c.table(
        13,
        "What is known, and from where",
        "The most trusted source of each fact: configuration, vLLM's metrics, its startup log, its own endpoints. At "
        "least: the most that ever ran, a lower bound, which limits no capacity. Disputed: the configured figure is "
        "out of date, or the log is another server's. Not polled: by no exporter. "
        f"{reads(*read, rc.KV_CAPACITY, rc.BACKEND_COVERED, rc.FLEET_MEMBER)}",
        (lb.BACKEND,),
        columns_,
        sort=(DOUBT, True),
        widths={"max_num_seqs": 115, "max_num_batched_tokens": 190, "max_model_len": 120},
        no_value=NO_BACKEND,
    )
