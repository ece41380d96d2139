"""The caller's library against a real little exporter: exact delivery, and a caller that never notices trouble."""

import ast
import asyncio
import json
import logging
import os
import re
import socket
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import tidegauge.caller
from tidegauge.caller import Counts, Limiter, Reporter, delivery
from tidegauge.caller import reporter as reporter_module
from tidegauge.parsing import events as wire
from tidegauge.parsing.events import BarrierClosed, BarrierOpened, Ceiling, Healthy, Wait, read_events

ROOT = Path(__file__).parents[2]
CERTIFICATES = Path(__file__).parent / "certificates"
DEADLINE = 20


class Exporter:
    """Takes batches as the exporter does; *answer* says with which status, *hold* keeps every answer back."""

    def __init__(self, answer=lambda _batch: 204, *, port=0, tls=None):
        self.answer = answer
        self.headers = {}
        self.hold = threading.Event()
        self.hold.set()
        self.asked = threading.Semaphore(0)
        self.requests = []
        self.taken = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.serve(self)

            def log_message(self, *_args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = False
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def serve(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        batch = read_events(body, time.time())
        self.requests.append((request.path, dict(request.headers), batch))
        self.asked.release()
        self.hold.wait(DEADLINE)
        status = self.answer(batch)
        if status == 204:
            self.taken.append(batch)
        try:
            request.send_response(status)
            request.send_header("Content-Length", "0")
            for name, value in self.headers.items():
                request.send_header(name, value)
            request.end_headers()
        except OSError:
            pass  # the caller has left

    @property
    def events(self):
        return [event for batch in self.taken for event in batch.events]

    def close(self):
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture(name="exporter")
def _exporter():
    exporter = Exporter()
    yield exporter
    exporter.close()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch):
    """Retries follow at once."""
    monkeypatch.setattr(reporter_module, "_FIRST_BACKOFF", 0.005)
    monkeypatch.setattr(reporter_module, "_LAST_BACKOFF", 0.01)


@contextmanager
def reporting(url, **options):
    reporter = Reporter(url, **{"fleet": "agents", "caller": "sim-1", "batch_seconds": 0.005} | options)
    try:
        yield reporter
    finally:
        reporter.close(DEADLINE)


def until(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


class TestDelivery:
    def test_what_a_caller_tells(self, exporter):
        """Barrier, ceiling, waits and healthy count arrive as the wire format has them, under caller and fleet."""
        with reporting(exporter.url) as reporter:
            limiter = reporter.limiter(ceiling=16)
            with reporter.barrier(fan_out=29) as barrier, limiter.slot(), limiter.slot():
                reporter.healthy(2)
        events = exporter.events

        assert [Ceiling, BarrierOpened, Wait, Healthy, BarrierClosed] == [type(event) for event in events]
        assert (16, 29, 2, 2) == (events[0].value, events[1].fan_out, len(events[2].seconds), events[3].value)
        assert {barrier.id} == {events[1].id, events[4].id}
        path, headers, batch = exporter.requests[0]
        assert ("/api/v1/events", "application/json") == (path, headers["Content-Type"])
        assert ("sim-1", "agents", False) == (batch.caller, batch.fleet, "Authorization" in headers)

    def test_exactly_once_and_in_order(self, exporter):
        """Thousands of events arrive once each, in the order told, in batches of at most a thousand."""
        with reporting(exporter.url, batch_seconds=0.02) as reporter:
            for number in range(1, 3501):
                reporter.tell("barrier_opened", id=str(number), fan_out=number)

        assert list(range(1, 3501)) == [event.fan_out for event in exporter.events]
        assert 1000 == max(len(batch.events) for batch in exporter.taken)
        assert Counts(3500, 0, 0) == reporter.counts()

    def test_many_threads(self, exporter):
        """Events of many threads arrive once each, those of one thread in its order."""

        def work(thread):
            for number in range(200):
                reporter.tell("barrier_opened", id=f"{thread}-{number}", fan_out=thread + 1)

        with reporting(exporter.url) as reporter, ThreadPoolExecutor(5) as pool:
            list(pool.map(work, range(5)))
            pool.shutdown()
        ids = [event.id for event in exporter.events]

        assert 1000 == len(set(ids)) == len(ids)
        for thread in range(5):
            mine = [i for i in ids if i.startswith(f"{thread}-")]
            assert [f"{thread}-{number}" for number in range(200)] == mine

    def test_waits_travel_together(self, exporter):
        """Neighbouring waits share an event; others keep their place between them."""
        exporter.hold.clear()
        with reporting(exporter.url) as reporter:
            reporter.healthy(1)
            exporter.asked.acquire(timeout=DEADLINE)
            for seconds in (0.0, 0.7):
                reporter.tell("wait", seconds=seconds)
            reporter.tell("ceiling", value=4)
            for _ in range(1500):
                reporter.tell("wait", seconds=2.0)
            exporter.hold.set()

        assert [(0.0, 0.7), 4] == [getattr(e, "seconds", None) or e.value for e in exporter.events[1:3]]
        assert 1500 == sum(len(event.seconds) for event in exporter.events[3:])
        assert 3 == len(exporter.taken)
        assert 1504 == reporter.counts().sent

    def test_joined_waits_have_the_last_time(self):
        """The time of joined waits is that of the last of them."""
        told = [{"type": "wait", "at": at, "seconds": at / 10} for at in (5.0, 6.0, 7.0)]

        assert [{"type": "wait", "at": 7.0, "seconds": [0.5, 0.6, 0.7]}] == delivery.packed(told)

    def test_token(self, exporter, tmp_path):
        """The token comes from its file at each delivery, so a rotated one is used."""
        token = tmp_path / "token"
        with reporting(exporter.url, token_file=token) as reporter:
            for value in ("one", "two"):
                token.write_text(f"{value}\n")
                reporter.healthy(1)
                exporter.asked.acquire(timeout=DEADLINE)

        assert ["Bearer one", "Bearer two"] == [headers["Authorization"] for _, headers, _ in exporter.requests]

    def test_token_appears_late(self, exporter, tmp_path, caplog):
        """Without its token file nothing is sent and nothing lost; the trouble is logged without any secret."""
        token = tmp_path / "token"
        token.write_text("sec\nret")
        with reporting(exporter.url, token_file=token) as reporter:
            reporter.healthy(7)
            until(lambda: caplog.records)
            token.write_text("good")
            until(lambda: exporter.taken)

        assert [7] == [event.value for event in exporter.events]
        assert "sec" not in caplog.text.replace(str(tmp_path), "")

    def test_https(self):
        """An exporter behind TLS is checked against the given authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
        exporter = Exporter(tls=context)
        try:
            with reporting(exporter.url, ca_file=CERTIFICATES / "ca.pem") as reporter:
                reporter.healthy(3)
        finally:
            exporter.close()

        assert [3] == [event.value for event in exporter.events]

    def test_path_prefix(self, exporter):
        """An exporter below a path is asked there."""
        with reporting(exporter.url + "/tide/") as reporter:
            reporter.healthy(1)

        assert "/tide/api/v1/events" == exporter.requests[0][0]

    def test_state_is_told_again(self, exporter):
        """Ceiling and healthy count are repeated with their latest values, so that a restarted exporter knows them."""
        with reporting(exporter.url, restate_seconds=0.02) as reporter:
            limiter = reporter.limiter(16)
            limiter.set_ceiling(28)
            reporter.healthy(2)
            until(lambda: len(exporter.events) >= 7)
        values = [(type(event).__name__, event.value) for event in exporter.events]

        assert [("Ceiling", 16), ("Ceiling", 28), ("Healthy", 2)] == values[:3]
        assert [("Ceiling", 28), ("Healthy", 2)] * 2 == values[3:7]

    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_forked_child(self, exporter):
        """A forked child reports for itself and sends nothing of its parent's again."""
        with reporting(exporter.url) as reporter:
            reporter.healthy(1)
            until(lambda: exporter.taken)
            child = os.fork()
            if child == 0:
                reporter.healthy(2)
                reporter.close(DEADLINE)
                os._exit(0)
            assert 0 == os.waitpid(child, 0)[1]

        assert [1, 2] == [event.value for event in exporter.events]
        assert 2 == len({batch.instance for batch in exporter.taken})

    def test_processes_of_one_name_differ(self, exporter):
        """Each reporter tells its own instance with every batch, so that the exporter sees that there are two."""
        for healthy in (1, 2):
            with reporting(exporter.url) as reporter:
                for number in (1, 2):
                    reporter.healthy(healthy)
                    until(lambda number=number, reporter=reporter: reporter.counts().sent == number)
        first, again, second, _ = [batch.instance for batch in exporter.taken]

        assert first == again != second
        assert 32 == len(first)


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


class TestBarrier:
    def test_exception(self, exporter):
        """An exception in the body passes and closes the barrier."""

        async def go():
            async with reporter.barrier(4):
                raise KeyError("mine")

        with reporting(exporter.url) as reporter:
            with pytest.raises(KeyError, match="mine"), reporter.barrier(3):
                raise KeyError("mine")
            with pytest.raises(KeyError, match="mine"):
                asyncio.run(go())
        kinds = [(type(event).__name__, getattr(event, "fan_out", None)) for event in exporter.events]

        assert [("BarrierOpened", 3), ("BarrierClosed", None), ("BarrierOpened", 4), ("BarrierClosed", None)] == kinds
        assert 2 == len({event.id for event in exporter.events})

    def test_times(self, exporter):
        """Opened and closed carry the times of entering and leaving."""
        moments = iter([time.time(), time.time() + 7.5])
        last = time.time() + 8
        with reporting(exporter.url, clock=lambda: next(moments, last)) as reporter:
            reporter._start = lambda: None  # the sender reads the clock too
            with reporter.barrier(1):
                pass
            del reporter._start
            reporter.healthy(1)
        opened, closed, _ = exporter.events

        assert 7.5 == pytest.approx(closed.at - opened.at)


class TestCopy:
    def test_standard_library_only(self):
        """The folder imports the standard library and itself, so that a program can carry a copy."""
        foreign = {}
        for file in Path(tidegauge.caller.__file__).parent.glob("*.py"):
            imports = list(ast.walk(ast.parse(file.read_text())))
            names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
            names |= {node.module for node in imports if isinstance(node, ast.ImportFrom) and node.level == 0}
            foreign[file.name] = {name.partition(".")[0] for name in names} - sys.stdlib_module_names
            assert {1} >= {node.level for node in imports if isinstance(node, ast.ImportFrom) and node.level}

        assert {"prometheus_client"} == foreign.pop("metrics.py")
        assert ["__init__.py", "delivery.py", "limiter.py", "reporter.py"] == sorted(foreign)
        assert set() == set().union(*foreign.values())

    def test_bounds_agree_with_the_exporter(self):
        """The library's own copy of the wire format's bounds is the exporter's."""
        assert (wire.MAX_EVENTS, wire.MAX_WAITS, wire.MAX_COUNT) == (
            reporter_module._MAX_BATCH,
            delivery._MAX_WAITS,
            delivery._MAX_COUNT,
        )
        assert wire.MAX_AGE > reporter_module._MAX_AGE
        assert wire._NAME.pattern == reporter_module._NAME.pattern


class TestDocs:
    TEXT = (ROOT / "docs" / "callers.md").read_text()

    def test_documented_batch(self):
        """The documented batch is taken, and has every kind of event."""
        example = re.search(r"```json\n(.*?)```", self.TEXT, re.DOTALL)[1]
        batch = read_events(example.encode(), 1_800_000_010)

        assert {BarrierOpened, BarrierClosed, Wait, Ceiling, Healthy} == {type(event) for event in batch.events}

    def test_documented_curl(self):
        """The documented curl call sends a batch that is taken."""
        example = re.search(r" -d '(\{.*?\]\})'\n```", self.TEXT, re.DOTALL)[1].replace("'$now'", "1800000000")

        assert 2 == len(read_events(example.encode(), 1_800_000_000).events)

    def test_documented_fields(self):
        """The documented fields are those of the wire format."""
        rows = set(re.findall(r"^\| `(\w+)` \| (?:batch|each|`)", self.TEXT, re.MULTILINE))
        example = json.loads(re.search(r"```json\n(.*?)```", self.TEXT, re.DOTALL)[1])

        assert set(example) | {name for event in example["events"] for name in event} == rows

    def test_documented_python(self):
        """The documented Python is Python, and uses what the library has."""
        code = re.search(r"```python\n(.*?)```", self.TEXT, re.DOTALL)[1]
        used = {node.attr for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Attribute)}

        assert {"limiter", "barrier", "healthy", "close", "slot", "set_ceiling"} <= used
        assert {"limiter", "barrier", "healthy", "close"} <= set(dir(Reporter))
        assert {"slot", "set_ceiling"} <= set(dir(Limiter))
