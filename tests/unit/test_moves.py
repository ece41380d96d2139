"""What backends did between two polls, and the reading of one page."""

from math import inf

import pytest
from barrier_readings import polls

from tests.streams import together
from tidegauge import vllm
from tidegauge.derive.moves import Moves, Reading, reading_of
from tidegauge.model import Page, SeriesKey
from tidegauge.state.increases import Increase, Increases


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
