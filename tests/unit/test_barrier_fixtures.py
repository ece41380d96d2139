"""Barriers inferred from real servers' pages against what the client recorded."""

import gzip
import json
from collections import defaultdict
from math import inf
from pathlib import Path
from statistics import median

import pytest
from barrier_readings import matched, resampled

from tidegauge.derive.barriers import infer
from tidegauge.derive.ceiling import waves
from tidegauge.derive.moves import Reading, reading_of
from tidegauge.parsing.exposition import PageReader
from tidegauge.sources import captures
from tidegauge.state.increases import Increases

CAPTURES = Path(__file__).parents[1] / "fixtures" / "captures"
UNCAPPED = ("uncapped", "restart", "short", "tinykv", "two_engines")
SLOTS = {"a": 8, "b": 16}


def read(capture: str) -> list[Reading]:
    """Every poll of a capture's servers, as the live exporter would feed it."""
    readings = []
    for path in sorted((CAPTURES / capture).glob("*.scrapes.gz")):
        backend, reader, increases = path.name[0], PageReader(), Increases(900.0, inf)
        for taken in captures.read(path):
            if taken.body is None:
                readings.append(Reading(backend, taken.at, None))
                continue
            page = reader.read(taken.body)
            readings.append(reading_of(backend, page, increases.advance(page, taken.at)))
    return readings


def calls(capture: str) -> list[dict]:
    with gzip.open(CAPTURES / capture / "truth.jsonl.gz", "rt") as stream:
        return [json.loads(line) for line in stream]


def barriers(capture: str) -> list[tuple[float, int]]:
    """The client's barriers: when opened, and fan-out."""
    of = defaultdict(list)
    for call in calls(capture):
        of[call["barrier"]].append(call["submitted"])
    return sorted((min(times), len(times)) for times in of.values())


def again(capture: str, every: float, phases: dict[str, float]) -> list[Reading]:
    """The capture's calls, polled anew."""
    by_backend = defaultdict(list)
    for call in calls(capture):
        by_backend[call["backend"]].append((call["sent"], call["ended"]))
    return resampled(by_backend, every, phases)


class TestAsRecorded:
    """At the recorded poll a second."""

    @pytest.mark.parametrize("capture", UNCAPPED)
    def test_fan_out_without_a_cap(self, capture):
        """Without a caller's cap, fan-out is exact for 95 % of barriers, median and maximum are exact."""
        truth = barriers(capture)
        found, _ = infer(read(capture))
        exact = sum(best is not None and fan_out == best.fan_out for fan_out, best in matched(truth, found, 1.5))
        assert exact >= 0.95 * len(truth)
        assert median(fan_out for _, fan_out in truth) == median(one.fan_out for one in found)
        assert max(fan_out for _, fan_out in truth) == max(one.fan_out for one in found)

    @pytest.mark.parametrize("capture", UNCAPPED)
    def test_nothing_is_invented(self, capture):
        """No barrier is reported that the client did not launch, and none of them as clipped but a stray one."""
        found, _ = infer(read(capture))
        assert len(found) <= len(barriers(capture))
        assert sum(one.clipped for one in found) <= 1

    def test_a_restart_hides_its_barrier(self):
        """The barrier whose calls could not be seen while a backend was away is counted as blurred, not reported."""
        truth = barriers("restart")
        found, confidence = infer(read("restart"))
        assert (len(truth) - 1, 1) == (len(found), confidence.counts["blurred"])
        assert all(best is None or fan_out == best.fan_out for fan_out, best in matched(truth, found, 1.5))

    def test_capped(self):
        """A client's cap of 8 shows as a plateau within 1 of 8; every arrival counts, the barriers are within 15 %."""
        truth = barriers("capped")
        found, _ = infer(read("capped"))
        assert sum(fan_out for _, fan_out in truth) == sum(one.fan_out for one in found)
        assert abs(len(found) - len(truth)) <= 0.15 * len(truth)
        plateaus = [one.plateau for one in found if one.clipped]
        assert len(plateaus) >= 0.9 * len(found)
        assert all(7 <= plateau <= 8 for plateau in plateaus)
        assert median(plateaus) == 8

    def test_idle(self):
        """An idle fleet has no barriers, and no opinion."""
        found, confidence = infer(read("idle"))
        assert ([], 0.0, None) == (found, confidence.log_ratio, confidence.open)

    def test_aborts(self):
        """Aborted calls are counted as departed, and the groups that were launched at once have their true sizes."""
        found, _ = infer(read("aborts"))
        assert 10 == sum(one.departed for one in found)
        assert {8, 24} <= {one.fan_out for one in found}


class TestPolledFaster:
    """The same calls polled four times a second."""

    @pytest.mark.parametrize("phases", [{}, {"b": 0.43}, {"a": 0.2, "b": 0.75}])
    @pytest.mark.parametrize("capture", ["uncapped", "capped", "short", "tinykv", "two_engines"])
    def test_barriers_and_waves(self, capture, phases):
        """Barriers are within 5 %, median fan-out within 1, waves right for 90 %, at whatever phases polls come."""
        truth = barriers(capture)
        found, _ = infer(again(capture, 0.25, phases))
        assert abs(len(found) - len(truth)) <= 0.05 * len(truth)
        assert abs(median(fan_out for _, fan_out in truth) - median(one.fan_out for one in found)) <= 1
        assert sum(self.waves_right(capture, found, truth)) >= 0.9 * len(truth)

    @staticmethod
    def waves_right(capture, found, truth):
        """Per barrier: whether the waves through the ceiling in force are the true ones."""
        ceiling = 8 if capture == "capped" else sum(SLOTS.values())
        for fan_out, best in matched(truth, found, 0.5):
            if best is None:
                yield False
                continue
            seen = (best.plateau or inf) if capture == "capped" else ceiling
            yield waves(fan_out, ceiling) == waves(best.fan_out, seen)

    def test_the_cap_shows(self):
        """The cap of 8 is the plateau of every barrier that is reported as clipped, and nearly all are."""
        found, _ = infer(again("capped", 0.25, {"b": 0.43}))
        assert {8.0} == {one.plateau for one in found if one.clipped}
        assert sum(one.clipped for one in found) >= 0.9 * len(found)
