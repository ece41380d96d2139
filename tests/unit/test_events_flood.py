"""Callers that flood: batches wait in turn, off the event loop, and polls and pages go on."""

import asyncio
import json
import threading

import pytest
from aiohttp.test_utils import TestClient, TestServer

from tests.builders import exposition, requests
from tests.unit.little_servers import ManualClock, until
from tidegauge import app, config, vllm
from tidegauge.parsing.events import Batch, Refusal, read_events
from tidegauge.sources.scrape import Fetched
from tidegauge.web import events as module
from tidegauge.web.events import EventsHandler
from tidegauge.web.pages import build

NOW = 10_000.0
CONFIG = """
callers: {max_callers: 3, max_rate: 500}
backends: [{url: "http://127.0.0.1:9", name: a, fleet: agents}]
"""


def body(caller="flood", events=1000, fleet="agents"):
    event = {"type": "ceiling", "at": NOW, "value": 16}
    return json.dumps({"caller": caller, "fleet": fleet, "events": [event] * events}).encode()


class Reader:
    """Reads batches as the exporter does, when it is let; knows where and how many at once."""

    def __init__(self):
        self.let = threading.Event()
        self.threads = []
        self.at_once = 0
        self.most = 0

    def __call__(self, data, now):
        self.threads.append(threading.get_ident())
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        assert self.let.wait(20)
        self.at_once -= 1
        return read_events(data, now)


def exporter():
    return app.Exporter(config.load(CONFIG, "t.yml", {}), ManualClock(NOW))


def handler(one, max_body=1 << 20):
    return EventsHandler(one.take, one._clock, None, max_body, one.watch.refused)


def page(finished, at):
    rows = requests(*[(0.1, 0.2, 0.3, 0.1)] * finished)
    return Fetched(at, 0.1, exposition(rows, start=NOW - 5, values={vllm.PROMPT_TOKENS: float(finished)}))


async def post(client, data):
    async with client.post("/api/v1/events", data=data) as answer:
        error = (await answer.json())["error"] if answer.status != 204 else ""
        return answer.status, answer.headers.get("Retry-After"), error


class TestStructure:
    def test_pages_and_polls_go_on_while_a_batch_is_read(self, monkeypatch):
        """With the reading of a batch stuck for good, everything else answers; the batch is not lost."""
        reader, one = Reader(), exporter()
        monkeypatch.setattr(module, "read_events", reader)

        async def run():
            async with TestClient(TestServer(build(one, handler(one)))) as client:
                stuck = asyncio.create_task(post(client, body()))
                await until(lambda: reader.threads)
                one.book("a", page(30, NOW))
                async with client.get("/metrics") as answer:
                    text = await answer.text()
                reader.let.set()
                return text, await stuck

        text, answer = asyncio.run(run())
        assert 'tidegauge_backend_up{backend="a"} 1.0' in text
        assert (204, None, "") == answer
        assert threading.get_ident() not in reader.threads

    def test_batches_are_read_one_at_a_time_and_in_turn(self, monkeypatch):
        """However many arrive together, the interpreter serves one, and each caller's order is kept."""
        reader, taken = Reader(), []
        monkeypatch.setattr(module, "read_events", reader)
        one = exporter()

        async def run():
            events = EventsHandler(lambda batch: taken.append(batch.caller), one._clock, None, 1 << 20)
            async with TestClient(TestServer(build(one, events))) as client:
                posts = []
                for number in range(8):
                    posts.append(asyncio.create_task(post(client, body(str(number), 1))))
                    await until(lambda: len(reader.threads) + len(events._turn._waiters or ()) == len(posts))
                reader.let.set()
                return await asyncio.gather(*posts)

        assert [(204, None, "")] * 8 == asyncio.run(run())
        assert 1 == reader.most
        assert [str(number) for number in range(8)] == taken

    def test_beyond_the_pending_ones_a_batch_is_sent_away_unread(self, monkeypatch):
        """503, to come again in a second; nothing of it is kept."""
        monkeypatch.setattr(module, "MOST_PENDING", 2)
        reader, one = Reader(), exporter()
        monkeypatch.setattr(module, "read_events", reader)

        async def run():
            events = handler(one)
            async with TestClient(TestServer(build(one, events))) as client:
                waiting = [asyncio.create_task(post(client, body(events=1))) for _ in range(2)]
                await until(lambda: events._pending == 2)
                refused = await post(client, body())
                reader.let.set()
                return refused, await asyncio.gather(*waiting), await post(client, body(events=1))

        refused, waiting, later = asyncio.run(run())
        assert (503, "1", "2 batches are being taken already") == refused
        assert [204, 204, 204] == [status for status, _, _ in (*waiting, later)]
        assert {"busy": 1} == one.figures().refused

    def test_body_that_never_ends_is_given_up(self, monkeypatch):
        """A caller that opens a request and falls silent holds no place for ever."""
        monkeypatch.setattr(module, "BODY_SECONDS", 0.01)
        one = exporter()

        async def run():
            events = handler(one)
            async with TestServer(build(one, events)) as server:
                _, writer = await asyncio.open_connection(server.host, server.port)
                writer.write(b"POST /api/v1/events HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{")
                await until(lambda: one.figures().refused)
                await until(lambda: events._pending == 0)
                writer.close()

        asyncio.run(run())
        assert {"slow": 1} == one.figures().refused


class TestFlood:
    def test_ten_thousand_events_a_second(self):
        """For a minute: the rate is kept, each poll is booked, what is held does not grow, another caller is served."""
        one = exporter()
        clock = one._clock
        flood = read_events(body(), NOW)
        quiet = Batch("quiet", "agents", read_events(body(events=1), NOW).events)
        taken, refusals, sizes = 0, [], []
        for second in range(60):
            clock.time = NOW + second
            for _ in range(10):
                refusal = one.take(flood)
                taken += refusal is None
                refusals += [refusal] if refusal else []
            assert None is one.take(quiet)
            one.book("a", page(30 + second, clock.time))
            state = one.watch.callers._fleets["agents"]
            sizes.append((len(state._heard), len(state._closed), len(state._open), len(state._ceilings)))

        (backend,) = one.figures().backends
        assert 59 == backend.stages.requests
        assert 5 + 59 // 2 == taken
        assert {"rate"} == {refusal.reason for refusal in refusals}
        assert all(1 <= refusal.after <= 2 for refusal in refusals)
        assert {(2, 0, 0, 2)} == set(sizes)

    def test_names_without_end(self):
        """A caller that changes its name with each batch fills no list and pushes nobody out."""
        one = exporter()
        event = read_events(body(events=1), NOW).events
        assert None is one.take(Batch("real", "agents", event))
        found = [one.take(Batch(f"fake-{number}", "agents", event)) for number in range(500)]

        assert 498 == sum(isinstance(each, Refusal) and each.reason == "callers" for each in found)
        assert None is one.take(Batch("real", "agents", event))
        assert 150 >= len(one._rates._buckets)

    def test_refusals_are_answered_with_a_time_and_counted(self):
        """429 with Retry-After and the reason; the counter tells why."""
        one = exporter()

        async def run():
            async with TestClient(TestServer(build(one, handler(one)))) as client:
                found = [await post(client, body()) for _ in range(6)]
                found.append(await post(client, b"{"))
                async with client.get("/metrics") as answer:
                    return found, await answer.text()

        found, text = asyncio.run(run())
        message = "events: flood sends too many; expected at most 500 a second, 5000 at once"
        assert [(204, None, "")] * 5 + [(429, "2", message)] == found[:6]
        assert 400 == found[6][0]
        assert 'tidegauge_caller_batches_refused_total{reason="rate"} 1.0' in text
        assert 'tidegauge_caller_batches_refused_total{reason="format"} 1.0' in text


@pytest.mark.parametrize(
    "lie",
    [
        {"type": "barrier_opened", "at": NOW, "id": "1", "fan_out": -3},
        {"type": "barrier_opened", "at": NOW, "id": "1", "fan_out": 10_000_000},
        {"type": "wait", "at": NOW, "seconds": float("nan")},
        {"type": "wait", "at": NOW + 1e6, "seconds": 1},
        {"type": "wait", "at": NOW - 1e6, "seconds": 1},
        {"type": "ceiling", "at": NOW, "value": 16, "gpu": "H100"},
    ],
)
def test_lie_changes_nothing_at_all(lie):
    """The batch is refused as a whole, and the page is what it was but for the refusal."""
    one = exporter()
    one.take(read_events(body(events=1), NOW))

    async def run():
        async with TestClient(TestServer(build(one, handler(one)))) as client:
            before = one.figures()
            status, _, error = await post(client, json.dumps({"caller": "x", "fleet": "agents", "events": [lie]}))
            return before, status, error

    before, status, error = asyncio.run(run())
    after = one.figures()
    assert 400 == status
    assert error.startswith("events[0].")
    assert ({}, {"format": 1}) == (before.refused, after.refused)
    assert before.fleets == after.fleets
