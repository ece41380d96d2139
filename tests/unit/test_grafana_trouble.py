"""`tidegauge dashboards push` where there is no Grafana, another one, or one that will not: a line, an exit code."""

import asyncio
import json

import pytest
from aiohttp import web
from yarl import URL

from tests.unit.little_grafana import TOKEN, LittleGrafana, command
from tests.unit.little_servers import CA, answering, raw_serving, server_context, serving
from tidegauge import cli
from tidegauge.grafana import client

HEALTH = json.dumps({"database": "ok"})


@pytest.fixture
def given(tmp_path):
    """The options that every push needs: a token, and one board."""
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "boards").mkdir()
    (tmp_path / "boards/own.json").write_text(json.dumps({"uid": "own", "title": "Own", "panels": []}))
    return ["--token-file", tmp_path / "token", "--boards", tmp_path / "boards"]


@pytest.fixture
def failed(given, capsys):
    """Push to a server that answers so; what is said on standard error, one line, without the token."""

    def push(handler, *more, code=1, **kwargs):
        assert code == command(handler, *given, *more, **kwargs)
        said = capsys.readouterr()
        assert ("", 1) == (said.out, said.err.count("\n"))
        assert TOKEN not in said.err
        return said.err

    return push


def but(grafana, call, response):
    """A Grafana that answers one call otherwise: *response* makes the answer of a request."""

    async def handler(request):
        if f"{request.method} {request.path.removeprefix('/api/')}" == call:
            return response(request)
        return await grafana.answer(request)

    return handler


def redirect(to):
    async def handler(_request):
        return web.Response(status=302, headers={"Location": to})

    return handler


class TestNoGrafana:
    @pytest.mark.parametrize(
        ("handler", "found"),
        [
            (answering("<html>Welcome</html>", Content_Type="text/html"), "found a page (HTML); give the address"),
            (answering("<html>no</html>", 404, Content_Type="text/html"), "found 404, a page (HTML); give the address"),
            (answering('{"detail": "Not Found"}', 404), "found 404, other JSON; give the address"),
            (answering('{"status": "ok"}'), "found other JSON"),
            (answering("[]"), "found other JSON"),
            (answering("", Content_Type="text/plain"), "found text/plain"),
            (answering("[" * 100_000), "expected an answer of Grafana"),
            (
                answering("<html>bad gateway</html>", 502, Content_Type="text/html"),
                "what stands before it, is not well",
            ),
            (answering('{"database": "failing"}', 503), "what stands before it, is not well"),
            (answering(b"\0\1\2"), "expected text, found binary data"),
        ],
    )
    def test_something_else_answers(self, failed, handler, found):
        """The URL that was asked, what was expected, what was found."""
        said = failed(handler)

        assert said.startswith("tidegauge: http://127.0.0.1:")
        assert "/api/health: expected" in said
        assert found in said

    def test_a_stranger_is_not_shown_the_token(self, failed):
        """Whoever is no Grafana is found out before."""
        shown = []

        async def handler(request):
            shown.append(request.headers.get("Authorization"))
            return web.json_response({"hello": "world"})

        failed(handler)
        assert [None] == shown

    def test_the_path_was_left_out(self, failed):
        """A Grafana lives under a path, and its host's root was given."""
        assert "with their path if they are under one" in failed(LittleGrafana(path="/grafana").answer)

    @pytest.mark.parametrize(
        ("to", "says"),
        [
            ("/login", "found a redirect to what looks like a login page, http://127.0.0.1:"),
            (
                "https://sso.example/auth?secret=1",
                "found a redirect to what looks like a login page, https://sso.example/auth\n",
            ),
            ("/grafana/api/health", "/grafana/\n"),
            ("https://grafana.example/api/health", "give --grafana https://grafana.example/\n"),
            ("/elsewhere", "found a redirect to http://127.0.0.1:"),
            ("http://[", "found a redirect to nowhere"),
        ],
    )
    def test_redirects_are_told_and_not_followed(self, failed, to, says):
        """A token goes where it was meant to go only, and no POST turns into a GET."""
        assert says in failed(redirect(to))

    def test_nobody_listens(self, given, capsys):
        """The address and what the system says."""

        async def port():
            async with serving(answering()) as url:
                return url

        url = asyncio.run(port())

        assert 1 == cli.main(["dashboards", "push", "--grafana", url, *map(str, given)])
        assert f"tidegauge: {url}/api/health: no connection: " in capsys.readouterr().err

    def test_an_answer_that_breaks_off(self):
        """Half an answer is none."""

        async def talk(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            await writer.drain()
            writer.close()

        async def go():
            async with raw_serving(talk) as url, client.opened(client.address(url), TOKEN) as grafana:
                await grafana.check()

        with pytest.raises(client.GrafanaError, match="no connection"):
            asyncio.run(go())

    def test_an_answer_that_never_ends(self):
        """There is a deadline for each answer, not only for its beginning."""

        async def handler(request):
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b" ")
                await asyncio.sleep(0.02)

        async def go():
            async with serving(handler) as url, client.opened(client.address(url), TOKEN, seconds=0.2) as grafana:
                await grafana.check()

        with pytest.raises(client.GrafanaError, match=r"/api/health: no whole answer within 0\.2 s"):
            asyncio.run(go())


class TestTls:
    def test_an_unknown_authority(self, failed):
        """What is wrong with the certificate, and the option that helps."""
        said = failed(LittleGrafana().answer, tls=server_context())

        assert "TLS failed: unable to get local issuer certificate; " in said
        assert "--ca-file" in said

    def test_an_authority_of_ones_own(self, given):
        """With it the push succeeds."""
        grafana = LittleGrafana()

        assert 0 == command(grafana.answer, *given, "--ca-file", CA, tls=server_context())
        assert ["own"] == list(grafana.boards)

    def test_a_plain_server_behind_https(self, given, capsys):
        """That is a TLS failure too."""

        async def go():
            async with serving(LittleGrafana().answer) as url:
                at = url.replace("http:", "https:")
                return await asyncio.to_thread(cli.main, ["dashboards", "push", "--grafana", at, *map(str, given)])

        assert 1 == asyncio.run(go())
        assert "TLS failed" in capsys.readouterr().err

    def test_an_authority_file_that_is_none(self, failed, tmp_path):
        """Wrong usage, with the file's name."""
        (tmp_path / "ca").write_text("no certificate")

        assert f"{tmp_path / 'ca'}: expected certificates" in failed(
            LittleGrafana().answer, "--ca-file", tmp_path / "ca", code=2
        )


class TestRefusals:
    def test_a_token_that_is_not_accepted(self, failed, tmp_path):
        """401 ends the push: every other call would fare the same."""
        (tmp_path / "token").write_text("glsa_another")
        grafana = LittleGrafana()

        assert "/api/dashboards/uid/own: 401: the token is not accepted: Invalid API key" in failed(grafana.answer)
        assert ["GET health", "GET dashboards/uid/own"] == grafana.asked

    @pytest.mark.parametrize(
        ("status", "body", "says"),
        [
            (400, {"message": "bad"}, "own: 400: bad"),
            (404, {"message": "folder not found"}, "own: 404: folder not found"),
            (
                412,
                {"message": "It belongs to plugin X.", "status": "plugin-dashboard"},
                "own: 412: It belongs to plugin X.",
            ),
            (500, {"message": "Failed to save dashboard"}, "own: 500: Failed to save dashboard"),
            (400, {"message": ""}, "own: 400: no reason given"),
            (400, {"message": f"token {TOKEN} and \x1b[31m\nred"}, "own: 400: token *** and \\x1b[31m red"),
            (200, {"status": "success"}, "/api/dashboards/db: expected an answer of Grafana, found other JSON"),
        ],
    )
    def test_what_grafana_says_to_a_board(self, failed, status, body, says):
        """Its words on one line, the token and what a terminal would obey taken out."""
        handler = but(LittleGrafana(), "POST dashboards/db", lambda _: web.json_response(body, status=status))

        assert says in failed(handler)

    @pytest.mark.parametrize(
        ("call", "answer", "folder"),
        [
            ("GET dashboards/uid/own", {"dashboard": {"uid": "own"}, "meta": {}}, "F"),
            ("GET dashboards/uid/own", {"dashboard": {"version": 1}}, "F"),
            ("GET search", {"hits": []}, "General"),
            ("GET search", ["own"], "General"),
            ("GET folders", [{"title": "no uid"}], "F"),
            ("POST folders", {"title": "F"}, "F"),
        ],
    )
    def test_other_json_where_grafana_has_its_own(self, failed, call, answer, folder):
        """No guess is made of what it could mean."""
        handler = but(LittleGrafana(), call, lambda _: web.json_response(answer))

        assert "expected an answer of Grafana, found other JSON" in failed(handler, "--folder", folder)

    @pytest.mark.parametrize(("ends", "pages"), [(1, 2), (None, 50)])
    def test_list_of_folders_without_end(self, failed, ends, pages):
        """The same thousand for any page, or always others: it is asked no more than so often, and the call fails."""
        asked = []

        def listed(request):
            asked.append(request.query["page"])
            first = 1000 * min(len(asked), ends or len(asked))
            return web.json_response([{"uid": f"f{first + one}", "title": f"F {one}"} for one in range(1000)])

        said = failed(but(LittleGrafana(), "GET folders", listed), "--folder", "F")

        assert "/api/folders: expected at most 50000 folders in pages of 1000, found no end of them\n" in said
        assert [str(page + 1) for page in range(pages)] == asked


class TestUsage:
    @pytest.mark.parametrize(
        ("url", "says"),
        [
            ("grafana.example", "found 'grafana.example'"),
            ("ftp://grafana.example", "found 'ftp://grafana.example'"),
            ("https://", "found 'https://'"),
            ("http://host:port", "found 'http://host:port'"),
            ("https://me:hunter2@host", "found a user or password in it; a token goes into --token-file"),
            ("https://host/?orgId=2", "found a query or fragment in it"),
            ("https://host/#x", "found a query or fragment in it"),
        ],
    )
    def test_what_is_no_address(self, given, capsys, url, says):
        """Exit code 2, without the password."""
        assert 2 == cli.main(["dashboards", "push", "--grafana", url, *map(str, given)])

        said = capsys.readouterr().err
        assert says in said
        assert "hunter2" not in said

    @pytest.mark.parametrize(
        ("url", "base"),
        [
            ("http://host:3000", "http://host:3000/"),
            ("https://host/grafana", "https://host/grafana/"),
            ("https://host/a/b//", "https://host/a/b/"),
            ("http://[::1]:3000/", "http://[::1]:3000/"),
        ],
    )
    def test_addresses(self, url, base):
        """Slashes at the end do not matter, a path is kept."""
        assert URL(base) == client.address(url)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (None, "expected a file, found: No such file"),
            ("", "found nothing"),
            ("a\nb", "found several"),
            ("user name", "expected a token of ASCII characters without spaces"),
        ],
    )
    def test_what_is_no_token(self, failed, tmp_path, content, says):
        """Exit code 2 and the file's name, before anything is asked."""
        (tmp_path / "token").unlink()
        if content is not None:
            (tmp_path / "token").write_text(content)
        grafana = LittleGrafana()

        assert says in failed(grafana.answer, code=2)
        assert [] == grafana.asked


class TestEnvironment:
    def test_a_proxy_is_used(self, given, monkeypatch):
        """The environment's, as for any client program."""
        grafana = LittleGrafana()

        async def go():
            async with serving(grafana.answer) as url:
                monkeypatch.setenv("http_proxy", url)
                monkeypatch.delenv("no_proxy", raising=False)
                at = "http://grafana.example"
                return await asyncio.to_thread(cli.main, ["dashboards", "push", "--grafana", at, *map(str, given)])

        assert (0, ["own"]) == (asyncio.run(go()), list(grafana.boards))

    def test_netrc_is_not(self, given, monkeypatch, tmp_path):
        """A password that somebody keeps for the host neither replaces the token nor stands in its way."""
        (tmp_path / "netrc").write_text("default login me password hunter2")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

        assert 0 == command(LittleGrafana().answer, *given)
