"""A neighbour that is a burden, backend or caller, disturbs nobody else."""

import asyncio
import itertools
import logging
import threading
import time
from pathlib import Path

import pytest
from aiohttp import ClientSession, web

from tests.builders import exposition, requests
from tests.unit.little_servers import DEADLINE, serving, until
from tidegauge import app, config, following, vllm
from tidegauge.app import Exporter
from tidegauge.clock import SystemClock
from tidegauge.complaints import Complaints
from tidegauge.parsing.exposition import PageReader
from tidegauge.sources.logfile import LogProgress
from tidegauge.sources.session import open_session
from tidegauge.state.backend import Backend, BackendState

INTERVAL = 0.05


def well(finished):
    rows = requests(*[(0.1, 0.2, 0.3, 0.1)] * finished)
    return exposition(rows, start=1000.0, values={vllm.RUNNING: 1.0})


def test_a_long_page_is_read_beside_the_event_loop(monkeypatch, caplog):
    """While a page of a quarter of a megabyte is being read, the other backend's pages go on being taken."""
    caplog.set_level(logging.ERROR)
    counts, reading, released, on_threads = itertools.count(), threading.Event(), threading.Event(), []
    real = PageReader.read

    def read(self, body):
        if len(body) > 256 * 1024:
            on_threads.append(threading.current_thread() is not threading.main_thread())
            reading.set()
            released.wait(DEADLINE)
        return real(self, body)

    async def answer(request):
        if request.path == "/long":
            return web.Response(text=well(3) + "".join(f'vllm:x{{n="{n}"}} 1\n' for n in range(20_000)))
        return web.Response(text=well(next(counts)))

    monkeypatch.setattr(PageReader, "read", read)

    async def go():
        async with serving(answer) as url, open_session(2) as session:
            text = f"poll_interval: {INTERVAL * 1000:.0f}ms\nbackends:\n"
            text += "".join(f"  - url: {url}/{name}\n    name: {name}\n" for name in ("long", "short"))
            exporter = Exporter(config.load(text, "tidegauge.yml", {}), SystemClock())
            task = asyncio.create_task(exporter.run(session))
            await reached(exporter, lambda: reading.is_set() and next(counts) > 8)
            before = exporter.waiting_for()
            released.set()
            await reached(exporter, lambda: not exporter.waiting_for())
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return before, {one.name: one for one in exporter.figures().backends}

    before, found = asyncio.run(go())

    assert (["long"], True) == (before, all(on_threads))
    assert 5 <= found["short"].stages.requests
    assert (True, True) == (found["long"].history.up, found["short"].history.up)
    assert [] == caplog.records


class Hanging:
    """Follows a log whose disk hangs until it is *released*."""

    released = threading.Event()
    begun, closed = [], []

    def __init__(self, path, *_):
        self.path = path

    def poll(self):
        self.begun.append(self.path)
        assert self.released.wait(DEADLINE)
        return LogProgress(caught_up=True)

    def close(self):
        self.closed.append(self.path)


def test_logs_that_hang_keep_nobody_elses_thread(monkeypatch):
    """However many: what else needs a thread has one at once, be it a reload, a save or a caller's batch.

    Those that no thread has begun to read when they are followed no more are never opened; each is let go of once.
    """
    monkeypatch.setattr(following, "LogFollower", Hanging)
    paths = [Path(f"{number}.log") for number in range(2 * following.MOST_READ)]

    async def go():
        logs = following.Following(SystemClock(), Complaints(SystemClock(), logging.getLogger(__name__)))
        tasks = [
            asyncio.create_task(logs.startup_log(path, BackendState(Backend(path.stem), 9.0, 9.0, 0.0)))
            for path in paths
        ]
        await until(lambda: len(Hanging.begun) == following.MOST_READ)
        found = await asyncio.wait_for(asyncio.to_thread(threading.current_thread), 5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        before = set(Hanging.closed)
        Hanging.released.set()
        await until(lambda: len(Hanging.closed) == len(paths))
        logs.close()
        return found.name, before

    name, before = asyncio.run(go())

    assert name.startswith("asyncio")
    assert set(paths[following.MOST_READ :]) == before
    assert set(paths[: following.MOST_READ]) == set(Hanging.begun)
    assert sorted(paths) == sorted(Hanging.closed)


async def reached(exporter, condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, exporter.waiting_for()
        await asyncio.sleep(INTERVAL)


@pytest.mark.parametrize(
    "head", ["Content-Length: 1000\r\n\r\n{", "Content-Encoding: gzip\r\nContent-Length: 7\r\n\r\ngarbage"]
)
def test_a_caller_that_breaks_off_leaves_no_traceback(caplog, head):
    """Whoever vanishes within a body, or sends another encoding than named, gets a 4xx at most; the log stays clean."""
    text = "listen: 127.0.0.1:0\nbackends: [{url: 'http://127.0.0.1:9'}]\n"

    async def go():
        started = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(app.serve(config.load(text, "t.yml", {}), started.set_result))
        at = await started
        answers = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(at.host, at.port)
            writer.write(f"POST /api/v1/events HTTP/1.1\r\nHost: x\r\n{head}".encode())
            await writer.drain()
            if "garbage" in head:
                answers.append((await reader.readline()).split()[1])
            await asyncio.sleep(0.05)
            writer.close()
        async with ClientSession() as session, session.get(f"http://{at.host}:{at.port}/-/healthy") as healthy:
            answers.append(healthy.status)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return answers

    answers = asyncio.run(go())

    assert ([b"400"] * 3 if "garbage" in head else []) + [200] == answers
    assert [] == [record for record in caplog.records if record.levelno >= logging.ERROR]
