"""What the board of skew says of twins, of servers that are down, and of how far each backend is from the others."""

from dashboards.boards import skew
from dashboards.queries import FILTERS
from tests.unit.board_queries import evaluated, panel_of, plain, shown
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

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


class TestTable:
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
