"""The six questions of an operator, each answered by one panel in words and colour.

Grey is "unknown" in all of them: what was not measured never looks like what is good. Every answer is of the end of the
time range, not of the last time there was one.
"""

from collections.abc import Mapping
from typing import Final

from dashboards import ceilings, facts, frame, outliers
from dashboards import charts as c
from dashboards import panels as p
from dashboards.absent import NO_BACKEND
from dashboards.fields import (
    BAD,
    GOOD,
    NEUTRAL,
    STAGE_COLOURS,
    WARN,
    Column,
    Panel,
    Query,
    coloured,
    override,
    state,
    steps,
)
from dashboards.queries import (
    ON_BACKEND,
    ON_SUBJECT,
    UNKNOWN,
    by,
    or_unknown,
    otherwise,
    per_backend,
    reads,
    select,
    share_of,
    weighted_mean,
)
from tidegauge.catalogue import Series, limits
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

HALF: Final = 0.5
REQUESTS: Final = select(rc.WINDOW_REQUESTS)
E2E: Final = select(rc.E2E_MEAN)
_FACTS: Final = (ex.KV_CAPACITY, ex.MAX_NUM_SEQS)
_MEAN: Final = "mean E2E"
_GAIN: Final = "gain if halved"
_SATURATION: Final = "saturation"
_DOWN: Final = "down"
_SPLITS: Final[Mapping[float, tuple[str, str]]] = {
    UNKNOWN: ("unknown", NEUTRAL),
    0: ("no split", GOOD),
    1: ("waits", WARN),
    2: ("two modes", WARN),
    3: ("saturated", WARN),
    4: ("two modes", BAD),
    5: ("saturated", BAD),
}
"""What a queue is like, the worst last: what costs little is a warning."""
_CAUSES: Final[Mapping[str, str]] = {
    "prefill_budget": "step budget",
    "sequence_slots": "slots",
    "kv_cache": "KV cache",
}
"""What requests wait for in a server that has no room for them; those it deferred wait for something else."""
_CAUSELESS: Final = "waits"
_SIGNS: Final[Mapping[str, str]] = {
    "no": GOOD,
    "unknown": NEUTRAL,
    _CAUSELESS: WARN,
    _CAUSES["prefill_budget"]: WARN,
    _CAUSES["sequence_slots"]: WARN,
    "KV nearly full": WARN,
    _CAUSES["kv_cache"]: BAD,
    "preempts": BAD,
    "saturated": BAD,
}
"""What servers say of themselves, the gravest last."""


def share(stage: str) -> str:
    """Share of end-to-end time over the chosen backends; a stage that begins with `~` is a regular expression."""
    return share_of(select(rc.STAGE_MEAN, stage=stage), E2E, REQUESTS, lb.STAGE)


def row() -> p.Row:
    """The questions in their order, and what fires."""
    panels = (
        (_largest_stage(), 7),
        (_split(), 6),
        (_capacity(), 11),
        (ceilings.verdict(21, "4. Do ceilings clip?"), 5),
        (_saturation(), 5),
        (outliers.slowest(5, "6. Who stands out?"), 5),
        (frame.alerts(23), 9),
    )
    return p.Row("Six questions, and what fires", 5, panels)


def _largest_stage() -> Panel:
    largest = f"topk(1, {share('~' + '|'.join(lb.SERVER_STAGES))})"
    return c.stat(
        2,
        "1. Which stage is the largest?",
        "The stage with the largest share of end-to-end time, over the chosen backends, and what halving it gains at "
        "most: half its share. Mean E2E: from arrival at a server to the last token. "
        f"{reads(rc.STAGE_MEAN, rc.E2E_MEAN, rc.WINDOW_REQUESTS)}",
        "percentunit",
        Query(weighted_mean(E2E, REQUESTS), _MEAN, instant=True),
        Query(largest, "largest: {{stage}}", instant=True),
        Query(f"{largest} * {HALF:g}", _GAIN, instant=True),
        overrides=[
            override(_MEAN, unit="s", decimals=2),
            *coloured({f"largest: {stage}": STAGE_COLOURS[stage] for stage in lb.SERVER_STAGES}),
        ],
        named=True,
        decimals=1,
    )


def _split() -> Panel:
    low, high, factor, page = (
        t.value for t in (th.BIMODAL_LATE_LOW, th.BIMODAL_LATE_HIGH, th.BIMODAL_SPLIT, th.PAGE_IMPACT)
    )
    return c.stat(
        3,
        "2. Is the queue split?",
        f"Two modes: {low:.0%} to {high:.0%} of the requests waited, and {factor:g} times as long as the rest or more. "
        f"Saturated: more than {high:.0%} waited. Both are vermilion where waiting is {page:.0%} of the time or more, "
        f"else orange. Waits: no split, yet {low:.0%} or more waited and it is so much of the time. The worst of the "
        "chosen ones. Unknown: too few requests, or no caller that reports. "
        f"{reads(rc.LATE_RATIO, rc.SPLIT, rc.IMPACT)}",
        "none",
        Query(_split_on(lb.SERVER), "in the servers", instant=True),
        Query(_split_on(lb.CALLER), "in front of them", instant=True),
        mappings=[state(code, *words) for code, words in _SPLITS.items()],
        named=True,
    )


def _split_on(where: str) -> str:
    """The worst that is true of any queue on that side, as its code in `_SPLITS`."""
    late = select(rc.LATE_RATIO, where=where)
    low, high, factor = (t.value for t in (th.BIMODAL_LATE_LOW, th.BIMODAL_LATE_HIGH, th.BIMODAL_SPLIT))
    some, most, costs = f"{late} >= {low:g}", f"{late} > {high:g}", _costs(where)
    modes = f"{some} <= {high:g} and {select(rc.SPLIT, where=where)} >= {factor:g}"
    shown = {5: f"{most} and {costs}", 4: f"{modes} and {costs}", 3: most, 2: modes, 1: f"{some} and {costs}", 0: late}
    return or_unknown(otherwise(*(f"max({true}) ^ 0 * {code}" for code, true in shown.items())))


def _costs(where: str) -> str:
    """Queues on that side whose wait is so large a part of a request's time that a split pages."""
    return f"{select(rc.IMPACT, where=where)} >= {th.PAGE_IMPACT.value:g}"


def _capacity() -> Panel:
    columns = [
        *(Column(facts.FROM[fact], _source(fact), "none", mappings=facts.source_words()) for fact in _FACTS),
        Column("fits", by("max", select(rc.FLEET_CAPACITY, basis="p90_prompt"), lb.FLEET), "none"),
        Column("ceiling", by("max", select(rc.CEILING, ceiling=lb.CLIENT), lb.FLEET), "none"),
        Column("fan-out", by("max", select(rc.NATURAL_BOUND), lb.FLEET), "none"),
    ]
    read = (*_FACTS, rc.FLEET_MEMBER, rc.FLEET_CAPACITY, rc.CEILING, rc.NATURAL_BOUND)
    return c.table(
        20,
        "3. Is the capacity measured?",
        "Where each fleet's facts are from; of several servers, the one of which the least is known. Fits: requests of "
        "the p90 prompt's size in all servers at once. The caller's ceiling is judged by that and by the largest "
        f"fan-out. {reads(*read)}",
        (lb.FLEET,),
        columns,
        widths={**dict.fromkeys((facts.FROM[fact] for fact in _FACTS), 85), "fits": 50, "ceiling": 60, "fan-out": 65},
        no_value=NO_BACKEND,
    )


def _source(fact: Series) -> str:
    """Of each fleet, the source of the fact that tells least, as its place in `facts.SOURCES`."""
    member, told = select(rc.FLEET_MEMBER), by("max", facts.places_of(fact), lb.BACKEND)
    of_members = f"{member} * {ON_BACKEND} group_left () {told}"
    return by("max", otherwise(of_members, f"{member} * {facts.UNTOLD} unless {ON_BACKEND} {select(fact)}"), lb.FLEET)


def _saturation() -> Panel:
    signs = [state(code, sign, colour) for code, (sign, colour) in enumerate(_SIGNS.items())]
    down = steps((None, NEUTRAL), (0, GOOD), (1, BAD))
    read = (rc.LATE_RATIO, rc.IMPACT, rc.PREEMPTION_RATE, rc.WAITING_CAUSE, rc.WAITING, rc.KV_USAGE)
    low, high, page = (t.value for t in (th.BIMODAL_LATE_LOW, th.BIMODAL_LATE_HIGH, th.PAGE_IMPACT))
    return c.stat(
        22,
        "5. Is a server full?",
        f"By what servers report, the gravest sign of any: saturated, more than {high:.0%} of the requests wait, for "
        f"{page:.0%} of their time; one preempts; its KV cache is {th.KV_FULL.value:.0%} full; requests wait. Then it "
        "is what most of them wait for in that server: its KV cache, its sequence slots, the token budget of a step; "
        "or waits, where that is not known, as without an exporter or max_num_seqs. They wait where "
        f"{limits.WAITING_REQUESTS} or more did on average over 5 minutes, or {low:.0%} of them for {page:.0%} of "
        "their time; those that vLLM deferred do not count. Unknown: a server says nothing of preemptions or KV usage. "
        f"Down: neither Prometheus nor the exporter reaches it. {reads(*read, rc.FLEET_MEMBER, rc.BACKEND_UP)}",
        "none",
        Query(_sign(), _SATURATION, instant=True),
        Query(f"count({select(rc.BACKEND_UP)}) - sum({select(rc.BACKEND_UP)})", _DOWN, instant=True),
        overrides=[override(_SATURATION, mappings=signs), override(_DOWN, thresholds=down)],
        named=True,
    )


def _sign() -> str:
    """The gravest sign that any server shows, as its place in `_SIGNS`."""
    kv, preempts = select(rc.KV_USAGE), select(rc.PREEMPTION_RATE)
    late = select(rc.LATE_RATIO, where=lb.SERVER)
    shown = {
        "saturated": f"{late} > {th.BIMODAL_LATE_HIGH.value:g} and {_costs(lb.SERVER)}",
        "preempts": f"{preempts} > 0",
        "KV nearly full": f"{kv} >= {th.KV_FULL.value:g}",
        "unknown": f"{select(rc.FLEET_MEMBER)} unless {ON_SUBJECT} ({kv} and {preempts})",
        "no": kv,
    }
    ranked = (f"({expr}) ^ 0 * {_code(sign)}" for sign, expr in shown.items())
    return otherwise(f"max({otherwise(_waited_for(), *ranked)})", f"vector({_code('unknown')})")


def _code(sign: str) -> int:
    return list(_SIGNS).index(sign)


def _waited_for() -> str:
    """Of each backend that lets requests wait, the sign for what most of them wait for."""
    causeless, most = _code(_CAUSELESS), by("max", _waiting(), lb.BACKEND)
    known = (
        f"({select(rc.WAITING_CAUSE, cause=cause)} >= {ON_BACKEND} {most} > 0) ^ 0 * {_code(sign) - causeless}"
        for cause, sign in _CAUSES.items()
    )
    beyond = by("max", otherwise(*known, f"{select(rc.FLEET_MEMBER)} * 0"), lb.BACKEND)
    return f"({_waits()}) ^ 0 * {causeless} + {ON_BACKEND} {beyond}"


def _waiting() -> str:
    """Requests that wait in each backend because it has no room for them, by cause; the exporter tells."""
    return select(rc.WAITING_CAUSE, cause=f"~unknown|{'|'.join(_CAUSES)}")


def _waits() -> str:
    """Backends where requests wait to speak of: so many on average, or for so large a part of their time.

    Their number is the exporter's; without one, that of the scrapes, in which short queues do not show. Shares of
    finished requests outlast a queue by their window, and hold what vLLM deferred: they do not count where the exporter
    saw no queue in 5 minutes, or one that was mostly deferred.
    """
    polled, deferred = by("sum", _waiting(), lb.BACKEND), per_backend(rc.WAITING_CAUSE, cause="deferred")
    scraped = by("sum", f"avg_over_time({select(rc.WAITING)}[5m])", lb.BACKEND)
    late = f"{select(rc.LATE_RATIO, where=lb.SERVER)} >= {th.BIMODAL_LATE_LOW.value:g}"
    long = by("max", f"{late} and {_costs(lb.SERVER)}", lb.BACKEND)
    return otherwise(
        f"({otherwise(polled, scraped)}) >= {limits.WAITING_REQUESTS}",
        f"{long} unless ({polled} == 0 or {polled} < {deferred})",
    )
