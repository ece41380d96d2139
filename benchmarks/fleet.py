"""One exporter with 100 backends polled at 1 s: CPU share of a core, p99 of /metrics, memory after ten minutes.

The ten minutes are simulated: pages are handed to the exporter as fast as it takes them, every number on every page
changed. What polling over HTTP adds is measured in real time, against servers in another process.
"""

import asyncio
import gzip
import multiprocessing
import resource
import statistics
import time
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from tidegauge import app, config
from tidegauge.collectors import FiguresCollector
from tidegauge.sources.scrape import Fetched

_PAGE = Path(__file__).parent.parent / "tests" / "fixtures" / "pages" / "vllm-0.32-one-engine.prom.gz"
_BACKENDS = 100
_POLLS = 600
_SCRAPE_EVERY = 5
_REAL_SECONDS = 20


class _Clock:
    def __init__(self):
        self.time = 1.8e9

    def now(self):
        return self.time

    async def sleep(self, seconds):
        self.time += seconds


def run():
    """The rows of the table."""
    return [*_simulated(), *_simulated(starts=False), *_polled()]


def _simulated(*, starts=True):
    """Each backend a process of its own; without *starts*, as servers of several processes, none says which."""
    clock = _Clock()
    loaded = config.for_urls([f"http://127.0.0.1:{8000 + number}" for number in range(_BACKENDS)])
    exporter = app.Exporter(loaded, clock)
    registry = CollectorRegistry()
    registry.register(FiguresCollector(exporter.figures))
    pages = Pages(clock.now())
    scrapes, spent = [], 0.0
    for poll in range(_POLLS):
        bodies = [pages.at(poll, number, starts=starts) for number in range(_BACKENDS)]
        begun = time.process_time()
        for one, body in zip(loaded.backends, bodies, strict=True):
            exporter.book(one.name, Fetched(clock.now(), 0.01, body))
        spent += time.process_time() - begun
        clock.time += 1
        if poll % _SCRAPE_EVERY == 0:
            begun = time.perf_counter()
            size = len(generate_latest(registry))
            scrapes.append(time.perf_counter() - begun)
    scrapes.sort()
    kind = "" if starts else " without a process start"
    return [
        f"{_BACKENDS} backends{kind}, {_POLLS} polls each, read and booked: {spent / _POLLS:.1%} of one core at 1 s",
        (
            f"/metrics of {size / 1e3:.0f} kB: median {statistics.median(scrapes) * 1e3:.0f} ms,"
            f" p99 {scrapes[int(len(scrapes) * 0.99)] * 1e3:.0f} ms"
        ),
        f"RSS after ten simulated minutes: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most",
    ]


class Pages:
    """The real page, every figure risen by the poll's number, for two kinds of backend; no two are one server."""

    def __init__(self, now):
        text = gzip.decompress(_PAGE.read_bytes()).decode()
        lines = [line for line in text.splitlines() if not line.startswith(("#", "process_start"))]
        self._lines = [line.rpartition(" ") for line in lines]
        self._began = now - 3600
        self._made = {}

    def at(self, poll, number, *, starts=True):
        """The page of backend *number* at one poll: that of its kind, with a start or a token count of its own."""
        kind = poll, number % 2
        if kind not in self._made:
            self._made = {key: page for key, page in self._made.items() if key[0] == poll}
            self._made[kind] = "".join(self._risen(poll * (1 + number % 2)))
        page = self._made[kind]
        if starts:
            return f"{page}process_start_time_seconds {self._began + number}\n"
        head, found, rest = page.partition("\nvllm:prompt_tokens_total{")
        labels, _, rest = rest.partition("} ")
        return f"{head}{found}{labels}}} {number + 1}{rest}"

    def _risen(self, rise):
        for head, _, figure in self._lines:
            yield f"{head} {figure if '_info' in head else repr(float(figure) + rise)}\n"


def _serve(ports, ready):
    pages = Pages(time.time())
    begun = time.time()

    async def metrics(request):
        return web.Response(text=pages.at(int(time.time() - begun), int(request.url.port)))

    async def main():
        application = web.Application()
        application.router.add_get("/metrics", metrics)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        for _ in range(_BACKENDS):
            await web.TCPSite(runner, "127.0.0.1", 0).start()
        ports.put([address[1] for address in runner.addresses])
        ready.set()
        await asyncio.sleep(_REAL_SECONDS + 30)

    asyncio.run(main())


def _polled():
    context = multiprocessing.get_context("spawn")
    ports, ready = context.Queue(), context.Event()
    server = context.Process(target=_serve, args=(ports, ready), daemon=True)
    server.start()
    listening = ports.get(timeout=60)
    try:
        share, polls, failed = asyncio.run(_poll(listening))
    finally:
        server.kill()
    return [
        (
            f"{_BACKENDS} backends polled over HTTP at 1 s for {_REAL_SECONDS} s: {share:.1%} of one core,"
            f" {polls} polls, {failed} failed"
        )
    ]


async def _poll(listening):
    loaded = config.load(
        "listen: 127.0.0.1:0\nbackends:\n" + "".join(f"  - url: http://127.0.0.1:{port}\n" for port in listening),
        "bench",
        {},
    )
    exporter = app.Exporter(loaded, app.SystemClock())
    polls = 0
    book = exporter.book

    def counted(*outcome):
        nonlocal polls
        polls += 1
        return book(*outcome)

    exporter.book = counted
    async with app.open_session(len(loaded.backends)) as session:
        task = asyncio.create_task(exporter.run(session))
        await asyncio.sleep(3)
        begun, before = time.process_time(), time.perf_counter()
        await asyncio.sleep(_REAL_SECONDS)
        share = (time.process_time() - begun) / (time.perf_counter() - before)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    histories = [one.history for one in exporter.figures().backends]
    failed = sum(sum(history.counts.failures.values()) for history in histories)
    return share, polls, failed
