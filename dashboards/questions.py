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
from dashboards.queries import ON_BACKEND, UNKNOWN, by, or_unknown, otherwise, reads, select, share_of, weighted_mean
from tidegauge.catalogue import Series
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
    0.5: ("waits", WARN),
    1: ("two modes", BAD),
    2: ("saturated", BAD),
}
"""What a queue is like, the worst last."""
_SIGNS: Final[Mapping[str, str]] = {
    "no": GOOD,
    "unknown": NEUTRAL,
    "waits for slots": WARN,
    "KV cache nearly full": WARN,
    "waits for KV cache": BAD,
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
        f"Saturated: more than {high:.0%} waited. Waits: no split, yet {low:.0%} or more waited and waiting is "
        f"{page:.0%} of the time or more. The worst of the chosen ones. Unknown: too few requests, or no caller that "
        "reports. "
        f"{reads(rc.LATE_RATIO, rc.SPLIT, rc.IMPACT)}",
        "none",
        Query(_split_on(lb.SERVER), "in the servers", instant=True),
        Query(_split_on(lb.CALLER), "in front of them", instant=True),
        mappings=[state(code, *words) for code, words in _SPLITS.items()],
        named=True,
    )


def _split_on(where: str) -> str:
    """The worst that is true of any queue on that side, as its code in `_SPLITS`."""
    late, split, impact = (select(one, where=where) for one in (rc.LATE_RATIO, rc.SPLIT, rc.IMPACT))
    some = f"{late} >= {th.BIMODAL_LATE_LOW.value:g}"
    return or_unknown(
        otherwise(
            f"max({late} > {th.BIMODAL_LATE_HIGH.value:g}) ^ 0 * 2",
            f"max({some} and {split} >= {th.BIMODAL_SPLIT.value:g}) ^ 0",
            f"max({some} and {impact} >= {th.PAGE_IMPACT.value:g}) ^ 0 * 0.5",
            f"max({late}) * 0",
        )
    )


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
    read = (rc.LATE_RATIO, rc.PREEMPTION_RATE, rc.WAITING_CAUSE, rc.KV_USAGE, rc.FLEET_MEMBER, rc.BACKEND_UP)
    return c.stat(
        22,
        "5. Is a server full?",
        "By what servers report, the gravest sign of any: saturated, more than "
        f"{th.BIMODAL_LATE_HIGH.value:.0%} of the requests wait; one preempts; requests wait for its KV cache; its KV "
        f"cache is {th.KV_FULL.value:.0%} full; requests wait for sequence slots. Unknown: a server says nothing of "
        f"preemptions or KV usage. Down: neither Prometheus nor the exporter reaches it. {reads(*read)}",
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
    codes = {sign: code for code, sign in enumerate(_SIGNS)}
    shown = {
        "saturated": f"{late} > {th.BIMODAL_LATE_HIGH.value:g}",
        "preempts": f"{preempts} > 0",
        "waits for KV cache": f"{select(rc.WAITING_CAUSE, cause='kv_cache')} > 0",
        "KV cache nearly full": f"{kv} >= {th.KV_FULL.value:g}",
        "waits for slots": f"{select(rc.WAITING_CAUSE, cause='sequence_slots')} > 0",
        "unknown": f"{select(rc.FLEET_MEMBER)} unless on ({lb.BACKEND}, {lb.MODEL_NAME}) ({kv} and {preempts})",
        "no": kv,
    }
    ranked = (f"max({expr}) ^ 0 * {codes[sign]}" for sign, expr in shown.items())
    return otherwise(*ranked, f"vector({codes['unknown']})")
