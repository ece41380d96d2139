"""What a panel says about its values: queries, colours, thresholds, overrides, as plain values and Grafana's JSON."""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import attrs

Json: TypeAlias = dict[str, Any]
Panel: TypeAlias = Any
"""A panel of grafanalib, which has no types."""

# Okabe and Ito's palette: told apart with every kind of colour blindness. A stage keeps its colour on every board.
ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE, GREY = (
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
    "#999999",
)
STAGE_COLOURS: Final = {"client": PURPLE, "queue": VERMILION, "prefill": GREEN, "decode": BLUE, "other": GREY}
CAUSE_COLOURS: Final = {
    "caller": PURPLE,
    "deferred": SKY,
    "kv_cache": ORANGE,
    "sequence_slots": VERMILION,
    "prefill_budget": GREEN,
    "unknown": GREY,
}
GOOD, WARN, BAD, NEUTRAL = BLUE, ORANGE, VERMILION, GREY
PLAIN: Final = "transparent"
"""Of a cell that says nothing but its value."""
TEXT: Final = "text"
"""Of a number that says nothing but itself: Grafana's name for black or white, whichever the theme writes in."""
TIMES: Final = "suffix:x"
PER_MINUTE: Final = "suffix:/min"


@attrs.frozen
class Query:
    """One PromQL query of a panel; `instant` queries give one value per series, as tables need."""

    expr: str
    legend: str = "__auto"
    instant: bool = False


@attrs.frozen
class Column:
    """A column of a table: an instant query that gives one value per row, its heading (none: not shown) and unit.

    `bar` draws the value as a bar from 0 as well; without `decimals` there are three significant digits.
    """

    title: str
    expr: str
    unit: str
    steps: tuple[tuple[float | None, str], ...] = ()
    mappings: tuple[Json, ...] = ()
    bar: bool = False
    decimals: int | None = None


KNOWN: Final = ((None, NEUTRAL), (-1e12, TEXT))
"""Steps of a figure that is neither good nor bad: in the colour of the text, and grey only where it is not known."""


DASHES: Final[Json] = {"fill": "dash", "dash": [10, 8]}


def steps(*pairs: tuple[float | None, str]) -> Json:
    """Absolute thresholds: the first pair is the base, its bound None."""
    return {"mode": "absolute", "steps": [{"value": bound, "color": colour} for bound, colour in pairs]}


def marks(*pairs: tuple[float, str]) -> Json:
    """Thresholds to draw as dashed lines: nothing below the first."""
    return steps((None, PLAIN), *pairs)


def past(bound: float, colour: str) -> tuple[tuple[float | None, str], ...]:
    """Steps of a column whose cells are painted from the bound on."""
    return ((None, PLAIN), (bound, colour))


def counted(colour: str) -> Json:
    """Thresholds of a number of faults: none is good, any has the colour, not known is grey."""
    return steps((None, NEUTRAL), (0, GOOD), (1, colour))


def fixed(colour: str) -> Json:
    """A colour that does not depend on the value."""
    return {"mode": "fixed", "fixedColor": colour}


def override(field: str, **properties: Any) -> Json:
    """Field configuration for the series of that name; a keyword's double underscore is a dot in the property's id."""
    return {
        "matcher": {"id": "byName", "options": field},
        "properties": [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()],
    }


def override_all(pattern: str, **properties: Any) -> Json:
    """The same for every series whose name the regular expression finds."""
    return {**override("", **properties), "matcher": {"id": "byRegexp", "options": f"/{pattern}/"}}


def painted(pattern: str, colour: str) -> Json:
    """One fixed colour for every series whose name the regular expression finds."""
    return override_all(pattern, color=fixed(colour))


def dashed(pattern: str, colour: str) -> Json:
    """Series that say where something ought to be rather than where it is: targets, ceilings, objectives."""
    return override_all(
        pattern,
        color=fixed(colour),
        custom__lineStyle=DASHES,
        custom__fillOpacity=0,
    )


def coloured(colours: Mapping[str, str]) -> list[Json]:
    """One fixed colour per series name."""
    return [override(name, color=fixed(colour)) for name, colour in colours.items()]


def state(value: float, text: str, colour: str) -> Json:
    """What to show instead of the number."""
    return {"type": "value", "options": {f"{value:g}": {"text": text, "color": colour}}}


def between(low: float, high: float, text: str, colour: str) -> Json:
    """What to show instead of any number from *low* to *high*."""
    return {"type": "range", "options": {"from": low, "to": high, "result": {"text": text, "color": colour}}}


UNFILLED: Final = override_all(".", custom__fillOpacity=0)
"""Fills of ten lines that lie close together make one dark area."""


def data_link(title: str, url: str) -> Json:
    """Where a cell leads; `${__value.text}` and `${__data.fields.Backend}` in the address are the row's own."""
    return {"title": title, "url": url, "targetBlank": "://" in url or url.startswith("${runbooks}")}


def column_override(column: Column) -> Json:
    properties: Json = {"unit": column.unit, "noValue": "-"}
    if column.decimals is not None:
        properties["decimals"] = column.decimals
    if column.steps:
        properties["thresholds"] = steps(*column.steps)
    if column.steps or column.mappings:
        properties["custom__cellOptions"] = {"type": "color-background", "mode": "basic"}
    if column.bar:
        bar = {"type": "gauge", "mode": "basic", "valueDisplayMode": "text"}
        properties |= {"min": 0, "thresholds": steps((None, BLUE)), "custom__cellOptions": bar}
    if column.mappings:
        properties["mappings"] = list(column.mappings)
    return override(column.title, **properties)
