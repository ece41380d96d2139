"""The poller against real little servers: what it takes, and what it refuses under which reason."""

import asyncio
import gc
import gzip
import socket
import tracemalloc
import zlib
from asyncio.selector_events import BaseSelectorEventLoop
from collections import Counter

import aiohttp
import pytest
from aiohttp import web

from tests.unit.little_servers import (
    MIB,
    PAGE,
    ManualClock,
    answering,
    once,
    scrape,
    serving,
)
from tidegauge.clock import SystemClock
from tidegauge.sources.scrape import REASONS, Failed, Fetched, _status_reason, fetch
from tidegauge.sources.session import open_session
from tidegauge.sources.target import Target


class TestPages:
    def test_a_page(self):
        """A page arrives with its text, its content type and the clock's time."""

        async def go():
            async with serving(answering(Content_Type="text/plain; version=0.0.4")) as url, open_session(1) as session:
                return await fetch(session, Target("t", url + "/metrics"), ManualClock(1234.5))

        assert Fetched(1234.5, 0.0, PAGE) == asyncio.run(go())

    def test_the_request(self):
        """A poll asks for the classic text format, gzip and nothing else, under our name."""
        seen = {}

        async def handler(request):
            seen.update(request.headers)
            return web.Response(text=PAGE)

        scrape(handler)

        assert ("text/plain;version=0.0.4", "gzip") == (seen["Accept"], seen["Accept-Encoding"])
        assert seen["User-Agent"].startswith("tidegauge/")
        assert "Authorization" not in seen

    @pytest.mark.parametrize("encoding", ["gzip", "deflate", "x-gzip", "identity"])
    def test_encodings(self, encoding):
        """A compressed page is the same page."""
        pack = {"gzip": gzip.compress, "x-gzip": gzip.compress, "deflate": zlib.compress}.get(encoding, bytes)

        assert PAGE == scrape(answering(pack(PAGE.encode()), Content_Encoding=encoding)).body

    def test_invalid_utf8(self):
        """Bytes that are no UTF-8 are replaced and do not cost the page."""
        assert 'a{m="\ufffd(x"} 1\n' == scrape(answering(b'a{m="\xc3(x"} 1\n')).body

    def test_byte_order_mark(self):
        """A byte order mark is no part of the page."""
        assert PAGE == scrape(answering(b"\xef\xbb\xbf" + PAGE.encode())).body

    def test_html_is_handed_on(self):
        """The content type decides nothing: whether the body is a page is the parser's question."""
        result = scrape(answering("<html></html>", Content_Type="text/html"))

        assert "<html></html>" == result.body

    def test_redirect_within_the_origin(self):
        """A redirect on the same server is followed."""

        async def handler(request):
            if request.path == "/metrics":
                raise web.HTTPTemporaryRedirect("/metrics/")
            return web.Response(text=request.path)

        assert "/metrics/" == scrape(handler).body

    def test_no_cookies(self):
        """A cookie that a backend sets is not sent back."""
        seen = []

        async def handler(request):
            seen.append(request.headers.get("Cookie"))
            return web.Response(text=PAGE, headers={"Set-Cookie": "a=b"})

        async def go():
            async with serving(handler) as url, open_session(1) as session:
                for _ in range(2):
                    await fetch(session, Target("t", url), SystemClock())

        asyncio.run(go())

        assert [None, None] == seen


class TestFailures:
    @pytest.mark.parametrize(
        ("status", "reason"),
        [
            (401, "http_401"),
            (403, "http_403"),
            (404, "http_404"),
            (418, "http_4xx"),
            (500, "http_5xx"),
            (503, "http_5xx"),
            (204, "http_other"),
            (304, "http_other"),
        ],
    )
    def test_status(self, status, reason):
        """A status other than 200 fails under a bounded reason and is named."""
        result = scrape(answering(b"" if status in {204, 304} else PAGE, status))

        assert reason == result.reason
        assert f"/metrics: expected status 200, found {status}" in result.message

    def test_answer_that_never_starts(self):
        """A server that accepts and says nothing times out."""

        async def handler(_request):
            await asyncio.sleep(3600)

        result = scrape(handler, timeout=0.05)

        assert "timeout" == result.reason
        assert result.message.endswith("/metrics: expected a whole answer within 0.05 s, found none")
        assert 0.04 <= result.seconds

    def test_answer_that_hangs_mid_body(self):
        """The timeout covers the body: half a page that stops is no page."""

        async def handler(request):
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(PAGE.encode())
            await asyncio.sleep(3600)

        assert "timeout" == scrape(handler, timeout=0.1).reason

    def test_answer_that_drips(self):
        """A byte now and then does not keep a poll alive beyond its timeout."""

        async def handler(request):
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b"#")
                await asyncio.sleep(0.01)

        assert "timeout" == scrape(handler, timeout=0.1).reason

    def test_hundred_megabytes(self):
        """A page far over the limit is left early, not read to its end."""
        sent = Counter()

        async def handler(request):
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(100):
                await response.write(b"#" * MIB)
                sent["mib"] += 1
            return response

        result = scrape(handler, max_page_size=MIB)

        assert ("too_large", True) == (result.reason, "expected a page of at most 1048576 bytes" in result.message)
        assert sent["mib"] < 30

    def test_declared_size(self):
        """A declared length over the limit is refused before the body is read."""
        assert "found Content-Length 101" in scrape(answering(b"#" * 101), max_page_size=100).message

    @pytest.mark.parametrize(("size", "kind"), [(100, Fetched), (101, Failed)])
    @pytest.mark.parametrize("pack", [None, gzip.compress])
    def test_limit_is_inclusive(self, size, kind, pack):
        """A page of exactly the limit passes, one byte more does not, compressed or not."""
        body = b"#" * size
        handler = answering(pack(body), Content_Encoding="gzip") if pack else answering(body)

        assert kind is type(scrape(handler, max_page_size=100))

    def test_gzip_bomb(self):
        """A bomb is stopped at the limit: 100 MB out of 100 kB never exist in memory."""
        packer = zlib.compressobj(wbits=31)
        bomb = b"".join(packer.compress(b"\n" * MIB) for _ in range(100)) + packer.flush()
        tracemalloc.start()
        try:
            result = scrape(answering(bomb, Content_Encoding="gzip"), max_page_size=2 * MIB)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        assert "too_large" == result.reason
        assert peak < 12 * MIB

    @pytest.mark.parametrize(
        ("body", "encoding", "found"),
        [
            (gzip.compress(PAGE.encode(), mtime=0)[:-9], "gzip", "breaks off"),
            (b"not gzip at all", "gzip", "expected a gzip body"),
            (PAGE.encode(), "br", "found 'br'"),
        ],
        ids=["cut", "damaged", "brotli"],
    )
    def test_damaged_encoding(self, body, encoding, found):
        """A compressed body that is cut, damaged or of another kind is no page."""
        result = scrape(answering(body, Content_Encoding=encoding))

        assert ("encoding", True) == (result.reason, found in result.message)

    def test_binary(self):
        """Binary data is not text."""
        assert "not_text" == scrape(answering(b"\x0a\x05vllm\0\0")).reason

    @pytest.mark.parametrize("body", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nvllm:x 1\n"])
    def test_connection_closed_early(self, body):
        """A connection that ends before or within the answer is a broken connection."""

        async def talk(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(body)
            await writer.drain()
            writer.close()

        assert "connection" == scrape(talk, raw=True).reason

    def test_connection_reset(self):
        """A reset is a broken connection."""

        async def talk(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            linger = bytes([1, 0, 0, 0, 0, 0, 0, 0])
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

        assert "connection" == scrape(talk, raw=True).reason

    def test_another_protocol(self):
        """What is not HTTP is named so."""

        async def talk(_reader, writer):
            writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
            await writer.drain()
            writer.close()

        assert "protocol" == scrape(talk, raw=True).reason

    def test_refused(self):
        """Nothing listens at the address."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        result = once(Target("t", f"http://127.0.0.1:{port}/metrics"))

        assert ("refused", True) == (result.reason, f"http://127.0.0.1:{port}/metrics: " in result.message)

    def test_unknown_host(self, monkeypatch):
        """A name without an address is a failure of name resolution."""

        def unknown(*_args, **_kwargs):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", unknown)

        assert "dns" == once(Target("t", "http://nowhere.invalid/metrics")).reason

    def test_closed_session(self):
        """Even a fault of our own comes back as a value."""

        async def go():
            session = open_session(1)
            await session.close()
            return await fetch(session, Target("t", "http://127.0.0.1:1/"), SystemClock())

        assert "other" == asyncio.run(go()).reason

    @pytest.mark.parametrize("turns", [0, 2])
    def test_cancellation_passes(self, monkeypatch, turns):
        """Only cancellation is raised, and no socket is left, even of a server that is some turns late to accept."""
        accept = BaseSelectorEventLoop._accept_connection2

        async def late(self, *given, **also):
            for _ in range(turns):
                await asyncio.sleep(0)
            return await accept(self, *given, **also)

        monkeypatch.setattr(BaseSelectorEventLoop, "_accept_connection2", late)

        async def handler(_request):
            await asyncio.sleep(3600)

        async def go():
            async with serving(handler) as url, open_session(1) as session:
                task = asyncio.create_task(fetch(session, Target("t", url), SystemClock()))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

        asyncio.run(go())
        gc.collect()

    def test_reasons_are_bounded(self):
        """Each status has a reason of the list."""
        assert set() == {_status_reason(status) for status in range(100, 1000)} - set(REASONS)


class TestRedirects:
    @pytest.mark.parametrize(
        "location", ["http://elsewhere.invalid/metrics", "https://{host}/metrics", "//127.0.0.2/", "ftp://x/", ""]
    )
    def test_other_origins_are_refused(self, location):
        """A redirect to another scheme, host or port is refused and told; nothing is sent there."""

        async def handler(request):
            return web.Response(status=302, headers={"Location": location.format(host=request.host)})

        result = scrape(handler)

        assert "redirect" == result.reason
        assert "expected a redirect within http://127.0.0.1:" in result.message

    def test_another_port_gets_no_token(self, tmp_path):
        """The token of a backend does not travel to another port of the same host."""
        asked = []
        (tmp_path / "token").write_text("secret")

        async def other(request):
            asked.append(request)
            return web.Response(text=PAGE)

        async def go():
            async with (
                serving(other) as to,
                serving(answering(status=302, Location=to)) as url,
                open_session(1) as session,
            ):
                target = Target("t", url, bearer_token_file=str(tmp_path / "token"))
                return await fetch(session, target, SystemClock())

        assert ("redirect", []) == (asyncio.run(go()).reason, asked)

    def test_loops_end(self):
        """A redirect to itself ends after a few rounds."""
        result = scrape(answering(status=307, Location="/metrics"))

        assert ("redirect", True) == (result.reason, "more than 5 redirects" in result.message)

    def test_secrets_in_urls_are_not_shown(self):
        """Neither the user part nor the query of a URL reaches a message."""
        result = scrape(answering(status=302, Location="http://u:hunter2@h.invalid/?k=hunter3"), path="/m?key=hunter4")

        assert "hunter" not in result.message


def test_a_plain_session_works_too():
    """The poller needs nothing of its own session factory."""

    async def go():
        server = serving(answering(gzip.compress(PAGE.encode()), Content_Encoding="gzip"))
        async with server as url, aiohttp.ClientSession() as session:
            return await fetch(session, Target("t", url), SystemClock())

    assert PAGE == asyncio.run(go()).body
