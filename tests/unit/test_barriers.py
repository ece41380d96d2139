"""Barriers inferred from polls: the rules one by one."""

import random
import sys

import attrs
import pytest
from barrier_readings import polls, resampled

from tests.streams import BURST, IDLE, fan_outs, repeated, together
from tidegauge.derive.barriers import BarrierTracker, infer, usual_interval
from tidegauge.derive.ceiling import waves
from tidegauge.derive.moves import Reading
from tidegauge.derive.segments import Ceilings, Segment

OTHER = [(0, None), IDLE, IDLE, (9, 0), (9, 0), (1, 8), (0, 1), IDLE]


class TestOneBarrier:
    """The rules, on a fleet of two backends that differ."""

    def test_fan_out_counts_calls_of_all_backends(self):
        """Fan-out is the calls of all backends, those that came and went between two polls included."""
        assert [17 + 9] == fan_outs(together(polls("a", BURST), polls("b", OTHER)))

    def test_times(self):
        """It opens and closes in the middle of the intervals in which it did."""
        (barrier,), _ = infer(together(polls("a", BURST, 100.0), polls("b", OTHER, 100.0)))
        assert (102.5, 3.0, False, 0) == (barrier.opened_at, barrier.seconds, barrier.clipped, barrier.departed)

    def test_launch_in_the_middle_of_a_poll(self):
        """A launch that a poll cuts in two is one barrier, while none of its calls has finished."""
        halves = [(0, None), IDLE, IDLE, (2, 0), (15, 2), (6, 9), (0, 6), IDLE]
        assert [17 + 9] * 2 == fan_outs(together(polls("a", repeated(halves, 2)), polls("b", repeated(OTHER, 2))))

    def test_launch_between_polls_at_other_phases(self):
        """A launch that one backend's poll sees half an interval before the other's is one barrier."""
        assert [17 + 9] == fan_outs(together(polls("a", BURST), polls("b", OTHER, start=0.5)))

    def test_quick_calls_on_the_backend_polled_first(self):
        """A barrier is not over before every backend has been polled since it opened."""
        quick = [(0, None), IDLE, (0, 9), IDLE, IDLE, IDLE]
        slow = [(0, None), IDLE, (8, 1), (0, 8), IDLE, IDLE]
        assert [18] * 4 == fan_outs(together(polls("a", repeated(quick, 4)), polls("b", repeated(slow, 4), start=0.5)))

    def test_aborts_do_not_lower_fan_out(self):
        """Calls that were aborted had been launched: arrivals are clamped at 0, and what left is told."""
        aborted = [(0, None), IDLE, IDLE, (17, 0), (6, 3), (0, 6), IDLE, IDLE]
        (barrier,), _ = infer(together(polls("a", aborted), polls("b", OTHER)))
        assert (17 + 9, 8) == (barrier.fan_out, barrier.departed)

    def test_torn_page_is_no_barrier(self):
        """A torn page in the fall of a barrier does not open another."""
        torn = [(0, None), IDLE, IDLE, (14, 3), (1, 13), (1, 1), (0, 0), IDLE]
        assert [17 + 9] == fan_outs(together(polls("a", torn), polls("b", OTHER)))

    def test_missing_polls(self):
        """Polls that are missing change nothing about fan-out: the next one tells what came meanwhile."""
        rows = polls("a", repeated(BURST, 3))
        missing = [one for one in rows if one.at != 4]
        missing[4] = attrs.evolve(missing[4], finished=8.0 + 6.0)
        assert [17 + 9] * 3 == fan_outs(together(missing, polls("b", repeated(OTHER, 3))))

    def test_failed_polls(self):
        """A failed poll is a missing one, whatever it stands between."""
        failed = [Reading("a", number + 0.5, None) for number in range(7)]
        assert [17 + 9] == fan_outs(together(polls("a", BURST), polls("b", OTHER), failed))

    def test_open(self):
        """A barrier that is under way is not reported; its fan-out so far is told."""
        found, confidence = infer(together(polls("a", BURST[:5]), polls("b", OTHER[:5])))
        assert ([], 26) == (found, confidence.open)

    def test_already_under_way(self):
        """A barrier that was under way at the first poll is not reported: nobody saw how many calls it had."""
        found, confidence = infer(polls("a", [(9, None), (4, 5), (0, 4), IDLE, IDLE]))
        assert ([], 1) == (found, confidence.counts["blurred"])

    def test_single_poll(self):
        """Of one poll nothing is known."""
        assert ([], False) == (infer([Reading("a", 1.0, 3)])[0], infer([Reading("a", 1.0, 3)])[1].sure)
        with pytest.raises(ValueError, match="two polls"):
            usual_interval({"a": [1.0]})


class TestManyBarriers:
    """Barriers in a row."""

    def test_apart(self):
        """Every barrier is reported with its own fan-out."""
        streams = together(polls("a", repeated(BURST, 5)), polls("b", repeated(OTHER, 5)))
        assert [26] * 5 == fan_outs(streams)

    def test_drain_between_two_polls(self):
        """A drain that no poll saw parts two barriers if every call of the first had time to end."""
        rows = [(0, None), IDLE, (12, 2), (2, 10), (11, 4), (2, 9), (0, 2), IDLE, IDLE]
        assert [14, 13] * 3 == fan_outs(polls("a", repeated(rows, 3)))

    def test_no_drain_possible(self):
        """Arrivals while a call is in flight from poll to poll belong to the barrier that is open."""
        a = [(0, None), IDLE, (12, 2), (2, 10), (11, 4), (2, 9), (0, 2), IDLE, IDLE]
        b = [(0, None), IDLE, (1, 0), (1, 0), (1, 0), (1, 0), (0, 1), IDLE, IDLE]
        assert [14 + 13 + 1] * 3 == fan_outs(together(polls("a", repeated(a, 3)), polls("b", repeated(b, 3))))

    def test_plateau(self):
        """Calls held back by a caller show as a plateau with one-for-one replacement, and count."""
        rows = [(0, None), IDLE, (8, 0), (8, 2), (7, 4), (8, 3), (8, 5), (3, 5), (0, 3), IDLE, IDLE]
        found, _ = infer(polls("a", repeated(rows, 6)))
        assert [22] * 6 == [barrier.fan_out for barrier in found]
        assert [None] * 2 + [8.0] * 4 == [barrier.plateau for barrier in found]

    def test_plateau_is_the_commonest_peak(self):
        """Polls at other phases may add up to more than was ever in flight, so the highest peak is not the plateau."""
        ceilings = Ceilings()
        for peak in (8.0, 8.0, 11.0, 8.0, 7.0):
            segment = Segment(0.0, 1.0, fan_out=22.0, late=14.0, launched_with=peak, peak=peak)
            plateau = ceilings.close(segment)
        assert 8.0 == plateau

    def test_waves(self):
        """Waves through the plateau are rounded up: 22 through 8 are three."""
        rows = [(0, None), IDLE, (8, 0), (8, 2), (7, 4), (8, 3), (8, 5), (3, 5), (0, 3), IDLE, IDLE]
        last = infer(polls("a", repeated(rows, 6)))[0][-1]
        assert 3 == waves(last.fan_out, last.plateau)

    def test_no_plateau_without_replacement(self):
        """Barriers larger than what polls saw in flight are not clipped: the quick calls came and went."""
        found, _ = infer(together(polls("a", repeated(BURST, 8)), polls("b", repeated(OTHER, 8))))
        assert [None] * 8 == [barrier.plateau for barrier in found]

    def test_one_more_call(self):
        """Fan-outs that differ by one are told apart."""
        rows = [(0, None), IDLE, (5, 1), (0, 5), IDLE, (5, 2), (0, 5), IDLE, IDLE]
        assert [6, 7] * 4 == fan_outs(polls("a", repeated(rows, 4)))


class TestBackendsComeAndGo:
    """Restarts, outages, backends that join."""

    def test_restart_between_two_polls(self):
        """A restart in a barrier loses what was in flight; as it may be sent again, that barrier is only counted."""
        before = polls("a", [*repeated(BURST, 4), IDLE, (26, 0)])
        after = [Reading("a", 31.0, 22.0, 3.0, restarted=True), *polls("a", [(0, 22), IDLE, IDLE], start=32.0)]
        found, confidence = infer([*before, *after])
        assert ([17] * 4, 1) == ([barrier.fan_out for barrier in found], confidence.counts["blurred"])

    def test_restart_of_an_idle_backend(self):
        """A restart of an idle backend changes nothing: what the new process got is counted."""
        before = polls("a", [*repeated(BURST, 4), IDLE])
        after = [Reading("a", 30.0, 22.0, 3.0, restarted=True), *polls("a", [(0, 22), IDLE, IDLE], start=31.0)]
        assert [17] * 4 + [25] == fan_outs([*before, *after])

    def outage(self, rest):
        """Backend a goes away as a barrier opens on b, and is away for ten polls."""
        a = [*polls("a", BURST), *polls("a", [(0, 0)], start=8.0)]
        back = [Reading("a", 20.0, 0.0, 0.0, restarted=True), *polls("a", rest, start=21.0)]
        b = polls("b", [*OTHER, IDLE, (9, 0), (4, 5), (0, 4), *[IDLE] * 20, *OTHER[2:], *OTHER[2:]])
        return infer(together(a, back, b))

    def test_outage_as_a_barrier_opens(self):
        """The barrier whose part on the lost backend nobody can see is not reported, not even what comes after it."""
        found, confidence = self.outage([(11, 2), (3, 8), (0, 3), *[IDLE] * 7, *BURST[2:], *BURST[2:]])
        assert 26 == found[0].fan_out
        assert 1 == confidence.counts["blurred"]
        assert {26, 9, 17} >= {barrier.fan_out for barrier in found}
        assert 13 not in {barrier.fan_out for barrier in found}

    def test_backend_leaves_for_good(self):
        """The others' barriers go on being reported when a backend leaves for good in the middle of one."""
        a = polls("a", repeated(BURST, 8))
        gone = [reading for reading in polls("b", repeated(OTHER, 8)) if reading.at < 32]
        assert [26] * 4 == fan_outs(together(a, gone))[:4]
        assert [17] * 3 == fan_outs(together(a, gone))[-3:]

    def test_backend_joins(self):
        """A backend that joins in the middle of a barrier does not make another of it."""
        a = polls("a", repeated(BURST, 8))
        late = [reading for reading in polls("b", repeated(OTHER, 8)) if reading.at >= 32]
        late[0] = attrs.evolve(late[0], finished=None)
        found = fan_outs(together(a, late))
        assert ([17] * 4, [26] * 3) == (found[:4], found[-3:])
        assert 8 >= len(found)

    def test_gap(self):
        """A burst in a time of which nothing is known but its counters is counted as blurred, and not reported."""
        rows = polls("a", repeated(BURST, 4))
        gap = [one for one in rows if not 9 < one.at < 16]
        gap = [attrs.evolve(one, finished=17.0) if one.at == 16 else one for one in gap]
        found, confidence = infer(gap)
        assert ([17] * 3, 1) == ([barrier.fan_out for barrier in found], confidence.counts["blurred"])


class TestTracker:
    """The same, live."""

    def readings(self, hours, backends=50, every=15.0):
        """Barriers of about two calls a backend every four polls, then steady traffic of the same rate."""
        rng = random.Random(7)
        in_flight = [0] * backends
        rounds = int(hours * 3600 / every)
        for number in range(rounds):
            for backend in range(backends):
                burst = rng.randint(1, 3) if number % 4 == 0 else 0
                arrived = burst if number < rounds // 2 else rng.choice((0, 0, 0, 1, 1))
                finished = min(in_flight[backend] + arrived, rng.choice((1, 2, 3)) if number % 4 != 3 else 99)
                in_flight[backend] += arrived - finished
                at = (number + backend / backends) * every
                yield Reading(f"backend-{backend}", at, in_flight[backend], finished if number else None)

    def test_same_as_infer(self):
        """Fed one by one it reports what the whole record gives, each barrier once and in order."""
        readings = together(polls("a", repeated(BURST, 6)), polls("b", repeated(OTHER, 6), start=0.4))
        tracker = BarrierTracker(1.0)
        fed = [barrier for reading in readings for barrier in tracker.feed(reading)]
        assert infer(readings)[0] == fed
        assert sorted(fed, key=lambda barrier: barrier.opened_at) == fed

    def test_bounded(self):
        """24 hours of 50 backends, first barriers, then steady traffic, take no more memory than two hours of each."""
        tracker, sizes = BarrierTracker(15.0), []
        for number, reading in enumerate(self.readings(24)):
            tracker.feed(reading)
            if number % 24_000 == 23_999:
                sizes.append(total_size(tracker))
        barriers, steady = sizes[:6], sizes[6:]
        assert max(barriers) <= 1.2 * barriers[0]
        assert max(steady) <= 1.2 * steady[0]

    def test_steady_after_barriers(self):
        """When steady traffic follows barriers, no more barriers are reported after a short while."""
        tracker, late = BarrierTracker(15.0), 0
        for reading in self.readings(4):
            late += sum(barrier.opened_at > 3 * 3600 for barrier in tracker.feed(reading))
        assert 0 == late
        assert tracker.confidence().counts["barriers"] > 100


def total_size(thing, seen=None):
    """Bytes of an object and everything it holds."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, type):
        return 0
    seen.add(id(thing))
    held = []
    if isinstance(thing, dict):
        held = [*thing.keys(), *thing.values()]
    elif isinstance(thing, (str, bytes, int, float)):
        held = []
    elif hasattr(thing, "__iter__"):
        held = list(thing)
    names = [*getattr(thing, "__dict__", {}), *getattr(type(thing), "__slots__", ())]
    held += [getattr(thing, name) for name in names if hasattr(thing, name) and not name.startswith("__")]
    return sys.getsizeof(thing) + sum(total_size(one, seen) for one in held)


def test_calls_resampled():
    """The record of a client is polled as a server would count it."""
    readings = resampled({"a": [(0.1, 2.6), (0.2, 0.9)]}, 1.0, {})
    assert [0, 1, 0, 1] == [reading.finished for reading in readings[4:8]]
