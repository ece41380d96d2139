"""One backend whose pages are a burden beside one that is well: the well one is polled on time and read right."""

import asyncio
import itertools
import logging
import threading
import time

from aiohttp import web

from tests.builders import exposition, requests
from tests.unit.little_servers import DEADLINE, serving
from tidegauge import config, vllm
from tidegauge.app import Exporter
from tidegauge.clock import SystemClock
from tidegauge.parsing.exposition import PageReader
from tidegauge.sources.session import open_session

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


async def reached(exporter, condition):
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, exporter.waiting_for()
        await asyncio.sleep(INTERVAL)
