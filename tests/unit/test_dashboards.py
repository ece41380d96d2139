"""The panel vocabulary and the query builders of the boards."""

import pytest

from dashboards import charts as c
from dashboards import panels as p
from dashboards.boards import latency
from dashboards.fields import Column, Query, between, coloured, column_override, state, steps
from dashboards.queries import by, otherwise, reads, reads_in, select, share_of, weighted_mean
from tests.unit.board_queries import evaluated, panel_of, plain
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc


class TestSelect:
    def test_filters_by_every_variable_it_has_a_label_for(self):
        """A per-backend series is filtered by model and backend, one about a fleet by fleet."""
        assert f'{rc.E2E_MEAN.name}{{model_name=~"$chosen_model", backend=~"$chosen_backend"}}' == select(rc.E2E_MEAN)
        assert f'{rc.FLEET_SKEW.name}{{fleet=~"$chosen_fleet"}}' == select(rc.FLEET_SKEW)
        assert f'{ex.BACKEND_UP.name}{{backend=~"$chosen_backend"}}' == select(ex.BACKEND_UP)

    def test_split_is_filtered_by_the_labels_of_its_side(self):
        """The caller's side has no backend, the server's no fleet: filtering by what is absent would hide it."""
        server = f'{rc.WAVES.name}{{where="server", model_name=~"$chosen_model", backend=~"$chosen_backend"}}'
        assert server == select(rc.WAVES, where=lb.SERVER)
        assert f'{rc.WAVES.name}{{where="caller", fleet=~"$chosen_fleet"}}' == select(rc.WAVES, where=lb.CALLER)

    def test_client_stage_is_the_callers(self):
        """The wait for the caller's slot has a fleet and no backend: choosing a backend does not hide it."""
        expected = f'{ex.STAGE_SECONDS.name}{{stage="client", fleet=~"$chosen_fleet"}}'
        assert expected == select(ex.STAGE_SECONDS, stage=lb.CLIENT)

    def test_given_values_replace_the_variable(self):
        """A label that is given is not filtered by its variable; `~` makes it a regular expression."""
        expected = f'{rc.STAGE_MEAN.name}{{backend="b", stage=~"queue|other", model_name=~"$chosen_model"}}'
        assert expected == select(rc.STAGE_MEAN, backend="b", stage="~queue|other")

    def test_refuses_a_label_that_the_series_has_not_got(self):
        """A matcher on an unknown label is an error when the board is built, not an empty panel."""
        with pytest.raises(KeyError, match="has no label stage"):
            select(rc.E2E_MEAN, stage="queue")


TWO_BACKENDS = {
    f'{rc.WINDOW_REQUESTS.name}{{backend="a", model_name="m"}}': 10,
    f'{rc.WINDOW_REQUESTS.name}{{backend="b", model_name="m"}}': 30,
    f'{rc.E2E_MEAN.name}{{backend="a", model_name="m"}}': 2,
    f'{rc.E2E_MEAN.name}{{backend="b", model_name="m"}}': 6,
    f'{rc.STAGE_MEAN.name}{{backend="a", model_name="m", stage="queue"}}': 0,
    f'{rc.STAGE_MEAN.name}{{backend="b", model_name="m", stage="queue"}}': 4,
    f'{rc.STAGE_MEAN.name}{{backend="b", model_name="m", stage="decode"}}': 2,
}


class TestArithmetic:
    def test_mean_over_backends_is_weighed_by_requests(self, tmp_path):
        """(10 x 2 + 30 x 6) / 40 = 5, not the 4 of an unweighed mean."""
        expr = plain(weighted_mean(select(rc.E2E_MEAN), select(rc.WINDOW_REQUESTS)))
        assert evaluated(tmp_path, TWO_BACKENDS, expr) == {"": 5}

    def test_a_backend_without_the_value_has_no_weight(self, tmp_path):
        """Queue: (10 x 0 + 30 x 4) / 40 = 3. Decode is known for one backend only: its own 2."""
        expr = plain(weighted_mean(select(rc.STAGE_MEAN), select(rc.WINDOW_REQUESTS), lb.STAGE))
        assert evaluated(tmp_path, TWO_BACKENDS, expr) == {"stage=queue": 3, "stage=decode": 2}

    def test_share_is_time_over_time(self, tmp_path):
        """Queue: 120 s of 200 s; decode: 60 s of 200 s."""
        expr = plain(share_of(select(rc.STAGE_MEAN), select(rc.E2E_MEAN), select(rc.WINDOW_REQUESTS), lb.STAGE))
        assert evaluated(tmp_path, TWO_BACKENDS, expr) == {"stage=queue": 0.6, "stage=decode": 0.3}

    @pytest.mark.parametrize(
        ("late", "split", "verdict"),
        [(0.0, None, 0), (0.4, 40, 2), (0.4, 2, 0), (0.05, 200, 2), (0.04, 200, 0), (0.95, 10, 2), (1.0, 66, 3)],
    )
    def test_split_verdict(self, tmp_path, late, split, verdict):
        """0 no split, 2 two modes, 3 saturated; nobody late means no split, though the split itself is absent."""
        labels = '{where="server", backend="a", model_name="m"}'
        series = {f"{rc.LATE_RATIO.name}{labels}": late}
        if split is not None:
            series[f"{rc.SPLIT.name}{labels}"] = split
        panel = panel_of(latency.board(), 3)
        assert evaluated(tmp_path, series, plain(panel["targets"][0]["expr"])) == {"": verdict}


def test_aggregation_without_labels_has_no_by():
    """`by` with nothing to keep is a plain aggregation."""
    assert by("max", "x") == "max(x)"
    assert by("max", "x", "a", "b") == "max by (a, b) (x)"


def test_alternatives_are_tried_in_order():
    """`otherwise` joins with `or`."""
    assert otherwise("a", "b") == "(a) or (b)"


def test_description_names_the_series():
    """The sentence lists every series in code marks."""
    assert reads(rc.SPLIT, rc.WAVES) == f"Reads `{rc.SPLIT.name}`, `{rc.WAVES.name}`."


def test_description_names_what_expressions_select():
    """Every series that is selected, once and in order; functions, labels and variables are none."""
    expr = "sum by (le) (rate(vllm:b_sum{x='$y'}[5m])) / on (z) a:b:c{} + a:b:c{le='1'} offset ${offset}s"
    assert reads_in(expr, "tidegauge_d{}") == "Reads `a:b:c`, `tidegauge_d`, `vllm:b_sum`."


def test_range_of_numbers_is_mapped_to_words():
    """Any of them is shown by the same words."""
    expected = {"type": "range", "options": {"from": 100, "to": 199, "result": {"text": "one", "color": "red"}}}
    assert expected == between(100, 199, "one", "red")


def test_thresholds_begin_at_null():
    """The base of the thresholds is null, the number that Grafana expects, not a text."""
    assert steps((None, "a"), (0.5, "b"))["steps"] == [{"value": None, "color": "a"}, {"value": 0.5, "color": "b"}]


def test_series_keep_a_fixed_colour():
    """An override matches the series by name and fixes its colour."""
    (one,) = coloured({"queue": "#123456"})
    assert one["matcher"] == {"id": "byName", "options": "queue"}
    assert one["properties"] == [{"id": "color", "value": {"mode": "fixed", "fixedColor": "#123456"}}]


def test_value_mapping_is_keyed_by_text():
    """Grafana looks a value up by its text: 1, not 1.0."""
    assert state(1.0, "two modes", "red")["options"] == {"1": {"text": "two modes", "color": "red"}}


def test_column_with_thresholds_is_painted():
    """Thresholds colour the cell; a column without any stays plain."""
    ids = [
        {prop["id"] for prop in column_override(column)["properties"]}
        for column in (
            Column("late", "x", "percentunit", ((None, "transparent"), (0.5, "red"))),
            Column("requests", "x", "short"),
        )
    ]
    assert ids == [{"unit", "noValue", "thresholds", "custom.cellOptions"}, {"unit", "noValue"}]


class TestBoard:
    @pytest.fixture
    def board(self):
        one = c.stat(7, "One", "d", "s", Query("up"))
        two = c.graph(3, "Two", "d", "s", [Query("up", "a"), Query("up", "b")])
        wide = c.table(9, "Wide", "d", ("job",), [Column("first", "up", "s"), Column("second", "up", "s")])
        rows = (
            p.Row("Top", 4, ((one, 10), (two, 10), (wide, 24))),
            p.Row("Below", 5, ((c.text(1, "N", "d", "x"), 6),)),
            p.Row(
                "Folded",
                4,
                ((c.stat(8, "In", "d", "s", Query("up")), 20), (c.stat(6, "Wrapped", "d", "s", Query("up")), 5)),
                folded=True,
            ),
            p.Row("Last", 3, ((c.text(2, "L", "d", "x"), 6),)),
        )
        return p.dashboard(
            uid="u",
            title="t",
            description="d",
            variables=[p.datasource()],
            rows=rows,
            annotations=[],
            links=[p.siblings("all"), p.link("Next", "/d/v", "Go on", keep=True)],
        )

    def test_panels_flow_into_rows(self, board):
        """Panels fill the grid from the left and wrap; the next row begins below."""
        places = {q["title"]: (q["gridPos"]["x"], q["gridPos"]["y"]) for q in board["panels"]}
        expected = {
            "Top": (0, 0),
            "One": (0, 1),
            "Two": (10, 1),
            "Wide": (0, 5),
            "Below": (0, 9),
            "N": (0, 10),
            "Folded": (0, 15),
            "Last": (0, 16),
            "L": (0, 17),
        }
        assert expected == places

    def test_folded_row_holds_its_panels(self, board):
        """A folded row takes one line; its panels lie below it for when it is opened, as clean as all others."""
        folded = next(panel for panel in board["panels"] if panel["title"] == "Folded")
        assert folded["collapsed"] is True
        assert {"In": (0, 16), "Wrapped": (0, 20)} == {
            q["title"]: (q["gridPos"]["x"], q["gridPos"]["y"]) for q in folded["panels"]
        }
        assert "span" not in folded["panels"][0]

    def test_links_keep_the_subject(self, board):
        """The menu of boards and the next question take variables and time along."""
        assert [("all", True, True, ""), ("Next", True, True, "/d/v")] == [
            (one["title"], one["includeVars"], one["keepTime"], one["url"]) for one in board["links"]
        ]

    def test_queries_are_lettered(self, board):
        """Each query of a panel has a letter of its own."""
        two = next(panel for panel in board["panels"] if panel["title"] == "Two")
        assert [(target["refId"], target["legendFormat"]) for target in two["targets"]] == [("A", "a"), ("B", "b")]

    def test_table_joins_one_query_per_column(self, board):
        """Columns are named after their query, time is left out."""
        wide = next(panel for panel in board["panels"] if panel["title"] == "Wide")
        options = wide["transformations"][1]["options"]
        assert options["renameByName"] == {"job": "job", "Value #A": "first", "Value #B": "second"}
        assert options["excludeByName"] == {"Time": True}
        assert all(target["instant"] and target["format"] == "table" for target in wide["targets"])

    def test_keys_are_headed_in_words(self):
        """Names of labels that are no words have headings."""
        one = c.table(1, "One", "d", ("alertname", lb.SLI, lb.FINISHED_REASON), [Column("", "up", "none")])
        names = one.transformations[1]["options"]["renameByName"]
        assert {"alertname": "Alert", "sli": "SLI", "finished_reason": "finished reason"} == names

    def test_only_column_goes_by_another_name(self):
        """Grafana gives the values of a single query no letter: a column without a title is left out by that name."""
        one = c.table(1, "One", "d", ("job",), [Column("", "up", "none")])
        assert one.transformations[1]["options"]["excludeByName"] == {"Time": True, "Value": True}

    def test_rows_can_have_an_order_of_their_own(self):
        """A query that is not shown puts them in order, before the columns get their headings."""
        one = c.table(1, "One", "d", ("job",), [Column("first", "up", "s")], order="rank")
        merged, ordered, organised = one.transformations
        assert ordered == {"id": "sortBy", "options": {"sort": [{"field": "Value #B"}]}}
        assert organised["options"]["excludeByName"] == {"Time": True, "Value #B": True}
        assert ("merge", "rank", []) == (merged["id"], one.targets[1].expr, one.options["sortBy"])

    def test_nothing_dead_is_left(self, board):
        """What grafanalib writes for Grafana of old is gone: no fields nobody reads, no nulls but threshold bases."""

        def keys(value):
            if isinstance(value, dict):
                for key, item in value.items():
                    yield key, item
                    yield from keys(item)
            elif isinstance(value, list):
                for item in value:
                    yield from keys(item)

        found = list(keys({**board, "id": 0}))
        assert {key for key, item in found if item is None} == {"value"}
        assert not {"maxDataPoints", "span", "editable", "intervalFactor", "rows", "style", "step"} & {
            key for panel in board["panels"] for key, _ in keys(panel)
        }


def test_all_is_the_default_of_a_label_variable():
    """All is stored as Grafana stores it, and matches series that lack the label."""
    out = p.label_variable("backend", "Backend", "label_values(up, backend)").to_json_data()
    assert out["current"] == {"selected": True, "text": ["All"], "value": ["$__all"]}
    assert (out["allValue"], out["query"]) == (".*", "label_values(up, backend)")


def test_choice_selects_its_default():
    """A variable with fixed values starts at the given one, shown by its text."""
    out = p.choice("cut", "Cut", {"half": "0.5", "all": "1"}, "1").to_json_data()
    assert out["query"] == "half : 0.5, all : 1"
    assert (out["current"]["text"], out["current"]["value"]) == ("all", "1")
