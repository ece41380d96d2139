"""What callers report: barriers, ceilings, waits; bounded whatever they send."""

from math import inf

import pytest

from tidegauge.catalogue import exported as ex
from tidegauge.model import Barrier
from tidegauge.parsing.events import BarrierClosed, BarrierOpened, Batch, Ceiling, Healthy, Wait
from tidegauge.parsing.limiterlog import CeilingChange
from tidegauge.state import callers as module
from tidegauge.state.callers import FleetCallersState
from tidegauge.state.fleets import CallersState
from tidegauge.state.limiter import LimiterState


def fleet(span=900.0, edge=0.1, largest=None):
    return FleetCallersState("agents", span, edge, largest)


class TestBarriers:
    def test_barrier_carries_the_ceiling_that_was_in_force_when_it_opened(self):
        """A later ceiling changes later barriers only."""
        one = fleet()
        one.opened("sim", "0", 999.0, 27)
        one.ceiling("sim", 1000.0, 16)
        one.opened("sim", "1", 1001.0, 29)
        one.ceiling("sim", 1002.0, 28)
        one.closed("sim", "1", 1010.5)
        one.opened("sim", "2", 1011.0, 31)
        found = one.snapshot(1012.0)

        assert (
            Barrier(999.0, 27),
            Barrier(1001.0, 29, 9.5, (("client", 16),)),
            Barrier(1011.0, 31, None, (("client", 28),)),
        ) == found.barriers
        assert (3, 31) == (found.barriers_total, found.largest)

    def test_callers_with_the_same_barrier_ids_do_not_meet(self):
        """Each caller counts its own barriers, with its own ceiling."""
        one = fleet()
        one.ceiling("left", 1000.0, 16)
        one.ceiling("right", 1000.0, 48)
        one.opened("left", "7", 1001.0, 20)
        one.opened("right", "7", 1002.0, 30)
        one.closed("right", "7", 1003.0)
        found = one.snapshot(1004.0)

        assert [(20, None, 16), (30, 1.0, 48)] == [
            (barrier.fan_out, barrier.seconds, barrier.ceiling("client")) for barrier in found.barriers
        ]

    def test_duplicates_and_strays_are_counted_and_change_nothing(self):
        """A repeated opening, a closing without an opening."""
        one = fleet()
        one.opened("sim", "1", 1000.0, 29)
        one.opened("sim", "1", 1001.0, 400)
        one.closed("sim", "9", 1002.0)
        found = one.snapshot(1003.0)

        assert (1, 29) == (found.barriers_total, found.largest)
        assert {"accepted": 1, "duplicate": 1, "unmatched": 1} == found.results

    def test_events_that_are_sent_again_change_nothing(self):
        """A barrier's opening and closing after it closed; a ceiling and a healthy count of the same moment."""
        one = fleet()
        events = (
            BarrierOpened(1000.0, "1", 29),
            BarrierClosed(1004.0, "1"),
            Ceiling(1005.0, 16),
            Healthy(1006.0, 2),
        )
        for event in (*events, *events):
            one.book("sim", event)
        found = one.snapshot(1010.0)

        assert (Barrier(1000.0, 29, 4.0),) == found.barriers
        assert (1, 16, 2) == (found.barriers_total, found.ceiling, found.healthy)
        assert {"accepted": 4, "duplicate": 4} == found.results
        assert 0 == found.conflicts

    def test_id_may_be_used_again(self):
        """A restarted caller that counts its barriers from one."""
        one = fleet()
        for at, fan_out in ((1000.0, 29), (1100.0, 14)):
            one.opened("sim", "1", at, fan_out)
            one.closed("sim", "1", at + 5)

        assert [29, 14] == [barrier.fan_out for barrier in one.snapshot(1200.0).barriers]

    def test_closed_barriers_are_remembered_within_bounds(self, monkeypatch):
        """A caller with endless ids; and none is remembered longer than the window."""
        monkeypatch.setattr(module, "OPEN_BARRIERS", 3)
        one = fleet(span=60.0)
        for number in range(10):
            one.opened("sim", str(number), 1000.0, 5 + number)
            one.closed("sim", str(number), 1001.0)

        assert 3 == len(one._done)
        one.snapshot(1061.0)
        assert 0 == len(one._done)

    def test_closing_before_opening_in_time_is_no_negative_duration(self):
        """A caller whose clock was set back."""
        one = fleet()
        one.opened("sim", "1", 1000.0, 29)
        one.closed("sim", "1", 990.0)

        assert 0.0 == one.snapshot(1001.0).barriers[0].seconds

    def test_barriers_leave_with_the_window_whatever_order_they_closed_in(self):
        """A long barrier that closed last must not keep others in, nor be kept itself."""
        one = fleet(span=60.0)
        one.opened("sim", "long", 1000.0, 10)
        one.opened("sim", "short", 1005.0, 20)
        one.opened("sim", "late", 1050.0, 30)
        one.closed("sim", "late", 1051.0)
        one.closed("sim", "short", 1052.0)
        one.closed("sim", "long", 1053.0)

        assert [10, 20, 30] == [barrier.fan_out for barrier in one.snapshot(1059.0).barriers]
        assert [30] == [barrier.fan_out for barrier in one.snapshot(1070.0).barriers]
        assert 3 == one.snapshot(1070.0).barriers_total

    def test_barrier_that_never_closes_is_abandoned_with_the_window(self):
        """A caller that died."""
        one = fleet(span=60.0)
        one.opened("sim", "1", 1000.0, 10)

        assert () == one.snapshot(1061.0).barriers
        assert 1 == one.snapshot(1061.0).results["abandoned"]

    def test_largest_fan_out_outlives_the_window(self):
        """It is the natural bound where no roster is configured; what was seen before the restart counts."""
        one = fleet(span=60.0, largest=32)
        one.opened("sim", "1", 1000.0, 29)
        assert 32 == one.snapshot(2000.0).largest
        one.opened("sim", "2", 2001.0, 33)

        assert 33 == one.snapshot(3000.0).largest

    def test_open_barriers_are_bounded(self, monkeypatch):
        """A caller that only opens cannot fill the memory."""
        monkeypatch.setattr(module, "OPEN_BARRIERS", 3)
        one = fleet()
        for number in range(5):
            one.opened("sim", str(number), 1000.0 + number, 10 + number)

        assert 3 == len(one._open)
        assert 2 == one.snapshot(1005.0).results["abandoned"]
        assert [10, 11, 12, 13, 14] == [barrier.fan_out for barrier in one.snapshot(1005.0).barriers]


class TestCeilings:
    def test_smallest_of_several_callers_is_the_fleets(self):
        """The one that clips first; and the gloomiest view of healthy backends."""
        one = fleet()
        for caller, ceiling, healthy in (("left", 16, 4), ("right", 28, 2)):
            one.ceiling(caller, 1000.0, ceiling)
            one.healthy(caller, 1000.0, healthy)
        found = one.snapshot(1001.0)

        assert (16, 2) == (found.ceiling, found.healthy)

    def test_older_news_does_not_replace_newer(self):
        """Batches may arrive out of order."""
        one = fleet()
        one.ceiling("sim", 1005.0, 28)
        one.ceiling("sim", 1001.0, 16)
        found = one.snapshot(1006.0)

        assert 28 == found.ceiling
        assert 1 == found.results["out_of_order"]

    def test_caller_that_is_no_longer_heard_of_loses_its_say(self):
        """A replaced caller's ceiling of 16 must not stand against its successor's 48 for ever."""
        one = fleet(span=900.0)
        one.book("old", Ceiling(1000.0, 16))
        one.book("old", Healthy(1000.0, 4))
        one.book("new", Ceiling(1800.0, 48))

        assert 16 == one.snapshot(1890.0).ceiling
        assert (48, None) == (one.snapshot(1901.0).ceiling, one.snapshot(1901.0).healthy)

    def test_caller_that_still_reports_keeps_its_ceiling(self):
        """Any event is a sign of life; a ceiling is told when it changes."""
        one = fleet(span=900.0)
        one.book("sim", Ceiling(1000.0, 16))
        for number in range(20):
            one.book("sim", Wait(1000.0 + number * 100, (0.5,)))

        assert 16 == one.snapshot(2905.0).ceiling

    def test_callers_are_bounded(self):
        """Whoever was not heard of for longest goes first."""
        one = FleetCallersState("agents", 900.0, 0.1, callers=2)
        for number, caller in enumerate(("a", "b", "a", "c")):
            one.book(caller, Ceiling(1000.0 + number, 10 + number))

        assert {"a", "c"} == set(one._ceilings) == set(one._heard)


class TestLimiterLog:
    def test_log_tells_where_callers_do_not(self):
        """A caller's own report wins as long as it is heard; barriers carry what they met."""
        one = fleet(span=100.0)
        one.limiter = LimiterState()
        one.limiter.change("a.log", CeilingChange(28), live=False)
        one.book("sim", BarrierOpened(1000.0, "1", 29))
        logged = one.snapshot(1001.0)
        one.book("sim", Ceiling(1002.0, 16))
        one.book("sim", BarrierOpened(1003.0, "2", 31))
        told = one.snapshot(1004.0)

        assert ((28, "log"), (16, "reported")) == (
            (logged.ceiling, logged.ceiling_source),
            (told.ceiling, told.ceiling_source),
        )
        assert [28, 16] == [barrier.ceiling("client") for barrier in told.barriers]
        assert (28, "log") == (one.snapshot(1200.0).ceiling, one.snapshot(1200.0).ceiling_source)

    def test_configured_fleets_log_has_its_place(self):
        """Also beside a full list of fleets, and together with what callers of the fleet tell."""
        state = CallersState(900.0, 0.1, 1)
        state.limiter("agents").change("a.log", CeilingChange(28), live=True)

        assert None is state.take(Batch("sim", "agents", (Healthy(1000.0, 2),)))
        (found,) = state.snapshots(1001.0)
        assert (28, 2) == (found.ceiling, found.healthy)
        assert "fleets" == state.take(Batch("sim", "batch", ())).reason


class TestNamesakes:
    def spoken(self, *instances, caller="sim"):
        state = CallersState(900.0, 0.1, 5)
        for number, instance in enumerate(instances):
            state.take(Batch(caller, "agents", (Healthy(1000.0 + number, 2),), instance))
        return state.snapshots(1100.0)[0].conflicts

    @pytest.mark.parametrize(
        ("instances", "conflicts"),
        [
            (("a", "a", "a"), 0),
            (("a", "b", "b", "c"), 0),
            (("a", "b", "a"), 1),
            (("a", "b", "a", "b", "a"), 3),
            (("", "", ""), 0),
            (("a", "", "a"), 0),
        ],
    )
    def test_two_processes_differ_from_a_restart(self, instances, conflicts):
        """A restarted process is not heard of again; a second one is."""
        assert conflicts == self.spoken(*instances)

    def test_processes_of_one_name_keep_their_barriers(self):
        """Both number theirs from one: both barriers count, each is closed by its own process."""
        state = CallersState(900.0, 0.1, 5)
        for instance, at, fan_out in (("a", 1000.0, 29), ("b", 1001.0, 14)):
            state.take(Batch("sim", "agents", (BarrierOpened(at, "1", fan_out),), instance))
        state.take(Batch("sim", "agents", (BarrierClosed(1005.0, "1"),), "a"))
        found = state.snapshots(1010.0)[0]

        assert [(29, 5.0), (14, None)] == [(barrier.fan_out, barrier.seconds) for barrier in found.barriers]
        assert {"accepted": 3} == found.results

    def test_clashing_ids_show_them_without_an_instance(self):
        """Another barrier under an id that is open: the first one stands."""
        one = fleet()
        one.opened("sim", "1", 1000.0, 29)
        one.opened("sim", "1", 1001.0, 14)
        found = one.snapshot(1002.0)

        assert (1, [29]) == (found.conflicts, [barrier.fan_out for barrier in found.barriers])

    def test_memory_is_bounded(self):
        """A process that changes its instance with each batch."""
        state = CallersState(900.0, 0.1, 5)
        for number in range(1000):
            state.take(Batch("sim", "agents", (), str(number)))

        assert 8 == len(state._fleets["agents"]._namesakes._spoke["sim"])


class TestWaits:
    def test_waits_become_a_histogram_over_the_window_and_since_start(self):
        """The window forgets, the counter does not."""
        one = fleet(span=60.0)
        one.waited(1000.0, (0.0, 0.05, 3.0))
        one.waited(1070.0, (7.0,))
        found = one.snapshot(1071.0)

        assert (7.0, 1.0) == (found.waits.sum, found.waits.count)
        assert (10.05, 4.0) == (pytest.approx(found.all_waits.sum), found.all_waits.count)
        assert found.all_waits.edges == (*ex.CALLER_WAIT.buckets, inf)
        assert 2.0 == found.all_waits.cumulative[found.all_waits.edges.index(0.1)]

    def test_configured_edge_becomes_a_bucket(self):
        """So that late waits can be counted exactly."""
        one = fleet(edge=0.25)
        one.waited(1000.0, (0.2, 0.25, 0.3))
        found = one.snapshot(1001.0)

        assert 0.25 == found.edge
        assert 2.0 == found.waits.cumulative[found.waits.edges.index(0.25)]

    def test_no_waits_is_no_event(self):
        """An empty list changes nothing."""
        one = fleet()
        one.waited(1000.0, ())

        assert (None, {}) == (one.snapshot(1000.0).waits, one.snapshot(1000.0).results)


class TestFleets:
    def test_each_event_of_a_batch_is_booked(self):
        """All kinds, for the fleet and caller of the batch."""
        state = CallersState(900.0, 0.1, 5)
        events = (
            Ceiling(1000.0, 16),
            Healthy(1000.0, 2),
            BarrierOpened(1001.0, "1", 29),
            Wait(1002.0, (0.0, 4.0)),
            BarrierClosed(1010.0, "1"),
        )

        assert None is state.take(Batch("sim", "agents", events))
        (found,) = state.snapshots(1011.0)
        assert ("agents", 16, 2, 29) == (found.fleet, found.ceiling, found.healthy, found.largest)
        assert (9.0, 2.0) == (found.barriers[0].seconds, found.waits.count)
        assert {"accepted": 5} == found.results

    def test_fleets_are_bounded_and_the_refusal_says_so(self):
        """A label set from outside must not grow without end; known fleets are still served."""
        state = CallersState(900.0, 0.1, 2)
        assert [None, None] == [state.take(Batch("sim", name, ())) for name in ("one", "two")]
        refusal = state.take(Batch("sim", "three", ()))

        assert ("fleets", 60) == (refusal.reason, refusal.after)
        assert "fleet: three would be one more than the 2 fleets configured" == refusal.message
        assert None is state.take(Batch("sim", "two", ()))

    def test_callers_of_a_fleet_are_bounded_and_the_refusal_says_so(self):
        """Known ones are still served; a place is free once its caller was silent for a window."""
        state = CallersState(100.0, 0.1, 5, max_callers=2)

        def tell(caller, at):
            refusal = state.take(Batch(caller, "agents", (Healthy(at, 2),)))
            return refusal.message if refusal else None

        assert [None, None] == [tell("one", 1000.0), tell("two", 1050.0)]
        assert "caller: three would be one more than the 2 callers that a fleet may have" == tell("three", 1060.0)
        assert None is tell("two", 1061.0)
        assert None is tell("three", 1101.0)
        assert {"two", "three"} == set(state._fleets["agents"]._heard)

    def test_caller_that_vanishes_leaves_nothing_behind(self):
        """Its open barrier is given up and counted, its ceiling and its name are gone with the window."""
        state = CallersState(100.0, 0.1, 5)
        events = (Ceiling(1000.0, 16), BarrierOpened(1001.0, "1", 29), Wait(1002.0, (1.0,)))
        state.take(Batch("sim", "agents", events, "a"))
        (found,) = state.snapshots(1200.0)

        assert ((), None, None) == (found.barriers, found.ceiling, found.waits)
        assert {"accepted": 3, "abandoned": 1} == found.results
        gone = state._fleets["agents"]
        assert [0] * 4 == [len(each) for each in (gone._open, gone._heard, gone._ceilings, gone._namesakes._spoke)]

    def test_largest_fan_outs_survive_the_exporters_restart(self):
        """Also of a fleet that was not heard of since."""
        state = CallersState(900.0, 0.1, 5)
        state.restore({"agents": 32, "silent": 7})
        state.take(Batch("sim", "agents", (BarrierOpened(1000.0, "1", 29),)))

        assert {"agents": 32, "silent": 7} == state.largest()
