"""A caller's own metrics: the exporter's names, labels and buckets, and nothing that was not told."""

import subprocess
import sys
from math import inf
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

import tidegauge.caller
from tidegauge.caller import Reporter
from tidegauge.caller.metrics import BUCKETS, CallerMetrics
from tidegauge.catalogue import EXPORTED
from tidegauge.catalogue import exported as ex

BY_NAME = {series.name.removesuffix("_total"): series for series in EXPORTED}


class Process:
    """A process that is scraped: a registry, the metrics in it, reporters that send nothing."""

    def __init__(self):
        self.time = 1000.0
        self.registry = CollectorRegistry()
        self.metrics = CallerMetrics(self.registry, window=900.0, clock=lambda: self.time)

    def reporter(self, fleet="agents"):
        return Reporter(None, fleet=fleet, caller="sim-1", metrics=self.metrics)

    def families(self):
        return list(self.registry.collect())

    def value(self, series, **labels):
        return self.registry.get_sample_value(series.name, labels)


def busy():
    process = Process()
    for fleet, ceiling in (("agents", 16), ("batch", 4)):
        reporter = process.reporter(fleet)
        limiter = reporter.limiter(ceiling)
        reporter.healthy(ceiling // 2)
        for fan_out in (29, 31, 14):
            with reporter.barrier(fan_out), limiter.slot():
                pass
        reporter.tell("wait", seconds=9.5)
    return process


class TestCatalogue:
    def test_names_labels_and_help_are_the_exporters(self):
        """So that rules and boards read either."""
        families = busy().families()

        assert {
            "tidegauge_caller_wait_seconds",
            "tidegauge_waiting_seconds",
            "tidegauge_barriers",
            "tidegauge_barrier_fanout",
            "tidegauge_ceiling",
            "tidegauge_caller_healthy_backends",
        } == {family.name for family in families}
        for family in families:
            series = BY_NAME[family.name]
            used = {label for sample in family.samples for label in sample.labels} - {"le"}
            assert (series.kind, series.help) == (family.type, family.documentation)
            assert used <= set(series.labels)

    def test_buckets_are_the_exporters(self):
        """A quantile of both is a quantile of one histogram."""
        assert (*ex.CALLER_WAIT.buckets, inf) == BUCKETS

    def test_promtool_accepts_the_page(self):
        """No complaint at all."""
        found = subprocess.run(
            ["promtool", "check", "metrics"], input=generate_latest(busy().registry), capture_output=True, check=False
        )

        assert (0, b"", b"") == (found.returncode, found.stdout, found.stderr)


class TestFigures:
    def test_fleets_have_their_own(self):
        """Of two reporters of one process."""
        process = busy()

        assert [16, 4] == [
            process.value(ex.CEILING, fleet=fleet, ceiling="client", source="reported") for fleet in ("agents", "batch")
        ]
        assert [8, 2] == [process.value(ex.CALLER_HEALTHY, fleet=fleet) for fleet in ("agents", "batch")]
        assert 3 == process.value(ex.BARRIERS, fleet="batch", source="reported")

    def test_waits_are_a_histogram_and_seconds_waited(self):
        """Up to each edge, itself included."""
        process = Process()
        reporter = process.reporter()
        for seconds in (0.0, 0.1, 0.11, 4.5, 900.0):
            reporter.tell("wait", seconds=seconds)
        found = {
            edge: process.registry.get_sample_value(f"{ex.CALLER_WAIT.name}_bucket", {"fleet": "agents", "le": edge})
            for edge in ("0.01", "0.1", "0.2", "5.0", "480.0", "+Inf")
        }

        assert {"0.01": 1, "0.1": 2, "0.2": 3, "5.0": 4, "480.0": 4, "+Inf": 5} == found
        assert pytest.approx(904.71) == process.value(ex.WAITING_SECONDS, fleet="agents", cause="caller")

    def test_fan_outs_are_those_of_the_window(self):
        """The median between the middle two, p90 by nearest rank; without a barrier in the window absent, not 0."""
        process = Process()
        reporter = process.reporter()

        def stats():
            return [
                process.value(ex.BARRIER_FANOUT, fleet="agents", source="reported", stat=stat)
                for stat in ("median", "p90", "max")
            ]

        reporter.tell("barrier_opened", id="0", fan_out=90)
        process.time += 600
        for number, fan_out in enumerate((29, 31, 14, 12)):
            reporter.tell("barrier_opened", id=str(number + 1), fan_out=fan_out)
        assert [29, 90, 90] == stats()
        process.time += 301
        assert [21.5, 31, 31] == stats()
        process.time += 600
        assert [None] * 3 == stats()
        assert 5 == process.value(ex.BARRIERS, fleet="agents", source="reported")

    def test_nothing_told_is_nothing_exposed(self):
        """Not even an empty family; an impossible fan-out is not told."""
        process = Process()
        reporter = process.reporter()
        reporter.tell("barrier_opened", id="1", fan_out=-3)

        assert [] == process.families()

    def test_closed_reporter_is_silent(self):
        """What comes later is dropped here as it is there."""
        process = Process()
        reporter = process.reporter()
        reporter.close()
        reporter.healthy(3)

        assert [] == process.families()


def test_second_one_in_a_registry_is_refused():
    """Two would expose each series twice: one is shared."""
    registry = CollectorRegistry()
    CallerMetrics(registry)

    with pytest.raises(ValueError, match="Duplicated timeseries"):
        CallerMetrics(registry)


def test_library_works_without_prometheus_client():
    """Only its metrics need it."""
    folder = Path(tidegauge.caller.__file__).parents[2]
    program = f"""
import sys
sys.path.insert(0, {str(folder)!r})
from tidegauge.caller import Reporter
with Reporter(None, fleet="agents", caller="sim-1") as reporter, reporter.barrier(3), reporter.limiter(1).slot():
    pass
assert "prometheus_client" not in sys.modules
"""
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, timeout=60)
