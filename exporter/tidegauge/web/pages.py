"""The aiohttp application; it knows nothing but what the `Exporter` protocol offers."""

import html
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.aiohttp import make_aiohttp_handler

import tidegauge
from tidegauge.collectors import FiguresCollector
from tidegauge.derive.figures import Figures
from tidegauge.report.document import document
from tidegauge.web import runbooks
from tidegauge.web.events import EventsHandler
from tidegauge.web.frame import framed

_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_LINKS: Final = (
    ("/metrics", "metrics"),
    ("/api/v1/report", "the report as JSON"),
    ("/runbooks/", "what each alert means and what to do"),
    ("/-/healthy", "liveness"),
    ("/-/ready", "readiness"),
)


class Exporter(Protocol):
    """What the pages show."""

    def figures(self) -> Figures:
        """The figures of now."""

    def waiting_for(self) -> list[str]:
        """Backends that the start still waits for: they were not polled once yet."""


@web.middleware
async def _broken_bodies(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A client that vanishes, or sends a body that is not in the encoding it names, is no fault of the program."""
    try:
        return await handler(request)
    except (web.RequestPayloadError, ConnectionResetError):
        answer = {"error": "body: expected a whole one in the encoding it names, found one that breaks off"}
        # aiohttp reads on to the end of a body after the answer, and would meet the same error there.
        request.content.feed_eof()
        refused = web.json_response(answer, status=400)
        refused.force_close()
        return refused


def build(exporter: Exporter, events: EventsHandler, pages: Mapping[str, str] = _NONE) -> web.Application:
    """The application: `/metrics` with content negotiation, health, events, report, and the runbook *pages*.

    After the figures, `/metrics` has what the system tells of this process: nothing where there is no /proc.
    """
    registry = CollectorRegistry()
    registry.register(FiguresCollector(exporter.figures))
    registry.register(ProcessCollector(registry=None))

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="healthy\n")

    async def ready(_: web.Request) -> web.Response:
        missing = exporter.waiting_for()
        if missing:
            return web.Response(status=503, text=f"not polled yet: {', '.join(missing)}\n")
        return web.Response(text="ready\n")

    async def report(_: web.Request) -> web.Response:
        return web.json_response(document(exporter.figures()))

    async def landing(_: web.Request) -> web.Response:
        return framed("tidegauge", _landing(exporter.figures()))

    app = web.Application(middlewares=[_broken_bodies])
    handler: Any = make_aiohttp_handler(registry)
    app.router.add_get("/metrics", handler)
    app.router.add_get("/-/healthy", healthy)
    app.router.add_get("/-/ready", ready)
    app.router.add_get("/api/v1/report", report)
    app.router.add_post("/api/v1/events", events.handle)
    app.router.add_get("/", landing)
    app.add_routes(runbooks.routes(pages))
    return app


def _landing(figures: Figures) -> str:
    links = "".join(f'<li><a href="{path}">{path}</a> {what}</li>' for path, what in _LINKS)
    rows = "".join(
        f"<tr><td>{html.escape(one.name)}</td><td>{html.escape(one.history.fleet)}</td>"
        f"<td>{'up' if one.history.up else 'down' if one.history.up is False else 'not polled yet'}</td></tr>"
        for one in figures.backends
    )
    return (
        f"<h1>tidegauge {tidegauge.__version__}</h1><p>Where the latency of a vLLM fleet goes.</p><ul>{links}</ul>"
        f"<table><tr><th>backend</th><th>fleet</th><th>state</th></tr>{rows}</table>"
    )
