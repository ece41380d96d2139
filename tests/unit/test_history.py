"""The parts of which the boards' histories are made, and what tells values that do not fit their panel."""

import pytest

from tests import tsdb
from tests.boards import escaped, substituted
from tests.history import BEGIN, Poll, native, scraped
from tests.units import misfits


def rule(name, expr, **labels):
    return {"record": name, "expr": expr, "labels": labels}


class TestLevels:
    def test_a_rule_waits_for_what_it_reads(self):
        """Each pass reads only what earlier ones record, in whatever order the rules stand."""
        top, middle, low = rule("c:c:c", "b:b:b + a:a:a"), rule("b:b:b", "rate(a:a:a[5m])"), rule("a:a:a", "up")

        assert [[low], [middle], [top]] == tsdb.levels([top, middle, low])

    def test_a_rule_may_read_what_was_recorded_before_it_under_its_own_name(self):
        """Then those before it are waited for, and who reads the name waits for all of them."""
        part, rest = rule("a:a:a", "up", stage="x"), rule("a:a:a", 'up - a:a:a{stage="x"}', stage="y")
        reader = rule("b:b:b", "a:a:a")

        assert [[part], [rest], [reader]] == tsdb.levels([reader, part, rest])

    def test_a_ring_is_an_error(self):
        """Rules that wait for each other are named."""
        with pytest.raises(AssertionError, match=r"\['a:a:a', 'b:b:b'\]"):
            tsdb.levels([rule("a:a:a", "b:b:b"), rule("b:b:b", "a:a:a")])


def test_an_alert_fires_once_it_has_held():
    """Pending for its hold, then firing; a gap begins anew."""
    alert = {"alert": "A", "for": "30s"}
    lines = list(tsdb._held(alert, {"x": "y"}, [0, 15, 30, 45, 90, 105, 120], 15))
    states = [line.partition('alertstate="')[2].partition('"')[0] for line in lines]

    assert ["pending"] * 2 + ["firing"] * 2 + ["pending"] * 2 + ["firing"] == states
    assert lines[0] == 'ALERTS{alertname="A",alertstate="pending",x="y"} 1 0'


def test_a_page_gets_the_labels_of_its_scrape():
    """Comments go, labels are added to those there are."""
    body = '# HELP a b\na{le="1"} 2.0\nb 3\n'

    assert ['a{le="1",instance="i:1",job="vllm"} 2.0 7', 'b{instance="i:1",job="vllm"} 3 7'] == list(
        native(body, "i:1", 7, {})
    )


def test_a_server_that_is_away_has_no_series():
    """A scrape shows the last poll before it: a page, or that the server is down."""
    polls = [Poll(BEGIN + at, "i:1", body) for at, body in ((0, "x 1\n"), (10, "x 2\n"), (20, None), (31, "x 4\n"))]
    own = '{instance="i:1",job="vllm"}'

    assert [
        f"up{own} 1.0 {BEGIN}",
        f"x{own} 1 {BEGIN}",
        f"up{own} 1.0 {BEGIN + 15}",
        f"x{own} 2 {BEGIN + 15}",
        f"up{own} 0.0 {BEGIN + 30}",
        f"up{own} 1.0 {BEGIN + 45}",
        f"x{own} 4 {BEGIN + 45}",
    ] == list(scraped(polls, None, BEGIN))


def test_variables_are_put_in_as_grafana_does():
    """Both notations, Grafana's own durations, and values escaped for a regular expression inside a PromQL string."""
    expr = 'rate(x{a=~"$a", b=~"${b:regex}"}[$__rate_interval]) / $__range_s'
    values = {"a": escaped("10.0.0.1:8000"), "b": ".*"}

    assert r'rate(x{a=~"10\\.0\\.0\\.1:8000", b=~".*"}[60s]) / 900' == substituted(expr, values, step=15, span=900)
    with pytest.raises(KeyError, match="unknown"):
        substituted("$unknown", {})


def panel(unit="none", *mappings):
    return {"type": "stat", "fieldConfig": {"defaults": {"unit": unit, "mappings": list(mappings)}, "overrides": []}}


STATES = {"type": "value", "options": {"0": {}, "1": {}}}


@pytest.mark.parametrize(
    ("one", "expr", "points", "wrong"),
    [
        (panel("percentunit"), "x", [0, 0.5, 1], False),
        (panel("percentunit"), "x", [50], True),
        (panel("s"), "x", [0.3, 40, float("nan")], False),
        (panel("s"), "x", [-0.1], True),
        (panel("s"), "x", [1.8e9], True),
        (panel("none", STATES), "x", [0, 1], False),
        (panel("none", STATES), "x", [2], True),
        (panel(), "count(x)", [3], False),
        (panel(), "count(x) / 2", [1.5], True),
    ],
)
def test_values_that_do_not_fit_are_told(one, expr, points, wrong):
    """Shares are no per cent, times no time stamps, states are named, counts are whole."""
    assert wrong == bool(list(misfits(one, {"refId": "A", "legendFormat": "", "expr": expr}, points)))
