"""The board of latency: how the caller's wait is averaged, and which servers' waits are drawn side by side."""

import pytest

from dashboards.boards import latency
from dashboards.fields import STAGE_COLOURS
from tests.unit.board_queries import evaluated, panel_of, plain
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rc


@pytest.fixture(scope="module")
def board():
    return latency.board()


def client(fleet, seconds, requests, exporter="x:1"):
    """What an exporter tells of the callers of a fleet: so many requests a minute waited so long in the mean."""
    labels = f'fleet="{fleet}", instance="{exporter}", job="tidegauge"'
    return {
        f'{ex.STAGE_SECONDS.name}{{{labels}, stage="client"}}': f"{seconds:g}x30",
        f"{ex.CALLER_WAIT.name}_count{{{labels}}}": f"0+{requests:g}x30",
    }


class TestClient:
    @pytest.mark.parametrize("id_", [7, 10])
    @pytest.mark.parametrize(
        ("told", "expected"),
        [
            (client("a", 4, 2), 4),
            ({**client("a", 0.1, 1), **client("b", 10, 98)}, 9.9),
            ({**client("a", 0.1, 98), **client("b", 10, 1)}, 0.2),
            ({**client("a", 1, 3), **client("a", 5, 1, "y:1")}, 2),
            ({**client("a", 4, 2), **client("b", 9, 0)}, 4),
        ],
    )
    def test_mean_is_that_of_all_requests(self, board, tmp_path, id_, told, expected):
        """Not of fleets or of exporters, which may have been told of few: a fleet that sent nothing does not count."""
        expr = plain(panel_of(board, id_)["targets"][0]["expr"])
        found = evaluated(tmp_path, told, expr, at="20m")
        assert {"stage=client": pytest.approx(expected, rel=0.02)} == found

    def test_nothing_sent_has_no_mean(self, board, tmp_path):
        """Nothing of nothing is not a wait of 0."""
        assert {} == evaluated(tmp_path, client("a", 4, 0), plain(panel_of(board, 7)["targets"][0]["expr"]), at="20m")


def waits(**servers):
    """The p90 and, a tenth of it, the p50 of servers."""
    return {
        f'{rc.QUEUE_TIME.name}{{where="server", backend="{name}", model_name="m", quantile="{quantile}"}}': wait
        for name, p90 in servers.items()
        for quantile, wait in (("0.9", p90), ("0.5", p90 / 10))
    }


class TestQuantiles:
    def drawn(self, board, tmp_path, servers):
        """The values by legend. One Prometheus answers all queries, so that servers that are alike have one order."""
        legends = [
            f'label_replace({target["expr"]}, "legend", "{target["legendFormat"]}", "", "")'
            for target in panel_of(board, 15)["targets"]
        ]
        expr = plain(" or ".join(legends)).replace("[$__range] @ end()", "[1m]")
        found = {}
        for text, value in evaluated(tmp_path, waits(**servers), f"sum by (backend, legend) ({expr})").items():
            backend, legend = (pair.partition("=")[2] for pair in text.split(", ", 1))
            found[legend.replace("{{backend}}", backend)] = value
        return found

    def test_longest_come_first(self, board, tmp_path):
        """Three servers of four, each with both quantiles."""
        assert {
            "1st d, p90": 9,
            "1st d, p50": 0.9,
            "2nd b, p90": 7,
            "2nd b, p50": 0.7,
            "3rd a, p90": 5,
            "3rd a, p50": 0.5,
        } == self.drawn(board, tmp_path, {"a": 5, "b": 7, "c": 3, "d": 9})

    def test_those_that_wait_alike_take_a_place_each(self, board, tmp_path):
        """Idle servers all have the edge for p90; one of them is not drawn twice, none shares a place."""
        found = self.drawn(board, tmp_path, {"a": 3, "b": 3, "c": 3, "d": 9})
        servers = {name.split()[0]: name.split()[1] for name in found if name.endswith("p90")}
        assert (6, 3, "d,") == (len(found), len(set(servers.values())), servers["1st"])

    def test_a_server_has_one_colour_and_its_p50_is_dashed(self, board):
        """The pair is told by the colour, its halves by the dashes; callers are purple, as on every board."""
        overrides = panel_of(board, 15)["fieldConfig"]["overrides"]
        colours = {
            one["matcher"]["options"]: prop["value"]["fixedColor"]
            for one in overrides
            for prop in one["properties"]
            if prop["id"] == "color"
        }
        dashed = [one["matcher"]["options"] for one in overrides if one["properties"][0]["id"] == "custom.lineStyle"]
        assert {"/^1st /", "/^2nd /", "/^3rd /", "/^callers of /"} == set(colours)
        assert (4, STAGE_COLOURS["client"]) == (len(set(colours.values())), colours["/^callers of /"])
        assert ["/, p50$/"] == dashed
