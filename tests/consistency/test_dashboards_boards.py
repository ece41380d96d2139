"""Rules that every board keeps: its queries, its variables, and what a reader may expect of each panel."""

import json
import re

import promql_parser
import pytest

from dashboards.fields import STAGE_COLOURS
from tests.boards import GENERATED, panels_of
from tests.promql import OURS, VLLMS, names, parsed, selectors
from tidegauge.catalogue import places
from tidegauge.catalogue.labels import STAGES

PROMETHEUS = {"up", "ALERTS"}
SCRAPED = {"job", "instance", "pod"}

EVERY_PANEL = [
    pytest.param(panel, id=f"{name}-{panel['id']}") for name, board in GENERATED.items() for panel in panels_of(board)
]
EVERY_QUERY = [
    pytest.param(panel, target["expr"], id=f"{name}-{panel['id']}{target['refId']}")
    for name, board in GENERATED.items()
    for panel in panels_of(board)
    for target in panel.get("targets", [])
]
EVERY_EXPR = [pytest.param(query.values[1], id=query.id) for query in EVERY_QUERY]
DRAWN = [one for one in EVERY_PANEL if one.values[0]["type"] in {"timeseries", "stat", "table"}]
STAGED = [
    one
    for one in DRAWN
    if one.values[0]["type"] != "stat"
    and {target["legendFormat"] for target in one.values[0]["targets"]} == {"{{stage}}"}
]
EVERY_BOARD = [pytest.param(board, id=name) for name, board in GENERATED.items()]


def test_there_are_boards_and_queries_to_check():
    """The rules below hold for something."""
    assert len(EVERY_BOARD) >= 1
    assert len(EVERY_QUERY) > len(EVERY_PANEL) > len(STAGED) > 1


class TestQueries:
    @pytest.mark.parametrize("expr", EVERY_EXPR)
    def test_parses_to_something_that_can_be_drawn(self, expr):
        """Each query is valid PromQL and gives an instant vector."""
        assert not isinstance(parsed(expr), promql_parser.MatrixSelector | promql_parser.StringLiteral)

    @pytest.mark.parametrize("expr", EVERY_EXPR)
    def test_names_known_series_with_their_labels(self, expr):
        """Each series is in the catalogue or vLLM's, and is matched only by labels that it has."""
        found = list(selectors(parsed(expr)))
        assert found
        for selector in found:
            assert selector.name in OURS.keys() | VLLMS | PROMETHEUS
            if selector.name in OURS:
                matched = {matcher.name for matcher in selector.matchers.matchers}
                assert matched <= OURS[selector.name] | SCRAPED

    @pytest.mark.parametrize("expr", EVERY_EXPR)
    def test_no_rate_of_a_sum_alone(self, expr):
        """The rate of a `_sum` is seconds per second, not a latency: it never stands without its `_count`."""
        read = names(expr)
        assert {f"{name.removesuffix('_sum')}_count" for name in read if name.endswith("_sum")} <= read

    @pytest.mark.parametrize(("panel", "expr"), EVERY_QUERY)
    def test_description_names_the_series(self, panel, expr):
        """Whoever doubts a panel finds in its description what it reads."""
        assert names(expr) <= set(re.findall(r"`([^`]+)`", panel["description"]))

    @pytest.mark.parametrize(("panel", "expr"), EVERY_QUERY)
    def test_uses_defined_variables(self, panel, expr):
        """Each variable in a query is defined by every board that shows it."""
        boards = [board for board in GENERATED.values() if panel in panels_of(board)]
        for board in boards:
            defined = {variable["name"] for variable in board["templating"]["list"]}
            assert set(re.findall(r"\$\{?(?!__)(\w+)", expr)) <= defined


class TestPanels:
    @pytest.mark.parametrize("panel", EVERY_PANEL)
    def test_says_what_it_is(self, panel):
        """Each panel has a title and a description that is a sentence."""
        assert panel["title"]
        assert re.match(r"^[A-Z0-9(].*[.]$", panel["description"])

    @pytest.mark.parametrize("panel", DRAWN)
    def test_has_a_unit_and_says_why_it_is_empty(self, panel):
        """Each drawn panel has a unit (tables: per column that is shown) and tells what an empty one means."""
        config = panel["fieldConfig"]
        units = [prop for field in config["overrides"] for prop in field["properties"] if prop["id"] == "unit"]
        left_out = [
            name for step in panel.get("transformations", []) for name in step["options"].get("excludeByName", ())
        ]
        hidden = [name for name in left_out if name.startswith("Value")]
        assert config["defaults"].get("unit") or len(units) == len(panel["targets"]) - len(hidden)
        assert config["defaults"]["noValue"]

    @pytest.mark.parametrize("panel", EVERY_PANEL)
    def test_takes_its_data_source_from_the_variable(self, panel):
        """No panel and no query is tied to one installation."""
        sources = [panel["datasource"], *(target["datasource"] for target in panel.get("targets", []))]
        assert {json.dumps({"type": "prometheus", "uid": "${datasource}"})} == {json.dumps(one) for one in sources}

    @pytest.mark.parametrize("panel", [one for one in EVERY_PANEL if one.values[0]["type"] in {"stat", "table"}])
    def test_a_figure_is_that_of_the_end(self, panel):
        """One of a range would be the last there was: of servers that have long been silent, too."""
        assert {(True, False)} == {(target["instant"], target["range"]) for target in panel["targets"]}

    @pytest.mark.parametrize("panel", STAGED)
    def test_stage_colours_are_fixed(self, panel):
        """Where series are stages, every stage has its own colour, on every board the same."""
        colours = {
            field["matcher"]["options"]: field["properties"][0]["value"]["fixedColor"]
            for field in panel["fieldConfig"]["overrides"]
        }
        assert STAGE_COLOURS == colours


class TestBoards:
    @pytest.mark.parametrize("board", EVERY_BOARD)
    def test_every_variable_is_used(self, board):
        """A variable that changes nothing is not offered. Filters are not named: Grafana puts them into every query."""
        text = json.dumps([board["panels"], board["annotations"], board["links"]])
        queries = json.dumps([variable.get("query") for variable in board["templating"]["list"]])
        for variable in board["templating"]["list"]:
            assert variable["type"] == "adhoc" or re.search(rf"\$\{{?{variable['name']}\b", text + queries), variable[
                "name"
            ]

    @pytest.mark.parametrize("board", EVERY_BOARD)
    def test_variables_follow_the_time_range(self, board):
        """Values are looked up again when the time range changes, from known series."""
        queried = [variable for variable in board["templating"]["list"] if variable["type"] == "query"]
        assert queried
        for variable in queried:
            assert variable["refresh"] == 2
            (told_by,) = re.findall(r'label_values\((?:{__name__=~"([^"]+)"|([\w:]+))', variable["query"])
            assert set("".join(told_by).split("|")) <= OURS.keys() | VLLMS

    @pytest.mark.parametrize("board", EVERY_BOARD)
    def test_panel_ids_are_unique_and_panels_do_not_overlap(self, board):
        """Links to a panel stay right, and none hides another."""
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))
        cells = [
            (x, y)
            for place in (panel["gridPos"] for panel in board["panels"])
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24

    @pytest.mark.parametrize("board", EVERY_BOARD)
    def test_can_be_provisioned_and_imported(self, board):
        """No database id, a schema that needs no migration, read-only, tagged, linked to its siblings."""
        assert board["id"] is None
        assert board["schemaVersion"] == 41
        assert board["editable"] is False
        assert "tidegauge" in board["tags"]
        assert board["links"][0]["tags"] == ["tidegauge"]
        assert "__inputs" not in board


def test_uids_are_stable():
    """Links from alerts and runbooks go by uid: one that changes breaks them."""
    questions = ["latency", "waves", "skew", "capacity", "load", "bottleneck", "slo", "comparison", "exporter"]
    assert {name: f"tidegauge-{name}" for name in questions} == {one.key: one.uid for one in places.BOARDS}
    assert {one.key: one.uid for one in places.BOARDS} == {name: board["uid"] for name, board in GENERATED.items()}


def test_every_stage_has_a_colour():
    """A stage added to the catalogue needs a colour."""
    assert set(STAGES) == set(STAGE_COLOURS)
    assert len(set(STAGE_COLOURS.values())) == len(STAGES)
