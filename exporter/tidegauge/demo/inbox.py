"""A webhook inbox: what Alertmanager delivers."""

from typing import Any, Self

import attrs
from aiohttp import web


@attrs.frozen
class Page:
    """One alert as delivered."""

    status: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Inbox:
    """Listens on 127.0.0.1 and keeps what arrives."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pages: list[Page] = []
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/", self._take)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
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
        self.pages += [Page(one["status"], one["labels"], one["annotations"]) for one in body["alerts"]]
        return web.Response()
