"""One fleet's load as its servers show it: barriers in figures and reports, arrivals, burstiness, what is kept."""

import json
import random
from pathlib import Path
from statistics import median

import attrs
import pytest
from barrier_readings import polls, resampled
from test_barrier_fixtures import barriers, calls, read

from tests.builders import clipped
from tidegauge import cli
from tidegauge.derive.barriers import InferredBarrier, infer
from tidegauge.derive.ceiling import Order, order
from tidegauge.derive.inference import (
    FEW,
    KEPT,
    LATEST,
    LONGEST_BURSTS,
    FleetInference,
    Grounds,
    grounds_of,
    plateau_of,
)
from tidegauge.derive.moves import Reading
from tidegauge.derive.settings import Settings
from tidegauge.report import replay

CAPTURES = Path(__file__).parents[1] / "fixtures" / "captures"


def paths(capture):
    return {path.name[0]: path for path in sorted((CAPTURES / capture).glob("*.scrapes.gz"))}


def replayed(capture):
    """The figures of a capture's servers as one fleet."""
    (fleet,) = replay.replay(replay.load(paths(capture), {}, {}, "captures"), Settings()).fleets
    return fleet


def fed(readings, *, window=900.0, interval=1.0, largest=None, finish=True):
    inference = FleetInference("m", window, interval, largest)
    for reading in readings:
        inference.feed(reading)
    if finish:
        inference.finish()
    return inference


def barrier(fan_out, plateau=None, at=0.0):
    return InferredBarrier(at, 2.0, fan_out, fan_out, 0.0, plateau)


class TestCaptures:
    @pytest.mark.parametrize("capture", ["uncapped", "restart", "short", "tinykv", "two_engines", "capped", "aborts"])
    def test_report_and_inference_agree(self, capture):
        """The figures of a replay hold exactly the barriers that the whole record gives, the last one included."""
        expected, _ = infer(read(capture))
        fleet = replayed(capture)

        assert [one.fan_out for one in expected] == [one.fan_out for one in fleet.inferred.barriers]
        # To the thousandth: the usual time between polls is told by the first pages here, by all of them there.
        assert [one.opened_at for one in expected] == pytest.approx(
            [one.at for one in fleet.inferred.barriers], rel=0, abs=1e-3
        )
        assert [one.seconds for one in expected] == pytest.approx(
            [one.seconds for one in fleet.inferred.barriers], rel=0, abs=1e-3
        )
        assert ("inferred", len(expected), len(expected)) == (
            fleet.barriers[0].source,
            fleet.barriers[0].total,
            fleet.barriers[0].count,
        )

    @pytest.mark.parametrize("capture", ["uncapped", "short", "tinykv", "two_engines"])
    def test_without_a_cap(self, capture):
        """Median and largest fan-out are the client's own, and no ceiling is made up."""
        truth = [fan_out for _, fan_out in barriers(capture)]
        fleet = replayed(capture)

        assert (median(truth), max(truth)) == (fleet.barriers[0].fan_out.median, fleet.barriers[0].fan_out.max)
        assert (float(max(truth)), "inferred") == fleet.natural_bound
        assert () == fleet.ceilings

    def test_with_a_cap_of_four_per_backend(self):
        """The plateau of 8 is the caller's ceiling as observed; barriers of 16 to 32 calls are cut into waves."""
        fleet = replayed("capped")
        (one,) = fleet.ceilings

        assert ("client", 8.0, "observed", "clips") == (one.kind, one.value, one.source, fleet.states["client"])
        assert 4 == fleet.barriers[0].waves["client"].median
        assert 1.0 == fleet.barriers[0].clipped["client"]
        assert None is fleet.caller_queue

    @pytest.mark.parametrize("capture", ["uncapped", "restart", "short", "tinykv", "two_engines", "capped"])
    def test_arrivals_are_the_calls(self, capture):
        """By backend, every one, and nobody left unfinished; what the restart took is known to the client alone."""
        sent = [call["backend"] for call in calls(capture)]
        inferred = replayed(capture).inferred

        assert {name: float(sent.count(name)) for name in paths(capture)} == inferred.arrivals
        assert {0.0} == set(inferred.departed.values())

    def test_aborted_calls_departed(self):
        """Ten calls were aborted at backend a."""
        assert {"a": 10.0, "b": 0.0} == replayed("aborts").inferred.departed

    def test_idle_fleet_has_no_barriers(self):
        """And no burstiness; it was polled all the same."""
        fleet = replayed("idle")

        assert ((), None, None) == (fleet.barriers, fleet.natural_bound, fleet.inferred.burstiness)
        assert {"a": 0.0, "b": 0.0} == fleet.inferred.arrivals

    def test_through_the_command(self, capsys):
        """Captures given together are one fleet, unless they are put into several."""
        given = [text for name, path in paths("short").items() for text in ("--capture", f"{name}={path}")]
        assert 0 == cli.main(["report", *given, "--json"])
        (together,) = json.loads(capsys.readouterr().out)["fleets"]
        assert 0 == cli.main(["report", *given, "--fleet", "one=a", "--fleet", "two=b", "--json"])
        apart = {fleet["name"]: fleet for fleet in json.loads(capsys.readouterr().out)["fleets"]}

        (found,) = together["barriers"]
        assert ("inferred", 25, 24) == (found["source"], found["count"], found["fan_out"]["max"])
        assert (True, 25) == (together["inference"]["sure"], together["inference"]["counts"]["barriers"])
        assert {"one", "two"} == set(apart)
        for name, fleet in zip("ab", ("one", "two"), strict=True):
            alone, _ = infer(reading for reading in read("short") if reading.backend == name)
            assert order([one.fan_out for one in alone]) == Order(**apart[fleet]["barriers"][0]["fan_out"])
        assert 0 == cli.main(["report", *given])
        assert "25 barriers (inferred)" in capsys.readouterr().out


class TestPlateau:
    def test_is_that_of_the_latest_barriers(self):
        """The median of those that ran into one."""
        assert 8.0 == plateau_of([barrier(29, plateau) for plateau in (7.0, 8.0, 8.0)])

    def test_one_alone_may_be_chance(self):
        """Nor do a few of many make a ceiling: 19 was seen once among barriers of up to 32."""
        assert None is plateau_of([barrier(29, 19.0)])
        assert None is plateau_of([barrier(29)] * 5 + [barrier(31, 19.0)] + [barrier(30)] * 4)
        assert None is plateau_of([barrier(30)] * 3 + [barrier(29, 19.0)] * 2)

    def test_barriers_that_fit_under_it_say_nothing(self):
        """Five launched 12 calls: a ceiling of 16 did not show, and is in force all the same."""
        assert 16.0 == plateau_of([barrier(29, 16.0), barrier(12), barrier(12), barrier(31, 16.0)] + [barrier(12)] * 5)

    def test_raised_ceiling_is_gone(self):
        """Larger barriers do not meet it any more."""
        assert None is plateau_of([barrier(29, 16.0)] * 30 + [barrier(29)] * LATEST)
        assert 28.0 == plateau_of([barrier(31, 16.0)] * 9 + [barrier(31, 28.0)] * LATEST)

    def test_none_was_seen(self):
        """Nothing is in force that shows."""
        assert None is plateau_of([])
        assert None is plateau_of([barrier(29)])

    def test_of_a_fleet(self):
        """21 calls through 8 slots: three waves; each barrier carries the ceiling it met."""
        found = fed(clipped(barriers=5, fan_out=21, ceiling=8)).snapshot(2000.0)

        assert 8.0 == found.plateau
        assert (("client", 8.0),) == found.barriers[-1].ceilings
        assert Order(21, 21, 21) == order([one.fan_out for one in found.barriers])


class TestWindow:
    def test_barriers_leave_with_the_window_and_stay_counted(self):
        """Total and largest are for ever, order statistics for the window."""
        inference = fed(
            [
                *clipped(barriers=6, fan_out=32, ceiling=64, begin=1000.0),
                *clipped(barriers=6, fan_out=21, ceiling=64, begin=2000.0),
            ]
        )
        late = inference.snapshot(2800.0)

        assert (6, 12, 32) == (len(late.barriers), late.barriers_total, late.largest)
        assert {21} == {one.fan_out for one in late.barriers}
        assert () == inference.snapshot(4000.0).barriers

    def test_record_that_ends_with_a_drain_holds_its_last_barrier(self):
        """Live, the next poll decides."""
        readings = list(clipped(barriers=6, fan_out=9, ceiling=64))[:-3]

        assert 0.0 == readings[-1].in_flight
        assert (6, 5) == tuple(fed(readings, finish=end).snapshot(2000.0).barriers_total for end in (True, False))

    def test_largest_is_remembered(self):
        """From before the restart of the exporter; a larger one replaces it, a smaller one does not."""
        readings = list(clipped(barriers=6, fan_out=21, ceiling=64))

        assert 32 == fed(readings, largest=32).snapshot(2000.0).largest
        assert 21 == fed(readings, largest=14).snapshot(2000.0).largest
        assert None is fed([], largest=None).snapshot(2000.0).largest

    def test_memory_is_bounded_without_anyone_asking(self):
        """No scrape, no report: the oldest go."""
        inference = FleetInference("m", float("inf"), 1.0)
        inference._take([barrier(3)] * (KEPT + 5))

        assert KEPT == len(inference._barriers)


class TestGrounds:
    """What an inferred fan-out rests on, and whether it may be that of several barriers."""

    def merged(self, fan_out, peak):
        return attrs.evolve(barrier(fan_out), peak=peak, replaced=1.0)

    @pytest.mark.parametrize("length", [1.6, 2.0, 3.0, 6.0])
    def test_every_barrier_that_is_several_may_be(self, length):
        """Calls as long as each other, every other pause a tenth of a poll: two barriers are often seen as one.

        Each such one is told, and of the others hardly any, so that the doubt means something.
        """
        wrong, right = [], []
        for seed in range(12):
            rng, at, truth = random.Random(seed), 10.0, []
            sent = {"a": [], "b": []}
            for _ in range(12):
                ends = [at + length * rng.uniform(0.95, 1.05) for _ in range(rng.randint(20, 32))]
                for number, end in enumerate(ends):
                    sent["ab"[number % 2]].append((at, end))
                truth.append((at, len(ends)))
                at = max(ends) + rng.choice((0.1, 1.5))
            found, _ = infer(resampled(sent, 1.0, {"a": rng.random(), "b": rng.random()}))
            for one in found:
                near = max(fan_out for opened, fan_out in truth if abs(opened - one.opened_at) <= 1.5)
                (wrong if one.fan_out > near else right).append(one.maybe_merged)

        assert min(len(wrong), len(right)) > 15
        assert all(wrong)
        assert sum(right) < 0.1 * len(right)

    def test_real_barriers_that_merged(self):
        """Under a ceiling of 4 a backend two were seen as one; without one the largest of 40 is certain."""
        capped, free = replayed("capped").inferred, replayed("uncapped").inferred
        largest = max(fan_out for _, fan_out in barriers("capped"))

        assert max(one.fan_out for one in capped.barriers) > largest
        assert (False, True, 8) == (
            capped.grounds.few,
            capped.grounds.largest_maybe_merged,
            capped.grounds.largest_in_flight,
        )
        assert (False, False) == (free.grounds.few, free.grounds.largest_maybe_merged)
        assert free.grounds.maybe_merged < len(free.barriers) / 2

    def test_barrier_whose_calls_were_all_in_flight_at_once_is_one(self):
        """And so is one whose calls came and went between two polls, none in place of another."""
        assert not self.merged(20, 20).maybe_merged
        assert self.merged(20, 19).maybe_merged
        assert not attrs.evolve(barrier(20), peak=3.0).maybe_merged

    def test_the_largest_is_certain_if_one_as_large_is(self):
        """The doubt about the other one does not matter; about how many there is doubt is told."""
        settled = Grounds(few=True, maybe_merged=2, largest_maybe_merged=False, largest_in_flight=57)
        open_one = Grounds(few=True, maybe_merged=1, largest_maybe_merged=True, largest_in_flight=16)

        assert settled == grounds_of([self.merged(57, 16), barrier(57), self.merged(3, 2)])
        assert open_one == grounds_of([self.merged(57, 16), barrier(32)])

    def test_few_are_fewer_than_it_takes_to_tell_the_p90_from_the_largest(self):
        """Of none nothing is said."""
        for number in (FEW - 1, FEW):
            ranked = order(range(number))
            assert (ranked.p90 == ranked.max) is grounds_of([barrier(3)] * number).few
        assert None is grounds_of([])
        assert None is fed([]).snapshot(0.0).grounds


class TestArrivals:
    def test_even_stream_has_a_burstiness_of_one(self):
        """One call a second, done within it."""
        found = fed(polls("a", [(1.0, 0.0), *[(1.0, 1.0)] * 60])).snapshot(60.0)

        assert 1.0 == pytest.approx(found.burstiness)

    def test_bursts_are_those_of_the_fleet(self):
        """20 calls in one second of ten, on two backends: 10; of each alone the same, and not twice that."""
        rows = [(0.0, 0.0), *([(0.0, 10.0)] + [(0.0, 0.0)] * 9) * 30]
        both = sorted(polls("a", rows) + polls("b", rows), key=lambda reading: reading.at)

        assert 10.0 == pytest.approx(fed(both).snapshot(300.0).burstiness)
        assert 10.0 == pytest.approx(fed(polls("a", rows)).snapshot(300.0).burstiness)

    def test_burstiness_is_of_the_window(self):
        """An hour ago it was bursty, for a minute now it has been even."""
        rows = [(0.0, 0.0), *([(0.0, 10.0)] + [(0.0, 0.0)] * 9) * 30, *[(0.0, 1.0)] * 70]

        assert 1.0 == pytest.approx(fed(polls("a", rows), window=60.0).snapshot(370.0).burstiness)
        assert fed(polls("a", rows)).snapshot(370.0).burstiness > 5

    def test_seconds_kept_are_bounded_whatever_the_window(self):
        """A capture of a week."""
        inference = fed([Reading("a", 10_000.0 * step, 0.0, 7.0) for step in range(60)], window=float("inf"))

        assert len(inference._tracker._rates._seconds) <= LONGEST_BURSTS + 2

    def test_what_nobody_saw_is_not_counted(self):
        """The first page, a gap, a poll that failed: neither arrivals nor departures."""
        rows = [(9.0, None), (9.0, 2.0), (None, None), (4.0, None), (4.0, 1.0)]
        found = fed(polls("a", rows)).snapshot(10.0)

        assert ({"a": 3.0}, {"a": 0.0}) == (found.arrivals, found.departed)

    def test_restart_takes_what_was_in_flight(self):
        """Five left unfinished, three came to the new process, two of which are done."""
        readings = [*polls("a", [(5.0, 0.0), (5.0, 0.0)]), Reading("a", 2.0, 1.0, 2.0, restarted=True)]
        found = fed(readings).snapshot(10.0)

        assert ({"a": 3.0}, {"a": 5.0}) == (found.arrivals, found.departed)

    @pytest.mark.parametrize(
        "rows",
        [
            [(4.0, 0.0), (4.0, 1.0), (3.0, 0.0), (3.0, 0.0), (1.0, 2.0), (2.0, 1.0)],
            [(4.0, 0.0), (3.0, 0.0), (3.0, 1.0), (3.0, 0.0), (1.0, 2.0), (2.0, 1.0)],
        ],
        ids=["in both", "in neither"],
    )
    def test_torn_page_is_no_arrival_and_no_departure(self, rows):
        """One call was shown as finished and still in flight, or as neither; then two came."""
        found = fed(polls("a", rows)).snapshot(10.0)

        assert 2.0 == found.arrivals["a"]
        assert found.departed["a"] <= 1.0

    def test_counters_never_fall(self):
        """Whatever a torn page took back."""
        inference, seen = FleetInference("m", 900.0, 1.0), []
        for reading in polls("a", [(4.0, 0.0), (4.0, 1.0), (3.0, 0.0), (3.0, 0.0), (5.0, 0.0), (5.0, 0.0)]):
            inference.feed(reading)
            seen.append(inference.snapshot(10.0).arrivals.get("a", 0.0))

        assert sorted(seen) == seen
        assert 2.0 == seen[-1]
