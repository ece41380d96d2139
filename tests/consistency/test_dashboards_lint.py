"""What grafana's dashboard-linter asks of a board, said again for ours, and what else keeps one readable and stable.

The linter itself is a Go program and is not run here; the name of its rule stands in brackets.
"""

import json
import os
import re
from collections import Counter
from pathlib import Path

import promql_parser
import pytest

from dashboards import fields
from tests.boards import GENERATED, LOOK_UP, VARIABLE, is_resolved, panels_of, variables_of
from tests.promql import COUNTERS, VLLMS, names, parsed, selectors, within
from tidegauge.catalogue import RECORDED
from tidegauge.catalogue import recorded as rc

GOLDEN = Path(__file__).parents[1] / "golden" / "boards.json"
UPDATE = "UPDATE_GOLDEN"
KINDS = {"heatmap", "state-timeline", "stat", "table", "text", "timeseries"}
"""Panel types that `dashboards.charts` makes: all of them are part of every Grafana from 10.4 to 13."""
MOST_PANELS = 14
GROWTH = {"rate", "increase", "irate", "resets", "changes", "delta"}
PALETTE = {
    value for name, value in vars(fields).items() if name.isupper() and isinstance(value, str) and value[:1] == "#"
}
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
UNITS = {"seconds": {"s"}, "ratio": {"percentunit"}}
"""How a recorded unit is shown, where there is one way only."""

FIXED = {
    ("latency", 7): "a mean is weighed by the requests of the window that it is of",
    ("waves", 17): "barriers are rare: counted over five minutes, whatever a point covers",
}
"""Graphs that ask for growth over a fixed time: (board, panel) to the reason."""

RAW = {
    ("waves", 15): "a counter that has just appeared has grown from nothing to what it is",
    ("exporter", 9): "what the exporter counted since it started",
}
"""Panels that show what a counter is: (board, panel) to the reason."""

BOARDS = [pytest.param(board, id=name) for name, board in GENERATED.items()]
PANELS = [
    pytest.param(panel, id=f"{name}-{panel['id']}") for name, board in GENERATED.items() for panel in panels_of(board)
]
TARGETS = [
    pytest.param((name, panel, target), id=f"{name}-{panel['id']}{target['refId']}")
    for name, board in GENERATED.items()
    for panel in panels_of(board)
    for target in panel.get("targets", [])
]


def values_of(value, *keys):
    """Every value under one of the keys, however deep."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in keys:
                yield item
            yield from values_of(item, *keys)
    elif isinstance(value, list):
        for item in value:
            yield from values_of(item, *keys)


def presence(node, part):
    """Whether of what lies in that part of a node only matters that it is there."""
    if isinstance(node, promql_parser.AggregateExpr):
        return str(node.op) in {"group", "count"}
    return isinstance(node, promql_parser.BinaryExpr) and part == "rhs" and str(node.op) in {"unless", "and"}


class TestVariables:
    @pytest.mark.parametrize("board", BOARDS)
    def test_data_source_is_a_variable(self, board):
        """[template-datasource-rule] The first variable is the data source: a Prometheus, under the usual name."""
        first = board["templating"]["list"][0]

        assert ("datasource", "datasource", "prometheus", "Data source") == tuple(
            first[key] for key in ("name", "type", "query", "label")
        )

    @pytest.mark.parametrize("board", BOARDS)
    def test_nothing_is_tied_to_one_data_source(self, board):
        """[panel-datasource-rule] Whatever asks a data source asks the one that was chosen."""
        found = list(values_of(board, "datasource"))

        assert found
        assert [{"type": "prometheus", "uid": "${datasource}"}] * len(found) == found

    @pytest.mark.parametrize("board", BOARDS)
    def test_look_ups_are_valid(self, board):
        """[template-label-promql-rule] What a variable looks up is a selector of series that the label is one of."""
        for variable in variables_of(board):
            if variable["type"] == "query":
                match = LOOK_UP.fullmatch(variable["query"])["match"]
                assert isinstance(parsed(match), promql_parser.VectorSelector)

    @pytest.mark.parametrize("board", BOARDS)
    def test_those_that_are_looked_up_take_any_number(self, board):
        """[template-job-rule, template-instance-rule] Several, or All, which matches series without the label too.

        But for what the choices leave: that is each of its values.
        """
        for variable in variables_of(board):
            if variable["type"] == "query":
                found = [variable[key] for key in ("multi", "includeAll", "datasource")]
                assert [True, True, {"type": "prometheus", "uid": "${datasource}"}] == found
                offered = (variable.get("allValue"), bool(variable.get("label")), variable.get("skipUrlSync", False))
                assert offered == ((None, False, True) if is_resolved(variable) else (".*", True, False))


class TestQueries:
    @pytest.mark.parametrize("query", TARGETS)
    def test_variables_of_several_values_match_as_expressions(self, query):
        """A variable that may stand for several values is never compared with `=`."""
        name, _, target = query
        several = {one["name"] for one in variables_of(GENERATED[name]) if one.get("multi") or one.get("includeAll")}
        for label, operator, value in MATCHER.findall(target["expr"]):
            for found in VARIABLE.finditer(value):
                assert (found["braced"] or found["bare"]) not in several or operator in {"=~", "!~"}, (label, value)

    @pytest.mark.parametrize("query", TARGETS)
    def test_vllms_own_series_are_those_of_the_chosen_servers(self, query):
        """[target-job-rule, target-instance-rule] They are narrowed by model and server, by job if one is chosen."""
        name, _, target = query
        chosen = {one["name"] for one in variables_of(GENERATED[name])} & {"job", "engine"}
        for selector in selectors(parsed(target["expr"])):
            if selector.name in VLLMS:
                matched = {matcher.name for matcher in selector.matchers.matchers}
                assert "model_name" in matched
                # Or by the backends that the expression joins it with.
                assert matched & {"instance", "pod"} or rc.FLEET_MEMBER.name in names(target["expr"])
                assert "job" not in chosen or "job" in matched

    @pytest.mark.parametrize("query", TARGETS)
    def test_growth_is_asked_over_what_a_point_covers(self, query):
        """[target-rate-interval-rule] That is `$__rate_interval` or the whole range; what is not is listed."""
        name, panel, target = query
        spans = re.findall(rf"\b(?:{'|'.join(GROWTH)})\([^\[\]]*\[([^\]]+)\]", target["expr"])
        fixed = {span for span in spans if not span.startswith(("$__rate_interval", "$__range"))}

        assert not fixed or target["instant"] or (name, panel["id"]) in FIXED

    @pytest.mark.parametrize("query", TARGETS)
    def test_counters_are_asked_how_much_they_grew(self, query):
        """[target-counter-agg-rule] What a counter reads now says nothing, but that there is one may be asked."""
        name, panel, target = query
        for node, around in within(parsed(target["expr"])):
            if isinstance(node, promql_parser.VectorSelector) and node.name in COUNTERS:
                calls = {one.func.name for one, _ in around if isinstance(one, promql_parser.Call)}
                listed = (name, panel["id"]) in RAW
                assert listed or calls & GROWTH or any(presence(*one) for one in around), node.name

    @pytest.mark.parametrize("query", TARGETS)
    def test_unit_is_that_of_the_series(self, query):
        """Where a query is one recorded series, aggregated or not, its panel shows that series' unit."""
        _, panel, target = query
        known = {one.name: one.unit for one in RECORDED}
        node = parsed(target["expr"])
        while isinstance(node, promql_parser.AggregateExpr | promql_parser.ParenExpr):
            if isinstance(node, promql_parser.AggregateExpr) and "count" in str(node.op):
                return
            node = node.expr
        if panel["type"] == "table" or not isinstance(node, promql_parser.VectorSelector):
            return
        expected = UNITS.get(known.get(node.name, ""))
        overridden = set(values_of(panel["fieldConfig"]["overrides"], "id"))
        assert expected is None or "unit" in overridden or panel["fieldConfig"]["defaults"]["unit"] in expected


class TestPanels:
    @pytest.mark.parametrize("panel", PANELS)
    def test_is_of_a_kind_that_every_grafana_has(self, panel):
        """No Angular panel, no plug-in."""
        assert panel["type"] in KINDS

    @pytest.mark.parametrize("panel", PANELS)
    def test_asks_something(self, panel):
        """[panel-no-targets-rule] Only a note asks nothing."""
        assert ("text" == panel["type"]) == (not panel.get("targets"))

    @pytest.mark.parametrize("panel", PANELS)
    def test_rules_that_are_not_loaded_are_named_where_they_are_missed(self, panel):
        """Where all that a panel reads is recorded, that nothing finished or reports may be for want of rules."""
        said = panel["fieldConfig"]["defaults"].get("noValue", "") if panel["type"] != "text" else ""
        read = {name for target in panel.get("targets", []) for name in names(target["expr"])}
        if said.startswith(("nothing finished", "no server reports", "no backend known")):
            assert not read <= {one.name for one in RECORDED} or said.endswith("or no rules loaded")

    @pytest.mark.parametrize("panel", PANELS)
    def test_colours_are_of_the_palette(self, panel):
        """The colour-blind can tell them apart, and each means the same on every board."""
        named = [one for one in values_of(panel["fieldConfig"], "color", "fixedColor") if isinstance(one, str)]

        assert set(named) <= PALETTE | {fields.PLAIN, fields.TEXT}

    @pytest.mark.parametrize("panel", [one for one in PANELS if one.values[0]["type"] == "state-timeline"])
    def test_a_timeline_shows_states(self, panel):
        """Where colours come from thresholds, Grafana merges numbers by threshold and shows that, not their states."""
        defaults = panel["fieldConfig"]["defaults"]

        assert defaults["mappings"]
        assert defaults["color"]["mode"] == "fixed"


class TestBoards:
    @pytest.mark.parametrize("board", BOARDS)
    def test_titles_are_unique(self, board):
        """Two panels of one name cannot be told apart in a report or a link."""
        counted = Counter(panel["title"] for panel in panels_of(board))

        assert [] == [title for title, count in counted.items() if count > 1]

    @pytest.mark.parametrize("board", BOARDS)
    def test_ids_are_unique_in_folded_rows_too(self, board):
        """A link to a panel finds one."""
        ids = [panel["id"] for panel in [*(one for one in board["panels"] if one["type"] == "row"), *panels_of(board)]]

        assert len(ids) == len(set(ids))

    @pytest.mark.parametrize("board", BOARDS)
    def test_is_not_too_much_at_once(self, board):
        """What is more than can be taken in lies in a row that is folded."""
        shown = [panel for panel in board["panels"] if panel["type"] != "row"]

        assert len(shown) <= MOST_PANELS

    @pytest.mark.parametrize("board", BOARDS)
    def test_marks_are_of_the_palette(self, board):
        """Alerts and restarts are marked on every board, in colours that can be told apart."""
        marks = {mark["name"]: mark["iconColor"] for mark in board["annotations"]["list"]}

        assert {"Alerts", "Restarts"} <= marks.keys()
        assert set(marks.values()) <= PALETTE
        assert len(marks) == len(set(marks.values()))


def snapshot():
    """Of each board its uid, and its panels by id."""
    return {
        name: {
            "uid": board["uid"],
            "panels": {str(one["id"]): one["title"] for one in sorted(panels_of(board), key=lambda one: one["id"])},
        }
        for name, board in GENERATED.items()
    }


def test_panels_keep_their_ids():
    """A link goes by board and panel id. With UPDATE_GOLDEN=1 in the environment the list is written anew."""
    found = snapshot()
    if os.environ.get(UPDATE):
        GOLDEN.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == found


def test_what_is_listed_is_there():
    """A list that names a panel which has gone excuses another one some day."""
    assert FIXED.keys() | RAW.keys() <= {
        (name, panel["id"]) for name, board in GENERATED.items() for panel in panels_of(board)
    }


def test_there_is_something_to_check():
    """The rules above hold for something."""
    assert len(TARGETS) > len(PANELS) > len(BOARDS) > 1
    assert len(PALETTE) >= 8
    assert {"vllm:request_queue_time_seconds_bucket", "tidegauge_barriers_total"} <= COUNTERS
