"""Panels that a hundred backends fit into: the few that are farthest from the others, and the median of their fleet.

Which backends are drawn is decided once for the whole time range, by their mean over it: no line comes and goes.
The median is that of the whole fleet, whichever of its backends are chosen.
"""

from typing import Final

from dashboards import charts as c
from dashboards.absent import NO_PAIR, UNRECORDED
from dashboards.fields import BAD, GOOD, GREY, NEUTRAL, TIMES, UNFILLED, Json, Panel, Query, fixed, override_all, steps
from dashboards.queries import AT_END, ON_FLEET, ON_SUBJECT, by, reads, select
from tidegauge.catalogue import Recorded
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

DRAWN: Final = 6
LOOK: Final = (UNFILLED, override_all("^median", color=fixed(GREY), custom__lineWidth=6))
"""How such panels look: lines without fills, the median thick and grey."""
OF_FLEET: Final = "Of the whole fleet, whichever of its backends are chosen."
"""The sentence of a description whose panel does not follow the choice of a backend."""
_WHOLE: Final = {lb.BACKEND: "~.+", lb.MODEL_NAME: "~.+"}
"""Every backend of the chosen fleets, chosen or not."""


def in_fleet(value: str, member: str) -> str:
    """The value of backends and models with the fleet of each."""
    return f"{value} * {ON_SUBJECT} group_left ({lb.FLEET}) {member}"


def whole(series: Recorded, **labels: str) -> str:
    """The value of every backend of the chosen fleets, chosen or not, with its fleet."""
    return in_fleet(select(series, **_WHOLE, **labels), select(rc.FLEET_MEMBER, **_WHOLE))


def median(series: Recorded, **labels: str) -> str:
    """The median over the backends of each fleet that a chosen backend belongs to."""
    return f"{_middle(whole(series, **labels))} and {ON_FLEET} {select(rc.FLEET_MEMBER)}"


def farthest(series: Recorded, **labels: str) -> str:
    """The chosen backends whose mean over the time range is farthest from their fleet's median, `DRAWN` at most."""
    chosen = in_fleet(_mean(select(series, **labels)), _last(select(rc.FLEET_MEMBER)))
    others = in_fleet(_mean(select(series, **_WHOLE, **labels)), _last(select(rc.FLEET_MEMBER, **_WHOLE)))
    distance = f"abs({chosen} - {ON_FLEET} group_left () {_middle(others)})"
    return f"{select(series, **labels)} and {ON_SUBJECT} topk({DRAWN}, {distance})"


def highest(series: Recorded, **labels: str) -> str:
    """The chosen backends whose mean over the time range is highest, `DRAWN` at most."""
    chosen = in_fleet(_mean(select(series, **labels)), _last(select(rc.FLEET_MEMBER)))
    return f"{select(series, **labels)} and {ON_SUBJECT} topk({DRAWN}, {chosen})"


def of_median(series: Recorded) -> str:
    """Each chosen backend's value over its fleet's median, of a series that has the fleet."""
    return f"{select(series)} / {ON_FLEET} group_left () {_middle(select(series, **_WHOLE))}"


def of_fastest() -> str:
    """Each chosen backend's mean end-to-end time over the lowest of its fleet; the largest is the fleet's skew."""
    fastest = by("min", select(rc.FLEET_E2E, **_WHOLE), lb.FLEET)
    return f"{select(rc.FLEET_E2E)} / {ON_FLEET} group_left () {fastest} and {ON_FLEET} {select(rc.FLEET_SKEW)}"


def graph(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    unit: str,
    series: Recorded,
    *,
    limits: tuple[float | None, float | None] = (0, None),
    marks: Json | None = None,
    no_value: str = UNRECORDED,
    **labels: str,
) -> Panel:
    """The farthest backends as coloured lines over the median in grey.

    With `DRAWN` backends or fewer, each has the same colour in all such panels; with more, each panel has its own.
    """
    return c.graph(
        id_,
        title,
        f"{description} {reads(series, rc.FLEET_MEMBER)}",
        unit,
        [
            Query(median(series, **labels), f"median of {{{{{lb.FLEET}}}}}"),
            Query(farthest(series, **labels), "{{backend}}"),
        ],
        overrides=LOOK,
        limits=limits,
        marks=marks,
        legend="list",
        no_value=no_value,
    )


def odd_one(worst: Recorded, figure: Recorded, **labels: str) -> str:
    """The figure of the fleet whose backends differ most, under the name of its odd one out, chosen or not."""
    told = f"{select(worst, **_WHOLE, **labels)} * 0 + {ON_FLEET} group_left () {select(figure, **labels)}"
    return f"topk(1, {told} and {ON_FLEET} {select(rc.FLEET_MEMBER)})"


def slowest(id_: int, title: str) -> Panel:
    """The slowest backend by name, chosen or not, and how far it is from the fastest of its fleet."""
    return c.stat(
        id_,
        title,
        "The slowest backend, and how many times as long as at the fastest of its fleet its requests take in the mean; "
        f"of several fleets, the most uneven one. {OF_FLEET} "
        f"{reads(rc.FLEET_SLOWEST, rc.FLEET_SKEW, rc.FLEET_MEMBER)}",
        TIMES,
        Query(odd_one(rc.FLEET_SLOWEST, rc.FLEET_SKEW), "{{backend}}", instant=True),
        thresholds=steps((None, NEUTRAL), (1, GOOD), (th.SKEW.value, BAD)),
        named=True,
        decimals=2,
        no_value=f"unknown: {NO_PAIR}",
    )


def _middle(value: str) -> str:
    return by("quantile", f"0.5, {value}", lb.FLEET)


def _mean(selector: str) -> str:
    return f"avg_over_time({selector}{AT_END})"


def _last(selector: str) -> str:
    return f"last_over_time({selector}{AT_END})"
