"""The boards' JSON is what TypeScript types of the oldest and the newest Grafana allow; what they do not is found."""

import copy

import pytest

from dashboards import charts as c
from dashboards import panels as p
from dashboards.fields import BAD, Column, Query, coloured, steps
from tests import grafana_types, typescript
from tests.boards import GENERATED, panels_of

OLDEST, NEWEST = typescript.GRAFANAS

PASSED_OVER = {
    ("state-timeline", "perPage"): "pages came with 11.2; before, all rows are drawn at once",
}
"""What the oldest Grafana does not know and does without: panel's type and its option to what is lost."""


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
    "unknown-matcher": (put("byname", "graph", "fieldConfig", "overrides", 0, "matcher", "id"), '"byname"'),
    "unknown-transformation": (put("organise", "table", "transformations", 1, "id"), '"organise"'),
    "unknown-panel": (put("graph", "timeline", "type"), "'graph'"),
    "unknown-query-format": (put("wide", "stat", "targets", 0, "format"), '"wide"'),
    "variable": (put("datasorce", "templating", "list", 0, "type"), '"datasorce"'),
    "annotation": (put("yes", "annotations", "list", 0, "enable"), "'string'"),
}

OF_ONE = {
    "option-of-many-panels": (NEWEST, put(5, "graph", "options", "legend", "limit"), '"limit"'),
    "kind-of-cell": (
        NEWEST,
        put("pill", "table", "fieldConfig", "defaults", "custom", "cellOptions", "type"),
        '"pill"',
    ),
    "key-of-a-variable": (NEWEST, put("csv", "templating", "list", 0, "valuesFormat"), '"valuesFormat"'),
    "option-that-went": (OLDEST, put({"show": True}, "table", "options", "footer"), '"footer"'),
}
"""What one Grafana knows and the other does not: the one, the change, and how the other names it."""


def changed(change):
    """The board of one of each with the change, and without the panels that it leaves as they are."""
    board = copy.deepcopy(made())
    change(board)
    return {**board, "panels": [panel for panel in board["panels"] if panel not in made()["panels"]]}


def without(board, options):
    """The board less the options of its panels that are in the list."""
    out = copy.deepcopy(board)
    for panel in panels_of(out):
        panel["options"] = {key: one for key, one in panel["options"].items() if (panel["type"], key) not in options}
    return out


def all_that_have(kind, option):
    """A board of all panels with the option, which have nothing else that is passed over."""
    rest = PASSED_OVER.keys() - {(kind, option)}
    found = [panel for board in GENERATED.values() for panel in panels_of(without(board, rest))]
    return {**made(), "panels": [panel for panel in found if panel["type"] == kind and option in panel["options"]]}


@pytest.fixture(scope="module")
def complaints():
    """What TypeScript says of the boards and of the wrong ones, by each Grafana's types, in one run of the compiler."""
    wrong = {f"wrong-{name}": changed(change) for name, (change, _) in WRONG.items()}
    ones = {f"of-one-{name}": changed(change) for name, (_, change, _) in OF_ONE.items()}
    boards = {**GENERATED, "one-of-each": made(), **wrong, **ones}
    needed = {f"needed-{kind}-{option}": all_that_have(kind, option) for kind, option in PASSED_OVER}
    oldest = {name: without(board, PASSED_OVER) for name, board in boards.items()}
    return grafana_types.complaints({OLDEST: {**oldest, **needed}, NEWEST: boards})


@pytest.mark.parametrize("grafana", typescript.GRAFANAS)
@pytest.mark.parametrize("name", [*GENERATED, "one-of-each"])
def test_board_is_what_grafana_reads(complaints, grafana, name):
    """No key, no type and no enum value that the Grafana's types do not know, but for what is passed over."""
    assert [] == complaints[grafana][name]


@pytest.mark.parametrize("grafana", typescript.GRAFANAS)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_board_is_found(complaints, grafana, name):
    """One fault alone is told, in words that name it."""
    (told,) = complaints[grafana][f"wrong-{name}"]

    assert WRONG[name][1] in told


@pytest.mark.parametrize("name", OF_ONE)
def test_what_one_grafana_knows_is_found_by_the_other(complaints, name):
    """Each Grafana is held to its own types, those that many panels share too."""
    knows, _, words = OF_ONE[name]
    (other,) = {*typescript.GRAFANAS} - {knows}
    (told,) = complaints[other][f"of-one-{name}"]

    assert [] == complaints[knows][f"of-one-{name}"]
    assert words in told


@pytest.mark.parametrize(("kind", "option"), PASSED_OVER)
def test_what_is_passed_over_is_used_and_unknown(complaints, kind, option):
    """An entry is needed only while a panel has the option and the oldest Grafana does not know it."""
    told = complaints[OLDEST][f"needed-{kind}-{option}"]

    assert told
    assert all(f'"{option}"' in one for one in told)
