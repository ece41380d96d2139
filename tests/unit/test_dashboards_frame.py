"""What every board has: its marks and its table of firing alerts, which follow what is chosen."""

import pytest

from dashboards import frame
from dashboards.queries import FILTERS
from tests.unit.board_queries import evaluated, plain
from tidegauge.catalogue import labels as lb

ANYTHING = dict.fromkeys(FILTERS, ".*")


def alert(name, severity="warning", state="firing", **labels):
    """An alert as Prometheus writes it."""
    given = {"alertname": name, "alertstate": state, "severity": severity, **labels}
    pairs = (f'{label}="{value}"' for label, value in given.items())
    return f"ALERTS{{{', '.join(pairs)}}}"


FIRING = {
    alert("VllmSkew", fleet="f", model_name="m"): 1,
    alert("VllmPreempting", "info", backend="a", model_name="m"): 1,
    alert("VllmPreempting", "info", backend="b", model_name="n"): 1,
    alert("VllmQueueTimeBimodal", "critical", fleet="f", where="caller"): 1,
    alert("TidegaugeDown", "critical"): 1,
    alert("TidegaugeDown", "critical", "pending", backend="a"): 1,
    alert("SomeoneElses", "critical", backend="a"): 1,
}


def asked(tmp_path, query=0, names=(), **chosen):
    """The rows of the table: name and subject of each alert, to the query's value."""
    expr = frame.alerts(1, *names).targets[query].expr
    for label, value in chosen.items():
        expr = expr.replace(FILTERS[label], value)
    rows = {}
    for text, value in evaluated(tmp_path, FIRING, plain(expr)).items():
        labels = dict(one.split("=", 1) for one in text.split(", "))
        rows[labels["alertname"], " ".join(labels.get("subject", "").split())] = value
    return rows


class TestFiringAlerts:
    def test_are_ours_with_what_each_is_about(self, tmp_path):
        """Pending ones and those of others are left out; the subject is every label that says where."""
        assert {
            ("VllmSkew", "f m"),
            ("VllmPreempting", "a m"),
            ("VllmPreempting", "b n"),
            ("VllmQueueTimeBimodal", "f caller"),
            ("TidegaugeDown", ""),
        } == set(asked(tmp_path))

    @pytest.mark.parametrize(
        ("chosen", "hidden"),
        [
            ({lb.BACKEND: "a"}, {("VllmPreempting", "b n")}),
            ({lb.BACKEND: "(c|d)"}, {("VllmPreempting", "a m"), ("VllmPreempting", "b n")}),
            ({lb.MODEL_NAME: "n"}, {("VllmPreempting", "a m"), ("VllmSkew", "f m")}),
            ({lb.FLEET: "g"}, {("VllmSkew", "f m"), ("VllmQueueTimeBimodal", "f caller")}),
        ],
    )
    def test_follow_what_is_chosen(self, tmp_path, chosen, hidden):
        """One on another backend, model or fleet is gone; one without such a label stays."""
        assert hidden == set(asked(tmp_path)) - set(asked(tmp_path, **chosen))

    def test_gravest_come_first(self, tmp_path):
        """Critical, warning, info: not the order of the alphabet; each row has a rank."""
        ranks = asked(tmp_path, 1)
        assert set(asked(tmp_path)) == set(ranks)
        expected = ["TidegaugeDown", "VllmQueueTimeBimodal", "VllmSkew", "VllmPreempting", "VllmPreempting"]
        assert expected == [name for name, _ in sorted(ranks, key=lambda row: (ranks[row], row))]

    def test_can_be_those_of_some_names(self, tmp_path):
        """A board shows the alerts that it explains."""
        assert {"TidegaugeDown"} == {name for name, _ in asked(tmp_path, names=("Tidegauge.+",))}


def test_board_without_a_variable_does_not_filter_by_it():
    """The board of SLOs has no fleet to choose."""
    expr = frame.alerts(1, by=(lb.MODEL_NAME, lb.BACKEND)).targets[0].expr
    assert (True, False) == (FILTERS[lb.BACKEND] in expr, FILTERS[lb.FLEET] in expr)
