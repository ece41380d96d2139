"""Tokens, passwords and certificates of a backend."""

import asyncio
import base64
import os
from pathlib import Path

import attrs
import pytest
from aiohttp import web

from tests.unit.little_servers import (
    CA,
    CERTIFICATES,
    PAGE,
    answering,
    scrape,
    server_context,
    serving,
)
from tidegauge.clock import SystemClock
from tidegauge.sources.credentials import TlsContexts
from tidegauge.sources.scrape import fetch
from tidegauge.sources.session import open_session
from tidegauge.sources.target import BasicAuth, Target, Tls


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
            (None, "expected a file, found: No such file"),
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
