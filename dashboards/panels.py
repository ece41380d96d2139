"""The panel vocabulary of the boards, and the only module that knows grafanalib.

grafanalib 0.7.1 writes what Grafana understood years ago: a hundred points per graph, means where the last value is
meant, thresholds that begin at the text "null", options that today's panels do not read. The classes here say what a
current Grafana reads, and `dashboards.cleaning` takes out what it no longer does.

Long, because grafanalib has this one door.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Final

import attrs
import grafanalib.core as g
from grafanalib._gen import DashboardEncoder

from dashboards.cleaning import clean
from dashboards.fields import NEUTRAL, VERMILION, Column, Json, Query, column_override, steps

SCHEMA_VERSION: Final = 41
COLUMNS: Final = 24
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
TAG: Final = "tidegauge"
NOTHING: Final = "nothing finished in the window"


@attrs.frozen
class Row:
    """A titled stripe of panels, each with its width in grid columns; all have the same height."""

    title: str
    height: int
    panels: tuple[tuple[Any, int], ...]


class _Target(g.Target):  # type: ignore[misc]  # grafanalib has no types
    """A Prometheus target without the Graphite and Grafana 4 fields."""

    def to_json_data(self) -> Json:
        return {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "expr": self.expr,
            "format": self.format,
            "instant": self.instant,
            "range": not self.instant,
            "legendFormat": self.legendFormat,
            "refId": self.refId,
        }


class _Variable(g.Template):  # type: ignore[misc]  # grafanalib has no types
    """A variable whose All is `$__all` and whose empty default is left to Grafana."""

    def to_json_data(self) -> Json:
        out: Json = super().to_json_data()
        if self.includeAll:
            all_ = ("All", "$__all")
            text, value = ([part] if self.multi else part for part in all_)
            out["current"] = {"selected": True, "text": text, "value": value}
        elif self.default is None:
            out["current"] = {}
        return out


@attrs.define
class _Panel(g.Panel):  # type: ignore[misc]  # grafanalib has no types
    """Any current panel type, with options and field configuration as today's Grafana spells them."""

    kind: str = ""
    options: Json = attrs.field(factory=dict)
    defaults: Json = attrs.field(factory=dict)
    overrides: list[Json] = attrs.field(factory=list)

    def to_json_data(self) -> Json:
        config = {"defaults": self.defaults, "overrides": self.overrides}
        out: Json = self.panel_json({"type": self.kind, "options": self.options})
        return {**out, "fieldConfig": config}


def _targets(queries: Iterable[Query], format_: str = "time_series") -> list[Any]:
    return [
        _Target(expr=query.expr, legendFormat=query.legend, instant=query.instant, refId=letter, format=format_)
        for query, letter in zip(queries, ascii_uppercase, strict=False)
    ]


def _panel(kind: str, id_: int, title: str, description: str, **rest: Any) -> Any:
    make: Any = _Panel
    return make(
        kind=kind, id=id_, title=title, description=description, dataSource=DATASOURCE, maxDataPoints=None, **rest
    )


def graph(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    stack: str = "none",
    overrides: Sequence[Json] = (),
    limits: tuple[float | None, float | None] = (0, None),
    marks: Json | None = None,
    no_value: str = NOTHING,
) -> Any:
    """Lines over time; `stack` is none, normal or percent; `marks` are thresholds drawn as dashed lines."""
    custom = {
        "drawStyle": "line",
        "lineWidth": 1 if stack != "none" else 2,
        "fillOpacity": 70 if stack != "none" else 5,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": stack, "group": "A"},
        "thresholdsStyle": {"mode": "dashed" if marks else "off"},
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
    }
    options = {
        "legend": {"showLegend": True, "displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return _panel(
        "timeseries",
        id_,
        title,
        description,
        targets=_targets(queries),
        options=options,
        defaults=defaults,
        overrides=list(overrides),
    )


_LAST: Final[Json] = {"calcs": ["lastNotNull"], "fields": "", "values": False}


def stat(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    thresholds: Json | None = None,
    mappings: Sequence[Json] = (),
    named: bool = False,
    decimals: int | None = None,
    no_value: str = NOTHING,
) -> Any:
    """The last value, large; `named` shows the series' name with it."""
    defaults = {
        "unit": unit,
        "noValue": no_value,
        "mappings": list(mappings),
        "color": {"mode": "thresholds"},
        "thresholds": thresholds or steps((None, NEUTRAL)),
        **({} if decimals is None else {"decimals": decimals}),
    }
    options = {
        "reduceOptions": _LAST,
        "textMode": "value_and_name" if named else "value",
        "colorMode": "value",
        "graphMode": "none",
        "justifyMode": "center",
        "orientation": "auto",
    }
    return _panel("stat", id_, title, description, targets=_targets([query]), options=options, defaults=defaults)


def bars(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int,
    title: str,
    description: str,
    unit: str,
    queries: Sequence[Query],
    *,
    overrides: Sequence[Json] = (),
    limits: tuple[float, float] = (0, 1),
    no_value: str = NOTHING,
) -> Any:
    """One horizontal bar per series, by its last value."""
    defaults = {
        "unit": unit,
        "noValue": no_value,
        "min": limits[0],
        "max": limits[1],
        "color": {"mode": "palette-classic"},
    }
    options = {
        "reduceOptions": _LAST,
        "displayMode": "basic",
        "orientation": "horizontal",
        "showUnfilled": True,
        "valueMode": "color",
        "namePlacement": "left",
        "sizing": "auto",
        "text": {"titleSize": 14, "valueSize": 20},
    }
    return _panel(
        "bargauge",
        id_,
        title,
        description,
        targets=_targets(queries),
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
    no_value: str = NOTHING,
) -> Any:
    """One row per combination of the `keys` labels, one column per query; sorted by the first of them."""
    values = {f"Value #{letter}": column for letter, column in zip(ascii_uppercase, columns, strict=False)}
    order = {name: index for index, name in enumerate((*keys, *values))}
    organise = {
        "id": "organize",
        "options": {
            "excludeByName": {"Time": True},
            "indexByName": order,
            "renameByName": {name: column.title for name, column in values.items()},
        },
    }
    custom = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "minWidth": 80}
    defaults = {"noValue": no_value, "custom": custom, "thresholds": steps((None, "transparent"))}
    return _panel(
        "table",
        id_,
        title,
        description,
        targets=_targets([Query(column.expr, instant=True) for column in columns], "table"),
        transformations=[{"id": "merge", "options": {}}, organise],
        options={"showHeader": True, "cellHeight": "sm", "sortBy": [{"displayName": keys[0], "desc": False}]},
        defaults=defaults,
        overrides=[column_override(column) for column in columns],
    )


def text(id_: int, title: str, description: str, content: str) -> Any:
    """A note in Markdown."""
    return _panel("text", id_, title, description, options={"mode": "markdown", "content": content})


def datasource() -> Any:
    """The variable that every panel takes its data source from."""
    return _Variable(name="datasource", label="Data source", type="datasource", query="prometheus")


def label_variable(name: str, label: str, series: str, constraint: str = "") -> Any:
    """A variable over the values that a label of a series has; any number of them, all by default."""
    selector = f"{series}{{{constraint}}}" if constraint else series
    return _Variable(
        name=name,
        label=label,
        query=f"label_values({selector}, {name})",
        dataSource=DATASOURCE,
        refresh=g.REFRESH_ON_TIME_RANGE_CHANGE,
        multi=True,
        includeAll=True,
        allValue=".*",
    )


def choice(name: str, label: str, values: Mapping[str, str], default: str) -> Any:
    """A variable with fixed values, given as text to value."""
    options = [{"text": text_, "value": value, "selected": value == default} for text_, value in values.items()]
    return _Variable(
        name=name,
        label=label,
        type="custom",
        query=", ".join(f"{text_} : {value}" for text_, value in values.items()),
        options=options,
        default=default,
        refresh=0,
        sort=0,
    )


def alert_marks(expr: str) -> Any:
    """Firing alerts as marks over every graph."""
    return {
        "name": "Alerts",
        "datasource": DATASOURCE,
        "enable": True,
        "expr": expr,
        "iconColor": VERMILION,
        "step": "15s",
        "titleFormat": "{{alertname}}",
        "textFormat": "{{backend}} {{fleet}} {{where}}",
    }


def _placed(rows: Sequence[Row]) -> list[Any]:
    """Lay the rows out on the grid; row headings get ids above 1000, so that panels can be added between them."""
    out, top = [], 0
    for number, row in enumerate(rows):
        heading = g.RowPanel(title=row.title, id=1001 + number, gridPos=g.GridPos(h=1, w=COLUMNS, x=0, y=top))
        out.append(heading)
        left, top = 0, top + 1
        for panel, width in row.panels:
            if left + width > COLUMNS:
                left, top = 0, top + row.height
            out.append(attrs.evolve(panel, gridPos=g.GridPos(h=row.height, w=width, x=left, y=top)))
            left += width
        top += row.height
    return out


def dashboard(  # noqa: PLR0913  # a board has this many independent properties
    *, uid: str, title: str, description: str, variables: Sequence[Any], rows: Sequence[Row], annotations: Sequence[Any]
) -> Json:
    """The board as Grafana's JSON, ready to be provisioned or imported."""
    board = g.Dashboard(
        uid=uid,
        title=title,
        description=description,
        tags=[TAG, "vllm"],
        editable=False,
        schemaVersion=SCHEMA_VERSION,
        graphTooltip=g.GRAPH_TOOLTIP_MODE_SHARED_CROSSHAIR,
        timezone="browser",
        refresh="10s",
        time=g.Time("now-1h", "now"),
        links=[
            g.DashboardLink(
                title="tidegauge", type="dashboards", tags=[TAG], asDropdown=True, includeVars=True, keepTime=True
            )
        ],
        annotations=g.Annotations(list(annotations)),
        templating=g.Templating(list(variables)),
        panels=_placed(rows),
    )
    return clean(json.loads(json.dumps(board.to_json_data(), cls=DashboardEncoder)))
