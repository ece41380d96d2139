"""What the board of skew says of twins, of servers that are down, and of how far each backend is from the others."""

import pytest

from dashboards import outliers
from dashboards.absent import NO_BACKEND
from dashboards.boards import skew
from dashboards.queries import FILTERS
from tests.unit.board_queries import column_of, evaluated, panel_of, plain, shown, steps_of
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

SIGNALS = ("queue_late", "running", "prefix_hit")
BOARD = skew.board()
SECONDS = {"a": 10, "b": 25, "c": 12, "d": 6, "e": 10.5}
MEMBERS = {f'{rc.FLEET_MEMBER.name}{{fleet="world", backend="{one}", model_name="sim"}}': 1 for one in SECONDS}
MEANS = {
    f'{rc.FLEET_E2E.name}{{fleet="world", backend="{one}", model_name="sim"}}': value for one, value in SECONDS.items()
}
UP = {f'{rc.BACKEND_UP.name}{{backend="{one}"}}': 1 for one in SECONDS}
DISTINCT = {f'{ex.BACKEND_DISTINCT.name}{{backend="{one}"}}': 1 for one in SECONDS}
A_TWIN = {f'{ex.BACKEND_DISTINCT.name}{{backend="c"}}': 0}
ONE_DOWN = {f'{rc.BACKEND_UP.name}{{backend="d"}}': 0}


def asked(tmp_path, series: dict[str, float], id_: int, query: int = 0) -> dict[str, float]:
    """What the panel's query gives, by backend."""
    found = evaluated(tmp_path, series, plain(panel_of(BOARD, id_)["targets"][query]["expr"]))
    return {labels.split("backend=")[1].split(",")[0]: value for labels, value in found.items()}


class TestTwins:
    def said(self, tmp_path, series: dict[str, float]) -> dict[str, str]:
        panel = panel_of(BOARD, 6)
        return {name: shown(panel, value)[0] for name, value in asked(tmp_path, series, 6).items()}

    def test_names_twins_and_what_is_down(self, tmp_path):
        """A word each."""
        assert {"c": "twin", "d": "down"} == self.said(tmp_path, UP | DISTINCT | A_TWIN | ONE_DOWN)

    def test_says_none_only_where_an_exporter_looked(self, tmp_path):
        """Native series do not tell twins, but they tell who is down."""
        assert {"of all": "none"} == self.said(tmp_path, UP | DISTINCT)
        assert {} == self.said(tmp_path, UP)
        assert {"d": "down"} == self.said(tmp_path, UP | ONE_DOWN)


class TestChoice:
    """Which backend is the odd one is asked of the fleet, whichever of its backends the board is opened on."""

    @pytest.mark.parametrize("id_", [1, 2, 3, 4])
    def test_another_than_the_odd_one(self, tmp_path, id_):
        """b is the odd one by every signal; links from other boards choose one backend, as here a."""
        subject = 'backend="b", fleet="world", model_name="sim"'
        series = {
            **MEMBERS,
            f"{rc.FLEET_SLOWEST.name}{{{subject}}}": 25,
            f'{rc.FLEET_SKEW.name}{{fleet="world"}}': 1.65,
            **{f'{rc.SKEW_WORST.name}{{{subject}, signal="{signal}"}}': 1 for signal in SIGNALS},
            **{f'{rc.SKEW_DIFFERENCE.name}{{fleet="world", signal="{signal}"}}': 0.5 for signal in SIGNALS},
        }
        panel = panel_of(BOARD, id_)
        expr = plain(panel["targets"][0]["expr"].replace(FILTERS[lb.BACKEND], "a"))
        (labels,) = evaluated(tmp_path, series, expr)
        assert "backend=b" in labels
        assert outliers.OF_FLEET in panel["description"]


class TestCounted:
    def counted(self, tmp_path, series, chosen=".*"):
        """What is said to be up, and to be a server of its own."""
        exprs = [target["expr"].replace(FILTERS[lb.BACKEND], chosen) for target in panel_of(BOARD, 5)["targets"]]
        return [list(evaluated(tmp_path, series, plain(expr)).values()) for expr in exprs[1:]]

    def test_counts_what_is_up_and_no_twin(self, tmp_path):
        """Five, of which one is down and one a twin."""
        assert [[4], [3]] == self.counted(tmp_path, UP | DISTINCT | A_TWIN | ONE_DOWN)

    @pytest.mark.parametrize(("chosen", "counts"), [("a", [[1], [1]]), ("c", [[1], [0]]), ("d", [[0], [0]])])
    def test_counts_among_the_chosen(self, tmp_path, chosen, counts):
        """Both alike: fewer that are distinct than up are twins, not what was left out by choice."""
        assert counts == self.counted(tmp_path, UP | DISTINCT | A_TWIN | ONE_DOWN, chosen)

    def test_twins_cannot_be_told_without_an_exporter(self, tmp_path):
        """Then there is no number of distinct ones."""
        assert [[5], []] == self.counted(tmp_path, UP)

    def test_silence_is_no_backend(self, tmp_path):
        """Minutes after all went away there is nothing left of what was."""
        series = dict.fromkeys(UP | DISTINCT, "1 1 stale")
        for target in panel_of(BOARD, 5)["targets"]:
            assert {} == evaluated(tmp_path, series, plain(target["expr"]), "14m")
        assert NO_BACKEND == panel_of(BOARD, 5)["fieldConfig"]["defaults"]["noValue"]


class TestTable:
    @pytest.mark.parametrize(("slower", "painted"), [(1.4, False), (1.65, True), (2.7, True)])
    def test_paints_what_the_alert_calls_skewed(self, tmp_path, slower, painted):
        """Of two backends the slower one is nearer to their median than to the other."""
        series = {
            **{name: value for name, value in MEANS.items() if 'backend="a"' in name},
            f'{rc.FLEET_E2E.name}{{fleet="world", backend="z", model_name="sim"}}': 10 * slower,
            f'{rc.FLEET_SKEW.name}{{fleet="world"}}': slower,
        }
        found = evaluated(tmp_path, series, plain(column_of(panel_of(BOARD, 13), "to fastest")))
        (_, (bound, _)) = steps_of(panel_of(BOARD, 13), "to fastest")
        assert {"a": False, "z": painted} == {name[8]: value >= bound for name, value in found.items()}

    def test_distance_counts_both_ways(self, tmp_path):
        """The median is 10.5 s: b takes 138 % longer, d 43 % less, e is the median."""
        found = asked(tmp_path, MEANS, 13, 1)
        assert {"a": 0.048, "b": 1.381, "c": 0.143, "d": 0.429, "e": 0} == {
            name: round(value, 3) for name, value in found.items()
        }

    def test_state_of_each_backend(self, tmp_path):
        """One that is compared with nothing says why."""
        panel = panel_of(BOARD, 13)
        found = asked(tmp_path, MEMBERS | UP | DISTINCT | A_TWIN | ONE_DOWN, 13)
        assert {"a": "up", "b": "up", "c": "twin", "d": "down", "e": "up"} == {
            name: shown(panel, value, "state")[0] for name, value in found.items()
        }


def of_engines(expr: str) -> str:
    """The query with all jobs and engines, over a minute."""
    return plain(expr.replace("$job", ".*").replace("$engine", ".*").replace("$__range", "1m"))


def test_engines_are_found_by_either_name_of_a_backend(tmp_path):
    """A pod's rank is drawn where the pod is chosen, an instance's where the instance is; no rank twice."""
    expr = panel_of(BOARD, 20)["targets"][0]["expr"].replace(FILTERS[lb.BACKEND], "vllm-0|10.0.0.2:8000")
    name = 'vllm:num_requests_running{job="vllm", model_name="sim"'
    series = {
        f'{name}, instance="10.0.0.1:8000", pod="vllm-0", engine="1"}}': 9,
        f'{name}, instance="10.0.0.2:8000", engine="0"}}': 4,
        f'{name}, instance="10.0.0.3:8000", pod="vllm-1", engine="0"}}': 7,
    }
    found = evaluated(tmp_path, series, of_engines(expr))
    assert [4, 9] == sorted(found.values())


def test_engines_of_older_servers_have_a_kv_usage(tmp_path):
    """Under the older name where today's is missing; a server that has both is drawn once, by today's."""
    (older,) = vllm.older(vllm.KV_USAGE)
    series = {
        f'vllm:{older}{{job="vllm", model_name="sim", instance="a", engine="0"}}': 0.5,
        f'vllm:{older}{{job="vllm", model_name="sim", instance="b", engine="0"}}': 0.6,
        f'vllm:{vllm.KV_USAGE}{{job="vllm", model_name="sim", instance="b", engine="0"}}': 0.7,
    }
    found = evaluated(tmp_path, series, of_engines(panel_of(BOARD, 22)["targets"][0]["expr"]))
    assert [0.5, 0.7] == sorted(found.values())
