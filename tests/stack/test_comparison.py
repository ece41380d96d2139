"""Whatever a reader types for how much earlier the first window is: a duration is taken, anything else refused."""

import pytest

from dashboards import confounders as cf
from tests import tsdb
from tests.boards import GENERATED, asked, defaults, panels_of, substituted
from tests.generations import GENERATIONS
from tests.units import heading

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]

BOARD = GENERATED["comparison"]
DURATIONS = ["8m", "480s", "2h", "1d12h", "1h30m", "1w", "8m "]
NO_DURATIONS = [
    *("", "0", "0s", "900", "1.5", "1e3", "0x10", "NaN"),
    *("-1h", "1h*2", "1h + 30m", "1h or vector(1)", "1h @ 5", "1h # so", "15m:1m", "1h)"),
    *("90min", "1h 30m", "half an hour"),
]
"""Among them what `offset` takes after a selector, in one generation of Prometheus or in both."""
QUESTIONS = {
    f"{panel['id']}{target['refId']}": target
    for panel in panels_of(BOARD)
    for target in panel.get("targets", [])
    if panel["type"] != "table" or heading(panel, target)
}
"""The board's queries, by panel and letter, but for those that only put the rows of a table in order."""


@pytest.fixture(params=GENERATIONS)
def loaded(request, load):
    return load("demo", request.param)


def refused(loaded, offset):
    """The queries that are."""
    values = {**defaults(BOARD), "offset": offset}
    for name, target in QUESTIONS.items():
        try:
            asked(loaded.server, target, values, loaded.begin, loaded.end)
        except tsdb.QueryError:
            yield name


@pytest.mark.parametrize("offset", DURATIONS)
def test_a_duration_is_taken(loaded, offset):
    """Of any unit that PromQL has up to weeks, and of several."""
    assert [] == list(refused(loaded, offset))


@pytest.mark.parametrize("offset", NO_DURATIONS)
def test_anything_else_is_refused(loaded, offset):
    """By every query, so that no panel shows a figure."""
    assert list(QUESTIONS) == list(refused(loaded, offset))


@pytest.mark.parametrize(("offset", "overlap"), [("599s", True), ("9m", True), ("600s", False), ("10m", False)])
@pytest.mark.parametrize("moment", [0, 0.3])
def test_overlap_is_told_to_the_second(loaded, offset, overlap, moment):
    """Of windows of ten minutes, at a whole second or between two, as a browser asks."""
    verdict = substituted(QUESTIONS["1A"]["expr"], {**defaults(BOARD), "offset": offset}, span=600)
    (row,) = loaded.server.at(verdict, loaded.end + moment)

    assert overlap == (float(row["value"][1]) == cf.OVERLAP)
