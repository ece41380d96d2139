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

    def test_name_and_subject_share_the_width(self):
        """However narrow the panel is, what an alert is about is not hidden behind its name."""
        overrides = frame.alerts(1).overrides
        given = {
            one["matcher"]["options"]: {prop["id"] for prop in one["properties"]}
            for one in overrides
            if one["matcher"]["id"] == "byName"
        }
        assert {"severity": {"custom.width"}, "Alert": {"links"}} == given

    def test_can_be_those_of_some_names(self, tmp_path):
        """A board shows the alerts that it explains."""
        assert {"TidegaugeDown"} == {name for name, _ in asked(tmp_path, names=("Tidegauge.+",))}


class TestMarks:
    @pytest.mark.parametrize("interval", ["15s", "2m", "15m"])
    def test_an_alert_is_marked_where_it_begins(self, tmp_path, interval):
        """Once, at the end of the step in which it began, however long the steps are; not while it goes on."""
        begun, minutes = 31, 91
        series = {alert("VllmSkew", fleet="f"): f"_x{begun} 1x{minutes - begun}"}
        seconds = {"15s": 15, "2m": 120, "15m": 900}[interval]
        expr = plain(frame._fired()).replace("$__interval", interval)
        at = [moment for moment in range(0, minutes * 60, seconds) if evaluated(tmp_path, series, expr, f"{moment}s")]

        assert [-(-begun * 60 // seconds) * seconds] == at

    def test_an_alert_that_ends_within_a_step_is_marked(self, tmp_path):
        """Ten minutes of firing between two points that are a quarter of an hour apart."""
        series = {alert("VllmSkew", fleet="f"): "_x31 1x10 stale _x60"}
        expr = plain(frame._fired()).replace("$__interval", "15m")

        assert [2700] == [m for m in range(0, 5400, 900) if evaluated(tmp_path, series, expr, f"{m}s")]

    @pytest.mark.parametrize(("interval", "marked"), [("1m", {32 * 60}), ("15m", {45 * 60})])
    def test_a_restart_is_marked_in_steps_of_any_length(self, tmp_path, interval, marked):
        """Of a chosen server, told by the exporter or seen in the counters."""
        told = {'tidegauge_backend_restarts_total{backend="a"}': "0x31 1x60"}
        seen = {
            f'vllm:request_success_total{{instance="{name}",model_name="m"}}': "5+5x31 3+5x60" for name in ("a", "b")
        }
        step = int(interval[:-1]) * 60
        expr = frame._restarted().replace("$__rate_interval", f"{step + 15}s")
        for variable, value in {FILTERS[lb.MODEL_NAME]: "m", FILTERS[lb.BACKEND]: "a"}.items():
            expr = expr.replace(variable, value)
        for series in (told, seen):
            found = {at: evaluated(tmp_path, series, expr, f"{at}s") for at in range(0, 5400, step)}
            assert marked == {at for at, rows in found.items() if rows}
            assert {1} == {len(rows) for rows in found.values() if rows}
