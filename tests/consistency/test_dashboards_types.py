"""The boards' JSON is what Grafana's own TypeScript types allow, and what they do not allow is found."""

import copy

import pytest

from dashboards import charts as c
from dashboards import panels as p
from dashboards.fields import BAD, Column, Query, coloured, steps
from tests import grafana_types
from tests.boards import GENERATED, panels_of


def made():
    """A board with one panel of each kind."""
    kinds = (
        c.graph(
            1, "graph", "d", "s", [Query("up")], overrides=coloured({"a": BAD}), marks=steps((None, BAD), (1, BAD))
        ),
        c.stat(2, "stat", "d", "s", Query("up")),
        c.table(3, "table", "d", ("job",), [Column("up", "up", "s", ((None, BAD),))]),
        c.heatmap(4, "heatmap", "d", "s", Query("up")),
        c.timeline(5, "timeline", "d", [Query("up")], []),
        c.text(7, "text", "d", "x"),
    )
    rows = (p.Row("row", 4, tuple((one, 8) for one in kinds)),)
    mark = p.annotation("mark", "up", BAD, "t", "t")
    return p.dashboard(
        uid="u", title="t", description="d", variables=[p.datasource()], rows=rows, annotations=[mark], links=[]
    )


def put(value, *path):
    """A change: the value at a path of a panel, by its title, or of the board."""

    def change(board):
        panels = {panel["title"]: panel for panel in panels_of(board)}
        *way, last = path
        place = panels.get(way[0] if way else last, board)
        for key in way[1:] if place is not board else way:
            place = place[key]
        place[last] = value

    return change


WRONG = {
    "enum": (put("botom", "graph", "options", "legend", "placement"), '"botom"'),
    "enum-of-a-field": (put("stairs", "graph", "fieldConfig", "defaults", "custom", "lineInterpolation"), '"stairs"'),
    "type": (put("null", "graph", "fieldConfig", "defaults", "thresholds", "steps", 0, "value"), "'string'"),
    "type-of-the-board": (put("41", "schemaVersion"), "'string'"),
    "unknown-option": (put(1, "stat", "options", "reduceCalc"), '"reduceCalc"'),
    "unknown-custom": (put("auto", "table", "fieldConfig", "defaults", "custom", "cellMode"), '"cellMode"'),
    "unknown-key": (put({}, "heatmap", "yAxis"), '"yAxis"'),
    "unknown-key-of-the-board": (put("x", "sharedCrosshair"), '"sharedCrosshair"'),
    "unknown-override": (
        put("custom.colour", "graph", "fieldConfig", "overrides", 0, "properties", 0, "id"),
        '"custom.colour"',
    ),
    "value-of-an-override": (
        put([], "graph", "fieldConfig", "overrides", 0, "properties", 0, "value", "mode"),
        "never[]",
    ),
    "unknown-panel": (put("graph", "timeline", "type"), "'graph'"),
    "unknown-query-format": (put("wide", "stat", "targets", 0, "format"), '"wide"'),
    "variable": (put("datasorce", "templating", "list", 0, "type"), '"datasorce"'),
    "annotation": (put("yes", "annotations", "list", 0, "enable"), "'string'"),
}


def changed(change):
    board = copy.deepcopy(made())
    change(board)
    return board


@pytest.fixture(scope="module")
def complaints():
    """What TypeScript says of the boards and of the wrong ones, in one run of the compiler."""
    wrong = {f"wrong-{name}": changed(change) for name, (change, _) in WRONG.items()}
    return grafana_types.complaints({**GENERATED, "one-of-each": made(), **wrong})


@pytest.mark.parametrize("name", [*GENERATED, "one-of-each"])
def test_board_is_what_grafana_reads(complaints, name):
    """No key, no type and no enum value that Grafana's types do not know."""
    assert [] == complaints[name]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_board_is_found(complaints, name):
    """One fault alone is told, in words that name it."""
    (told,) = complaints[f"wrong-{name}"]

    assert WRONG[name][1] in told
