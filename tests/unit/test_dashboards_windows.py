"""Before and after: each figure is exactly of its window, and over requests."""

import re

import pytest

from dashboards import windows as w
from dashboards.boards import comparison
from dashboards.windows import AFTER, BEFORE
from tests.unit.board_queries import panel_of
from tests.unit.comparison_series import compared, counted, counters, fleet, histogram, native, of, server, without
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

BOARD = comparison.board()


class TestFigures:
    """The case's before and after, and small ones."""

    def series(self):
        means = {
            vllm.E2E: (20.47, 17.5),
            vllm.QUEUE: (3.75, 2.0),
            vllm.PREFILL: (2.78, 2.0),
            vllm.DECODE: (13.72, 13.0),
        }
        return server("a") | {
            name: values
            for family, both in means.items()
            for name, values in histogram("a", family, (528, 528), both).items()
        }

    def figure(self, tmp_path, series, of_window):
        return [round(*compared(tmp_path, series, of_window(one)).values(), 3) for one in (BEFORE, AFTER)]

    def test_mean_and_its_change(self, tmp_path):
        """20.47 s to 17.50 s is -14.5 %."""
        panel, series = panel_of(BOARD, 4), self.series()
        rows = [compared(tmp_path, series, target["expr"]) for target in panel["targets"][:3]]
        assert [20.47, 17.5, -0.145] == [round(row["figure=end-to-end, mean"], 3) for row in rows]

    def test_stages_add_up(self, tmp_path):
        """Queue is 18.3 % of end-to-end, prefill 13.6 %, decode 67 %, other 1.1 %."""
        shares = [self.figure(tmp_path, self.series(), lambda one, s=s: w.share(one, s))[0] for s in lb.SERVER_STAGES]
        assert [0.183, 0.136, 0.67, 0.011] == shares
        assert [0.22, 0.5] == self.figure(tmp_path, self.series(), w.other)

    def test_mean_is_over_requests_not_over_servers(self, tmp_path):
        """100 requests of 2 s and 300 of 6 s take 5 s, not 4."""
        series = {**histogram("a", vllm.E2E, (100, 1), (2, 9)), **histogram("b", vllm.E2E, (300, 3), (6, 1))}
        assert [5, 3] == self.figure(tmp_path, series, lambda one: w.mean(one, vllm.E2E))

    def test_sum_that_goes_back_alone_is_left_out(self, tmp_path):
        """A negative observation is no restart: no figure rather than a wrong one."""
        series = histogram("a", vllm.E2E, (100, 100), (2, 2))
        series[native(f"{vllm.E2E}_sum", "a")] = "0+20x25 10+20x4"
        assert {} == compared(tmp_path, series, w.mean(AFTER, vllm.E2E))
        assert [2] == list(compared(tmp_path, series, w.mean(BEFORE, vllm.E2E)).values())

    def test_late_waves_and_p90(self, tmp_path):
        """Half of 100 wait, and none of 100 elsewhere: late 0.25, 4/3 waves. Then none does, and p90 is the edge."""
        buckets = {"0.3": (50, 100), "10": (50, 100), "20": (100, 100), "+Inf": (100, 100)}
        series = counters("a", f"{vllm.QUEUE}_count", 100, 100)
        series |= {native(f"{vllm.QUEUE}_bucket", "a", le=le): counted(*growth) for le, growth in buckets.items()}
        series[of(rc.QUEUE_EDGE, backend="a", model_name="m")] = "0.3x30"
        assert [18, 0.3] == self.figure(tmp_path, series, lambda one: w.worst(one, vllm.QUEUE, rc.QUEUE_EDGE))
        series |= {key.replace('"a"', '"b"'): counted(100, 100) for key in series if key.startswith("vllm:")}
        assert [0.25, 0] == self.figure(tmp_path, series, w.late)
        assert [1.333, 1] == self.figure(tmp_path, series, lambda one: w.waves(w.late(one)))

    def test_p90_of_a_quiet_server_does_not_count(self, tmp_path):
        """Nineteen requests of a slow server say nothing."""
        series = {}
        for backend, count, bound in (("a", 100, "1"), ("b", 19, "9")):
            series |= counters(backend, f"{vllm.TTFT}_count", count, count)
            for le in ("1", "9", "+Inf"):
                grown = count if le == "+Inf" or float(le) >= float(bound) else 0
                series[native(f"{vllm.TTFT}_bucket", backend, le=le)] = counted(grown, grown)
        assert [0.9, 0.9] == self.figure(tmp_path, series, lambda one: w.worst(one, vllm.TTFT))

    def test_callers_wait(self, tmp_path):
        """45 of 100 wait over 0.1 s, then none."""
        series = {
            of(f"{ex.CALLER_WAIT.name}_count", fleet="f"): counted(100, 100),
            of(f"{ex.CALLER_WAIT.name}_sum", fleet="f"): counted(80, 1),
            of(f"{ex.CALLER_WAIT.name}_bucket", fleet="f", le="0.1"): counted(55, 100),
            of(f"{ex.CALLER_WAIT.name}_bucket", fleet="f", le="2"): counted(100, 100),
            of(f"{ex.CALLER_WAIT.name}_bucket", fleet="f", le="+Inf"): counted(100, 100),
        }
        assert [0.45, 0] == self.figure(tmp_path, series, w.caller_late)
        assert [0.8, 0.01] == self.figure(tmp_path, series, w.caller_mean)
        assert [1.578, 0.1] == self.figure(tmp_path, series, w.caller_p90)

    def test_skew_is_within_a_fleet(self, tmp_path):
        """The case's 2.70 and 1.05; a slower backend of another fleet is not held against them, nor a quiet one."""
        served = {
            "a": ("f", 264, (32.91, 17.90)),
            "b": ("f", 264, (12.18, 17.05)),
            "c": ("g", 264, (99, 99)),
            "d": ("f", 19, (99, 99)),
        }
        series = {}
        for backend, (fleet_, count, means) in served.items():
            series |= histogram(backend, vllm.E2E, (count, count), means)
            series[of(rc.FLEET_MEMBER, fleet=fleet_, backend=backend, model_name="m")] = "1x30"
        assert [2.702, 1.05] == self.figure(tmp_path, series, w.skew)
        assert {} == compared(
            tmp_path, without(series, of(rc.FLEET_MEMBER, fleet="f", backend="a", model_name="m")), w.skew(AFTER)
        )

    def test_backend_is_called_as_our_series_call_it(self, tmp_path):
        """On Kubernetes vLLM's series have a pod and an instance, and the pod is the backend."""
        series = {
            of(f"vllm:{vllm.E2E}_count", instance="10.0.0.1:8000", pod="vllm-0", model_name="m"): counted(100, 200),
            of(f"vllm:{vllm.E2E}_count", instance="b", model_name="m"): counted(30, 40),
            of(rc.FLEET_MEMBER, fleet="f", backend="vllm-0", model_name="m"): "1x30",
            of(rc.FLEET_MEMBER, fleet="f", backend="b", model_name="m"): "1x30",
        }
        expected = {"backend=vllm-0, model_name=m": 200, "backend=b, model_name=m": 40}
        assert expected == compared(tmp_path, series, w.each_requests(AFTER))

    def test_no_look_up_saves_nothing(self, tmp_path):
        """Known to be 0, which is not unknown."""
        series = {**counters("a", vllm.PREFIX_QUERIES, 0, 100), **counters("a", vllm.PREFIX_HITS, 0, 60)}
        assert [0, 0.6] == self.figure(tmp_path, series, w.prefix_hit)

    def test_prefix_cache_of_an_older_server(self, tmp_path):
        """Under its older names it counts as under today's; a server that has both counts once, by today's."""
        queries, hits = (vllm.older(one)[0] for one in (vllm.PREFIX_QUERIES, vllm.PREFIX_HITS))
        member = {of(rc.FLEET_MEMBER, fleet="f", backend="a", model_name="m"): "1x30"}
        series = {**member, **counters("a", queries, 100, 300), **counters("a", hits, 60, 30)}
        assert [0.6, 0.1] == self.figure(tmp_path, series, w.prefix_hit)
        assert [0.6, 0.1] == self.figure(tmp_path, series, w.each_prefix_hit)
        series |= {**counters("a", vllm.PREFIX_QUERIES, 100, 100), **counters("a", vllm.PREFIX_HITS, 70, 80)}
        assert [0.7, 0.8] == self.figure(tmp_path, series, w.prefix_hit)

    def test_late_of_a_server_that_two_jobs_scrape(self, tmp_path):
        """Its requests are counted twice, on time or late: the share stays."""
        series = {}
        for job in ("one", "two"):
            series[native(f"{vllm.QUEUE}_count", "a", job=job)] = counted(100, 100)
            for le, growth in (("0.3", (75, 100)), ("+Inf", (100, 100))):
                series[native(f"{vllm.QUEUE}_bucket", "a", job=job, le=le)] = counted(*growth)
        assert [0.25, 0] == self.figure(tmp_path, series, w.late)


def test_nothing_changes_from_zero(tmp_path):
    """A figure that was 0 has no change in percent; shares change in points."""
    series = {**fleet(), **counters("a", vllm.PREEMPTIONS, 0, 5)}
    before, after, change = (compared(tmp_path, series, one["expr"]) for one in panel_of(BOARD, 6)["targets"][:3])
    assert (0, 5, None) == tuple(one.get("figure=preemptions") for one in (before, after, change))
    points = compared(tmp_path, fleet(hit=(0.7, 0.8)), panel_of(BOARD, 5)["targets"][2]["expr"])
    assert points["figure=prefix-cache hit"] == pytest.approx(0.05)


def test_every_row_has_its_place():
    """The rows keep the order in which they are read, whether or not they have a value."""
    for id_, figures in ((4, comparison.TIMES), (5, comparison.SHARES), (6, comparison.LOADS)):
        order = panel_of(BOARD, id_)["targets"][3]["expr"]
        assert list(figures) == re.findall(r'"figure", "([^"]+)"', order)
