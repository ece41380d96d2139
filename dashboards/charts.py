"""The vocabulary of the boards: graph, heatmap, timeline, stat, table and text, with one look on all of them."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Final, Literal

from dashboards.absent import NOTHING, UNRECORDED
from dashboards.fields import KNOWN, NEUTRAL, Column, Json, Panel, Query, column_override, fixed, override, steps
from dashboards.panels import panel, targets
from tidegauge.catalogue import labels as lb

HEADINGS: Final = {
    lb.BACKEND: "Backend",
    lb.MODEL_NAME: "Model",
    lb.FLEET: "Fleet",
    lb.SLI: "SLI",
    "alertname": "Alert",
}
"""How tables head the columns of labels that are subjects; any other label is its own heading, in words."""
_WIDTHS: Final = {"Backend": 150, "Model": 140}
"""Room for an address and for a model's name, wherever there is a column of them."""
_LAST: Final[Json] = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_SCALES: Final[dict[str, Json]] = {
    "linear": {"type": "linear"},
    "log": {"type": "log", "log": 10},
    "log2": {"type": "log", "log": 2},
}
_LIST: Final[Json] = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []}
_TABLE: Final[Json] = {**_LIST, "displayMode": "table", "calcs": ["lastNotNull", "max"]}
_LEGENDS: Final[dict[str, Json]] = {
    "table": _TABLE,
    "side": {**_TABLE, "placement": "right"},
    "list": _LIST,
    "none": {**_LIST, "showLegend": False},
}


def graph(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    stack: Literal["none", "normal", "percent"] = "none",
    overrides: Sequence[Json] = (),
    limits: tuple[float | None, float | None] = (0, None),
    marks: Json | None = None,
    scale: Literal["linear", "log", "log2"] = "linear",
    stepped: bool = False,
    legend: Literal["table", "side", "list", "none"] = "table",
    decimals: int | None = None,
    no_value: str = UNRECORDED,
) -> Panel:
    """Lines over time; `stack` is none, normal or percent; `marks` are thresholds drawn as dashed lines.

    On a log scale give no lower limit of 0. `stepped` is for whole numbers that change at once, such as a ceiling. A
    `table` legend shows the last and the largest value and suits a few lines, `side` is one beside a wide graph, a
    `list` suits many, `none` a hundred.
    """
    custom = {
        "drawStyle": "line",
        "lineInterpolation": "stepAfter" if stepped else "linear",
        "lineWidth": 1 if stack != "none" else 2,
        "fillOpacity": 70 if stack != "none" else 5,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": stack, "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if marks else "off"},
        "scaleDistribution": _SCALES[scale],
    }
    low, high = limits
    defaults = {
        "unit": unit,
        "custom": custom,
        "noValue": no_value,
        "color": {"mode": "palette-classic"},
        **({} if low is None else {"min": low}),
        **({} if high is None else {"max": high}),
        **({"thresholds": marks} if marks else {}),
        **({} if decimals is None else {"decimals": decimals}),
    }
    options = {
        "legend": _LEGENDS[legend],
        "tooltip": {"mode": "multi", "sort": "desc", "maxHeight": 400},
    }
    return panel(
        "timeseries",
        id_,
        title,
        description,
        targets=targets(queries),
        options=options,
        defaults=defaults,
        overrides=list(overrides),
    )


def heatmap(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int, title: str, description: str, unit: str, query: Query, *, no_value: str = NOTHING
) -> Panel:
    """A histogram over time, from a query that gives the increase of each bucket by `le`: the server's own buckets."""
    options = {
        "calculate": False,
        "yAxis": {"unit": unit, "axisPlacement": "left", "reverse": False},
        "rowsFrame": {"layout": "auto", "value": "Requests"},
        "color": {
            "mode": "scheme",
            "scheme": "Oranges",
            "exponent": 0.5,
            "fill": "dark-orange",
            "steps": 64,
            "reverse": False,
            "scale": "exponential",
        },
        "cellGap": 1,
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": True},
        "showValue": "never",
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
    }
    defaults = {"noValue": no_value, "custom": {"scaleDistribution": {"type": "linear"}}}
    return panel(
        "heatmap",
        id_,
        title,
        description,
        targets=targets([Query(query.expr, "{{le}}")], "heatmap"),
        options=options,
        defaults=defaults,
    )


def timeline(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    queries: Sequence[Query],
    mappings: Sequence[Json],
    *,
    unit: str = "none",
    no_value: str = UNRECORDED,
) -> Panel:
    """One bar per series whose colour and text say the state that its number stands for.

    Colours by thresholds would have Grafana draw the threshold that a number is past, and leave the mappings out.
    """
    defaults = {
        "unit": unit,
        "noValue": no_value,
        "mappings": list(mappings),
        "color": fixed(NEUTRAL),
        "custom": {"lineWidth": 0, "fillOpacity": 80},
    }
    options = {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.85,
        "perPage": 20,
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    return panel(
        "state-timeline", id_, title, description, targets=targets(queries), options=options, defaults=defaults
    )


def stat(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    thresholds: Json | None = None,
    mappings: Sequence[Json] = (),
    overrides: Sequence[Json] = (),
    named: bool = False,
    decimals: int | None = None,
    colour: Literal["value", "background"] = "value",
    no_value: str = UNRECORDED,
) -> Panel:
    """The last value of each query, large; `named` shows the series' name with it, `colour` what the thresholds paint.

    What is painted when there is no value is the thresholds' base: give it no colour that means good.
    """
    defaults = {
        "unit": unit,
        "noValue": no_value,
        "mappings": list(mappings),
        "color": {"mode": "thresholds"},
        "thresholds": thresholds or steps(*KNOWN),
        **({} if decimals is None else {"decimals": decimals}),
    }
    options = {
        "reduceOptions": _LAST,
        "textMode": "value_and_name" if named else "value",
        "colorMode": colour,
        "graphMode": "none",
        "justifyMode": "center",
        "orientation": "auto",
    }
    return panel(
        "stat",
        id_,
        title,
        description,
        targets=targets(queries),
        options=options,
        defaults=defaults,
        overrides=list(overrides),
    )


def table(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    keys: Sequence[str],
    columns: Sequence[Column],
    *,
    sort: tuple[str, bool] | None = None,
    order: str | None = None,
    links: Mapping[str, Json] | None = None,
    widths: Mapping[str, int] | None = None,
    no_value: str = UNRECORDED,
) -> Panel:
    """One row per combination of the `keys` labels, one column per query; a column without a title is not shown.

    A query that gives nothing has its column all the same: Grafana answers it with an empty frame, and names values by
    how many queries a panel has, not by how many gave something.

    `sort` is a heading and whether the largest comes first, by default the first key. `order` is a query instead, whose
    values, least first, put the rows in order; what it has a value for has a row, though no column fills it. `links`
    leads from the cells of a heading (`fields.data_link`); `widths` in pixels are for tables of so many columns that
    equal ones would clip a heading's cells.
    """
    columns = [*columns, *([] if order is None else [Column("", order, "none")])]
    values = dict(zip(_value_fields(len(columns)), columns, strict=True))
    places = {name: index for index, name in enumerate((*keys, *values))}
    headings = {name: HEADINGS.get(name, name.replace("_", " ")) for name in keys}
    organise = {
        "id": "organize",
        "options": {
            "excludeByName": {"Time": True, **{name: True for name, one in values.items() if not one.title}},
            "indexByName": places,
            "renameByName": {**headings, **{name: column.title for name, column in values.items() if column.title}},
        },
    }
    wide = {**{name: width for name, width in _WIDTHS.items() if name in headings.values()}, **(widths or {})}
    heading, descending = sort or (headings[keys[0]], False)
    ordered = {"id": "sortBy", "options": {"sort": [{"field": list(values)[-1]}]}}
    by_heading = [{"displayName": heading, "desc": descending}]
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "minWidth": 80}
    defaults = {"noValue": no_value, "custom": custom, "thresholds": steps((None, "transparent"))}
    return panel(
        "table",
        id_,
        title,
        description,
        targets=targets([Query(column.expr, instant=True) for column in columns], "table"),
        transformations=[{"id": "merge", "options": {}}, *([] if order is None else [ordered]), organise],
        options={"showHeader": True, "cellHeight": "sm", "sortBy": by_heading if order is None else []},
        defaults=defaults,
        overrides=[
            # A cell without a label is no empty table.
            {"matcher": {"id": "byType", "options": "string"}, "properties": [{"id": "noValue", "value": "-"}]},
            *(column_override(column) for column in columns if column.title),
            *(override(name, links=[to]) for name, to in (links or {}).items()),
            *(override(name, custom__width=width) for name, width in wide.items()),
        ],
    )


def _value_fields(count: int) -> list[str]:
    """What Grafana calls the values of that many queries."""
    return ["Value"] if count == 1 else [f"Value #{letter}" for letter in ascii_uppercase[:count]]


def text(id_: int, title: str, description: str, content: str) -> Panel:
    """A note in Markdown."""
    return panel("text", id_, title, description, options={"mode": "markdown", "content": content})
