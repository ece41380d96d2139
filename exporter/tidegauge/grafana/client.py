"""Grafana's HTTP API, the few calls that boards need, over aiohttp.

No Grafana client of PyPI fits. The one that is kept up, grafana-client, brings urllib3-future, which replaces
urllib3 for every program of the environment and leaves it broken when removed; behind a redirect it sends GET in
place of POST and reports success; it writes IPv6 addresses into URLs that do not parse.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
import attrs
from yarl import URL

from tidegauge.grafana.boards import Json
from tidegauge.grafana.plan import ROOT, Folder, Present
from tidegauge.sources.body import Unusable, read_text
from tidegauge.sources.credentials import TlsContexts, bearer
from tidegauge.sources.scrape import described, printable, shown
from tidegauge.sources.session import open_session
from tidegauge.sources.target import Tls

SECONDS: Final = 30.0
_LARGEST: Final = 64 * 1024 * 1024
_PAGE: Final = 1000
_MOST_PAGES: Final = 50
_MOST_HITS: Final = 5000


class AddressError(Exception):
    """What was given is not the address of a Grafana; the message says what was expected."""


class GrafanaError(OSError):
    """Grafana cannot be had; the message names the URL and what was found there."""


class RefusedError(Exception):
    """Grafana answered and would not: HTTP *status*, Grafana's own *code* (`name-exists`) and what it *said*."""

    def __init__(self, url: str, status: int, code: str, said: str) -> None:
        super().__init__(f"{url}: {status}: {said or 'no reason given'}")
        self.status = status
        self.code = code
        self.said = said


def address(given: str) -> URL:
    """The base of every call: scheme, host and the path that Grafana lives under. Raises AddressError."""
    expected = "--grafana: expected http://host:port or https://host/path"
    try:
        url = URL(given.strip())
        wrong = url.scheme not in {"http", "https"} or not url.host
    except ValueError:
        wrong = True
    if wrong:
        raise AddressError(f"{expected}, found {given[:100]!r}")
    if url.user is not None or url.password is not None:
        raise AddressError(f"{expected}, found a user or password in it; a token goes into --token-file")
    if url.query_string or url.fragment:
        raise AddressError(f"{expected}, found a query or fragment in it")
    return url.with_path(url.path.rstrip("/") + "/")


@attrs.frozen
class Grafana:
    """One Grafana, asked with one token. Every call raises GrafanaError or RefusedError."""

    base: URL
    _session: aiohttp.ClientSession
    _token: str = attrs.field(repr=False)
    _trust: ssl.SSLContext | bool = True
    _seconds: float = SECONDS

    async def check(self) -> None:
        """Find out whether this is a Grafana at all, before anyone is shown the token."""
        health = await self._ask("GET", "api/health", authorized=False)
        if not isinstance(health, dict) or "database" not in health:
            raise self._stranger("api/health", "other JSON")

    async def folders(self) -> tuple[Folder, ...]:
        """The folders of the root that the token may see."""
        path, found = "api/folders", dict[str, Folder]()
        for page in range(1, _MOST_PAGES + 1):
            answer = self._listed(path, await self._ask("GET", path, query={"limit": _PAGE, "page": page}))
            before = len(found)
            found |= {str(one["uid"]): Folder(str(one["title"]), str(one["uid"])) for one in answer}
            if len(answer) < _PAGE:
                return tuple(found.values())
            if len(found) == before:
                break  # whoever answers passes over `page`
        most = f"at most {_MOST_PAGES * _PAGE} folders in pages of {_PAGE}"
        raise GrafanaError(f"{self._url(path)}: expected {most}, found no end of them")

    async def create_folder(self, title: str) -> Folder:
        """A new folder of the root."""
        answer = await self._ask("POST", "api/folders", body={"title": title})
        return Folder(title, self._text("api/folders", answer, "uid"))

    async def board(self, uid: str) -> Present | None:
        """The board of that uid, or None where there is none."""
        path = f"api/dashboards/uid/{uid}"
        try:
            answer = await self._ask("GET", path)
        except RefusedError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        content, meta = (answer.get(key) for key in ("dashboard", "meta")) if isinstance(answer, dict) else (None, None)
        if not isinstance(content, dict) or not isinstance(meta, dict) or not isinstance(content.get("version"), int):
            raise self._stranger(path, "other JSON")
        lies = meta.get("folderUid") or ""
        folder = Folder(str(meta.get("folderTitle") or lies), str(lies)) if lies else ROOT
        return Present(content, folder, content["version"], bool(meta.get("provisioned")))

    async def titled(self, title: str) -> list[Json]:
        """The boards with *title* in theirs, in any folder: `uid`, `title`, and `folderUid` outside the root."""
        query: dict[str, str | int] = {"type": "dash-db", "query": title, "limit": _MOST_HITS}
        return self._listed("api/search", await self._ask("GET", "api/search", query=query))

    async def save(self, payload: Json) -> None:
        """Create or update a board."""
        answer = await self._ask("POST", "api/dashboards/db", body=payload)
        self._text("api/dashboards/db", answer, "uid")

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Json | None = None,
        authorized: bool = True,
    ) -> Any:
        url = self._url(path)
        headers = {"Accept": "application/json"} | (bearer(self._token) if authorized else {})
        try:
            async with (
                asyncio.timeout(self._seconds),
                self._session.request(
                    method,
                    url,
                    params=query,
                    json=body,
                    headers=headers,
                    ssl=self._trust,
                    proxy=_proxy(url),
                    allow_redirects=False,
                    auto_decompress=False,
                    timeout=aiohttp.ClientTimeout(total=None),
                ) as response,
            ):
                text = await read_text(response, _LARGEST)
        except TimeoutError as error:
            raise GrafanaError(f"{url}: no whole answer within {self._seconds:g} s") from error
        except Unusable as error:
            raise GrafanaError(f"{url}: {error}") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise GrafanaError(f"{url}: {self._clean(_failure(error))}") from error
        return self._answer(path, response, text)

    def _answer(self, path: str, response: aiohttp.ClientResponse, text: str) -> Any:
        if 300 <= response.status < 400:
            raise GrafanaError(self._redirected(path, response.headers.get("Location", "")))
        answer = self._parsed(path, response, text)
        if response.status == HTTPStatus.OK:
            return answer
        said = answer.get("message") if isinstance(answer, dict) else None
        if not isinstance(said, str):
            raise self._stranger(path, "other JSON", response.status)
        if response.status == HTTPStatus.UNAUTHORIZED:
            raise GrafanaError(f"{self._url(path)}: 401: the token is not accepted: {self._clean(said)}")
        code = answer.get("status")
        raise RefusedError(
            str(self._url(path)), response.status, code if isinstance(code, str) else "", self._clean(said)
        )

    def _parsed(self, path: str, response: aiohttp.ClientResponse, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            kind = response.content_type if response.headers.get("Content-Type") else "no JSON"
            found = "a page (HTML)" if kind == "text/html" else self._clean(kind)
            raise self._stranger(path, found, response.status) from None

    def _redirected(self, path: str, location: str) -> str:
        url = self._url(path)
        try:
            to = url.join(URL(location)) if location else None
        except ValueError:
            to = None
        if to is None:
            return f"{url}: expected an answer of Grafana, found a redirect to nowhere"
        seen = self._clean(shown(str(to)))
        if to.path.endswith("/" + path):
            return f"{url}: redirects to {seen}; give --grafana {seen.removesuffix(path)}"
        login = "what looks like a login page, " if "login" in to.path.casefold() or to.host != url.host else ""
        return f"{url}: expected an answer of Grafana, found a redirect to {login}{seen}"

    def _stranger(self, path: str, found: str, status: int = 200) -> GrafanaError:
        hint = "give the address that Grafana's own pages have, with their path if they are under one"
        if status >= 500:
            hint = "Grafana, or what stands before it, is not well"
        seen = f"{status}, {found}" if status != HTTPStatus.OK else found
        return GrafanaError(f"{self._url(path)}: expected an answer of Grafana, found {seen}; {hint}")

    def _listed(self, path: str, answer: Any) -> list[Json]:
        if not isinstance(answer, list) or not all(
            isinstance(one, dict) and {"uid", "title"} <= one.keys() for one in answer
        ):
            raise self._stranger(path, "other JSON")
        return answer

    def _text(self, path: str, answer: Any, key: str) -> str:
        value = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(value, str):
            raise self._stranger(path, "other JSON")
        return value

    def _url(self, path: str) -> URL:
        return self.base.join(URL(path))

    def _clean(self, text: str) -> str:
        """Foreign text on one line of what a terminal can show, without the token that a proxy might repeat."""
        return printable(" ".join(text.replace(self._token, "***").split()))[:300]


def _failure(error: Exception) -> str:
    inner = getattr(error, "os_error", None) or error.__cause__
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        inner = error.certificate_error
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError) or isinstance(inner, ssl.SSLError):
        why = getattr(inner, "verify_message", "") or described(error)
        return f"TLS failed: {why}; an authority of your own goes into --ca-file"
    return f"no connection: {described(error)}"


def _proxy(url: URL) -> str | None:
    """The proxy of the environment; aiohttp would read it too, but with the passwords of `.netrc`."""
    return None if proxy_bypass(url.host or "") else getproxies().get(url.scheme)


@asynccontextmanager
async def opened(base: URL, token: str, ca_file: str | None = None, seconds: float = SECONDS) -> AsyncIterator[Grafana]:
    """A Grafana to talk to. Raises CredentialError for an authority file that cannot be used."""
    trust = TlsContexts().get(Tls(ca_file=ca_file)) if ca_file else True
    async with open_session(1) as session:
        yield Grafana(base, session, token, trust, seconds)
