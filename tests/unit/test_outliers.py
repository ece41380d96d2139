"""Which backends a panel draws of a hundred, and the median it draws them against."""

import pytest

from dashboards import outliers
from dashboards.queries import FILTERS
from tests.unit.board_queries import evaluated
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc


def opened(expr: str, **chosen: str) -> str:
    """The expression on a board with these choices, and All of the rest."""
    for label, variable in FILTERS.items():
        expr = expr.replace(variable, chosen.get(label, ".*"))
    return expr.replace("$__range", "1m")


def fleet(name: str, values: dict[str, float]) -> dict[str, float]:
    """Backends of one fleet, with their end-to-end means and the requests they run."""
    return {
        f'{series.name}{{backend="{backend}", model_name="m-{name}"{more}}}': figure
        for backend, value in values.items()
        for series, more, figure in (
            (rc.FLEET_MEMBER, f', fleet="{name}"', 1),
            (rc.FLEET_E2E, f', fleet="{name}"', value),
            (rc.RUNNING, "", value),
        )
    }


# Medians 13 and 100.
AGENTS = fleet("agents", {"a1": 1, "a2": 12, "a3": 13, "a4": 13.5, "a5": 40})
CHAT = fleet("chat", {"c1": 98, "c2": 100, "c3": 104, "c4": 90, "c5": 100.5})


class TestFarthest:
    def test_draws_the_farthest_from_the_median_of_their_own_fleet(self, tmp_path):
        """Six of ten: 27, 12, 10, 4, 2 and 1 away. Far from the median of another fleet is not far."""
        expected = {"a5": 40, "a1": 1, "c4": 90, "c3": 104, "c1": 98, "a2": 12}
        found = evaluated(tmp_path, AGENTS | CHAT, opened(outliers.farthest(rc.RUNNING)))
        assert expected == {labels.split("backend=")[1].split(",")[0]: value for labels, value in found.items()}

    def test_a_chosen_backend_is_held_against_its_whole_fleet(self, tmp_path):
        """Choosing two backends draws these two, and the median stays that of all five."""
        both = opened(outliers.farthest(rc.FLEET_E2E), **{lb.BACKEND: "a4|a5"})
        middle = opened(outliers.median(rc.FLEET_E2E), **{lb.BACKEND: "a4|a5"})
        assert [13.5, 40] == sorted(evaluated(tmp_path, AGENTS | CHAT, both).values())
        assert {"fleet=agents": 13} == evaluated(tmp_path, AGENTS | CHAT, middle)

    def test_one_backend_is_its_own_median(self, tmp_path):
        """A fleet of one is drawn, over a median that is itself."""
        alone = fleet("solo", {"s": 7})
        assert [7] == list(evaluated(tmp_path, alone, opened(outliers.farthest(rc.RUNNING))).values())
        assert {"fleet=solo": 7} == evaluated(tmp_path, alone, opened(outliers.median(rc.RUNNING)))


def test_ratio_to_the_median(tmp_path):
    """a5 takes 40 s where its fleet's median is 13 s, c4 90 s where it is 100 s."""
    found = evaluated(tmp_path, AGENTS | CHAT, opened(outliers.of_median(rc.FLEET_E2E)))
    ratios = {labels.split("backend=")[1].split(",")[0]: round(value, 3) for labels, value in found.items()}
    assert (3.077, 0.9) == (ratios["a5"], ratios["c4"])
    assert len(ratios) == 10


@pytest.mark.parametrize(
    ("seconds", "ratios"),
    [
        ({"a": 12.18, "b": 32.91}, {"a": 1, "b": 2.702}),
        ({"a": 10, "b": 16.5}, {"a": 1, "b": 1.65}),
        ({"a": 10, "b": 10, "c": 6}, {"a": 1.667, "b": 1.667, "c": 1}),
    ],
)
def test_ratio_to_the_fastest(tmp_path, seconds, ratios):
    """The largest is what the definitions and the alert call skew, of two backends as of many."""
    series = fleet("f", seconds) | {f'{rc.FLEET_SKEW.name}{{fleet="f"}}': max(ratios.values())}
    found = evaluated(tmp_path, series, opened(outliers.of_fastest()))
    assert ratios == {labels.split("backend=")[1].split(",")[0]: round(value, 3) for labels, value in found.items()}


def test_ratio_to_the_fastest_of_all_though_another_is_chosen(tmp_path):
    """a5 takes 40 times as long as a1; a fleet whose backends cannot be compared has no such ratio."""
    series = AGENTS | CHAT | {f'{rc.FLEET_SKEW.name}{{fleet="agents"}}': 40}
    chosen = opened(outliers.of_fastest(), **{lb.BACKEND: "a5|c1"})
    assert [40] == list(evaluated(tmp_path, series, chosen).values())


@pytest.mark.parametrize("chosen", [{}, {lb.BACKEND: "a1"}])
def test_the_worst_fleet_gives_its_figure_and_its_backend(tmp_path, chosen):
    """Of two fleets the one that differs more is told: 4.2, under the name of its slowest backend, chosen or not."""
    series = {
        **AGENTS,
        **CHAT,
        f'{rc.FLEET_SLOWEST.name}{{fleet="agents", backend="a5", model_name="m"}}': 40,
        f'{rc.FLEET_SLOWEST.name}{{fleet="chat", backend="c3", model_name="n"}}': 104,
        f'{rc.FLEET_SKEW.name}{{fleet="agents"}}': 4.2,
        f'{rc.FLEET_SKEW.name}{{fleet="chat"}}': 1.2,
    }
    expr = opened(outliers.odd_one(rc.FLEET_SLOWEST, rc.FLEET_SKEW), **chosen)
    assert {"backend=a5, fleet=agents, model_name=m": 4.2} == evaluated(tmp_path, series, expr)
