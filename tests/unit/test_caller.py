"""The caller's library against a real little exporter: exact delivery, barriers, a copied folder, the documentation."""

import ast
import asyncio
import json
import os
import re
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tidegauge.caller
from tests.little_exporter import DEADLINE, Exporter, reporting, until
from tidegauge.caller import Counts, Limiter, Reporter, delivery
from tidegauge.caller import reporter as reporter_module
from tidegauge.parsing import events as wire
from tidegauge.parsing.events import BarrierClosed, BarrierOpened, Ceiling, Healthy, Wait, read_events

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("hurried")


CERTIFICATES = Path(__file__).parent / "certificates"


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
