"""What the web layer of a vLLM server exposes beside the engine: its process, and HTTP requests by handler."""

import platform
import sys
from collections.abc import Iterator
from typing import Final

import attrs

from tidegauge import process
from tidegauge.demo.exposition import buckets, created, head, labels, number
from tidegauge.demo.tally import Distribution

COARSE: Final = (0.1, 0.5, 1)
FINE: Final = (*(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60),)
HANDLER: Final = "handler"
METHOD: Final = "method"
STATUS: Final = "status"

_REQUESTS = ("http_requests_total", "Total number of requests by method, status and handler.")
_SIZE = "by handler. Only value of header is respected. Otherwise ignored. No percentile calculated. "
_FINE = (
    "http_request_duration_highr_seconds",
    "Latency with many buckets but no API specific labels. Made for more accurate percentile calculations. ",
)
_COARSE = (
    "http_request_duration_seconds",
    "Latency with only few buckets by handler. Made to be only used if aggregation by handler is important. ",
)


@attrs.frozen
class ProcessFacts:
    """What `process_*` series say; a simulation without a process of its own knows only the start (unix seconds)."""

    start: float
    cpu_seconds: float = 0.0
    resident_bytes: float = 0.0
    virtual_bytes: float = 0.0
    open_fds: float = 0.0
    max_fds: float = 1024.0


@attrs.frozen
class Exchange:
    """One answered HTTP request; sizes in bytes, `at` in unix seconds."""

    handler: str
    method: str
    status: int
    seconds: float
    request_bytes: int
    response_bytes: int
    at: float


@attrs.define
class _Handler:
    created: float
    seconds: Distribution = attrs.field(factory=lambda: Distribution(COARSE))
    request_bytes: int = 0
    response_bytes: int = 0


class WebTally:
    """Counts HTTP requests as vLLM's web layer does; the caller leaves out /metrics, /health and /version."""

    def __init__(self, started: float) -> None:
        self.started = started
        self._seconds = Distribution(FINE)
        self._handlers: dict[tuple[str, str], _Handler] = {}
        self._statuses: dict[tuple[str, str, str], tuple[int, float]] = {}

    def answered(self, exchange: Exchange) -> None:
        """One exchange is over."""
        handler = self._handlers.setdefault((exchange.handler, exchange.method), _Handler(exchange.at))
        handler.seconds.observe(exchange.seconds)
        handler.request_bytes += exchange.request_bytes
        handler.response_bytes += exchange.response_bytes
        self._seconds.observe(exchange.seconds)
        key = (exchange.handler, exchange.method, f"{exchange.status // 100}xx")
        seen, first = self._statuses.get(key, (0, exchange.at))
        self._statuses[key] = seen + 1, first

    def lines(self) -> Iterator[str]:
        """The `http_*` families."""
        yield from self._request_lines()
        for direction, of in (("request", "incoming requests"), ("response", "outgoing responses")):
            yield from self._size_lines(f"http_{direction}_size_bytes", f"Content length of {of} {_SIZE}", direction)
        yield head(*_FINE, "histogram")
        yield buckets(_FINE[0], {}, self._seconds)()
        yield created(*_FINE, {"": self.started})
        yield head(*_COARSE, "histogram")
        own = {key: {HANDLER: key[0], METHOD: key[1]} for key in self._handlers}
        for key, handler in self._handlers.items():
            yield buckets(_COARSE[0], own[key], handler.seconds)()
        yield created(*_COARSE, {labels(own[key]): handler.created for key, handler in self._handlers.items()})

    def _request_lines(self) -> Iterator[str]:
        name, text = _REQUESTS
        yield head(name, text, "counter")
        series = {
            labels({HANDLER: handler, METHOD: method, STATUS: status}): counted
            for (handler, method, status), counted in self._statuses.items()
        }
        for own, (seen, _) in series.items():
            yield f"{name}{own} {number(seen)}"
        yield created(name, text, {own: first for own, (_, first) in series.items()})

    def _size_lines(self, name: str, text: str, direction: str) -> Iterator[str]:
        yield head(name, text, "summary")
        for (path, _), handler in self._handlers.items():
            own = labels({HANDLER: path})
            size = handler.request_bytes if direction == "request" else handler.response_bytes
            yield f"{name}_count{own} {number(handler.seconds.count)}\n{name}_sum{own} {number(size)}"
        yield created(name, text, {labels({HANDLER: path}): h.created for (path, _), h in self._handlers.items()})


def process_lines(facts: ProcessFacts) -> Iterator[str]:
    """The `process_*` families."""
    values = {
        process.VIRTUAL_MEMORY: facts.virtual_bytes,
        process.RESIDENT_MEMORY: facts.resident_bytes,
        process.START_TIME: facts.start,
        process.CPU: facts.cpu_seconds,
        process.OPEN_FILES: facts.open_fds,
        process.MOST_FILES: facts.max_fds,
    }
    for series, value in values.items():
        yield f"{head(series.name, series.help, series.kind)}\n{series.name} {number(value)}"


def python_lines() -> Iterator[str]:
    """The `python_*` families, with no garbage collected."""
    for family, text in (
        ("objects_collected", "Objects collected during gc"),
        ("objects_uncollectable", "Uncollectable objects found during GC"),
        ("collections", "Number of times this generation was collected"),
    ):
        name = f"python_gc_{family}_total"
        yield head(name, text, "counter")
        yield from (f'{name}{{generation="{generation}"}} 0.0' for generation in range(3))
    major, minor, patch = map(str, sys.version_info[:3])
    facts = {"implementation": platform.python_implementation(), "major": major, "minor": minor, "patchlevel": patch}
    yield head("python_info", "Python platform information", "gauge")
    yield f"python_info{labels({**facts, 'version': platform.python_version()})} 1.0"
