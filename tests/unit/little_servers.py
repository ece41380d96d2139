"""Little HTTP servers on free ports, a clock moved by hand, and one poll of either."""

import asyncio
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from tidegauge.clock import SystemClock
from tidegauge.sources.scrape import fetch
from tidegauge.sources.session import open_session
from tidegauge.sources.target import Target

PAGE = "# HELP vllm:x what\nvllm:x 1\n"
MIB = 1024 * 1024
DEADLINE = 20
ACCEPTING = 5
"""Turns of the loop within which who was accepted has a connection."""
CERTIFICATES = Path(__file__).parent / "certificates"
CA = str(CERTIFICATES / "ca.pem")


class ManualClock:
    """A clock that moves when told to and knows who sleeps on it."""

    def __init__(self, now=1000.0):
        self.time = now
        self.sleepers = []

    def now(self):
        return self.time

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.time + seconds, woken))
        await woken

    def advance(self, seconds):
        self.time += seconds
        for due, woken in self.sleepers:
            if due <= self.time and not woken.done():
                woken.set_result(None)
        self.sleepers = [one for one in self.sleepers if not one[1].done()]


async def until(condition):
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - conditions of both ends, polled with a deadline
            await asyncio.sleep(0.001)


@asynccontextmanager
async def serving(handler, *, tls=None):
    """A server on a free port whose every path is answered by *handler*; gives its base URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        scheme = "https" if tls else "http"
        yield f"{scheme}://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    finally:
        await accept_no_more(site._server)
        await runner.cleanup()


@asynccontextmanager
async def raw_serving(talk):
    """A server that speaks whatever *talk* does with the two ends of a connection."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        await accept_no_more(server)
        server.close()


async def accept_no_more(server):
    """Let whoever was accepted have a connection before *server* is closed.

    asyncio drops the socket of one that gets none; it is found by the garbage collector, within another test.
    """
    for listening in server.sockets:
        asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(ACCEPTING):
        await asyncio.sleep(0)


def answering(body=PAGE, status=200, **headers):
    async def handler(_request):
        data = body if isinstance(body, bytes) else body.encode()
        return web.Response(body=data, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return handler


def scrape(handler, *, raw=False, tls=None, path="/metrics", **target):
    """Poll a server once; `timeout` is short only where the test is about it."""

    async def go():
        context = raw_serving(handler) if raw else serving(handler, tls=tls)
        async with context as url, open_session(1) as session:
            return await fetch(session, Target("t", url + path, **{"timeout": DEADLINE} | target), SystemClock())

    return asyncio.run(go())


def once(target, clock=None):
    async def go():
        async with open_session(1) as session:
            return await fetch(session, target, clock or SystemClock())

    return asyncio.run(go())


def server_context(name="server", client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{name}.pem", CERTIFICATES / f"{name}.key")
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context
