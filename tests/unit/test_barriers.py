"""Barriers inferred from polls: the rules one by one, and random workloads through the simulated fleet."""

import random
import sys
from math import inf

import attrs
import pytest
from barrier_readings import SimulatedPolls, matched, polls, resampled

from tidegauge import vllm
from tidegauge.demo.engine import Engine
from tidegauge.demo.settings import CostModel, EngineSettings
from tidegauge.demo.simulate import Simulation
from tidegauge.demo.workload import DEMO, Call, Caller, roster
from tidegauge.derive.barriers import BarrierTracker, infer, usual_interval
from tidegauge.derive.burstiness import ArrivalRates, burstiness
from tidegauge.derive.ceiling import waves
from tidegauge.derive.moves import Moves, Reading, reading_of
from tidegauge.derive.segments import Ceilings, Segment
from tidegauge.derive.steadiness import Steadiness, pair_evidence
from tidegauge.model import Page, SeriesKey
from tidegauge.state.increases import Increase, Increases

IDLE = (0.0, 0.0)


def together(*streams):
    """Readings of several backends in order of time."""
    return sorted((reading for stream in streams for reading in stream), key=lambda reading: reading.at)


def fan_outs(readings):
    return [barrier.fan_out for barrier in infer(readings)[0]]


class TestMoves:
    """What one backend did between two polls."""

    def moves(self, readings, interval=1.0):
        moves = Moves(interval)
        return [move for reading in readings for move in moves.feed(reading)]

    def test_arrivals(self):
        """What arrived is what finished plus the change of what is in flight."""
        last = self.moves(polls("a", [(4, None), (7, 5)]))[-1]
        assert (8.0, 5.0, 0.0) == (last.arrived, last.finished, last.departed)

    def test_aborts(self):
        """Calls that leave unfinished are counted as departed, and arrivals stay at 0."""
        last = self.moves(polls("a", [(9, None), (3, 1)]))[-1]
        assert (0.0, 5.0) == (last.arrived, last.departed)

    def test_torn_page(self):
        """A call that a page shows as finished and still in flight is taken back when the next page shows it gone."""
        *_, first, second = self.moves(polls("a", [(1, None), (1, 1), (0, 0)]))
        assert (1.0, 0.0, 1.0) == (first.arrived, second.departed, second.retracted)

    def test_torn_the_other_way(self):
        """A call that a page shows as neither finished nor in flight did not arrive when the next page counts it."""
        last = self.moves(polls("a", [(1, None), (0, 0), (0, 1)]))[-1]
        assert 0.0 == last.arrived

    def test_order(self):
        """A backend's move waits until every backend has been polled past it."""
        moves = Moves(1.0)
        for reading in (Reading("a", 0.0, 0), Reading("b", 0.4, 0), Reading("a", 1.0, 2, 0)):
            before = moves.feed(reading)
        assert ["b"] == [move.backend for move in before]
        assert ["a"] == [move.backend for move in moves.feed(Reading("b", 1.4, 0, 0))]

    def test_out_of_service(self):
        """A backend that is polled no more holds the others up for three and a half intervals; its calls are gone."""
        streams = together(polls("a", [(0, None)] + [(0, 0)] * 6), polls("b", [(3, None)], start=0.2))
        lost = [move for move in self.moves(streams) if move.lost]
        assert [("b", 3.0)] == [(move.backend, move.departed) for move in lost]

    def test_time_going_back(self):
        """A reading that is older than the last one of its backend is left out."""
        moves = Moves(1.0)
        moves.feed(Reading("a", 5.0, 2))
        assert [] == moves.feed(Reading("a", 4.0, 9, 3))

    def test_pauses(self):
        """The fleet may have paused only where no backend was busy from one poll to the next."""
        moves = Moves(1.0)
        for reading in together(polls("a", [(2, None), (2, 1), (2, 2)]), polls("b", [(0, None), (0, 0), (0, 0)], 0.5)):
            moves.feed(reading)
        assert not moves.may_have_paused(0.0, 1.0)
        assert moves.may_have_paused(1.0, 2.0)


class TestReadingOf:
    """From a page and its increase to a reading."""

    def page(self, running=None, finished=None, start=None):
        values = {}
        if running is not None:
            values = {SeriesKey(vllm.RUNNING, "m", "0"): running, SeriesKey(vllm.RUNNING, "m", "1"): 1.0}
            values[SeriesKey(vllm.WAITING, "m", "0")] = 2.0
        if finished is not None:
            values |= {SeriesKey(vllm.FINISHED, "m", "0", "stop"): finished}
            values |= {SeriesKey(vllm.FINISHED, "m", "1", "abort"): 1.0}
        return Page(values, {}, process_start=start)

    def readings(self, *pages):
        increases = Increases(900.0, inf)
        return [reading_of("a", page, increases.advance(page, 10.0 + at)) for at, page in enumerate(pages)]

    def test_counts(self):
        """Running and waiting of all engines are in flight, every finish reason counts."""
        first, second = self.readings(self.page(4.0, 7.0, 1.0), self.page(5.0, 9.0, 1.0))
        assert (Reading("a", 10.0, 7.0), Reading("a", 11.0, 8.0, 2.0)) == (first, second)

    def test_restart(self):
        """After a restart everything the new process finished is counted, wherever its start is not known too."""
        known = self.readings(self.page(4.0, 7.0, 1.0), self.page(5.0, 2.0, 10.5))[-1]
        unknown = self.readings(self.page(4.0, 7.0), self.page(5.0, 2.0))[-1]
        assert Reading("a", 11.0, 8.0, 3.0, restarted=True) == known == unknown

    def test_no_gauges_yet(self):
        """A page that has no gauges yet is idle; one without finished counters says nothing."""
        (blank,), (nothing,) = self.readings(self.page(None, 0.0)), self.readings(self.page(3.0))
        assert (0.0, True) == (blank.in_flight, blank.blank)
        assert nothing.in_flight is None

    @pytest.mark.parametrize("reason", ["gap", "reset", "other_server"])
    def test_not_comparable(self, reason):
        """Where the counters cannot be compared, finished is unknown; another server's page is no reading."""
        page = self.page(3.0, 2.0)
        assert reading_of("a", page, Increase(1.0, 0.0, dropped={reason: 1})).finished is None
        assert reading_of("a", page, Increase(1.0, 0.0, foreign=True)).in_flight is None


BURST = [(0, None), IDLE, IDLE, (14, 3), (6, 8), (0, 6), IDLE, IDLE]
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


def repeated(rows, times):
    """The rows after the first, so many times."""
    return [rows[0], *rows[1:] * times]


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


def fleet_of(rng, backends):
    """Backends that differ in slots, batch size and speed."""
    return [
        Engine(
            EngineSettings(
                max_num_seqs=rng.choice((6, 12, 24, 64)),
                max_num_batched_tokens=rng.choice((1024, 2048, 8192)),
                cost=CostModel(base=rng.uniform(0.03, 0.09)),
            ),
            start=1000.0,
        )
        for _ in range(backends)
    ]


class TestSimulatedFleet:
    """Random workloads through the simulated fleet, against its own truth."""

    def run(self, seed, backends, agents, cap, *, every, pause, missing=0.0):
        rng = random.Random(seed)
        simulation = Simulation(fleet_of(rng, backends), cap)
        phases = [rng.random() if seed % 3 else 0.0 for _ in range(backends)]
        fleet = SimulatedPolls(simulation, every, phases, missing, seed)
        caller = Caller(roster(agents, backends, seed), DEMO, seed, act=rng.choice((0.6, 0.9)))
        fleet.barriers(caller, 30, lambda: every * rng.uniform(*pause))
        truth = [(barrier.opened, barrier.fan_out) for barrier in simulation.barriers]
        found, _ = infer(fleet.readings)
        return truth, found, list(matched(truth, found, 2 * every))

    @pytest.mark.parametrize("seed", range(24))
    def test_uncapped(self, seed):
        """Without a cap, with pauses of one and a half polls or more, every fan-out is exact, hardly any clipped."""
        rng = random.Random(1000 + seed)
        backends = rng.randint(1, 5)
        agents = rng.randint(6, 40)
        truth, found, pairs = self.run(
            seed, backends, agents, None, every=rng.choice((0.25, 0.5, 1.0, 2.0)), pause=(1.5, 6)
        )
        assert [fan_out for fan_out, _ in pairs] == [best and best.fan_out for _, best in pairs]
        assert len(truth) == len(found)
        assert sum(barrier.clipped for barrier in found) <= 1

    @pytest.mark.parametrize("seed", range(24))
    def test_capped(self, seed):
        """Through a cap, polled well within a call, 95 % of fan-outs are exact, waves right for 90 %."""
        rng = random.Random(2000 + seed)
        backends = rng.randint(1, 4)
        cap = rng.choice((3, 5, 8)) * backends + 1
        truth, found, pairs = self.run(seed, backends, cap * 3, cap, every=0.25, pause=(3, 9))
        exact = sum(best is not None and fan_out == best.fan_out for fan_out, best in pairs)
        assert exact >= 0.95 * len(truth)
        assert sum(fan_out for _, fan_out in truth) == sum(barrier.fan_out for barrier in found)
        seen = [best.plateau for _, best in pairs if best is not None and best.clipped]
        assert len(seen) >= 0.9 * len(truth)
        assert all(abs(plateau - cap) <= max(1, 0.2 * cap) for plateau in seen)

    @pytest.mark.parametrize("seed", range(12))
    def test_missing_polls_invent_nothing(self, seed):
        """With one poll in ten missing, eight of ten barriers are reported, and each of them is exact."""
        truth, found, pairs = self.run(seed, 2, 20, None, every=0.5, pause=(5, 12), missing=0.1)
        assert len(found) <= len(truth)
        assert all(best is None or fan_out == best.fan_out for fan_out, best in pairs)
        assert sum(best is not None for _, best in pairs) >= 0.8 * len(truth)

    def test_calls_not_activities(self):
        """Agents that make several calls each at once count with every call."""
        simulation = Simulation(fleet_of(random.Random(5), 2), None)
        fleet = SimulatedPolls(simulation, 0.5, (0.0, 0.3))
        caller = Caller(roster(10, 2, 5), DEMO, 5, act=1.0)
        fleet.barriers(Several(caller), 12, lambda: 2.5)
        assert [29] * 12 == fan_outs(fleet.readings)

    @pytest.mark.parametrize("seed", range(16))
    def test_steady(self, seed):
        """Steady traffic has no barriers, from hardly any to more than the fleet can serve."""
        rng = random.Random(3000 + seed)
        simulation = Simulation(fleet_of(rng, rng.randint(1, 3)), None)
        every = rng.choice((0.25, 1.0, 3.0))
        fleet = SimulatedPolls(simulation, every, [rng.random() for _ in simulation.fleet])
        caller = Caller(roster(20, len(simulation.fleet), seed), DEMO, seed)
        fleet.steady(caller, rng.choice((0.2, 0.8, 2.4, 6.0)), 150.0)
        found, confidence = infer(fleet.readings)
        assert ([], False) == (found, confidence.sure)

    @pytest.mark.parametrize("seed", range(6))
    def test_steady_traffic_after_barriers(self, seed):
        """When steady traffic follows barriers, at most ten more would-be barriers are reported."""
        rng = random.Random(seed)
        simulation = Simulation(fleet_of(rng, 2), rng.choice((None, 8)))
        fleet = SimulatedPolls(simulation, 0.5, (rng.random(), rng.random()))
        caller = Caller(roster(24, 2, seed), DEMO, seed)
        fleet.barriers(caller, 15, lambda: rng.uniform(0.5, 4))
        end = simulation.now
        fleet.steady(caller, rng.choice((0.5, 1.0, 2.0)), 400.0)
        opened = [barrier.opened_at for barrier in infer(fleet.readings)[0]]
        assert 15 == sum(at < end - 3 for at in opened)
        assert sum(at >= end for at in opened) <= 10

    def test_idle(self):
        """An idle fleet has no barriers."""
        fleet = SimulatedPolls(Simulation(fleet_of(random.Random(1), 2), None), 1.0, (0.0, 0.5))
        fleet.idle(60)
        assert [] == infer(fleet.readings)[0]


@attrs.frozen
class Several:
    """A caller whose agents make three calls at once, all but one of them, so that 10 agents make 29."""

    caller: Caller

    def barriers(self):
        for calls in self.caller.barriers():
            more = [self.copied(call, copy) for call in calls for copy in range(3)]
            yield tuple(more[1:])

    @staticmethod
    def copied(call: Call, copy: int) -> Call:
        request = attrs.evolve(call.request, request_id=f"{call.request.request_id}-{copy}")
        return attrs.evolve(call, request=request)


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


class TestSteadiness:
    """Evidence for bursts."""

    def test_pairs(self):
        """Calls on one side speak for bursts, evenly spread ones against, one call or none says nothing."""
        assert pair_evidence(5, 0) == pair_evidence(0, 5) > 0 > pair_evidence(5, 5)
        assert 0.0 == pair_evidence(0, 0) == pair_evidence(1, 0)

    def test_limit(self):
        """However large a burst, one pair says at most 100."""
        assert 100 == pytest.approx(2.718281828459045 ** pair_evidence(500, 0))

    def test_unequal_times(self):
        """An interval three times as long may hold three times as many calls."""
        assert pair_evidence(30, 10, 0.75) < 0 < pair_evidence(30, 10, 0.5)

    @pytest.mark.parametrize("share", [0.5, 0.3])
    def test_is_a_likelihood_ratio(self, share):
        """Its mean over the splits that steady traffic gives is at most 1."""
        from math import comb, exp  # noqa: PLC0415 - only here

        for calls in (2, 7, 30):
            mean = sum(
                comb(calls, first)
                * share**first
                * (1 - share) ** (calls - first)
                * exp(pair_evidence(first, calls - first, share))
                for first in range(calls + 1)
            )
            assert 0 < mean <= 1.0000001

    def test_nothing_yet(self):
        """Before anything was seen, nothing is sure."""
        assert (0.0, False) == (Steadiness(1.0).log_ratio, Steadiness(1.0).sure)


class TestBurstiness:
    """P99 of arrivals per second over their mean."""

    def test_even(self):
        """An even stream has 1, one second in a hundred with everything has 100, none has none."""
        assert 1.0 == burstiness([3.0] * 50)
        assert 100.0 == burstiness([0.0] * 98 + [7.0, 7.0]) * 2
        assert burstiness([0.0] * 5) is None

    def test_window(self):
        """Only whole seconds of the window count."""
        rates = ArrivalRates(100.0)
        for second in range(300):
            rates.add(float(second), second + 1.0, 50.0 if second < 150 and second % 5 == 0 else 2.0)
        assert 1.0 == rates.value(300.0)
        assert burstiness([50.0 if second % 5 == 0 else 2.0 for second in range(50, 150)]) == pytest.approx(
            self.earlier(150)
        )

    @staticmethod
    def earlier(seconds):
        rates = ArrivalRates(100.0)
        for second in range(seconds):
            rates.add(float(second), second + 1.0, 50.0 if second % 5 == 0 else 2.0)
        return rates.value(float(seconds))

    def test_backends_at_other_phases(self):
        """Arrivals of backends are added up second by second, spread over the interval between their polls."""
        rates = ArrivalRates(100.0)
        for second in range(20):
            rates.add(second - 0.5, second + 0.5, 4.0)
            rates.add(second - 1.0, second + 0.0, 6.0)
        assert 1.0 == pytest.approx(rates.value(19.0), rel=0.1)

    def test_tracker(self):
        """The tracker knows the burstiness of its fleet's arrivals: 17 calls in one second of seven."""
        tracker = BarrierTracker(1.0)
        for reading in polls("a", repeated(BURST, 20)):
            tracker.feed(reading)
        assert 7.0 == pytest.approx(tracker.burstiness(140.0), rel=0.02)


def test_calls_resampled():
    """The record of a client is polled as a server would count it."""
    readings = resampled({"a": [(0.1, 2.6), (0.2, 0.9)]}, 1.0, {})
    assert [0, 1, 0, 1] == [reading.finished for reading in readings[4:8]]
