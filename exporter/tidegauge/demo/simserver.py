"""One simulated vLLM server over HTTP, paced in real time, usable inside any event loop."""

import asyncio
import json
import os
import resource
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final, TextIO

from aiohttp import web

from tidegauge.demo.completions import RefusedError, answer, bad_request, request_from
from tidegauge.demo.engine import Engine
from tidegauge.demo.pace import Pacer
from tidegauge.demo.pages import CONTENT_TYPE, PageWriter
from tidegauge.demo.settings import VERSION, EngineSettings
from tidegauge.demo.startup import Place, StatsLines, loading_lines, ready_lines, shutdown_lines
from tidegauge.demo.weblayer import Exchange, ProcessFacts, WebTally

STATS_INTERVAL: Final = 10.0
LARGEST_BODY: Final = 16 * 2**20
UNCOUNTED: Final = ("/metrics", "/health", "/version")
"""Paths that vLLM's `http_*` families leave out."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SimServer:
    """A simulated server. `port` 0 takes a free one, known after `start`; `log` gets the lines a real server prints."""

    def __init__(
        self,
        settings: EngineSettings,
        log: TextIO,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        load_seconds: float = 0.0,
    ) -> None:
        self.settings = settings
        self.host = host
        self.port = port
        self._log = log
        self._load_seconds = load_seconds
        self._clock_offset = time.time() - time.monotonic()
        self.engine = Engine(settings, start=self.now())
        self._web = WebTally(self.engine.started)
        self._writer = PageWriter(self.engine, self._web)
        self._pacer = Pacer(self.engine, self.now)
        self._ids = count(1)
        self._runner: web.AppRunner | None = None
        self._stats: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where to reach it, once started."""
        return f"http://{self.host}:{self.port}"

    @property
    def place(self) -> Place:
        """Its address and pids; the simulated engine has a pid of its own, as the real one does."""
        return Place(self.host, self.port, os.getpid(), os.getpid() + 1)

    def now(self) -> float:
        """Unix time that never goes back."""
        return self._clock_offset + time.monotonic()

    async def start(self) -> None:
        """Print the startup lines, load, listen: like the real one, it answers nothing while it loads."""
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((self.host, self.port))
        self.port = bound.getsockname()[1]
        self._print(loading_lines(self.settings, self.place, self.now()))
        await asyncio.sleep(self._load_seconds)
        self._runner = web.AppRunner(
            self._application(), handler_cancellation=True, access_log=None, shutdown_timeout=0
        )
        await self._runner.setup()
        await web.SockSite(self._runner, bound).start()
        self._print(ready_lines(self.settings, self.place, self.now(), self.now() - self.engine.started))
        self._stats = asyncio.create_task(self._print_stats())

    async def stop(self) -> None:
        """Stop at once; what is on its way is aborted."""
        self._print(shutdown_lines(self.place, self.now()))
        self._pacer.close()
        if self._stats is not None:
            self._stats.cancel()
            with suppress(asyncio.CancelledError):
                await self._stats
        if self._runner is not None:
            await self._runner.cleanup()

    def _application(self) -> web.Application:
        @web.middleware
        async def account(request: web.Request, handler: _Handler) -> web.StreamResponse:
            began = self.now()
            try:
                response = await handler(request)
            except web.HTTPException as error:
                self._answered(request, error, began)
                raise
            self._answered(request, response, began)
            return response

        app = web.Application(middlewares=[account], client_max_size=LARGEST_BODY)
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/health", self._health),
                web.get("/version", self._version),
                web.get("/v1/models", self._models),
                web.post("/v1/completions", self._completions),
            ]
        )
        return app

    def _answered(self, request: web.Request, response: web.StreamResponse, began: float) -> None:
        """Count the exchange and print its access line."""
        route = request.match_info.route.resource
        path = "none" if route is None else route.canonical
        if path not in UNCOUNTED:
            sizes = request.content_length or 0, response.content_length or 0
            seconds = self.now() - began
            self._web.answered(Exchange(path, request.method, response.status, seconds, *sizes, at=self.now()))
        peer = request.transport.get_extra_info("peername") if request.transport else None
        address = f"{peer[0]}:{peer[1]}" if peer else "-"
        status = f"{response.status} {response.reason}"
        self._print([f'INFO:     {address} - "{request.method} {request.path} HTTP/1.1" {status}'])

    async def _metrics(self, _: web.Request) -> web.Response:
        self._pacer.catch_up()
        page = self._writer.page(process_facts(self.engine.started))
        return web.Response(body=page.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"version": VERSION})

    async def _models(self, _: web.Request) -> web.Response:
        name = self.settings.model_name
        model = {
            "id": name,
            "object": "model",
            "created": int(self.now()),
            "owned_by": "vllm",
            "root": name,
            "parent": None,
            "max_model_len": self.settings.max_model_len,
        }
        return web.json_response({"object": "list", "data": [model]})

    async def _completions(self, request: web.Request) -> web.Response:
        try:
            body = await request.json()
            asked = request_from(body, f"cmpl-{next(self._ids)}", self.settings.model_name)
            return web.json_response(answer(await self._pacer.complete(asked), self.settings.model_name))
        except json.JSONDecodeError:
            refusal = bad_request("the body is not JSON")
        except RefusedError as error:
            refusal = error
        except ValueError as error:
            refusal = bad_request(str(error))
        return web.json_response(refusal.body, status=refusal.status)

    async def _print_stats(self) -> None:
        stats = StatsLines(self.engine.tally, self.place)
        while True:
            await asyncio.sleep(STATS_INTERVAL)
            text = stats.next(self.now(), STATS_INTERVAL)
            self._print([] if text is None else [text])

    def _print(self, lines: Iterable[str]) -> None:
        self._log.writelines(text + "\n" for text in lines)
        self._log.flush()


def process_facts(start: float) -> ProcessFacts:
    """What the system tells of this process, zeros where it does not."""
    statistics, descriptors = Path("/proc/self/statm"), Path("/proc/self/fd")
    pages = [int(field) for field in statistics.read_text().split()[:2]] if statistics.exists() else [0, 0]
    return ProcessFacts(
        start=start,
        cpu_seconds=time.process_time(),
        virtual_bytes=pages[0] * resource.getpagesize(),
        resident_bytes=pages[1] * resource.getpagesize(),
        open_fds=len(list(descriptors.iterdir())) if descriptors.exists() else 0,
        max_fds=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )
