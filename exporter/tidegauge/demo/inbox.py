"""A webhook inbox: what Alertmanager delivers.

Also a command, for the demo profile of docker compose: `python -m tidegauge.demo.inbox --port 10011` prints each page.
"""

import argparse
import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any, Self

import attrs
from aiohttp import web

from tidegauge import signals


@attrs.frozen
class Page:
    """One alert as delivered."""

    status: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Inbox:
    """Listens on *host* and keeps the last pages that arrive; with *aloud* it prints them, too."""

    def __init__(self, port: int, host: str = "127.0.0.1", *, aloud: bool = False) -> None:
        self.port = port
        self._host = host
        self._aloud = aloud
        self.pages: deque[Page] = deque(maxlen=1000)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self.port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def find(self, status: str, **labels: str) -> Page | None:
        """The last page with this status and these labels."""
        wanted = labels.items()
        return next(
            (one for one in reversed(self.pages) if one.status == status and wanted <= one.labels.items()), None
        )

    async def _take(self, request: web.Request) -> web.Response:
        body: dict[str, Any] = await request.json()
        pages = [Page(one["status"], one["labels"], one["annotations"]) for one in body["alerts"]]
        self.pages.extend(pages)
        if self._aloud:
            for page in pages:
                print(f"{page.status.upper()} {page.labels}\n  {page.annotations.get('summary', '')}", flush=True)
        return web.Response()


async def _forever(host: str, port: int) -> None:
    stop = signals.ending()
    async with Inbox(port, host, aloud=True):
        await stop.wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is delivered until told to stop."""
    flags = argparse.ArgumentParser(prog="python -m tidegauge.demo.inbox", description=__doc__)
    flags.add_argument("--host", default="127.0.0.1")
    flags.add_argument("--port", type=int, default=10011)
    arguments = flags.parse_args(argv)
    asyncio.run(_forever(arguments.host, arguments.port))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
