"""The board of waves: its verdicts, which source it prefers, how it counts."""

import pytest

from dashboards.boards import waves
from dashboards.queries import FILTERS
from tests.unit.board_queries import evaluated, panel_of, plain, shown
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc


@pytest.fixture(scope="module")
def board():
    return waves.board()


def expr_of(board, id_, query=0):
    """The query as it is asked for a graph with a point a minute of what is scraped once a minute."""
    return spanned(plain(panel_of(board, id_)["targets"][query]["expr"]))


def spanned(expr):
    for name, value in {"$__rate_interval": "4m", "$__interval_ms": "60000", "$__interval": "1m"}.items():
        expr = expr.replace(name, value)
    return expr


def verdicts(fleet, ceiling, state):
    """The state-set of a ceiling that is in that state."""
    name = rc.CEILING_VERDICT.name
    return {f'{name}{{fleet="{fleet}", ceiling="{ceiling}", state="{one}"}}': float(one == state) for one in lb.STATES}


class TestCeilings:
    def test_the_fleet_that_needs_a_look_speaks_for_all(self, board, tmp_path):
        """One clipping fleet of two is a clip; where nothing was measured, an inert one does not hide it."""
        series = {
            **verdicts("a", "client", "inert"),
            **verdicts("b", "client", "clips"),
            **verdicts("a", "server", "unmeasured"),
            **verdicts("b", "server", "inert"),
        }
        panel = panel_of(board, 1)
        found = [evaluated(tmp_path, series, expr_of(board, 1, query))[""] for query in (0, 1)]
        assert ["clips", "unmeasured"] == [shown(panel, value)[0] for value in found]
        assert ["caller's", "servers'"] == [query["legendFormat"] for query in panel["targets"]]

    def test_each_fleet_has_its_own_line(self, board, tmp_path):
        """Over time the states are kept apart by fleet and kind."""
        series = {**verdicts("a", "client", "inert"), **verdicts("b", "client", "clips")}
        found = evaluated(tmp_path, series, expr_of(board, 9))
        assert {"fleet=a": "inert", "fleet=b": "clips"} == {
            fleet: shown(panel_of(board, 9), value)[0] for fleet, value in found.items()
        }
        assert {} == evaluated(tmp_path, series, expr_of(board, 9, 1))

    def test_servers_that_are_short_of_slots_show_in_their_own_fleet(self, board, tmp_path):
        """Of two fleets whose slots are enough in sum, requests wait for those of a server of b."""
        series = {
            **verdicts("a", "server", "inert"),
            **verdicts("b", "server", "inert"),
            f'{rc.FLEET_MEMBER.name}{{fleet="a", backend="x", model_name="m"}}': 1,
            f'{rc.FLEET_MEMBER.name}{{fleet="b", backend="y", model_name="m"}}': 1,
            f'{rc.WAITING_CAUSE.name}{{backend="y", cause="sequence_slots"}}': 0.1,
        }
        found = evaluated(tmp_path, series, expr_of(board, 9, 1))
        assert {"fleet=a": "inert", "fleet=b": "one short"} == {
            fleet: shown(panel_of(board, 9), value)[0] for fleet, value in found.items()
        }

    def test_no_state_has_the_colour_of_another(self, board):
        """Clips, short, inert and unmeasured are told apart without reading."""
        assert len({shown(panel_of(board, 1), number)[1] for number in range(4)}) == 4

    def test_the_tightest_ceiling_is_named(self, board, tmp_path):
        """Of two fleets and two kinds the smallest margin, under the kind it has."""
        margins = {("a", "client"): 1.5, ("b", "client"): 0.5, ("a", "server"): 8, ("b", "server"): 9}
        series = {
            f'{rc.CEILING_MARGIN.name}{{fleet="{fleet}", ceiling="{kind}"}}': value
            for (fleet, kind), value in margins.items()
        }
        assert evaluated(tmp_path, series, expr_of(board, 2)) == {"ceiling=client": 0.5}


def test_what_callers_tell_goes_before_what_is_inferred(board, tmp_path):
    """The median is told (29, not 33); nobody told the p90, so that is inferred."""
    told = {("reported", "median"): 29, ("inferred", "median"): 33, ("inferred", "p90"): 34}
    series = {
        f'{ex.BARRIER_FANOUT.name}{{fleet="f", source="{source}", stat="{stat}"}}': value
        for (source, stat), value in told.items()
    }
    assert evaluated(tmp_path, series, expr_of(board, 6)) == {"stat=median": 29, "stat=p90": 34}


class TestDeepest:
    """Under which ceiling the median barrier of any fleet comes in most waves."""

    def asked(self, board, tmp_path, waves):
        series = {
            f'{ex.BARRIER_WAVES.name}{{fleet="{fleet}", source="{source}", ceiling="{ceiling}", stat="median"}}': number
            for (fleet, source, ceiling), number in waves.items()
        }
        return evaluated(tmp_path, series, expr_of(board, 3))

    def test_fleet_that_tells_does_not_hide_one_that_does_not(self, board, tmp_path):
        """Callers of a tell of 1 wave; those of b tell nothing, and its servers show 3."""
        told = {("a", "reported", "client"): 1, ("b", "inferred", "client"): 3}
        assert {"ceiling=client": 3} == self.asked(board, tmp_path, told)

    def test_what_is_told_goes_before_what_is_inferred(self, board, tmp_path):
        """Within a fleet the callers are right: 2 waves, not 5; under the other ceiling nobody told of any."""
        told = {("a", "reported", "client"): 2, ("a", "inferred", "client"): 5, ("a", "inferred", "server"): 1}
        assert {"ceiling=client": 2} == self.asked(board, tmp_path, told)

    def test_deepest_ceiling_of_all_is_named(self, board, tmp_path):
        """Slots of b cut into 4 what no caller cuts."""
        told = {("a", "reported", "client"): 2, ("b", "reported", "client"): 1, ("b", "inferred", "server"): 4}
        assert {"ceiling=server": 4} == self.asked(board, tmp_path, told)


def test_waves_over_time_prefer_what_each_fleet_told(board, tmp_path):
    """A line for each fleet, from the best that is known of it."""
    name = ex.BARRIER_WAVES.name
    told = {("a", "reported"): 2, ("a", "inferred"): 5, ("b", "inferred"): 3}
    series = {
        f'{name}{{fleet="{fleet}", source="{source}", ceiling="client", stat="median"}}': number
        for (fleet, source), number in told.items()
    }
    assert {"fleet=a": 2, "fleet=b": 3} == evaluated(tmp_path, series, expr_of(board, 7))


def test_barriers_seen_are_those_of_the_end(board, tmp_path):
    """Two exporters see the same ones. Once nobody tells of any there is no number, and the panel says why."""
    series = {
        f'{ex.BARRIERS.name}{{fleet="a", source="reported", instance="{exporter}"}}': "0+2x9 stale"
        for exporter in ("x:1", "y:1")
    }
    panel = panel_of(board, 5)
    assert panel["targets"][0]["instant"]
    assert {"source=reported": 10} == evaluated(tmp_path, series, expr_of(board, 5), at="9m")
    assert {} == evaluated(tmp_path, series, expr_of(board, 5), at="20m")
    assert panel["fieldConfig"]["defaults"]["noValue"].startswith("no barrier seen")


class TestCauses:
    def test_callers_and_servers_are_weighed_together(self, board, tmp_path):
        """Three of four waiting requests wait for the caller's slot: 75 %, though each backend has other causes."""
        series = {
            f'{rc.FLEET_WAITING_CAUSE.name}{{fleet="f", cause="caller"}}': 3,
            f'{rc.WAITING_CAUSE.name}{{backend="a", cause="sequence_slots"}}': 0.5,
            f'{rc.WAITING_CAUSE.name}{{backend="b", cause="sequence_slots"}}': 0.25,
            f'{rc.WAITING_CAUSE.name}{{backend="b", cause="kv_cache"}}': 0.25,
        }
        assert evaluated(tmp_path, series, expr_of(board, 4)) == {"cause=caller": 0.75}
        assert evaluated(tmp_path, series, expr_of(board, 4, 1)) == {"": 4}

    def test_where_nobody_waits_there_is_no_cause(self, board, tmp_path):
        """Nothing of nothing is no share: the panel says so instead."""
        series = {f'{rc.WAITING_CAUSE.name}{{backend="a", cause="sequence_slots"}}': 0}
        assert evaluated(tmp_path, series, expr_of(board, 4)) == {}
        assert evaluated(tmp_path, series, expr_of(board, 4, 1)) == {"": 0}

    def test_hidden_wait_is_per_request_and_counted_once(self, board, tmp_path):
        """Two exporters tell of the same 10 s of one backend: over the 40 requests of both backends, 0.25 s each."""
        series = {
            f'{ex.HIDDEN_WAIT.name}{{backend="a", instance="x:1"}}': 10,
            f'{ex.HIDDEN_WAIT.name}{{backend="a", instance="y:1"}}': 10,
            f'{rc.WINDOW_REQUESTS.name}{{backend="a", model_name="m"}}': 10,
            f'{rc.WINDOW_REQUESTS.name}{{backend="b", model_name="m"}}': 30,
        }
        assert evaluated(tmp_path, series, expr_of(board, 11, 1)) == {"": 0.25}


class TestChanges:
    def counted(self, board, tmp_path, series, query, minutes):
        """What the bars of these minutes show, without their labels; None where there is none."""
        expr = expr_of(board, 15, query)
        found = [evaluated(tmp_path, series, expr, at=f"{minute}m") for minute in minutes]
        return [next(iter(one.values()), None) for one in found]

    def test_without_a_limiter_log_have_no_reason(self, board, tmp_path):
        """The ceiling of fleet a changes twice and nobody says why; of b the log tells, so b is not counted again."""
        series = {
            f'{ex.CEILING.name}{{fleet="a", ceiling="client", source="reported"}}': "16 16 28 28 48",
            f'{ex.CEILING.name}{{fleet="b", ceiling="client", source="log"}}': "16 16 32 32 32",
            f'{ex.CEILING_CHANGES.name}{{fleet="b", reason="clamp"}}': "0 0 1 1 1",
        }
        assert [None, 0, 1, 0, 1] == self.counted(board, tmp_path, series, 1, range(5))

    def test_one_that_two_sources_show_is_one(self, board, tmp_path):
        """What the caller reports and what is seen of it are the same ceiling."""
        series = {
            f'{ex.CEILING.name}{{fleet="a", ceiling="client", source="{source}"}}': "16 28 28"
            for source in ("reported", "observed")
        }
        assert [1, 0] == self.counted(board, tmp_path, series, 1, (1, 2))

    def test_each_is_on_one_bar(self, board, tmp_path):
        """The series of a reason begins with its first change; two more come at once. Two exporters tell the same."""
        series = {
            f'{ex.CEILING_CHANGES.name}{{fleet="a", reason="clamp", instance="{exporter}"}}': "_ _ 1 1 1 3 3"
            for exporter in ("x:1", "y:1")
        }
        assert [None, 1, 0, 0, 2, 0] == self.counted(board, tmp_path, series, 0, range(1, 7))

    def test_a_gap_and_a_restart_are_none(self, board, tmp_path):
        """The exporter is away and remembers, then starts anew and counts its first change."""
        series = {f'{ex.CEILING_CHANGES.name}{{fleet="a", reason="clamp"}}': "4 4 stale stale stale 4 4 1 1"}
        assert [None, 0, 0, 1, 0] == self.counted(board, tmp_path, series, 0, (3, 5, 6, 7, 8))


def test_queue_heatmap_knows_backends_by_either_label(board, tmp_path):
    """A backend is an instance or a pod, and one that is both is counted once: 2 and 1 in the minute of a column."""
    name = f"vllm:{vllm.QUEUE}_bucket"
    series = {
        f'{name}{{model_name="m", instance="a", pod="a", le="0.3"}}': "0+2x10",
        f'{name}{{model_name="m", instance="10.0.0.1:8000", pod="b", le="0.3"}}': "0+1x10",
        f'{name}{{model_name="m", instance="c", le="0.3"}}': "0+100x10",
    }
    expr = panel_of(board, 12)["targets"][0]["expr"].replace(FILTERS[lb.BACKEND], "a|b")
    assert evaluated(tmp_path, series, spanned(plain(expr)), at="8m") == {"le=0.3": 3}
