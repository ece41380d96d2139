"""The board of load: the knee by bins, and what is absent rather than 0."""

import pytest

from dashboards.boards import load
from tests.unit.board_queries import evaluated, panel_of, plain, shown
from tidegauge import vllm
from tidegauge.catalogue import recorded as rc

FINISHED, KNEE, VERDICT = 3, 7, 8


@pytest.fixture(scope="module")
def board():
    return load.board()


def expr_of(board, id_, query=0):
    expr = plain(panel_of(board, id_)["targets"][query]["expr"])
    return expr.replace("$__range", "8m").replace("$__interval", "1m")


def server(backend, in_flight, rate, model="m"):
    labels = f'{{backend="{backend}", model_name="{model}"}}'
    return {f"{rc.IN_FLIGHT_5M.name}{labels}": in_flight, f"{rc.OUTPUT_RATE.name}{labels}": rate}


# Minutes at 5 in flight, then minutes at 20: there one gives more than before, the other less.
RISING = server("a", "5x5 20x3", "100x5 120x3")
LEVEL = server("a", "5x5 20x3", "100x5 102x3")
FALLING = server("a", "5x5 20x3", "100x5 90x3")
PEAK = {**server("a", "5x12", "100x12"), **server("b", "5x12", "100x12"), **server("c", "5x8 64 5x3", "100x8 10 100x3")}
"""One minute of 27 far above the others, in which little came out."""


class TestKnee:
    def test_bins_are_by_what_is_in_flight(self, board, tmp_path):
        """Bins double: 5 in flight is in the bin from 4, 20 in that from 16; each has its own mean and throughput."""
        held, given = (evaluated(tmp_path, RISING, expr_of(board, KNEE, query), at="9m") for query in (0, 2))
        assert held == {"at_least=4, model_name=m": 5, "at_least=16, model_name=m": 20}
        assert given == {"at_least=4, model_name=m": 100, "at_least=16, model_name=m": 120}

    def test_backends_are_weighed_by_their_time_in_a_bin(self, board, tmp_path):
        """Two minutes of one backend at 50 and six of another at 100 tokens a second: 87.5, not 75."""
        series = {**server("a", "0x5 6 6 0x5", "0x5 50 50 0x5"), **server("b", "0x3 4x5 0x5", "0x3 100x5 0x5")}
        assert evaluated(tmp_path, series, expr_of(board, KNEE, 2), at="11m") == {"at_least=4, model_name=m": 87.5}

    def test_idle_time_is_in_no_bin(self, board, tmp_path):
        """Less than one request in flight says nothing of throughput."""
        assert evaluated(tmp_path, server("a", "0.9x12", "3x12"), expr_of(board, KNEE, 1), at="9m") == {}

    @pytest.mark.parametrize(
        ("series", "words"),
        [
            (RISING, "not reached"),
            (FALLING, "reached"),
            (LEVEL, "reached"),
            (server("a", "5x12", "100x12"), "not reached"),
            (PEAK, "not reached"),
        ],
    )
    def test_verdict(self, board, tmp_path, series, words):
        """Reached where more in flight gave no more; not by a passing peak, nor by one row alone."""
        (value,) = evaluated(tmp_path, series, expr_of(board, VERDICT), at="9m").values()
        assert words == shown(panel_of(board, VERDICT), value)[0]

    def test_models_are_never_mixed(self, board, tmp_path):
        """A large model that gives little at 20 in flight is no knee of a small one that gives much at 5."""
        series = {**server("a", "5x12", "900x12", model="small"), **server("b", "20x12", "40x12", model="large")}
        assert {"model_name=small": 0, "model_name=large": 0} == evaluated(
            tmp_path, series, expr_of(board, VERDICT), at="9m"
        )
        shares = evaluated(tmp_path, series, expr_of(board, KNEE, 1), at="9m")
        assert {"at_least=4, model_name=small": 1, "at_least=16, model_name=large": 1} == shares


class TestTurnedAway:
    COUNTED = f'vllm:{vllm.REJECTIONS}{{instance="a", model_name="m", reason="max_num_queued_reqs"}}'
    REFUSED = f'{rc.REJECTION_RATE.name}{{backend="a", model_name="m", reason="max_num_queued_reqs"}}'

    def test_nobody(self, board, tmp_path):
        """Counted and none refused is a 0, under its own name."""
        assert evaluated(tmp_path, {self.COUNTED: 7}, expr_of(board, 17, 1)) == {"": 0}

    def test_somebody(self, board, tmp_path):
        """Where requests are refused there is no line that says none."""
        assert evaluated(tmp_path, {self.COUNTED: 7, self.REFUSED: 0.1}, expr_of(board, 17, 1)) == {}

    def test_servers_that_do_not_count(self, board, tmp_path):
        """An older server says nothing about it, and so does the panel."""
        assert evaluated(tmp_path, {"up": 1}, expr_of(board, 17, 1)) == {}


def test_the_legend_has_room_for_every_reason(board):
    """One line for all of them: a table below a third of a board shows three rows, and vLLM has five reasons."""
    panel = panel_of(board, FINISHED)
    assert ("list", "bottom") == tuple(panel["options"]["legend"][key] for key in ("displayMode", "placement"))


def test_quantiles_are_of_backends_and_never_merged(board, tmp_path):
    """The p99 of three backends: 2 s is the median one's, 9 s the slowest one's."""
    series = {
        f'{rc.TTFT_5M.name}{{backend="{name}", model_name="m", quantile="0.99"}}': value
        for name, value in (("a", 1), ("b", 2), ("c", 9))
    }
    assert [{"": 2}, {"": 9}] == [evaluated(tmp_path, series, expr_of(board, 12, query)) for query in (2, 3)]
