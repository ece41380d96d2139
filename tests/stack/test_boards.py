"""Every query of every board on a real Prometheus: on the demo's data, on real captures', on a hundred servers'."""

import contextlib
import fcntl
import itertools
import json
import math
import os
import re
from collections import defaultdict

import attrs
import pytest

from tests import histories, tsdb
from tests.boards import (
    GENERATED,
    asked,
    choices,
    chosen,
    defaults,
    escaped,
    looked_up,
    panels_of,
    substituted,
    variables_of,
)
from tests.generations import GENERATIONS, program
from tests.rules.promtool import labels
from tests.rules.test_rules_replay import CAPTURES
from tidegauge.catalogue import recorded as rc

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]

HISTORIES = {
    "demo": histories.demo,
    "uncapped": lambda: histories.capture("uncapped"),
    "two_engines": lambda: histories.capture("two_engines"),
    "aborts": lambda: histories.capture("aborts"),
    "restart": lambda: histories.capture("restart"),
    "tinykv, no exporter": lambda: histories.capture("tinykv", exporter=False),
    "hundred": histories.hundred,
}
NO_GPU = ("no GPU in the demo", "hundred")
EMPTY = {
    ("bottleneck", 11): NO_GPU,
    ("bottleneck", 12): NO_GPU,
    ("bottleneck", 13): NO_GPU,
    ("exporter", 6): ("the exporter is well", None),
    ("exporter", 12): ("its pages are whole", None),
}
"""Panels that are empty on the demo: (board, panel) to the reason and a history that fills them, if one does."""

OVERSPENT = "an error budget can be overspent"
CHANGES = "a change has a sign and may be more than the whole"
BEYOND = {
    **{("slo", panel): OVERSPENT for panel in (1, 2, 3, 6, 13)},
    **{("comparison", panel): CHANGES for panel in (4, 5, 6, 7)},
}
"""Panels whose values may lie outside what their unit allows: (board, panel) to the reason."""


@attrs.frozen
class Loaded:
    """A server on a history."""

    server: tsdb.Prometheus
    begin: int
    end: int
    moments: tuple[int, ...]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of a history, made once for all workers of a run; gives its blocks and its times."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name):
        folder = shared / f"history {name}"
        folder.mkdir(exist_ok=True)
        times = folder / "times.json"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert not (folder / "data").exists() or times.exists(), f"making the history {name} failed before"
            if not times.exists():
                history = HISTORIES[name]()
                tsdb.build(program("prometheus"), program("promtool"), history, folder / "data")
                times.write_text(json.dumps([history.begin, history.end, history.moments]))
        return folder / "data", json.loads(times.read_text())

    return make


@pytest.fixture(scope="session")
def load(built, tmp_path_factory):
    """Servers by history and generation, started when they are first asked for."""
    found = {}
    with contextlib.ExitStack() as stack:

        def start(name, generation):
            if (name, generation) not in found:
                binary = program("prometheus", generation)
                data, (begin, end, moments) = built(name)
                copy = tsdb.copied(data, tmp_path_factory.mktemp("prometheus"))
                server = stack.enter_context(tsdb.running(binary, copy))
                found[name, generation] = Loaded(server, begin, end, tuple(moments))
            return found[name, generation]

        yield start


@pytest.fixture(params=HISTORIES)
def history(request, load):
    """A server on each history in turn."""
    return load(request.param, GENERATIONS[0])


@pytest.fixture
def demo(load):
    return load("demo", GENERATIONS[0])


@pytest.fixture(params=GENERATED)
def board(request):
    return request.param, GENERATED[request.param]


def queries(board):
    """Panels with each of their queries."""
    for panel in panels_of(board):
        for target in panel.get("targets", []):
            yield panel, target


def answers(loaded, board, values):
    """What each query of a board gives when it is opened over the whole history."""
    for panel, target in queries(board):
        yield panel, target, asked(loaded.server, target, values, loaded.begin, loaded.end)


def faults(loaded, board, values):
    """Queries that Prometheus refuses, with what it says."""
    for panel, target in queries(board):
        try:
            asked(loaded.server, target, values, loaded.begin, loaded.end)
        except tsdb.QueryError as error:
            yield f"{panel['title']} {target['refId']}: {error}"


class TestQueries:
    def test_all_of_everything(self, history, board):
        """With every variable at All, no query of the board is refused."""
        assert [] == list(faults(history, board[1], defaults(board[1])))

    def test_one_of_each(self, history, board):
        """With one value of every variable, each found among what those before it leave, none is refused."""
        values = chosen(board[1], history.server, history.begin, history.end)

        assert [] == list(faults(history, board[1], values))

    def test_each_choice(self, demo, board):
        """With each value of the variables that have fixed ones, none is refused."""
        assert [] == [fault for values in choices(board[1]) for fault in faults(demo, board[1], values)]

    def test_under_the_newer_prometheus(self, load, board):
        """Prometheus 3 refuses none either."""
        assert [] == list(faults(load("demo", GENERATIONS[1]), board[1], defaults(board[1])))

    def test_marks(self, history, board):
        """The annotations of alerts and restarts are asked without a fault."""
        values = defaults(board[1])
        for mark in board[1]["annotations"]["list"]:
            history.server.over(substituted(mark["expr"], values), history.begin, history.end, 15)


def filled(loaded, board):
    """Ids of the panels that have data at one of the history's moments, over all that came before it."""
    found = set()
    for moment, (panel, target) in itertools.product(loaded.moments, queries(board)):
        if panel["id"] not in found and asked(loaded.server, target, defaults(board), loaded.begin, moment):
            found.add(panel["id"])
    return found


class TestData:
    def test_no_panel_is_empty_on_the_demo(self, demo, board):
        """But for those on the list, whose reason is given; what is listed and has data must leave it."""
        name, made = board
        drawn = {panel["id"]: panel["title"] for panel, _ in queries(made)}
        full = filled(demo, made)
        listed = {id_ for (where, id_) in EMPTY if where == name}

        assert {} == {id_: title for id_, title in drawn.items() if id_ not in full | listed}
        assert set() == listed & full
        assert listed <= drawn.keys()

    def test_a_listed_panel_is_filled_elsewhere(self, load):
        """A panel that is empty on the demo has data on the history that its entry names."""
        for (name, id_), (_, where) in EMPTY.items():
            if where is not None:
                assert id_ in filled(load(where, GENERATIONS[0]), GENERATED[name]), (name, id_, where)

    def test_values_fit_their_unit(self, history, board):
        """Shares lie between 0 and 1, times and counts are not negative, states are ones that the panel can name."""
        name, made = board
        found = defaultdict(list)
        for panel, target, rows in answers(history, made, defaults(made)):
            points = [float(value) for row in rows for _, value in row["values"]]
            for fault in misfits(name, panel, target, [point for point in points if not math.isnan(point)]):
                found[panel["id"], panel["title"]].append(fault)

        assert {} == found


def unit_of(panel, target):
    """The unit that the values of one query are shown in."""
    config = panel["fieldConfig"]
    for field in config["overrides"]:
        wanted = {target["legendFormat"], heading(panel, target)}
        if field["matcher"]["options"] in wanted:
            for prop in field["properties"]:
                if prop["id"] == "unit":
                    return prop["value"]
    if panel["type"] == "heatmap":
        return "none"
    return config["defaults"].get("unit")


def heading(panel, target):
    """The heading of the column that one query fills."""
    names = [one["options"]["renameByName"] for one in panel.get("transformations", []) if one["id"] == "organize"]
    return names[0].get(f"Value #{target['refId']}") if names else None


def named_states(panel, target):
    """The values that a query's panel or column has words for; empty where it shows numbers."""
    mappings = list(panel["fieldConfig"]["defaults"].get("mappings", []))
    for field in panel["fieldConfig"]["overrides"]:
        if field["matcher"]["options"] == heading(panel, target):
            mappings += [one for prop in field["properties"] if prop["id"] == "mappings" for one in prop["value"]]
    ranges = [range(one["options"]["from"], one["options"]["to"] + 1) for one in mappings if one["type"] == "range"]
    return {float(key) for one in mappings if one["type"] == "value" for key in one["options"]}.union(*ranges)


def misfits(name, panel, target, points):
    """What is wrong with the values of a query."""
    unit, states = unit_of(panel, target), named_states(panel, target)
    low, high = (min(points), max(points)) if points else (0, 0)
    if (name, panel["id"]) in BEYOND:
        return
    if low < 0 and not states:
        yield f"{target['refId']}: {low} {unit}"
    if unit == "percentunit" and high > 1.001:
        yield f"{target['refId']}: {high} as a share"
    if unit == "s" and high > 86400:
        yield f"{target['refId']}: {high} s"
    if unit == "none" and len(states) > 1 and set(points) - states:
        yield f"{target['refId']}: {sorted(set(points) - states)[:5]}, words for {sorted(states)}"
    if re.match(r"count\b", target["expr"]) and any(point % 1 for point in points):
        yield f"{target['refId']}: a count that is not whole"


class TestTables:
    def test_rows_merge_on_the_keys_that_are_shown(self, history, board):
        """Each column has one value per row: its labels are the table's keys, none twice, none more."""
        name, made = board
        found = []
        for panel, target, rows in answers(history, made, defaults(made)):
            if panel["type"] != "table":
                continue
            assert target["instant"], (name, panel["title"])
            keys = {key for key in order_of(panel) if not key.startswith("Value #")}
            single = len(panel["targets"]) == 1
            for row in rows:
                own = set(row["metric"])
                if not own <= keys or (own != keys and not single):
                    found.append(f"{panel['title']}, {heading(panel, target)}: {row['metric']}, keys {sorted(keys)}")
            subjects = [tuple(sorted(row["metric"].items())) for row in rows]
            assert len(subjects) == len(set(subjects))

        assert [] == found[:5]


def order_of(panel):
    (organise,) = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
    return organise["indexByName"]


class TestVariables:
    def test_chain_is_never_empty(self, history, board):
        """Whatever is chosen first leaves something to choose next: tried with All and with three values of each."""
        _, made = board
        queried = [one for one in variables_of(made) if one["type"] == "query"]
        paths = [defaults(made)]
        for variable in queried:
            longer = []
            for values in paths:
                offered = looked_up(variable, values, history.server, history.begin, history.end)
                assert offered, f"{variable['name']}: nothing with {values}"
                picked = {offered[0], offered[len(offered) // 2], offered[-1]}
                longer += [values, *({**values, variable["name"]: escaped(one)} for one in sorted(picked))]
            paths = longer[:60]


class TestHistory:
    """What the boards are tried on is what Prometheus makes of the same pages when it evaluates the rules itself."""

    def test_recorded_series(self, load):
        """The recorded shares of a real capture are those that promtool's own run of the rules must give."""
        loaded = load("tinykv, no exporter", GENERATIONS[0])
        _, (shares,) = CAPTURES["tinykv"]
        found = {
            labels(**row["metric"]): float(row["value"][1])
            for row in loaded.server.at(shares.as_yaml()["expr"], loaded.end)
        }

        assert shares.samples == pytest.approx(found)

    @pytest.mark.parametrize(("name", "capture"), [("tinykv, no exporter", "tinykv"), ("aborts", "aborts")])
    def test_alerts(self, load, name, capture):
        """The alerts of a real capture are those that promtool's own run has fire."""
        loaded = load(name, GENERATIONS[0])
        fired = loaded.server.at('max_over_time(ALERTS{alertstate="firing"}[1d])', loaded.end)
        found = {row["metric"]["alertname"]: (row["metric"]["severity"], row["metric"]["backend"]) for row in fired}

        assert CAPTURES[capture][0] == found

    def test_a_hundred_are_a_hundred(self, load):
        """The made-up servers are told apart, and each has its own figures."""
        loaded = load("hundred", GENERATIONS[0])

        assert histories.SIZE == sum(
            float(row["value"][1]) for row in loaded.server.at(rc.FLEET_DISTINCT_UP.name, loaded.end)
        )
        assert histories.SIZE == len(loaded.server.at(rc.KV_CAPACITY.name, loaded.end))
