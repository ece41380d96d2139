"""The poller: one page of one backend, again and again, whatever the other backends do."""

import asyncio
import hashlib
import logging
import math
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import aiohttp
import attrs
from yarl import URL

from tidegauge.clock import Clock
from tidegauge.sources.body import Unusable, read_text
from tidegauge.sources.credentials import CredentialError, TlsContexts, authorization
from tidegauge.sources.target import Target

_LOG = logging.getLogger(__name__)

REASONS: Final = (
    "timeout",
    "refused",
    "dns",
    "tls",
    "connection",
    "protocol",
    "redirect",
    "http_401",
    "http_403",
    "http_404",
    "http_4xx",
    "http_5xx",
    "http_other",
    "too_large",
    "encoding",
    "not_text",
    "credentials",
    "other",
)
"""Every reason a Failed can have; with `not_metrics`, which only reading a page tells, the values of `reason`."""

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = {"Accept": "text/plain;version=0.0.4", "Accept-Encoding": "gzip"}


@attrs.frozen
class Fetched:
    """A body worth parsing: `at` is the unix time when it was complete, `seconds` what the poll took.

    What the server calls it is not asked: the body alone decides whether it is a page.
    """

    at: float
    seconds: float
    body: str = attrs.field(repr=False)


@attrs.frozen
class Failed:
    """A poll without a body; `reason` is one of REASONS, `message` names the URL (without credentials)."""

    at: float
    seconds: float
    reason: str
    message: str


async def fetch(
    session: aiohttp.ClientSession, target: Target, clock: Clock, contexts: TlsContexts | None = None
) -> Fetched | Failed:
    """Poll once; every outcome is a value, only cancellation is raised.

    Redirects are followed within the origin of the configured URL (scheme, host, port) only: another origin would
    be handed this backend's credentials, and its figures would be booked under this backend's name.
    """
    started = clock.now()

    def failed(reason: str, message: str) -> Failed:
        at = clock.now()
        return Failed(at, max(0.0, at - started), reason, f"{shown(target.url)}: {printable(message)}")

    try:
        async with asyncio.timeout(target.timeout):
            body = await _get(session, target, contexts or TlsContexts())
    except TimeoutError:
        return failed("timeout", f"expected a whole answer within {target.timeout:g} s, found none")
    except Unusable as error:
        return failed(error.reason, str(error))
    except CredentialError as error:
        return failed("credentials", str(error))
    except Exception as error:  # noqa: BLE001 - whatever a broken server provokes stays with its backend
        return failed(_reason(error), f"expected a page, found: {described(error)}")
    at = clock.now()
    return Fetched(at, max(0.0, at - started), body)


async def _get(session: aiohttp.ClientSession, target: Target, contexts: TlsContexts) -> str:
    url = URL(target.url)
    headers = _HEADERS | authorization(target)
    trust = contexts.get(target.tls) if target.tls is not None else True
    server_name = target.tls.server_name if target.tls is not None else None
    for _ in range(MAX_REDIRECTS + 1):
        async with session.get(
            url,
            headers=headers,
            ssl=trust,
            server_hostname=server_name,
            allow_redirects=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as response:
            if response.status not in _REDIRECTS:
                return await _page(response, target.max_page_size)
            url = _redirected(url, response.headers.get("Location", ""))
    raise Unusable("redirect", f"expected a page, found more than {MAX_REDIRECTS} redirects")


async def _page(response: aiohttp.ClientResponse, limit: int) -> str:
    if response.status != 200:
        found = f"{response.status} {response.reason or ''}".strip()
        raise Unusable(_status_reason(response.status), f"expected status 200, found {found[:80]}")
    return await read_text(response, limit)


def _redirected(url: URL, location: str) -> URL:
    try:
        to = url.join(URL(location))
        within = bool(location) and to.origin() == url.origin()
    except ValueError:
        within = False
    if not within:
        found = shown(location) or "nowhere"
        raise Unusable(
            "redirect",
            f"expected a redirect within {url.origin()}, found one to {found}; configure that URL if it is the backend",
        )
    return to


def _status_reason(status: int) -> str:
    exact = f"http_{status}"
    by_class = f"http_{status // 100}xx"
    return exact if exact in REASONS else by_class if by_class in REASONS else "http_other"


def shown(url: str) -> str:
    """The URL without user, password, query and fragment, any of which may be a secret."""
    try:
        return str(URL(url).with_user(None).with_query(None).with_fragment(None))[:200]
    except ValueError:
        return "an unreadable URL"


_BY_CLASS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (aiohttp.ClientConnectorDNSError, "dns"),
    (aiohttp.ClientConnectorCertificateError, "tls"),
    (aiohttp.ClientSSLError, "tls"),
    (ssl.SSLError, "tls"),
    (ConnectionRefusedError, "refused"),
    (aiohttp.ClientConnectionError, "connection"),
    (aiohttp.ClientPayloadError, "connection"),
    (OSError, "connection"),
    (aiohttp.ClientResponseError, "protocol"),
)


def _reason(error: Exception) -> str:
    """The first class that fits; what the operating system or TLS said is more telling than aiohttp's wrapping."""
    causes = (getattr(error, "os_error", None), error.__cause__)
    inner = next((cause for cause in causes if isinstance(cause, ssl.SSLError | ConnectionRefusedError)), error)
    return next((reason for kind, reason in _BY_CLASS if isinstance(inner, kind)), "other")


def printable(text: str) -> str:
    """Foreign text in a message: what a terminal would obey, or cannot show, is spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def described(error: Exception) -> str:
    """One line of what an error says, or its class where it says nothing."""
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return " ".join(text.split())[:200] or type(error).__name__


async def poll_forever(
    session: aiohttp.ClientSession,
    target: Target,
    interval: float,
    clock: Clock,
    on_result: Callable[[Fetched | Failed], Awaitable[None] | None],
) -> None:
    """Poll on a fixed schedule until cancelled and hand each outcome to `on_result`.

    Each backend has its own phase within the interval, derived from its name, so that many backends do not fire at
    once and the phase survives restarts. A poll that overruns its interval skips the slots it missed.
    `on_result` may be a coroutine, which is done before the next poll. An error of it is logged, once until it
    changes, and does not end the polling.
    """
    contexts = TlsContexts()
    offset = phase(target.name, interval)
    slot, complaint = None, ""
    while True:
        slot = next_slot(clock.now(), interval, offset, slot)
        await clock.sleep(max(0.0, offset + slot * interval - clock.now()))
        result = await fetch(session, target, clock, contexts)
        try:
            taken = on_result(result)
            if taken is not None:
                await taken
        except Exception as error:  # noqa: BLE001 - a fault in what becomes of one page must not end the polling
            if repr(error) != complaint:
                _LOG.exception("%s: outcome of a poll not taken", target.name)
            complaint = repr(error)


def phase(name: str, interval: float) -> float:
    """Seconds into its interval at which a backend is polled: stable, and spread evenly over many names."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 * interval


def next_slot(now: float, interval: float, offset: float, last: int | None) -> int:
    """Number of the first slot after `now`, and not the last one again if the timer fired a little early.

    Slot k is due at offset + k x interval in unix time. A clock that was set back starts a new count.
    """
    after = math.floor((now - offset) / interval) + 1
    return after + 1 if after == last else after
