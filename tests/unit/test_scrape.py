"""The poller against real little servers: what it takes, what it refuses, and that nobody waits for a neighbour."""

import asyncio
import base64
import gzip
import os
import socket
import ssl
import threading
import tracemalloc
import zlib
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import attrs
import pytest
from aiohttp import web

from tidegauge.clock import SystemClock
from tidegauge.sources.credentials import TlsContexts
from tidegauge.sources.scrape import REASONS, Failed, Fetched, _status_reason, fetch, next_slot, phase, poll_forever
from tidegauge.sources.session import open_session
from tidegauge.sources.target import BasicAuth, Target, Tls

CERTIFICATES = Path(__file__).parent / "certificates"
CA = str(CERTIFICATES / "ca.pem")
PAGE = "# HELP vllm:x what\nvllm:x 1\n"
MIB = 1024 * 1024
DEADLINE = 20


class ManualClock:
    """A clock that moves when told to and knows who sleeps on it."""

    def __init__(self, now=1000.0):
        self.time = now
        self.sleepers = []

    def now(self):
        return self.time

    async def sleep(self, seconds):
        woken = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.time + seconds, woken))
        await woken

    def advance(self, seconds):
        self.time += seconds
        for due, woken in self.sleepers:
            if due <= self.time and not woken.done():
                woken.set_result(None)
        self.sleepers = [one for one in self.sleepers if not one[1].done()]


async def until(condition):
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - conditions of both ends, polled with a deadline
            await asyncio.sleep(0.001)


@asynccontextmanager
async def serving(handler, *, tls=None):
    """A server on a free port whose every path is answered by *handler*; gives its base URL."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        scheme = "https" if tls else "http"
        yield f"{scheme}://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw_serving(talk):
    """A server that speaks whatever *talk* does with the two ends of a connection."""
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def answering(body=PAGE, status=200, **headers):
    async def handler(_request):
        data = body if isinstance(body, bytes) else body.encode()
        return web.Response(body=data, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return handler


def scrape(handler, *, raw=False, tls=None, path="/metrics", **target):
    """Poll a server once; `timeout` is short only where the test is about it."""

    async def go():
        context = raw_serving(handler) if raw else serving(handler, tls=tls)
        async with context as url, open_session(1) as session:
            return await fetch(session, Target("t", url + path, **{"timeout": DEADLINE} | target), SystemClock())

    return asyncio.run(go())


class TestPages:
    def test_a_page(self):
        """A page arrives with its text, its content type and the clock's time."""

        async def go():
            async with serving(answering(Content_Type="text/plain; version=0.0.4")) as url, open_session(1) as session:
                return await fetch(session, Target("t", url + "/metrics"), ManualClock(1234.5))

        assert Fetched(1234.5, 0.0, PAGE, "text/plain; version=0.0.4") == asyncio.run(go())

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
        """The content type is reported and decides nothing: whether the body is a page is the parser's question."""
        result = scrape(answering("<html></html>", Content_Type="text/html"))

        assert ("<html></html>", "text/html") == (result.body, result.content_type)

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

    def test_cancellation_passes(self):
        """Only cancellation is raised."""

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


def once(target, clock=None):
    async def go():
        async with open_session(1) as session:
            return await fetch(session, target, clock or SystemClock())

    return asyncio.run(go())


def echo_authorization():
    async def handler(request):
        return web.Response(text=request.headers.get("Authorization", "none"))

    return handler


class TestCredentials:
    def test_bearer_token(self, tmp_path):
        """The token is the file's one line."""
        (tmp_path / "token").write_text("abc.DEF\n")

        assert "Bearer abc.DEF" == scrape(echo_authorization(), bearer_token_file=str(tmp_path / "token")).body

    def test_rotated_token(self, tmp_path):
        """A token file that changed is used at the next poll."""
        token = tmp_path / "token"

        async def go():
            async with serving(echo_authorization()) as url, open_session(1) as session:
                target = Target("t", url, bearer_token_file=str(token))
                for value in ("one", "two"):
                    token.write_text(value)
                    yield (await fetch(session, target, SystemClock())).body

        async def collect():
            return [body async for body in go()]

        assert ["Bearer one", "Bearer two"] == asyncio.run(collect())

    def test_basic_auth(self, tmp_path):
        """User and password travel as UTF-8 in base64."""
        (tmp_path / "password").write_text("pässword with spaces\n")
        body = scrape(echo_authorization(), basic_auth=BasicAuth("me", str(tmp_path / "password"))).body

        assert "me:pässword with spaces" == base64.b64decode(body.removeprefix("Basic ")).decode()

    @pytest.mark.parametrize(
        ("content", "found"),
        [
            (None, "expected a readable file, found: No such file"),
            (b"", "found nothing"),
            (b"a\nb", "found several"),
            (b"\xff\xfe", "expected UTF-8 text"),
            (b"a b", "expected a token of ASCII characters without spaces"),
            (b"x" * 70_000, "at most 65536 bytes"),
        ],
    )
    def test_unusable_token_file(self, tmp_path, content, found):
        """A token file that is missing, empty or no token fails the poll, names the file and keeps its content."""
        path = tmp_path / "token"
        if content is not None:
            path.write_bytes(content)
        result = scrape(answering(), bearer_token_file=str(path))

        assert "credentials" == result.reason
        assert str(path) in result.message
        assert found in result.message

    def test_pipe_as_token_file(self, tmp_path):
        """A pipe, which would block the poller until somebody writes, is refused."""
        os.mkfifo(tmp_path / "pipe")

        assert "expected a regular file" in scrape(answering(), bearer_token_file=str(tmp_path / "pipe")).message


def server_context(name="server", client_ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / f"{name}.pem", CERTIFICATES / f"{name}.key")
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client_ca)
    return context


class TestTls:
    @pytest.mark.parametrize(
        ("settings", "certificate"),
        [
            (Tls(ca_file=CA), "server"),
            (Tls(ca_file=CA, server_name="backend.example"), "server"),
            (Tls(ca_file=CA, server_name="elsewhere.example"), "elsewhere"),
            (Tls(insecure_skip_verify=True), "elsewhere"),
        ],
    )
    def test_accepted(self, settings, certificate):
        """A certificate of the configured authority and name passes; without verification any does."""
        assert PAGE == secure(settings, certificate).body

    @pytest.mark.parametrize(
        ("settings", "certificate"),
        [
            (None, "server"),
            (Tls(), "server"),
            (Tls(ca_file=str(CERTIFICATES / "other-ca.pem")), "server"),
            (Tls(ca_file=CA), "elsewhere"),
            (Tls(ca_file=CA, server_name="backend.example"), "elsewhere"),
        ],
    )
    def test_refused(self, settings, certificate):
        """An unknown authority or another name fails as tls."""
        assert "tls" == secure(settings, certificate).reason

    def test_client_certificate(self):
        """A server that asks for a client certificate gets the configured one."""
        settings = Tls(CA, str(CERTIFICATES / "client.pem"), str(CERTIFICATES / "client.key"))

        assert PAGE == secure(settings, client_ca=CA).body

    def test_missing_client_certificate(self):
        """Without one the poll fails; TLS 1.3 tells the client so only by closing the connection."""
        assert secure(Tls(CA), client_ca=CA).reason in {"tls", "connection"}

    def test_plain_server_behind_https(self):
        """An http server behind an https URL fails as tls."""

        async def go():
            async with serving(answering()) as url, open_session(1) as session:
                return await fetch(session, Target("t", url.replace("http:", "https:")), SystemClock())

        assert "tls" == asyncio.run(go()).reason

    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_unusable_authority_file(self, tmp_path, content):
        """A CA file that is missing or holds no certificate fails the poll and is named."""
        path = tmp_path / "ca.pem"
        if content:
            path.write_text(content)
        result = secure(Tls(ca_file=str(path)))

        assert ("credentials", True) == (result.reason, str(path) in result.message)

    def test_contexts_are_kept_until_a_file_changes(self, tmp_path):
        """One context per settings, so connections are reused, and a new one when a file changed."""
        path = tmp_path / "ca.pem"
        path.write_text(Path(CA).read_text())
        contexts, settings = TlsContexts(), Tls(ca_file=str(path))
        first = contexts.get(settings)

        assert first is contexts.get(attrs.evolve(settings))
        assert first is not contexts.get(attrs.evolve(settings, server_name="b"))
        path.write_text(Path(CA).read_text() + (CERTIFICATES / "other-ca.pem").read_text())
        assert first is not contexts.get(settings)


def secure(settings, certificate="server", client_ca=None):
    async def go():
        server = serving(answering(), tls=server_context(certificate, client_ca))
        async with server as url, open_session(1) as session:
            return await fetch(session, Target("t", url, tls=settings), SystemClock())

    return asyncio.run(go())


class TestSchedule:
    def test_phases_are_stable_and_spread(self):
        """A hundred backends fall into every tenth of their interval, each always into the same."""
        names = [f"10.0.0.{number}:8000" for number in range(100)]
        tenths = Counter(int(phase(name, 2.0) / 0.2) for name in names)

        assert set(range(10)) == set(tenths)
        assert max(tenths.values()) < 25
        assert [phase(name, 2.0) for name in names] == [phase(name, 2.0) for name in names]
        assert 2 * phase("a", 1.0) == phase("a", 2.0)

    @pytest.mark.parametrize(
        ("now", "last", "slot"),
        [
            (100.0, None, 50),  # due at 100.5
            (100.5, None, 51),  # a slot that is due now has passed
            (100.6, 50, 51),
            (100.499, 50, 51),  # the timer fired early: not the same slot twice
            (107.0, 50, 54),  # overrun: 51 to 53 are skipped
            (40.0, 50, 20),  # the clock was set back
        ],
    )
    def test_next_slot(self, now, last, slot):
        """With an interval of 2 s and a phase of 0.5 s slot k is due at 0.5 + 2k."""
        assert slot == next_slot(now, 2.0, 0.5, last)

    def test_no_drift(self):
        """Each poll is due a whole interval after the one before, whatever the polls took."""
        clock, results = ManualClock(), []

        async def handler(_request):
            clock.time += 0.11  # the poll takes a while
            return web.Response(text=PAGE)

        async def go():
            async with polled(handler, clock, results, interval=1.0):
                for number in range(5):
                    await until(lambda: clock.sleepers)
                    clock.advance(clock.sleepers[0][0] - clock.time)
                    await until(lambda number=number: len(results) > number)

        asyncio.run(go())

        assert [0.11] * 5 == pytest.approx([result.seconds for result in results])
        assert [0, 1, 2, 3, 4] == pytest.approx([result.at - results[0].at for result in results])

    def test_overrun_skips(self):
        """A poll that takes three and a half intervals is followed by one poll, not by the three that were missed."""
        clock, results, arrived = ManualClock(), [], []
        gate = []

        async def handler(_request):
            arrived.append(clock.time)
            if len(arrived) == 1:
                gate.append(asyncio.get_running_loop().create_future())
                await gate[0]
            return web.Response(text=PAGE)

        async def go():
            async with polled(handler, clock, results, interval=1.0):
                await until(lambda: clock.sleepers)
                clock.advance(clock.sleepers[0][0] - clock.time)
                await until(lambda: gate)
                clock.advance(3.5)
                gate[0].set_result(None)
                await until(lambda: clock.sleepers)
                clock.advance(clock.sleepers[0][0] - clock.time)
                await until(lambda: len(results) == 2)

        asyncio.run(go())

        assert [0, 4] == pytest.approx([at - arrived[0] for at in arrived])

    def test_a_fault_in_the_receiver_does_not_end_the_polling(self, caplog):
        """A receiver that raises is logged once and polled on for."""
        clock, results = ManualClock(), []

        def receive(result):
            results.append(result)
            raise ValueError("cannot take it")

        async def go():
            async with polled(answering(), clock, results, interval=1.0, receive=receive):
                for number in range(3):
                    await until(lambda: clock.sleepers)
                    clock.advance(1.0)
                    await until(lambda number=number: len(results) > number)

        asyncio.run(go())

        assert 3 == len(results)
        assert 1 == len([r for r in caplog.records if "outcome of a poll not taken" in r.message])


@asynccontextmanager
async def polled(handler, clock, results, *, interval, receive=None):
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(handler))
        session = await stack.enter_async_context(open_session(1))
        target = Target("t", url, timeout=DEADLINE)
        task = asyncio.create_task(poll_forever(session, target, interval, clock, receive or results.append))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class TestNeighbours:
    def test_a_hanging_backend_beside_a_fast_one(self):
        """While one backend hangs mid-body, the other is polled every second."""
        clock, fast, slow, hanging = ManualClock(), [], [], []

        async def hang(request):
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(PAGE.encode())
            hanging.append(1)
            await asyncio.sleep(3600)

        async def go():
            async with (
                polled(hang, clock, slow, interval=1.0),
                polled(answering(), clock, fast, interval=1.0),
            ):
                await until(lambda: len(clock.sleepers) == 2)
                for number in range(5):
                    clock.advance(1.0)
                    await until(lambda number=number: len(fast) > number and clock.sleepers and hanging)

        asyncio.run(go())

        assert ([Fetched] * 5, [], [1]) == ([type(one) for one in fast], slow, hanging)

    def test_many_hanging_connections_leave_one_for_the_next(self):
        """Two hundred backends that hang in one session do not use up its connections."""
        waiting = []

        async def hang(_request):
            waiting.append(1)
            await asyncio.sleep(3600)

        async def go():
            async with serving(hang) as stuck, serving(answering()) as url, open_session(200) as session:
                tasks = [
                    asyncio.create_task(fetch(session, Target(str(n), stuck, timeout=DEADLINE), SystemClock()))
                    for n in range(200)
                ]
                await until(lambda: len(waiting) == 200)
                result = await fetch(session, Target("t", url, timeout=DEADLINE), SystemClock())
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                return result

        assert PAGE == asyncio.run(go()).body

    def test_hanging_name_lookups_leave_a_thread_for_the_next(self, monkeypatch):
        """Forty names whose lookup hangs do not stop the lookup of the forty-first."""
        release, looking, original = threading.Event(), [], socket.getaddrinfo

        def look_up(host, *args, **kwargs):
            if host.endswith(".invalid"):
                looking.append(host)
                release.wait(DEADLINE)
            return original("127.0.0.1", *args, **kwargs)

        monkeypatch.setattr(socket, "getaddrinfo", look_up)

        async def go():
            async with serving(answering()) as url, open_session(41) as session:
                stuck = [Target(str(n), f"http://h{n}.invalid:1/", timeout=DEADLINE) for n in range(40)]
                tasks = [asyncio.create_task(fetch(session, target, SystemClock())) for target in stuck]
                await until(lambda: len(looking) == 40)
                named = url.replace("127.0.0.1", "fast.example")
                result = await fetch(session, Target("t", named, timeout=DEADLINE), SystemClock())
                release.set()
                await asyncio.gather(*tasks)
                return result

        assert PAGE == asyncio.run(go()).body

    def test_connections_are_kept(self):
        """Polls of one backend share a connection, so that a poll costs no handshake."""
        ports = set()

        async def handler(request):
            ports.add(request.transport.get_extra_info("peername")[1])
            return web.Response(text=PAGE)

        async def go():
            settings, contexts = Tls(ca_file=CA), TlsContexts()
            async with serving(handler, tls=server_context()) as url, open_session(1) as session:
                for _ in range(3):
                    await fetch(session, Target("t", url, tls=settings), SystemClock(), contexts)

        asyncio.run(go())

        assert 1 == len(ports)


def test_a_plain_session_works_too():
    """The poller needs nothing of its own session factory."""

    async def go():
        server = serving(answering(gzip.compress(PAGE.encode()), Content_Encoding="gzip"))
        async with server as url, aiohttp.ClientSession() as session:
            return await fetch(session, Target("t", url), SystemClock())

    assert PAGE == asyncio.run(go()).body
