"""The board of service levels: what is left, how fast it burns, and that idle is neither good nor bad."""

from types import MappingProxyType

import pytest

from dashboards.boards import slo
from dashboards.queries import FILTERS
from tests.unit.board_queries import column_of, evaluated, panel_of, plain, shown
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import limits
from tidegauge.catalogue import recorded as rc

TTFT_BUDGET, JUDGED, TABLE, TTFT_BURN, TTFT_LATENCY, BUDGET, TTFT_SHARE = 1, 4, 6, 7, 10, 13, 15


@pytest.fixture(scope="module")
def board():
    return slo.board()


def expr_of(board, id_, query=0):
    return plain(panel_of(board, id_)["targets"][query]["expr"])


def of(series, model, value, sli="ttft", **more):
    """One series of a model's service level."""
    inside = ", ".join(f'{key}="{one}"' for key, one in {"model_name": model, "sli": sli, **more}.items())
    return {f"{series.name}{{{inside}}}": value}


class TestBudget:
    @pytest.mark.parametrize(("share", "left"), [(1, 1), (0.99, 0.5), (0.98, 0), (0.9, -4)])
    def test_left_is_one_less_what_was_missed_of_what_may_be(self, board, tmp_path, share, left):
        """At 98 %: nothing missed leaves all, half as many leave half, as many leave nothing, five times overspend."""
        series = {**of(rc.SLO_3D, "m", share), **of(rc.SLO_OBJECTIVE, "m", 0.98)}
        assert {"model_name=m, sli=ttft": pytest.approx(left)} == evaluated(
            tmp_path, series, expr_of(board, TTFT_BUDGET)
        )

    def test_each_model_is_held_to_its_own_objective(self, board, tmp_path):
        """The one with the least left is named, though its share is the larger."""
        series = {
            **of(rc.SLO_3D, "strict", 0.98),
            **of(rc.SLO_OBJECTIVE, "strict", 0.99),
            **of(rc.SLO_3D, "lax", 0.95),
            **of(rc.SLO_OBJECTIVE, "lax", 0.9),
        }
        found = evaluated(tmp_path, series, expr_of(board, TTFT_BUDGET))
        assert {"model_name=strict, sli=ttft": pytest.approx(-1)} == found
        expected = {"model_name=strict, sli=ttft": -1, "model_name=lax, sli=ttft": 0.5}
        assert pytest.approx(expected) == evaluated(tmp_path, series, expr_of(board, BUDGET))

    def test_colours(self, board):
        """Overspent, low and well differ; where nothing is known none of them is shown."""
        (base, *rest) = panel_of(board, TTFT_BUDGET)["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert base["value"] is None
        assert len({step["color"] for step in (base, *rest)}) == 4
        assert [0, slo.LOW] == [step["value"] for step in rest[1:]]


class TestBurn:
    def test_of_the_model_that_burns_fastest(self, board, tmp_path):
        """Five minutes with a fifth late at 95 % burn four times too fast."""
        series = {
            **of(rc.SLO_5M, "m", 0.8),
            **of(rc.SLO_OBJECTIVE, "m", 0.95),
            **of(rc.SLO_5M, "n", 0.9),
            **of(rc.SLO_OBJECTIVE, "n", 0.9),
        }
        assert {"": pytest.approx(4)} == evaluated(tmp_path, series, expr_of(board, TTFT_BURN))

    def test_marks_are_the_factors_that_alerts_fire_from(self, board):
        """Each factor once, with the colour of its severity."""
        marks = panel_of(board, TTFT_BURN)["fieldConfig"]["defaults"]["thresholds"]["steps"][1:]
        assert sorted(rate.factor for rate in limits.BURN_RATES) == [mark["value"] for mark in marks]
        assert {slo.SEVERITIES[rate.severity] for rate in limits.BURN_RATES} == {mark["color"] for mark in marks}


class TestIdle:
    def test_idle_is_said(self, board, tmp_path):
        """No request judged is a word, not a share; no server at all is neither."""
        idle = evaluated(tmp_path, of(rc.SLO_TOTAL, "m", 0, "e2e"), expr_of(board, JUDGED))
        assert {"": 0} == idle
        assert "idle" == shown(panel_of(board, JUDGED), 0)[0]
        assert "idle" == shown(panel_of(board, TABLE), 0, "judged")[0]
        assert {} == evaluated(tmp_path, {"up": 1}, expr_of(board, JUDGED))

    def test_an_idle_model_has_no_burn_rate(self, board, tmp_path):
        """An objective without a ratio makes no figure."""
        assert {} == evaluated(tmp_path, of(rc.SLO_OBJECTIVE, "m", 0.95), expr_of(board, TTFT_BURN))


class TestClusters:
    """Where rules keep a label that tells clusters apart, both may have a model of one name: the worse one is shown."""

    SERIES = MappingProxyType(
        {
            **of(rc.SLO_5M, "m", 0.99, cluster="east"),
            **of(rc.SLO_5M, "m", 0.9, cluster="west"),
            **of(rc.SLO_3D, "m", 0.97, cluster="east"),
            **of(rc.SLO_3D, "m", 0.93, cluster="west"),
            **of(rc.SLO_TOTAL, "m", 3, cluster="east"),
            **of(rc.SLO_TOTAL, "m", 1, cluster="west"),
            **of(rc.SLO_OBJECTIVE, "m", 0.95, cluster="east"),
            **of(rc.SLO_OBJECTIVE, "m", 0.96, cluster="west"),
            **of(rc.SLO_JUDGED, "m", 1, cluster="east"),
            **of(rc.SLO_JUDGED, "m", 0.5, cluster="west"),
        }
    )

    @pytest.mark.parametrize(
        ("title", "value"),
        [("judged", 4), ("target", 0.5), ("objective", 0.96), ("5 min", 0.9), ("3 d", 0.93), ("budget left", -0.75)],
    )
    def test_table(self, board, tmp_path, title, value):
        """The smaller share and budget, the stricter target and objective, the requests of both."""
        found = evaluated(tmp_path, dict(self.SERIES), plain(column_of(panel_of(board, TABLE), title)))
        assert {"model_name=m, sli=ttft": pytest.approx(value)} == found

    @pytest.mark.parametrize(
        ("id_", "query", "value"),
        [
            (TTFT_BUDGET, 0, -0.75),
            (TTFT_BURN, 0, 2.5),
            (TTFT_LATENCY, 2, 0.5),
            (BUDGET, 0, -0.75),
            (TTFT_SHARE, 0, 0.9),
            (TTFT_SHARE, 1, 0.96),
        ],
    )
    def test_panels(self, board, tmp_path, id_, query, value):
        """One line of a model, and that the worse one's."""
        assert [pytest.approx(value)] == list(
            evaluated(tmp_path, dict(self.SERIES), expr_of(board, id_, query)).values()
        )


@pytest.mark.parametrize("id_", [1, 2, 3, 4, 6, 7, 8, 9, 13, 15, 16, 17])
def test_what_does_not_follow_the_choice_of_a_backend_says_so(board, id_):
    """Service levels have no backend; of the queries none filters by it."""
    panel = panel_of(board, id_)
    assert not any(FILTERS[lb.BACKEND] in target["expr"] for target in panel["targets"])
    assert "Of whole models, whichever of their backends are chosen." in panel["description"]


def test_target_that_was_asked_for_shows_where_it_is_not_the_one_judged(board, tmp_path):
    """3 s are judged at 2.5 s: both are told. 1 s lies on an edge: told once."""
    series = {
        **of(rc.SLO_ASKED, "between", 3),
        **of(rc.SLO_JUDGED, "between", 2.5),
        **of(rc.SLO_ASKED, "edge", 1),
        **of(rc.SLO_JUDGED, "edge", 1),
    }
    assert {"model_name=between, sli=ttft": 3} == evaluated(tmp_path, series, expr_of(board, TABLE, 2))
    assert {"model_name=between, sli=ttft": 2.5, "model_name=edge, sli=ttft": 1} == evaluated(
        tmp_path, series, expr_of(board, TABLE, 1)
    )


def test_latency_is_that_of_the_slowest_backend(board, tmp_path):
    """Of each model; quantiles of servers are not merged."""
    series = {
        f'{rc.TTFT_5M.name}{{backend="{backend}", model_name="m", quantile="0.9"}}': value
        for backend, value in (("a", 0.5), ("b", 2))
    }
    assert {"model_name=m": 2} == evaluated(tmp_path, series, expr_of(board, TTFT_LATENCY))
