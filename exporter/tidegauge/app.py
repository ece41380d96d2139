"""The exporter as a service: its address, its session, and the signal that makes it read its configuration again."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

import attrs
from aiohttp import web

from tidegauge import config as cf
from tidegauge import signals
from tidegauge.clock import Clock, SystemClock
from tidegauge.exporter import Exporter
from tidegauge.reload import Reloader
from tidegauge.sources.session import open_session
from tidegauge.web import runbooks
from tidegauge.web.events import EventsHandler
from tidegauge.web.pages import build

_MOST_LOOK_UPS: Final = 1000
"""Backends whose names may hang at once; a thread begins when it is needed, and a reload may bring backends."""


@attrs.frozen
class Served:
    """A running exporter: the address it really listens on."""

    host: str
    port: int


async def serve(
    config: cf.Config,
    started: Callable[[Served], None],
    clock: Clock | None = None,
    read: Callable[[], cf.Config] | None = None,
) -> None:
    """Run the exporter until cancelled; *started* is called once it listens.

    At SIGHUP the configuration that *read* returns is taken over; where that raises ConfigError, the one in force
    stays. Raises OSError if the address cannot be had.
    """
    clock = clock or SystemClock()
    exporter = Exporter(config, clock)
    events = EventsHandler(exporter.take, clock, *_expected(config), exporter.watch.refused)

    async def take(changed: cf.Config) -> None:
        await exporter.become(changed)
        events.expect(*_expected(changed))

    async with AsyncExitStack() as stack:
        reloader = Reloader(read or (lambda: config), take, exporter.refuse)
        if read is not None:
            signals.on_hangup(reloader.ask)
        runner = web.AppRunner(build(exporter, events, runbooks.read()), access_log=None, shutdown_timeout=2)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await _listen(runner, config.listen)
        session = await stack.enter_async_context(open_session(_MOST_LOOK_UPS))
        stack.callback(exporter.save)
        host, port = runner.addresses[0][:2]
        started(Served(host, port))
        with suppress(asyncio.CancelledError):
            async with asyncio.TaskGroup() as group:
                group.create_task(exporter.run(session))
                group.create_task(reloader.run())


async def _listen(runner: web.AppRunner, at: cf.Listen) -> None:
    try:
        await web.TCPSite(runner, at.host, at.port).start()
    except OSError as error:
        found = f"{at.host}:{at.port}: {error.strerror or error}"
        raise OSError(f"listen: expected an address to be had, found {found}") from error


def _expected(config: cf.Config) -> tuple[Path | None, int]:
    """What callers' batches are held to: the file of their token, and the largest body."""
    token_file = Path(config.callers.token_file) if config.callers.token_file else None
    return token_file, config.callers.max_body
