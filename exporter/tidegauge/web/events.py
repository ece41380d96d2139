"""`POST /api/v1/events`: what callers tell of their barriers, limiter and waits."""

import asyncio
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aiohttp import web

from tidegauge.clock import Clock
from tidegauge.parsing.events import BadEvent, Batch, Refusal, read_events
from tidegauge.sources.credentials import CredentialError, read_secret

MOST_PENDING: Final = 32
"""Batches that are received or wait for their turn; more are sent away before they are read."""

BODY_SECONDS: Final = 10.0


class EventsHandler:
    """Checks a caller's batch and hands it on; a bad one is a 4xx that names the field and changes nothing.

    Batches are read one at a time and off the event loop, so that however many come, polls and pages get their turn.
    *take* returns why a batch cannot be taken (too many fleets, too fast), or None; *refused* hears one word for each
    batch that was refused.
    """

    def __init__(
        self,
        take: Callable[[Batch], Refusal | None],
        clock: Clock,
        token_file: Path | None,
        max_body: int,
        refused: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._take = take
        self._clock = clock
        self._tell = refused
        self.expect(token_file, max_body)
        self._pending = 0
        self._turn = asyncio.Lock()

    def expect(self, token_file: Path | None, max_body: int) -> None:
        """Expect this file's token (None: any), and bodies of at most so many bytes, from now on."""
        self._token_file = token_file
        self._max_body = max_body

    async def handle(self, request: web.Request) -> web.Response:
        """204 for a batch taken; 400, 401, 408, 413, 429 or 503 with the reason otherwise."""
        if not self._allowed(request):
            return self._refused(401, "token", "expected the bearer token that the exporter is configured with")
        if self._pending >= MOST_PENDING:
            return self._refused(503, "busy", f"{MOST_PENDING} batches are being taken already", 1)
        self._pending += 1
        try:
            return await self._received(request)
        finally:
            self._pending -= 1

    async def _received(self, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.clone(client_max_size=self._max_body).read()
        except web.HTTPRequestEntityTooLarge:
            return self._refused(413, "too_large", f"expected a body of at most {self._max_body} bytes")
        except TimeoutError:
            return self._refused(408, "slow", f"expected the body within {BODY_SECONDS:g} s")
        async with self._turn:
            try:
                batch = await asyncio.to_thread(read_events, body, self._clock.now())
            except BadEvent as error:
                return self._refused(400, "format", str(error))
            refusal = self._take(batch)
        if refusal is not None:
            return self._refused(429, refusal.reason, refusal.message, refusal.after)
        return web.Response(status=204)

    def _allowed(self, request: web.Request) -> bool:
        if self._token_file is None:
            return True
        try:
            # Read at every call, so that a rotated token needs no restart.
            expected = read_secret(str(self._token_file))
        except CredentialError:
            return False
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(errors="surrogateescape"), expected.encode())

    def _refused(self, status: int, reason: str, message: str, after: int | None = None) -> web.Response:
        self._tell(reason)
        headers = {} if after is None else {"Retry-After": str(after)}
        return web.json_response({"error": message}, status=status, headers=headers)
