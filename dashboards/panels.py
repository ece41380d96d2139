"""The door to grafanalib: targets, panels, variables, rows and boards as a current Grafana reads them.

grafanalib 0.7.1 writes what Grafana understood years ago: a hundred points per graph, means where the last value is
meant, thresholds that begin at the text "null", options that today's panels do not read. The classes here say what a
current Grafana reads, and `dashboards.cleaning` takes out what it no longer does. No other module imports grafanalib.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from string import ascii_uppercase
from typing import Any, Final

import attrs
import grafanalib.core as g
from grafanalib._gen import DashboardEncoder

from dashboards.cleaning import clean
from dashboards.fields import Json, Query

SCHEMA_VERSION: Final = 41
"""No Grafana from 10.4 on finds anything to migrate."""
COLUMNS: Final = 24
DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
TAG: Final = "tidegauge"
_FIRST_HEADING: Final = 1001
"""Row headings have ids from here on, so that panels can be added between them."""


@attrs.frozen
class Row:
    """A titled stripe of panels, each with its width in grid columns; all have the same height in grid rows.

    A folded one is closed until it is asked for: its panels query nothing before.
    """

    title: str
    height: int
    panels: tuple[tuple[Any, int], ...]
    folded: bool = False


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
        out["current"].pop("tags", None)
        if self.hide == g.HIDE_VARIABLE:
            out["skipUrlSync"] = True
        if self.type == "adhoc":
            out["filters"] = []
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


def targets(queries: Iterable[Query], format_: str = "time_series") -> list[Any]:
    """The queries of one panel, lettered in order."""
    return [
        _Target(expr=query.expr, legendFormat=query.legend, instant=query.instant, refId=letter, format=format_)
        for query, letter in zip(queries, ascii_uppercase, strict=False)
    ]


def panel(kind: str, id_: int, title: str, description: str, **rest: Any) -> Any:
    """A panel of Grafana's type *kind*; `options`, `defaults`, `overrides` and `targets` go through."""
    make: Any = _Panel
    return make(
        kind=kind, id=id_, title=title, description=description, dataSource=DATASOURCE, maxDataPoints=None, **rest
    )


def repeated(one: Any, variable: str) -> Any:
    """The panel once per chosen value of the variable, two in a line; it needs a line of its own."""
    return attrs.evolve(one, repeat=g.Repeat("h", variable.removeprefix("$"), 2))


def sampled(one: Any, moments: int) -> Any:
    """The panel with `$__interval` so long that the time range has at most that many of them."""
    return attrs.evolve(one, maxDataPoints=moments)


def datasource() -> Any:
    """The variable that every panel takes its data source from."""
    return _Variable(name="datasource", label="Data source", type="datasource", query="prometheus")


def label_variable(name: str, label: str, query: str) -> Any:
    """A variable over what a `label_values` query gives; any number of them, all by default."""
    return _looked_up(name, query, label=label, allValue=".*")


def resolved(name: str, query: str) -> Any:
    """All that a `label_values` query gives, one by one: what other variables leave. Its readers do not see it."""
    return _looked_up(name, query, hide=g.HIDE_VARIABLE)


def _looked_up(name: str, query: str, **rest: Any) -> Any:
    return _Variable(
        name=name,
        query=query,
        dataSource=DATASOURCE,
        refresh=g.REFRESH_ON_TIME_RANGE_CHANGE,
        multi=True,
        includeAll=True,
        **rest,
    )


def filters(name: str, label: str) -> Any:
    """Matchers of the reader's own, which Grafana puts into every selector of every query."""
    return _Variable(name=name, label=label, query=None, type="adhoc", dataSource=DATASOURCE, refresh=0, sort=0)


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


def constant(name: str, value: str) -> Any:
    """A value that whoever installs the board may set, and that its readers do not see."""
    return _Variable(name=name, type="constant", query=value, default=value, hide=g.HIDE_VARIABLE, refresh=0, sort=0)


def annotation(name: str, expr: str, colour: str, title: str, text: str) -> Json:
    """Marks over every graph where the expression has a value."""
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "expr": expr,
        "iconColor": colour,
        "step": "15s",
        "titleFormat": title,
        "textFormat": text,
    }


def siblings(title: str) -> Any:
    """A menu of all boards, which keeps variables and time."""
    return g.DashboardLink(title=title, type="dashboards", tags=[TAG], asDropdown=True, includeVars=True, keepTime=True)


def link(title: str, url: str, tooltip: str, *, keep: bool) -> Any:
    """A link at the board's top; *keep*: with variables and time, in the same tab."""
    return g.DashboardLink(
        title=title,
        uri=url,
        type="link",
        tags=[],
        tooltip=tooltip,
        includeVars=keep,
        keepTime=keep,
        targetBlank=not keep,
        icon="dashboard" if keep else "doc",
    )


def _laid(row: Row, top: int) -> tuple[list[Any], int]:
    """The row's panels on the grid from *top* on, and where the next row may begin."""
    out, left = [], 0
    for one, width in row.panels:
        if left + width > COLUMNS:
            left, top = 0, top + row.height
        out.append(attrs.evolve(one, gridPos=g.GridPos(h=row.height, w=width, x=left, y=top)))
        left += width
    return out, top + row.height


def _placed(rows: Sequence[Row]) -> list[Any]:
    out, top = [], 0
    for number, row in enumerate(rows):
        panels, below = _laid(row, top + 1)
        out.append(
            g.RowPanel(
                title=row.title,
                id=_FIRST_HEADING + number,
                gridPos=g.GridPos(h=1, w=COLUMNS, x=0, y=top),
                collapsed=row.folded,
                panels=panels if row.folded else [],
            )
        )
        if not row.folded:
            out += panels
        top = top + 1 if row.folded else below
    return out


def dashboard(  # noqa: PLR0913  # a board has this many independent properties
    *,
    uid: str,
    title: str,
    description: str,
    variables: Sequence[Any],
    rows: Sequence[Row],
    annotations: Sequence[Any],
    links: Sequence[Any],
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
        links=list(links),
        annotations=g.Annotations(list(annotations)),
        templating=g.Templating(list(variables)),
        panels=_placed(rows),
    )
    return clean(json.loads(json.dumps(board.to_json_data(), cls=DashboardEncoder)))
