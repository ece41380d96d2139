"""One POST of a batch of events, and what became of it."""

import contextlib
import enum
import http.client
import json
import logging
import os
import ssl
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, Final

_LOG = logging.getLogger("tidegauge.caller")
_PATH: Final = "/api/v1/events"
_MAX_WAITS: Final = 1000
_MAX_COUNT: Final = 100_000
_LONGEST_PAUSE: Final = 60.0

Event = Mapping[str, Any]
FilePath = str | os.PathLike[str]


class Verdict(enum.Enum):
    """What became of a batch: LATER and TOO_LARGE were certainly not taken, so they may be sent again."""

    SENT = enum.auto()
    LATER = enum.auto()
    TOO_LARGE = enum.auto()
    DROPPED = enum.auto()


_BY_STATUS: Final = {413: Verdict.TOO_LARGE, 429: Verdict.LATER, 503: Verdict.LATER}


def possible(fields: Mapping[str, Any]) -> bool:
    """Whether the exporter would take these counts: one impossible event would cost its whole batch."""
    counts = ((fields[name], lowest) for name, lowest in (("fan_out", 1), ("value", 0)) if name in fields)
    return all(type(count) is int and lowest <= count <= _MAX_COUNT for count, lowest in counts)


def packed(batch: Iterable[Event]) -> list[dict[str, Any]]:
    """The events with neighbouring waits joined into one, at the time of the last."""
    joined: list[dict[str, Any]] = []
    for event in batch:
        last = joined[-1] if joined else None
        if event["type"] != "wait":
            joined.append(dict(event))
        elif last is not None and last["type"] == "wait" and len(last["seconds"]) < _MAX_WAITS:
            last["at"] = event["at"]
            last["seconds"].append(event["seconds"])
        else:
            joined.append({**event, "seconds": [event["seconds"]]})
    return joined


class Delivery:
    """Posts batches to an exporter, each on a connection of its own, and never raises doing so.

    Raises ValueError for a URL that is none, OSError for a `ca_file` that cannot be read, both when it is made.
    """

    def __init__(self, url: str, token_file: FilePath | None, ca_file: FilePath | None, timeout: float) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or "@" in parts.netloc:
            raise ValueError("url: expected one such as http://127.0.0.1:10010, without user and query")
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/") + _PATH
        self._token_file = token_file
        self._timeout = timeout
        self._tls = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None
        self._complaint = ""
        self.pause = 0.0
        """Seconds that the last answer asked to wait, 0 where it did not."""

    def post(self, batch: Mapping[str, Any]) -> Verdict:
        """Send a batch once."""
        self.pause = 0.0
        try:
            return self._post(json.dumps(batch).encode())
        except Exception as error:  # noqa: BLE001 - the sending thread must outlive whatever a network can do
            return self._said(Verdict.DROPPED, f"no answer from the exporter: {error!r}")

    def _post(self, body: bytes) -> Verdict:
        connection = self._connection()
        try:
            try:
                headers = self._headers()
                connection.connect()
            except OSError as error:
                return self._said(Verdict.LATER, f"cannot reach the exporter: {error}")
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # an early 413 is still worth reading
                connection.request("POST", self._path, body, headers)
            return self._answered(connection.getresponse())
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._token_file is not None:
            with open(self._token_file, encoding="ascii", errors="replace") as file:  # noqa: PTH123 - one plain read
                token = file.read().strip()
            if not (token.isascii() and token.isprintable() and token):
                raise OSError(f"{os.fspath(self._token_file)} holds no token of one ASCII line")
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _answered(self, response: http.client.HTTPResponse) -> Verdict:
        if 200 <= response.status < 300:
            return self._said(Verdict.SENT, "")
        answer = ""
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = response.read(500).decode(errors="replace").strip()
        verdict = _BY_STATUS.get(response.status, Verdict.DROPPED)
        with contextlib.suppress(ValueError):
            self.pause = min(max(0.0, float(response.getheader("Retry-After") or 0)), _LONGEST_PAUSE)
        return self._said(verdict, f"the exporter answered {response.status}: {answer}")

    def _said(self, verdict: Verdict, complaint: str) -> Verdict:
        """Log a kind of trouble once until something else happens, not at every batch."""
        kind = complaint.partition(":")[0]
        if complaint and kind != self._complaint:
            _LOG.warning("%s", complaint)
        self._complaint = kind
        return verdict
