"""`POST /api/v1/events`: what callers tell of their barriers, limiter and waits."""

import hmac
from collections.abc import Callable
from pathlib import Path

from aiohttp import web

from tidegauge.clock import Clock
from tidegauge.parsing.events import BadEvent, Batch, read_events


class EventsHandler:
    """Checks a caller's batch and hands it on; a bad one is a 4xx that names the field and changes nothing.

    *take* returns why a batch cannot be taken (too many fleets), or None.
    """

    def __init__(
        self, take: Callable[[Batch], str | None], clock: Clock, token_file: Path | None, max_body: int
    ) -> None:
        self._take = take
        self._clock = clock
        self._token_file = token_file
        self.max_body = max_body

    async def handle(self, request: web.Request) -> web.Response:
        """204 for a batch taken; 401, 400, 413 or 429 with the reason otherwise."""
        if not self._allowed(request):
            return _refused(401, "expected the bearer token that the exporter is configured with")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _refused(413, f"expected a body of at most {self.max_body} bytes")
        try:
            batch = read_events(body, self._clock.now())
        except BadEvent as error:
            return _refused(400, str(error))
        refusal = self._take(batch)
        return web.Response(status=204) if refusal is None else _refused(429, refusal)

    def _allowed(self, request: web.Request) -> bool:
        if self._token_file is None:
            return True
        try:
            # Read at every call, so that a rotated token needs no restart.
            expected = self._token_file.read_text(encoding="utf-8").strip()
        except OSError:
            return False
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not expected:
            return False
        return hmac.compare_digest(given.strip().encode(errors="surrogateescape"), expected.encode())


def _refused(status: int, reason: str) -> web.Response:
    return web.json_response({"error": reason}, status=status)
