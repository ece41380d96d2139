"""What the board of capacity says of facts that are known, disputed, unknown, and of none at all."""

import re

import pytest

from dashboards.boards import capacity
from dashboards.queries import FILTERS
from tests.unit.board_queries import column_of, evaluated, panel_of, plain, shown
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

BOARD = capacity.board()


def of(series, value: float, **labels: str) -> dict[str, float]:
    """One sample."""
    inside = ", ".join(f'{name}="{text}"' for name, text in labels.items())
    return {f"{series.name}{{{inside}}}": value}


def member(backend: str, in_flight: float) -> dict[str, float]:
    """A server of the fleet `world`, as vLLM's own series tell of it."""
    subject = {"backend": backend, "model_name": "sim"}
    return (
        of(rc.FLEET_MEMBER, 1, fleet="world", **subject)
        | of(rc.IN_FLIGHT, in_flight, **subject)
        | of(rc.BACKEND_UP, 1, backend=backend)
    )


def polled(backend: str, kv: float | None, source: str = "metrics", *, disputed: bool = False) -> dict[str, float]:
    """What an exporter knows of it."""
    found = of(rc.BACKEND_COVERED, 1, backend=backend) | of(ex.BACKEND_DISTINCT, 1, backend=backend)
    if kv is None:
        return found
    return (
        found
        | of(ex.KV_CAPACITY, kv, backend=backend, source=source)
        | of(rc.KV_CAPACITY, kv, backend=backend)
        | of(ex.KV_DISAGREE, float(disputed), backend=backend)
        | of(rc.REQUEST_CAPACITY, kv // 1000, backend=backend, basis="p90_prompt")
        | of(rc.REQUEST_CAPACITY, kv / 8192, backend=backend, basis="context_window")
    )


# a and b are known, b from two sources that differ; c is polled and unknown; d is polled by nobody.
NATIVE = member("a", 9) | member("b", 6) | member("c", 4) | member("d", 2)
FLEET = (
    NATIVE
    | polled("a", 20_000)
    | polled("b", 16_000, "config", disputed=True)
    | polled("c", None)
    | of(rc.FLEET_CAPACITY, 36, fleet="world", basis="p90_prompt")
    | of(rc.NARROWEST_CAPACITY, 16, fleet="world", basis="p90_prompt")
    | of(rc.FLEET_DISTINCT_UP, 3, fleet="world")
    | of(rc.CEILING, 48, fleet="world", ceiling="client")
    | of(rc.CEILING, 320, fleet="world", ceiling="server")
)
TWIN = FLEET | of(ex.BACKEND_DISTINCT, 0, backend="b")


def narrowest(tmp_path, series: dict[str, float]) -> tuple[str, float]:
    """The backend that panel 3 names, and what it holds."""
    ((labels, value),) = asked(tmp_path, series, 3).items()
    return labels.split("backend=")[1].split(",")[0], value


def asked(tmp_path, series: dict[str, float], id_: int, query: int = 0) -> dict[str, float]:
    """What the panel's query gives, at the basis the board opens with."""
    expr = panel_of(BOARD, id_)["targets"][query]["expr"].replace("$basis", "p90_prompt")
    return evaluated(tmp_path, series, plain(expr).replace("$__range", "1m"))


class TestVerdict:
    def test_counts_the_backends_that_nobody_knows(self, tmp_path):
        """c is polled in vain and d is not polled; of b two sources disagree."""
        assert ({"": 2}, {"": 1}) == (asked(tmp_path, FLEET, 1), asked(tmp_path, FLEET, 1, 1))

    def test_all_known_is_none_unknown(self, tmp_path):
        """0 is said only where an exporter said so."""
        known = member("a", 9) | polled("a", 20_000)
        assert ({"": 0}, {"": 0}) == (asked(tmp_path, known, 1), asked(tmp_path, known, 1, 1))

    @pytest.mark.parametrize("id_", range(1, 7))
    def test_without_an_exporter_says_nothing(self, tmp_path, id_):
        """No zero anywhere: the panel says that there is no exporter, in no colour that means good."""
        panel = panel_of(BOARD, id_)
        assert {} == asked(tmp_path, NATIVE, id_)
        assert re.search("no (caller, )?exporter", panel["fieldConfig"]["defaults"]["noValue"])
        assert "#999999" == panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"]

    @pytest.mark.parametrize("id_", [2, 3, 4, 5, 6, 8, 11])
    def test_with_an_exporter_that_knows_no_size_says_so(self, tmp_path, id_):
        """As of vLLM before 0.24 without its log: an exporter polls, so its absence must not be all that is said."""
        panel = panel_of(BOARD, id_)
        assert {} == asked(
            tmp_path, NATIVE | polled("a", None) | of(rc.CEILING, 48, fleet="world", ceiling="client"), id_
        )
        assert re.search("exporter.* KV", panel["fieldConfig"]["defaults"]["noValue"])

    def test_narrowest_is_named(self, tmp_path):
        """b holds 16; as the twin of a it holds nothing, and a's 20 are the least."""
        assert ("b", 16) == narrowest(tmp_path, FLEET)
        assert ("a", 20) == narrowest(tmp_path, TWIN)

    def test_narrowest_is_healthy(self, tmp_path):
        """b is down."""
        assert ("a", 20) == narrowest(tmp_path, FLEET | of(rc.BACKEND_UP, 0, backend="b"))

    def test_equal_shares(self, tmp_path):
        """Three servers at the narrowest one's 16."""
        assert [48] == list(asked(tmp_path, FLEET, 4).values())

    def test_in_use_counts_a_twin_once(self, tmp_path):
        """9 + 6 + 4 + 2 of 36 in flight; 15 where b is a."""
        assert [round(21 / 36, 4), round(15 / 36, 4)] == [
            round(value, 4) for series in (FLEET, TWIN) for value in asked(tmp_path, series, 5).values()
        ]

    def test_ceiling_is_the_callers(self, tmp_path):
        """48 let in where 36 fit; the servers' slots are no ceiling of a caller."""
        assert [round(48 / 36, 4)] == [round(value, 4) for value in asked(tmp_path, FLEET, 6).values()]


def test_room_is_told_in_requests(tmp_path):
    """a holds 20 and has 9, b holds 10 and has 12: what is over is not room."""
    series = FLEET | of(rc.REQUEST_CAPACITY, 10, backend="b", basis="p90_prompt") | member("b", 12)
    expr = column_of(panel_of(BOARD, 12), "room").replace("$basis", "p90_prompt")
    assert {"backend=a": 11, "backend=b": 0} == evaluated(tmp_path, series, plain(expr))


class TestFacts:
    def test_says_of_each_backend_whether_its_capacity_is_known(self, tmp_path):
        """By its own word each, for all four."""
        found = asked(tmp_path, FLEET, 13)
        words = {labels: shown(panel_of(BOARD, 13), value, "KV capacity")[0] for labels, value in found.items()}
        expected = {"backend=a": "known", "backend=b": "disputed", "backend=c": "unknown", "backend=d": "not polled"}
        assert expected == words

    def test_says_where_each_capacity_is_from(self, tmp_path):
        """That none tells it is a word too, the same as on the other boards."""
        found = asked(tmp_path, FLEET, 13, 2)
        words = {labels: shown(panel_of(BOARD, 13), value, "KV from")[0] for labels, value in found.items()}
        expected = {"backend=a": "metrics", "backend=b": "configured", "backend=c": "unknown"}
        assert expected | {"backend=d": "unknown"} == words

    def test_observed_slots_are_a_lower_bound(self, tmp_path):
        """Said and marked in the cell beside the figure."""
        series = member("a", 9) | of(ex.MAX_NUM_SEQS, 37, backend="a", source="observed")
        assert {"backend=a": 37} == asked(tmp_path, series, 13, 3)
        assert ("at least", "#E69F00") == shown(
            panel_of(BOARD, 13), asked(tmp_path, series, 13, 4)["backend=a"], "slots from"
        )

    def test_backend_of_another_fleet_is_left_out(self, tmp_path):
        """Facts have no fleet of their own."""
        expr = panel_of(BOARD, 13)["targets"][1]["expr"].replace(FILTERS[lb.FLEET], "far")
        assert {} == evaluated(tmp_path, FLEET, plain(expr))
        assert {"backend=a": 20_000, "backend=b": 16_000} == asked(tmp_path, FLEET, 13, 1)
