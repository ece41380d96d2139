"""Reports straight from servers and from a running exporter, and recordings that replay to the same."""

import asyncio
import json
import logging
import os

import attrs
import pytest
from aiohttp import web

from tests.builders import config, exposition, figures, lifetime, page, requests, spread
from tests.golden.everything import everything
from tests.unit.little_servers import serving
from tidegauge import cli, vllm
from tidegauge.clock import SystemClock
from tidegauge.report import live
from tidegauge.report.document import document
from tidegauge.sources import captures


def body(finished, start=1000.0):
    rows = requests(*[(1.0, 2.0, 3.0, 4.0)] * finished)
    return exposition(rows, start=start, info={"kv_cache_size_tokens": 777}, values={vllm.RUNNING: 0.0})


def counting(first, start=1000.0, seen=None):
    """A server that finishes one request per poll of its page, and tells its version."""
    polls = iter(range(first, first + 10_000))

    async def answer(request):
        if request.path == "/metrics":
            return web.Response(text=body(next(polls), start))
        if seen is not None:
            seen.append(request.path)
        return web.json_response({"version": "0.30.0"}) if request.path == "/version" else web.Response(status=404)

    return answer


def ask(handler, question):
    async def run():
        async with serving(handler) as url:
            return await question(url)

    return asyncio.run(run())


def hanging_beside(handler):
    """The server of *handler*, below whose /slow nothing is answered."""

    async def answer(request):
        if request.path.startswith("/slow"):
            await asyncio.sleep(60)
        return await handler(request)

    return answer


def impatient(monkeypatch):
    """Polls give up after 0.4 s."""
    fetch = live.fetch
    monkeypatch.setattr(live, "fetch", lambda on, to, clock: fetch(on, attrs.evolve(to, timeout=0.4), clock))


class Fast(SystemClock):
    """Ten times as fast as the machine's."""

    def now(self):
        return super().now() * 10

    async def sleep(self, seconds):
        await super().sleep(seconds / 10)


class TestFromBackends:
    def test_server_that_hangs_holds_up_no_other(self, monkeypatch):
        """The other one is polled every second all the while."""
        impatient(monkeypatch)
        monkeypatch.setattr(live, "SystemClock", Fast)
        found = ask(
            hanging_beside(counting(30)),
            lambda url: live.from_backends([f"a={url}", f"slow={url}/slow"], 10.0, {}),
        )
        finished, failed = document(found)["backends"]

        assert 2 * failed["failed_polls"]["timeout"] <= finished["models"][0]["stages"]["requests"]

    def test_one_page_is_the_life_of_the_server(self):
        """And its own endpoints are asked."""
        found = document(ask(counting(30), lambda url: live.from_backends([url], 0.0, {})))
        (backend,) = found["backends"]

        assert 0 == found["window_seconds"]
        assert (30, 10.0) == tuple(backend["models"][0]["stages"][key] for key in ("requests", "e2e_seconds"))
        assert ("0.30.0", {"value": 777, "source": "metrics"}) == (
            backend["version"],
            backend["kv_cache_capacity_tokens"],
        )

    def test_watched_servers_count_what_happened_meanwhile(self, caplog):
        """Not the thirty requests from before; how long it takes is said first."""
        caplog.set_level(logging.INFO, logger=live.__name__)
        found = document(ask(counting(30), lambda url: live.from_backends([f"blue-1={url}"], 0.5, {"blue-1": "blue"})))
        (backend,) = found["backends"]

        assert 0.5 <= found["window_seconds"] < 15
        assert 1 == backend["models"][0]["stages"]["requests"]
        assert ["watching blue-1 for 0.5 s"] == [one.message for one in caplog.records if one.name == live.__name__]
        assert "blue" == backend["fleet"]

    def test_name_of_a_server_is_used_throughout(self):
        """In the report, and where fleets are made of names."""

        async def run():
            async with serving(counting(30)) as left, serving(counting(40, start=1100.0)) as right:
                return await live.from_backends([f"a={left}", f"b={right}"], 0.0, {"b": "blue"})

        found = document(asyncio.run(run()))

        assert [("a", "m", 30), ("b", "blue", 40)] == [
            (one["name"], one["fleet"], one["models"][0]["stages"]["requests"]) for one in found["backends"]
        ]

    def test_window_ends_with_the_last_poll(self):
        """A server that is slow to tell its version was not watched meanwhile."""

        async def slow(request):
            if request.path == "/version":
                await asyncio.sleep(1.0)
            return web.Response(text=body(30))

        found = document(ask(slow, lambda url: live.from_backends([url], 1e-6, {})))

        assert 0 < found["window_seconds"] < 1.0
        assert 0 == found["backends"][0]["covered_seconds"]

    def test_server_that_is_down_is_not_asked_for_its_version(self):
        """Its answer would only cost three time-outs."""
        seen = []

        async def broken(request):
            seen.append(request.path)
            return web.Response(status=500)

        found = document(ask(broken, lambda url: live.from_backends([url], 0.0, {})))

        assert (False, {"http_5xx": 1}) == (found["backends"][0]["up"], found["backends"][0]["failed_polls"])
        assert ["/metrics"] == seen


class TestFromExporter:
    def test_report_is_passed_on(self):
        """As the exporter gives it."""
        report = document(everything())

        async def answer(_):
            return web.json_response(report)

        assert report == ask(answer, live.from_exporter)

    @pytest.mark.parametrize(
        "answer", ["", "<html>", "[]", "null", '{"format": 99}'], ids=["nothing", "HTML", "list", "null", "format"]
    )
    def test_anything_else_is_named_with_its_url(self, answer):
        """Another program, or another version."""

        async def other(_):
            return web.Response(text=answer)

        with pytest.raises(OSError, match=r"http://127\.0\.0\.1:\d+/api/v1/report: "):
            ask(other, live.from_exporter)

    def test_nobody_there_is_exit_1(self, capsys):
        """One line that names the address."""
        assert 1 == cli.main(["report", "--exporter", "http://127.0.0.1:9"])
        assert "http://127.0.0.1:9/api/v1/report" in capsys.readouterr().err


class TestRecording:
    def test_a_recording_replays_to_what_happened(self, tmp_path, capsys):
        """Through the command, both ways: pages are written as they came, failures too."""

        async def run():
            async with serving(counting(30)) as url:
                arguments = ["record", "--backend", f"a={url}", "--backend", "gone=http://127.0.0.1:9"]
                arguments += ["--for", "0.5", "--interval", "0.1", "--out", str(tmp_path)]
                return await asyncio.to_thread(cli.main, arguments)

        assert 0 == asyncio.run(run())
        written = int(capsys.readouterr().out.split("a.scrapes.gz: ")[1].split()[0])
        assert 0 == cli.main(["report", "--capture", f"{tmp_path}/a.scrapes.gz", "--json"])
        found = json.loads(capsys.readouterr().out)
        assert written - 1 == found["backends"][0]["models"][0]["stages"]["requests"]
        assert 1 == cli.main(["report", "--capture", f"{tmp_path}/gone.scrapes.gz", "--json"])
        assert {"refused"} == set(json.loads(capsys.readouterr().out)["backends"][0]["failed_polls"])

    def test_a_capture_is_not_written_over_unless_told_to(self, tmp_path, capsys):
        """Nor is the one beside it begun; with --force both are new."""
        old = tmp_path / "b.scrapes.gz"
        old.write_bytes(b"an hour of pages")

        async def run(*more):
            async with serving(counting(30)) as url:
                arguments = ["record", "--backend", f"a={url}/metrics", "--backend", f"b={url}/metrics?engine=1"]
                arguments += ["--for", "0.2", "--interval", "0.1", "--out", str(tmp_path)]
                return await asyncio.to_thread(cli.main, [*arguments, *more])

        assert 1 == asyncio.run(run())
        told = f"tidegauge: {old}: expected no such file, found one: --force writes over it\n"
        assert told == capsys.readouterr().err
        assert {old: b"an hour of pages"} == {path: path.read_bytes() for path in tmp_path.iterdir()}
        assert 0 == asyncio.run(run("--force"))
        assert {"a.scrapes.gz", "b.scrapes.gz"} == {path.name for path in tmp_path.iterdir()}
        assert next(iter(captures.read(old))).body

    def test_what_is_written_is_told_while_it_is(self, tmp_path, caplog):
        """Each file at its begin, with its server and for how long, and at its end with its pages."""
        caplog.set_level(logging.INFO)
        folder = tmp_path / "new" / "folder"

        async def run():
            async with serving(counting(30)) as url:
                arguments = ["record", "--backend", f"a={url}", "--for", "0.2", "--interval", "0.1"]
                return url, await asyncio.to_thread(cli.main, [*arguments, "--out", str(folder)])

        url, code = asyncio.run(run())
        path = folder / "a.scrapes.gz"
        pages = sum(one.body is not None for one in captures.read(path))
        said = [one.getMessage() for one in caplog.records if one.name == "tidegauge.report.live"]

        assert (0, True) == (code, pages > 0)
        assert [f"writing {path} for 0.2 s: pages of {url}/metrics", f"done with {path}: {pages} pages"] == said

    @pytest.mark.parametrize(
        ("put", "more", "says"),
        [
            (lambda path: path.symlink_to("nowhere"), (), "expected no such file, found one: --force writes over it"),
            (os.mkfifo, ("--force",), "expected a capture to write over, found no regular file"),
            (os.mkdir, ("--force",), "expected a capture to write over, found no regular file"),
        ],
    )
    def test_what_is_no_capture_is_never_written_over(self, tmp_path, capsys, put, more, says):
        """A pipe would be waited for until somebody reads it."""
        path = tmp_path / "a.scrapes.gz"
        put(path)

        assert 1 == cli.main(["record", "--backend", "a=http://127.0.0.1:9", "--out", str(tmp_path), *more])
        assert f"tidegauge: {path}: {says}\n" == capsys.readouterr().err

    def test_what_is_written_is_a_capture_at_any_time(self, tmp_path):
        """The program may be killed, or its machine: the pages before the one that is being asked for are there."""
        path, count, found = tmp_path / "a.scrapes.gz", counting(30), []

        async def answer(request):
            found.append(sum(one.body is not None for one in captures.read(path)) if found else 0)
            return await count(request)

        async def run():
            async with serving(answer) as url:
                arguments = ["record", "--backend", f"a={url}", "--for", "0.5", "--interval", "0.1"]
                return await asyncio.to_thread(cli.main, [*arguments, "--out", str(tmp_path)])

        assert 0 == asyncio.run(run())
        # The last page of a file that is cut short may itself be cut.
        assert [0, *range(len(found) - 1)] == found

    def test_server_that_hangs_holds_up_no_other(self, tmp_path, monkeypatch):
        """Its polls take as long as they may; the other's capture has all its pages."""
        impatient(monkeypatch)

        async def run():
            async with serving(hanging_beside(counting(30))) as url:
                arguments = ["record", "--backend", f"a={url}", "--backend", f"slow={url}/slow"]
                arguments += ["--for", "1", "--interval", "0.1", "--out", str(tmp_path)]
                return await asyncio.to_thread(cli.main, arguments)

        assert 0 == asyncio.run(run())
        polls = {name: list(captures.read(tmp_path / f"{name}.scrapes.gz")) for name in ("a", "slow")}
        assert {"timeout"} == {one.reason for one in polls["slow"]}
        assert 2 * len(polls["slow"]) <= len(polls["a"])

    def test_two_backends_of_one_name_are_refused(self, tmp_path, capsys):
        """Their pages would end up in one file."""
        arguments = ["record", "--backend", "a=http://127.0.0.1:9", "--backend", "a=http://127.0.0.1:8"]

        assert 2 == cli.main([*arguments, "--out", str(tmp_path)])
        assert "backend URL 2: expected a name of its own, found 'a' again" in capsys.readouterr().err
        arguments = ["record", "--backend", "h_9=http://h:1", "--backend", "http://h:9"]
        assert 2 == cli.main([*arguments, "--out", str(tmp_path)])
        assert "backend h_9: expected a name of its own, found another server's file" in capsys.readouterr().err
        assert [] == list(tmp_path.iterdir())


class TestSameFiguresEitherWay:
    def test_replay_and_live_state_derive_the_same(self, tmp_path):
        """One page by capture, by server, and by hand."""
        rows = requests(*[(1.0, 2.0, 3.0, 4.0)] * 30) | {vllm.TTFT: spread(30, 90.0)}
        text = exposition(rows, info={"kv_cache_size_tokens": 777})
        path = tmp_path / "a.prom"
        path.write_text(text, encoding="utf-8")

        async def answer(request):
            return web.Response(text=text) if request.path == "/metrics" else web.Response(status=404)

        served = document(ask(answer, lambda url: live.from_backends([url], 0.0, {})))
        (replayed,) = cli.replay.load({"a": path}, {}, {}, "m")
        by_capture = document(cli.replay.replay([replayed], cli.Settings()))
        by_hand = document(figures(lifetime("a", page(rows, configs=[config(kv_cache_size_tokens=777)]))))

        stages = [found["backends"][0]["models"][0]["stages"] for found in (served, by_capture, by_hand)]
        assert stages[0] == stages[1] == stages[2]
