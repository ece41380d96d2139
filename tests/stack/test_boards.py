"""Every query of every board on a real Prometheus: on the demo's data, on real captures', on a hundred servers'."""

import itertools
from collections import defaultdict

import pytest

from dashboards.fields import BAD, WARN
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
    resolved,
    substituted,
    variables_of,
)
from tests.generations import GENERATIONS
from tests.histories import HISTORIES
from tests.history import STEP
from tests.rules.promtool import labels
from tests.rules.test_rules_replay import CAPTURES
from tests.unit.board_queries import column_of, panel_of, shown
from tests.units import heading, misfits
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]

NO_GPU = ("no GPU in the demo", "hundred")
EMPTY = {
    ("bottleneck", 11): NO_GPU,
    ("bottleneck", 12): NO_GPU,
    ("bottleneck", 13): NO_GPU,
    ("exporter", 6): ("the exporter is well", "restart"),
}
"""Panels that are empty on the demo: (board, panel) to the reason and the history that fills them."""

UNSEEN = {
    'cause="deferred"': "no captured server waited for remote KV, a grammar or an adapter",
    'level="compute", backend': "no history has busy GPUs beside slow tokens",
    'level="false_compute", backend': "no history has busy GPUs beside slow tokens",
    "model:slo_target_seconds:asked": "the targets that are judged are those that are asked for",
}
"""Parts of the queries that give nothing on any history, with the reason; tests/rules has cases for all of them."""

OVERSPENT = "an error budget can be overspent"
CHANGES = "a change has a sign and may be more than the whole"
BEYOND = {
    **{("slo", panel): OVERSPENT for panel in (1, 2, 3, 6, 13)},
    **{("capacity", panel): "more may be asked for than fits" for panel in (6, 11)},
    **{("comparison", panel): CHANGES for panel in (4, 5, 6, 7)},
}
"""Panels whose values may lie outside what their unit allows: (board, panel) to the reason."""


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


def speaks(loaded, board, target):
    """Whether a query has data at one of the history's moments, with some value of the variables of fixed ones."""
    tried = itertools.product(choices(board), loaded.moments)
    return any(asked(loaded.server, target, values, loaded.begin, moment) for values, moment in tried)


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
            assert id_ in filled(load(where, GENERATIONS[0]), GENERATED[name]), (name, id_, where)

    def test_every_query_gives_something_somewhere(self, load):
        """Each query has data on one history at least, but for those on the list; what is listed gives nothing."""
        silent = {
            (name, panel["id"], target["refId"]): (made, target)
            for name, made in GENERATED.items()
            for panel, target in queries(made)
        }
        for loaded in (load(name, GENERATIONS[0]) for name in HISTORIES):
            silent = {key: one for key, one in silent.items() if not speaks(loaded, *one)}
        unexplained = [key for key, (_, target) in silent.items() if not any(part in target["expr"] for part in UNSEEN)]
        unneeded = [part for part in UNSEEN if not any(part in target["expr"] for _, target in silent.values())]

        assert ([], []) == (unexplained, unneeded)

    def test_values_fit_their_unit(self, history, board):
        """Shares lie between 0 and 1, times and counts are not negative, states are ones that the panel can name."""
        name, made = board
        found = defaultdict(list)
        for panel, target, rows in answers(history, made, defaults(made)):
            points = [float(value) for row in rows for _, value in row["values"]]
            if (name, panel["id"]) not in BEYOND:
                found[panel["id"], panel["title"]] += misfits(panel, target, points)

        assert {} == {panel: faults for panel, faults in found.items() if faults}

    def test_what_is_listed_is_there(self):
        """A list that names a panel which has gone excuses another one some day."""
        panels = {(name, panel["id"]) for name, board in GENERATED.items() for panel in panels_of(board)}

        assert EMPTY.keys() | BEYOND.keys() <= panels


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

    @pytest.mark.parametrize("name", ["demo", "hundred"])
    def test_the_largest_ratio_to_the_fastest_is_the_skew(self, load, name):
        """At every moment, and of a hundred as of two: what the table paints is what the alert calls skewed."""
        loaded = load(name, GENERATIONS[0])
        (table,) = [panel for panel in panels_of(GENERATED["skew"]) if panel["id"] == 13]
        column = substituted(column_of(table, "to fastest"), defaults(GENERATED["skew"]))
        ratio, skew = (
            {
                at: float(value)
                for row in loaded.server.over(expr, loaded.begin, loaded.end, STEP)
                for at, value in row["values"]
            }
            for expr in (f"max({column} > 0)", f"max({rc.FLEET_SKEW.name})")
        )

        assert skew == pytest.approx(ratio)
        assert max(skew.values()) > th.SKEW.value


class TestAnswers:
    """What the boards of latency and waves say of the demo, whose story is known."""

    def drawn(self, loaded, name, id_, *, later=0):
        """What each query of a panel gives over the whole history, *later* seconds after its end."""
        values = defaults(GENERATED[name])
        targets = panel_of(GENERATED[name], id_)["targets"]
        return [asked(loaded.server, target, values, loaded.begin, loaded.end + later) for target in targets]

    def test_servers_that_let_requests_wait_are_full(self, demo):
        """At the end 6 requests wait on average, for the step budget and for unknown causes; the KV cache is free."""
        sign, down = self.drawn(demo, "latency", 22)
        panel = panel_of(GENERATED["latency"], 22)

        assert ("step budget", WARN) == shown(panel, float(sign[0]["values"][-1][1]), "saturation")
        assert [0] == [float(row["values"][-1][1]) for row in down]

    def test_split_that_costs_is_bad(self, demo):
        """It is 30 % of the time of a request, and pages."""
        (servers, _), panel = self.drawn(demo, "latency", 3), panel_of(GENERATED["latency"], 3)

        assert ("two modes", BAD) == shown(panel, float(servers[0]["values"][-1][1]))

    @pytest.mark.parametrize(("id_", "histogram"), [(12, "vllm:request_queue_time_seconds"), (13, ex.CALLER_WAIT.name)])
    @pytest.mark.parametrize("step", [15, 30, 60])
    def test_heatmaps_hold_each_request_once(self, demo, id_, histogram, step):
        """However narrow the columns are, their cells add up to the requests that waited."""
        expr = panel_of(GENERATED["waves"], id_)["targets"][0]["expr"]
        asked_for = substituted(expr, defaults(GENERATED["waves"]), step=step)
        rows = demo.server.over(asked_for, demo.begin, demo.end + step, step)
        (held,) = [sum(float(value) for _, value in row["values"]) for row in rows if row["metric"]["le"] == "+Inf"]
        (waited,) = demo.server.at(f"sum(increase({histogram}_count[{demo.end - demo.begin}s]))", demo.end)

        assert float(waited["value"][1]) == pytest.approx(held, rel=0.1)

    @pytest.mark.parametrize("step", [15, 30, 60, 300])
    def test_a_change_of_the_ceiling_is_on_one_bar(self, demo, step):
        """It goes from 16 to 48 once, which the limiter's log tells."""
        for target, expected in zip(panel_of(GENERATED["waves"], 15)["targets"], ([1], [0]), strict=True):
            expr = substituted(target["expr"], defaults(GENERATED["waves"]), step=step)
            rows = demo.server.over(expr, demo.begin, demo.end + step, step)
            assert expected == [sum(float(value) for _, value in row["values"]) for row in rows], target["refId"]

    def test_silence_is_silence(self, demo):
        """A quarter of an hour after the last scrape no barrier was seen lately."""
        assert [2] == [len(rows) for rows in self.drawn(demo, "waves", 5)]
        assert [[]] == self.drawn(demo, "waves", 5, later=900)


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

    @pytest.mark.parametrize("chosen", ["model_name", "instance", "fleet"])
    def test_a_choice_of_one_leaves_nothing_of_the_others(self, load, board, chosen):
        """Of two fleets with a model each: whichever label is chosen, no query answers with the other fleet's."""
        loaded, (_, made) = load("two fleets", GENERATIONS[0]), board
        (variable,) = [one for one in variables_of(made) if one["name"] == chosen]
        span = loaded.server, loaded.begin, loaded.end
        found = []
        for fleet, (_, model) in histories.FLEETS.items():
            (value, *_) = [
                one
                for one in looked_up(variable, defaults(made), *span)
                if one in {fleet, model} or one.endswith(f".{fleet}:8000")
            ]
            values = resolved(made, *span, {**defaults(made), chosen: escaped(value)})
            others = {name for other, (_, name) in histories.FLEETS.items() if other != fleet for name in (other, name)}
            for panel, target, rows in answers(loaded, made, values):
                told = " ".join(value for row in rows for value in row["metric"].values())
                found += [f"{panel['title']}, {target['refId']}: {other}" for other in others if other in told]

        assert [] == found


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
