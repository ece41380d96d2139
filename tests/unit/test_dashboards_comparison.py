"""Before and after: nothing is credited while anything else moved or is not known."""

import pytest

from dashboards import confounders as cf
from dashboards.boards import comparison
from dashboards.fields import GOOD, GREY, NEUTRAL, TEXT, WARN
from tests.unit.board_queries import panel_of, shown
from tests.unit.comparison_series import MINUTES, compared, facts, fleet, histogram, native, of, without
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rc

BOARD = comparison.board()
RESTARTED = "0+30x15 30+30x14"


def verdict(tmp_path, series, **asked):
    """The words of the verdict and their colour."""
    (value,) = compared(tmp_path, series, panel_of(BOARD, 1)["targets"][0]["expr"], **asked).values()
    for mapping in panel_of(BOARD, 1)["fieldConfig"]["defaults"]["mappings"]:
        one = mapping["options"]
        if mapping["type"] == "range" and one["from"] <= value <= one["to"]:
            return one["result"]["text"], one["result"]["color"]
    return shown(panel_of(BOARD, 1), value)


def states(tmp_path, series, **asked):
    """The word for each confounder."""
    panel = panel_of(BOARD, 2)
    values = compared(tmp_path, series, panel["targets"][2]["expr"], **asked)
    return {name.removeprefix("figure="): shown(panel, value, "moved?")[0] for name, value in values.items()}


MOVES = {
    "prefix-cache hit, 0 to 1": fleet(hit=(0.7, 0.8)),
    "requests per second": fleet(requests=(300, 330)),
    "prompt tokens, mean": fleet(prompt=(900, 800)),
    "output tokens, mean": fleet(output=(40, 46)),
    "servers up": fleet(up=(1, 0)),
    "restarts, then and since": {**fleet(), native(f"{vllm.E2E}_count", "b"): RESTARTED},
    "max_num_seqs, all servers": fleet(slots=(64, 96)),
    "step budget, all servers": fleet(budget=(2048, 8192)),
    "KV tokens, all servers": fleet(tokens=(5000, 4000)),
    "server versions": fleet(version=("1", "2")),
}


class TestVerdict:
    def test_comparable_when_all_is_known_and_the_same(self, tmp_path):
        """Ten confounders, all known, none moved."""
        assert ("comparable", GOOD) == verdict(tmp_path, fleet())
        assert dict.fromkeys(MOVES, "same") == states(tmp_path, fleet())

    @pytest.mark.parametrize("name", MOVES)
    def test_one_that_moved_confounds(self, tmp_path, name):
        """Each confounder alone is enough, and the table names it."""
        assert ("confounded: 1 moved", WARN) == verdict(tmp_path, MOVES[name])
        assert {**dict.fromkeys(MOVES, "same"), name: "moved"} == states(tmp_path, MOVES[name])

    @pytest.mark.parametrize("change", [{"hit": (0.7, 0.75)}, {"prompt": (900, 850)}, {"tokens": (5000, 4800)}])
    def test_within_the_tolerance_is_the_same(self, tmp_path, change):
        """What differs by less than 5 % did not move."""
        assert ("comparable", GOOD) == verdict(tmp_path, fleet(**change))

    def test_counts_what_moved(self, tmp_path):
        """Three of them at once."""
        series = fleet(hit=(0.7, 0.8), slots=(64, 96), version=("1", "2"))
        assert ("confounded: 3 moved", WARN) == verdict(tmp_path, series)

    def test_settings_are_compared_server_by_server(self, tmp_path):
        """Servers that swap their slots have as many as before, and both moved."""
        series = {**fleet(), **facts("a", slots=(32, 64)), **facts("b", slots=(64, 32))}
        assert ("confounded: 1 moved", WARN) == verdict(tmp_path, series)

    @pytest.mark.parametrize("during", ["64x13 2x5 64x9", "64x22 2x5 64x0", "64x22 200x5 64x0", "64x13 200x5 64x9"])
    def test_setting_that_came_and_went_counts(self, tmp_path, during):
        """Few slots, or many, for some minutes of either window, and at the end of both what it was."""
        series = {**fleet(), of(ex.MAX_NUM_SEQS, backend="b", source="log"): during}
        assert "moved" == states(tmp_path, series)["max_num_seqs, all servers"]

    def test_an_upgrade_and_a_downgrade_are_both_seen(self, tmp_path):
        """The same two versions on other servers."""
        series = {**fleet(), **facts("a", slots=(32, 32), version=("1", "2")), **facts("b", version=("2", "1"))}
        assert "moved" == states(tmp_path, series)["server versions"]

    def test_restart_between_the_windows_counts(self, tmp_path):
        """The cache was cold since, though neither window holds the restart; one that was earlier does not matter."""
        for restarted, word in (("0+30x14 0+30x14", "moved"), ("0+30x3 0+30x25", "same")):
            asked = {"offset": f"{2 * MINUTES}m"} if word == "moved" else {}
            series = {**fleet(), native(f"{vllm.E2E}_count", "b"): restarted}
            assert word == states(tmp_path, series, **asked)["restarts, then and since"]

    def test_upgrade_within_the_earlier_window_counts(self, tmp_path):
        """The later window holds one version, which the earlier one ended with."""
        of_b = {"backend": "b", "fleet": "f"}
        series = {
            **fleet(),
            of(ex.BACKEND_INFO, **of_b, version="1"): "1x15 stale",
            of(ex.BACKEND_INFO, **of_b, version="2"): "_x16 1x14",
        }
        assert "moved" == states(tmp_path, series)["server versions"]


class TestUnknown:
    @pytest.mark.parametrize(
        ("lost", "name"),
        [
            (ex.MAX_NUM_SEQS.name, "max_num_seqs, all servers"),
            (ex.MAX_BATCHED_TOKENS.name, "step budget, all servers"),
            (ex.KV_CAPACITY.name, "KV tokens, all servers"),
            (ex.BACKEND_INFO.name, "server versions"),
            (f"vllm:{vllm.PREFIX_QUERIES}", "prefix-cache hit, 0 to 1"),
            (f"vllm:{vllm.PROMPT_LENGTH}", "prompt tokens, mean"),
            (f"vllm:{vllm.OUTPUT_LENGTH}", "output tokens, mean"),
            (rc.BACKEND_UP.name, "servers up"),
        ],
    )
    def test_is_not_the_same(self, tmp_path, lost, name):
        """Each confounder that is not known makes it impossible to tell, and is named."""
        series = without(fleet(), lost)
        assert ("cannot tell: 1 unknown", NEUTRAL) == verdict(tmp_path, series)
        assert {**dict.fromkeys(MOVES, "same"), name: "unknown"} == states(tmp_path, series)

    def test_no_exporter(self, tmp_path):
        """Without an exporter nothing is known of slots, step budget, KV tokens and versions."""
        assert ("cannot tell: 4 unknown", NEUTRAL) == verdict(tmp_path, fleet(known=False))

    def test_fact_of_one_server_is_not_enough(self, tmp_path):
        """The other one may have changed; nor is one that became known later."""
        lost = of(ex.MAX_NUM_SEQS, backend="b", source="log")
        assert ("cannot tell: 1 unknown", NEUTRAL) == verdict(tmp_path, without(fleet(), lost))
        assert ("cannot tell: 1 unknown", NEUTRAL) == verdict(tmp_path, {**fleet(), lost: "_x21 64x9"})

    def test_observed_slots_are_unknown(self, tmp_path):
        """A lower bound that follows the load does not tell the setting."""
        assert "unknown" == states(tmp_path, fleet(slots=(64, 96), source="observed"))["max_num_seqs, all servers"]

    def test_empty_version_is_unknown(self, tmp_path):
        """An exporter that does not know the version says so with an empty label."""
        assert "unknown" == states(tmp_path, fleet(version=("", "")))["server versions"]

    def test_what_moved_outweighs_what_is_unknown(self, tmp_path):
        """Nothing can be credited either way."""
        assert ("confounded: 1 moved", WARN) == verdict(tmp_path, fleet(known=False, hit=(0.7, 0.8)))


class TestNotEnough:
    @pytest.mark.parametrize("requests", [((10, 300), (9, 300)), ((300, 10), (300, 9)), ((0, 300), (0, 300))])
    def test_few_requests_say_nothing(self, tmp_path, requests):
        """Under twenty in either window, over all servers."""
        first, second = requests
        series = {**fleet(requests=second), **histogram("a", vllm.E2E, first, (2, 2))}
        assert ("not enough data", NEUTRAL) == verdict(tmp_path, series)

    def test_twenty_are_enough(self, tmp_path):
        """Ten on each server in both windows."""
        series = {**fleet(requests=(10, 10)), **histogram("a", vllm.E2E, (10, 10), (2, 2))}
        assert ("comparable", GOOD) == verdict(tmp_path, series)

    def test_nothing_before(self, tmp_path):
        """Prometheus does not reach back that far: absent is not "the same"."""
        late = {key: "_x21 " + value.split(" ", 1)[-1] for key, value in fleet().items() if key.startswith("vllm:")}
        assert ("not enough data", NEUTRAL) == verdict(tmp_path, {**fleet(), **late})

    def test_nothing_at_all(self, tmp_path):
        """No series, no verdict."""
        assert ("not enough data", NEUTRAL) == verdict(tmp_path, {"up": 1})

    @pytest.mark.parametrize("offset", ["5m", "8m", "480s", "9m59s"])
    def test_windows_that_overlap(self, tmp_path, offset):
        """Ten minutes, fewer minutes apart: they share requests, whatever unit the offset is typed in."""
        assert ("windows overlap", NEUTRAL) == verdict(tmp_path, fleet(), offset=offset)

    @pytest.mark.parametrize("offset", ["10m", "600s", "0h10m", "12m"])
    def test_windows_that_meet_do_not_overlap(self, tmp_path, offset):
        """The one ends where the other begins, or before."""
        assert ("windows overlap", NEUTRAL) != verdict(tmp_path, fleet(), offset=offset)


class TestLines:
    """Panels that lay both windows over each other."""

    @pytest.fixture(params=range(8, 14))
    def looks(self, request):
        """The colour and the style of each line of a panel."""
        overrides = panel_of(BOARD, request.param)["fieldConfig"]["overrides"]
        found = {one["matcher"]["options"]: {p["id"]: p["value"] for p in one["properties"]} for one in overrides}
        return {name: (of["color"]["fixedColor"], of["custom.lineStyle"]) for name, of in found.items()}

    def test_each_has_a_look_of_its_own(self, looks):
        """By colour, as the legends of older Grafanas show no pattern, and before also by pattern."""
        colours = [colour for colour, _ in looks.values()]
        patterns = [style["fill"] for name, (_, style) in looks.items() if name.endswith("before")]

        assert len(looks) == len(set(colours))
        assert len(patterns) == len(set(patterns)) == len(looks) / 2

    def test_before_has_gaps_and_no_hue(self, looks):
        """Whatever else a panel shows; after is a solid line in a colour."""
        for name, (colour, style) in looks.items():
            gone = name.endswith("before")
            assert gone == (colour in {GREY, TEXT}) == (style["fill"] in {"dash", "dot"}), name


def test_offsets_are_the_durations_they_stand_for():
    """What is chosen and what is typed reach a query as the same text."""
    (offset,) = [one for one in BOARD["templating"]["list"] if one["name"] == "offset"]

    assert [(one, one) for one in comparison.OFFSETS] == [(one["text"], one["value"]) for one in offset["options"]]
    assert (offset["current"]["value"], offset["type"]) == ("1h", "custom")


def test_states_can_be_told_apart_in_their_sum():
    """As many unknown ones as there are do not look like one that moved."""
    assert cf.UNKNOWN * len(cf.CONFOUNDERS) < cf.MOVED
    assert cf.MOVED * len(cf.CONFOUNDERS) + cf.UNKNOWN * len(cf.CONFOUNDERS) < cf.TOO_FEW < cf.OVERLAP
