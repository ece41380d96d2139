"""A caller never notices trouble with the exporter: down, slow, refusing, full."""

import logging
import socket
import threading
import time

import pytest

from tests.little_exporter import DEADLINE, Exporter, reporting, until
from tidegauge.caller import Counts, Reporter, delivery

pytestmark = pytest.mark.usefixtures("hurried")


class TestTrouble:
    @pytest.mark.parametrize(
        ("header", "pause"),
        [("7", 7.0), ("86400", 60.0), ("-5", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0), ("", 0.0)],
    )
    def test_pause_is_what_the_exporter_asks_for(self, exporter, header, pause):
        """Retry-After in seconds, a minute at most; anything else is no pause."""
        exporter.answer = lambda _: 429
        exporter.headers = {"Retry-After": header}
        one = delivery.Delivery(exporter.url, None, None, 5.0)
        verdict = one.post({"caller": "c", "fleet": "f", "events": []})

        assert (delivery.Verdict.LATER, pause) == (verdict, one.pause)

    def test_caller_goes_on_while_the_exporter_asks_for_patience(self, exporter):
        """Told to come again in a minute, the reporter sends once; barriers and slots return, closing does not wait."""
        exporter.answer = lambda _: 429
        exporter.headers = {"Retry-After": "60"}
        with reporting(exporter.url) as reporter:
            pauses = []
            closing = reporter._closing.wait
            reporter._closing.wait = lambda seconds: pauses.append(seconds) or closing(seconds)
            reporter.healthy(1)
            until(lambda: len(pauses) == 2)
            limiter = reporter.limiter(2)
            for _ in range(100):
                with reporter.barrier(2), limiter.slot():
                    pass

            assert 302 == reporter.counts().pending
            assert [0.005, 60.0] == pauses
            assert 1 == len(exporter.requests)
        assert Counts(0, 302, 0) == reporter.counts()

    def test_exporter_that_comes_late(self, caplog):
        """Events told before the exporter is up arrive once it is, once each and in order; the log has it once."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with reporting(f"http://127.0.0.1:{port}") as reporter:
            for number in range(1, 6):
                reporter.healthy(number)
            until(lambda: caplog.records)
            exporter = Exporter(port=port)
            try:
                until(lambda: reporter.counts().sent == 5)
            finally:
                exporter.close()

        assert [1, 2, 3, 4, 5] == [event.value for event in exporter.events]
        assert 1 == len([r for r in caplog.records if r.levelno == logging.WARNING])

    def test_dead_exporter(self):
        """With nothing listening, telling goes on and the end counts what was lost."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        with reporting(f"http://127.0.0.1:{port}") as reporter, reporter.barrier(3):
            reporter.healthy(1)

        assert Counts(0, 3, 0) == reporter.counts()

    def test_exporter_that_never_answers(self, exporter):
        """While the exporter sits on a batch, barriers, slots and a thousand events return to the caller."""
        exporter.hold.clear()
        with reporting(exporter.url) as reporter:
            reporter.healthy(1)
            exporter.asked.acquire(timeout=DEADLINE)
            limiter = reporter.limiter(2)
            for _ in range(1000):
                with reporter.barrier(2), limiter.slot():
                    pass

            assert [] == exporter.taken
            assert 3002 == reporter.counts().pending
            exporter.hold.set()

        assert Counts(3002, 0, 0) == reporter.counts()

    def test_close_does_not_wait_for_it(self, exporter):
        """Closing ends at its deadline with the exporter still silent, drops the queue and says what is open."""
        exporter.hold.clear()
        reporter = Reporter(exporter.url, fleet="agents", caller="sim-1", batch_seconds=0)
        reporter.healthy(1)
        exporter.asked.acquire(timeout=DEADLINE)
        reporter.healthy(2)
        reporter.healthy(3)

        assert Counts(0, 2, 1) == reporter.close(deadline=0.01)
        assert [] == exporter.taken
        exporter.hold.set()
        until(lambda: reporter.counts().pending == 0)
        assert Counts(1, 2, 0) == reporter.counts()

    def test_timeout(self, exporter):
        """A batch without an answer is given up after the timeout and not sent again: it may have been taken."""
        exporter.hold.clear()
        with reporting(exporter.url, timeout=0.05) as reporter:
            reporter.healthy(1)
            until(lambda: reporter.counts().dropped == 1)
            exporter.hold.set()
            reporter.healthy(2)

        assert 2 == len(exporter.requests)
        assert Counts(1, 1, 0) == reporter.counts()

    def test_queue_is_bounded(self, exporter):
        """Beyond its bound the queue drops the oldest and counts them; memory does not grow with a silent exporter."""
        exporter.hold.clear()
        with reporting(exporter.url, queue_size=10) as reporter:
            reporter.healthy(0)
            exporter.asked.acquire(timeout=DEADLINE)
            for number in range(1, 101):
                reporter.healthy(number)

            assert Counts(0, 90, 11) == reporter.counts()
            exporter.hold.set()

        assert [0, *range(91, 101)] == [event.value for event in exporter.events]

    @pytest.mark.parametrize("status", [500, 400, 401, 302, 404])
    def test_refused_batches_are_dropped(self, exporter, status):
        """A batch that was refused, or may have been taken, is not sent again; the next one is."""
        exporter.answer = lambda batch: status if batch.events[0].value == 1 else 204
        with reporting(exporter.url) as reporter:
            reporter.healthy(1)
            until(lambda: reporter.counts().dropped)
            reporter.healthy(2)

        assert [1, 2] == [batch.events[0].value for _, _, batch in exporter.requests]
        assert Counts(1, 1, 0) == reporter.counts()

    @pytest.mark.parametrize("status", [503, 429])
    def test_later(self, exporter, status):
        """A batch that the exporter cannot take now is sent again, before anything younger."""
        answers = iter([status, status])
        exporter.answer = lambda _batch: next(answers, 204)
        with reporting(exporter.url) as reporter:
            for number in range(1, 4):
                reporter.healthy(number)
            until(lambda: len(exporter.requests) > 1)
            reporter.healthy(4)
            until(lambda: reporter.counts().sent == 4)

        assert [1, 2, 3, 4] == [event.value for event in exporter.events]

    def test_later_keeps_the_bound(self, exporter):
        """Events that come back because of a 503 push nothing younger out of a full queue."""
        exporter.hold.clear()
        answers = iter([503])
        exporter.answer = lambda _batch: next(answers, 204)
        with reporting(exporter.url, queue_size=5, batch_seconds=0.02) as reporter:
            for number in range(1, 5):
                reporter.healthy(number)
            exporter.asked.acquire(timeout=DEADLINE)
            for number in range(5, 8):
                reporter.healthy(number)
            exporter.hold.set()
            until(lambda: reporter.counts().pending == 0)

        assert [3, 4, 5, 6, 7] == [event.value for event in exporter.events]
        assert Counts(5, 2, 0) == reporter.counts()

    def test_too_large(self, exporter):
        """Batches that are too large are halved until they fit; nothing is lost or doubled."""
        exporter.answer = lambda batch: 413 if len(batch.events) > 7 else 204
        with reporting(exporter.url, batch_seconds=0.02) as reporter:
            for number in range(1, 101):
                reporter.healthy(number)

        assert list(range(1, 101)) == [event.value for event in exporter.events]

    def test_a_single_event_too_large(self, exporter):
        """An event that does not fit alone is dropped, and those behind it are not held up."""
        exporter.answer = lambda batch: 413 if any(event.value == 3 for event in batch.events) else 204
        with reporting(exporter.url) as reporter:
            for number in range(1, 6):
                reporter.healthy(number)

        assert [1, 2, 4, 5] == [event.value for event in exporter.events]
        assert Counts(4, 1, 0) == reporter.counts()

    def test_old_events_are_dropped(self, exporter):
        """Events that waited for most of an hour are dropped, since one of them would cost its batch."""
        times = iter([time.time() - 3100, time.time() - 2900])
        with reporting(exporter.url, clock=lambda: next(times, time.time())) as reporter:
            reporter.healthy(1)
            reporter.healthy(2)

        assert [2] == [event.value for event in exporter.events]
        assert Counts(1, 1, 0) == reporter.counts()

    @pytest.mark.parametrize("count", [-4, 100_001, 2.5, "3", None, True, float("nan")])
    def test_impossible_counts(self, exporter, count):
        """A count that the exporter would refuse is dropped here, without an exception and without its neighbours."""
        with reporting(exporter.url) as reporter:
            reporter.healthy(count)
            reporter.healthy(5)

        assert [5] == [event.value for event in exporter.events]
        assert 1 == reporter.counts().dropped

    def test_after_close(self, exporter):
        """What is told after closing is counted as dropped."""
        with reporting(exporter.url) as reporter:
            pass
        reporter.healthy(1)

        assert Counts(0, 1, 0) == reporter.counts()

    def test_no_exporter_configured(self):
        """Without a URL nothing is sent, no thread starts, and limiter and barrier work."""
        before = threading.active_count()
        with reporting(None) as reporter, reporter.barrier(2), reporter.limiter(1).slot():
            assert before == threading.active_count()

    def test_no_thread_to_be_had(self, exporter, monkeypatch):
        """A thread that cannot start is no error of the caller's; the next event tries again."""
        with reporting(exporter.url) as reporter:
            with monkeypatch.context() as patch:
                patch.setattr(threading.Thread, "start", lambda _self: (_ for _ in ()).throw(RuntimeError("no")))
                reporter.healthy(1)
            reporter.healthy(2)
            until(lambda: reporter.counts().sent == 2)

        assert [1, 2] == [event.value for event in exporter.events]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"url": "127.0.0.1:10010"}, "^url: "),
            ({"url": "http://u:p@h"}, "^url: "),
            ({"fleet": ""}, "^fleet: "),
            ({"caller": "a b"}, "^caller: .* found 'a b'$"),
        ],
    )
    def test_settings_are_checked_at_once(self, options, message):
        """A URL or name that cannot be used is refused when the reporter is made."""
        with pytest.raises(ValueError, match=message):
            Reporter(**{"url": "http://h", "fleet": "f", "caller": "c"} | options)
