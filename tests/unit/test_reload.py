"""The machinery of a reload: what it reads when, which tasks it lets be, what an events handler expects after it."""

import asyncio
import logging
import threading
from pathlib import Path

import pytest
from aiohttp import web

from tests.unit.answered import body
from tests.unit.little_servers import DEADLINE, ManualClock, serving, until
from tidegauge import config
from tidegauge.exporter import Exporter
from tidegauge.jobs import Jobs
from tidegauge.reload import Reloader
from tidegauge.sources import store
from tidegauge.sources.session import open_session
from tidegauge.sources.store import Kept


class TestReloader:
    def run(self, *readings, asked=1):
        """What was taken and how often it was refused, when each reading in turn is answered or raised."""
        taken, refused, left = [], [], list(readings)
        reading, go_on = threading.Semaphore(0), threading.Semaphore(0)

        def read():
            reading.release()
            assert go_on.acquire(timeout=20)
            found = left.pop(0)
            if isinstance(found, Exception):
                raise found
            return found

        async def take(found):
            taken.append(found)

        async def go():
            reloader = Reloader(read, take, lambda: refused.append(1))
            task = asyncio.create_task(reloader.run())
            reloader.ask()
            await asyncio.to_thread(reading.acquire)
            for _ in range(asked - 1):
                reloader.ask()
            for _ in readings:
                go_on.release()
            await until(lambda: len(taken) + len(refused) == len(readings) or task.done())
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(go())
        return taken, len(refused), left

    def test_reads_once_more_for_whoever_asks_while_it_reads(self):
        """The file may have been written in between; five who ask are answered by one reading."""
        assert (["first", "second"], 0, []) == self.run("first", "second", asked=6)

    def test_bad_one_is_refused_and_the_next_one_is_taken(self, caplog):
        """It changes nothing but what is said."""
        bad = config.ConfigError("t.yml:3: backends[1].url: missing")

        assert (["good"], 1, []) == self.run(bad, "good", asked=2)
        assert [
            (logging.ERROR, "configuration not reloaded, the one in force stays: t.yml:3: backends[1].url: missing")
        ] == [(record.levelno, record.getMessage()) for record in caplog.records]

    def test_one_that_no_reader_foresaw_is_refused_too(self, caplog):
        """It costs the reload, not the exporter, and leaves what a report of the fault needs."""
        assert (["good"], 1, []) == self.run(MemoryError("all of it"), "good", asked=2)
        assert ["configuration not reloaded, the one in force stays"] == [one.getMessage() for one in caplog.records]
        assert "MemoryError: all of it" in caplog.text


class TestJobs:
    def test_wanted_ones_run_on_and_others_end(self):
        """Whatever is still wanted is not even paused."""
        log = []

        def work(name):
            async def run():
                log.append(f"{name} begins")
                try:
                    await asyncio.Event().wait()
                finally:
                    log.append(f"{name} ends")

            return run

        async def go():
            async with asyncio.TaskGroup() as group:
                jobs = Jobs(group)
                for names in ("ab", "bc", "bc", ""):
                    jobs.want({name: work(name) for name in names})
                    await asyncio.sleep(0)
                    log.append(names)

        asyncio.run(go())
        assert ["a begins", "b begins", "ab", "a ends", "c begins", "bc", "bc"] == log[:7]
        assert {"b ends", "c ends"} == set(log[7:]) - {""}

    def test_error_of_one_ends_all(self):
        """A fault in the program is not hidden by a service that seems to run."""

        async def fault():
            raise ZeroDivisionError

        async def go():
            async with asyncio.TaskGroup() as group:
                Jobs(group).want({"bad": fault, "good": asyncio.Event().wait})

        with pytest.raises(ExceptionGroup) as found:
            asyncio.run(go())
        assert [ZeroDivisionError] == [type(error) for error in found.value.exceptions]


LOG = "INFO 11-29 23:50:05 [kv_cache_utils.py:1229] GPU KV cache size: 52,288 tokens\n"


class Polled:
    """A server of many backends, one a folder, that counts what each of them is asked; `ask` gates /version."""

    def __init__(self):
        self.asked = {}
        self.version = asyncio.Event()

    async def answer(self, request):
        name = request.path.strip("/").split("/")[0]
        if request.path.endswith("/version"):
            await self.version.wait()
            return web.json_response({"version": "0.9.9"})
        if not request.path.endswith("/metrics"):
            return web.Response(status=404)
        self.asked[name] = self.asked.get(name, 0) + 1
        return web.Response(text=body(self.asked[name], 9e9 + ord(name[0])))


class Live:
    """An exporter that polls *names* of a server every 20 ms, and becomes what it is told."""

    def __init__(self, url, server, session, folder):
        self.url, self.server, self.folder = url, server, folder
        self.exporter = Exporter(self.written("a", "b"), _Clock())
        self.task = asyncio.create_task(self.exporter.run(session))

    def written(self, *names, logs=(), more=""):
        log = dict.fromkeys(logs, ", log: {file: x.log}")
        listed = "".join(f"  - {{url: {self.url}/{name}/metrics, name: {name}{log.get(name, '')}}}\n" for name in names)
        return config.load(f"poll_interval: 20ms\n{more}backends:\n{listed}", str(self.folder / "t.yml"), {})

    def replacing(self, *names):
        """Another server under these names, to be polled in an hour."""
        listed = "".join(f"  - {{url: {self.url}/z/metrics, name: {name}, poll_interval: 1h}}\n" for name in names)
        return config.load(f"window: 1d\nbackends:\n{listed}", "t.yml", {})

    async def polled(self, *names):
        """Wait until each of them was asked thrice more."""
        before = dict(self.server.asked)
        await until(lambda: self.task.done() or all(self.server.asked.get(n, 0) >= before.get(n, 0) + 3 for n in names))


class _Clock(ManualClock):
    """Real time for who sleeps."""

    def now(self):
        return asyncio.get_running_loop().time() + 1e6

    async def sleep(self, seconds):
        await asyncio.sleep(min(seconds, 0.02))


def live(folder, scene):
    async def go():
        server = Polled()
        async with serving(server.answer) as url, open_session(5) as session:
            one = Live(url, server, session, folder)
            try:
                return await scene(one)
            finally:
                server.version.set()
                await until(lambda: not one.exporter._tasks)
                one.task.cancel()
                await asyncio.gather(one.task, return_exceptions=True)

    return asyncio.run(go())


def polling():
    """The tasks that poll a backend."""
    return {task for task in asyncio.all_tasks() if task.get_coro().__name__ == "poll_forever"}


class TestLive:
    def test_polls_follow_the_configuration(self, tmp_path):
        """The one that left is asked no more, the new one is, and the one that stayed is polled by the same task."""

        async def scene(one):
            await one.polled("a", "b")
            before = polling()
            await one.exporter.become(one.written("b", "c"))
            await one.polled("c")
            gone = one.server.asked["a"]
            await one.polled("b", "c", "c")
            return one.server.asked["a"] - gone, len(before & polling()), one.task.done()

        assert (0, 1, False) == live(tmp_path, scene)

    def test_changed_backend_is_asked_as_it_is_now(self, tmp_path):
        """At its new place; and where only the way to ask changed, in that way, and no longer in the other."""

        async def scene(one):
            await one.polled("a", "b")
            await one.exporter.become(one.written("a", more="timeout: 7s\n"))
            await one.polled("a")
            timeouts = {task.get_coro().cr_frame.f_locals["target"].timeout for task in polling()}
            one.url += "/z"
            await one.exporter.become(one.written("a"))
            await one.polled("z")
            gone = one.server.asked["a"]
            await one.polled("z")
            return timeouts, one.server.asked["a"] - gone

        assert ({7.0}, 0) == live(tmp_path, scene)

    def test_another_state_file_is_read_beside_the_event_loop(self, tmp_path, monkeypatch):
        """It may be large, or its disk may hang: until then polls go on by the configuration before."""
        entered, go_on = threading.Event(), threading.Event()

        def load(_):
            entered.set()
            assert go_on.wait(DEADLINE)
            return Kept({}, {"m": 9})

        monkeypatch.setattr(store, "load", load)

        async def scene(one):
            await one.polled("a", "b")
            changing = asyncio.create_task(one.exporter.become(one.written("a", "c", more="state_file: s.json\n")))
            await until(entered.is_set)
            await one.polled("a", "b")
            found = [changing.done(), list(one.exporter.watch.states)]
            go_on.set()
            await changing
            await one.polled("a", "c")
            return [*found, list(one.exporter.watch.states), one.exporter.watch.largest()]

        assert [False, ["a", "b"], ["a", "c"], {"m": 9}] == live(tmp_path, scene)

    def test_log_that_is_followed_no_more_is_let_go_of(self, tmp_path):
        """An open file keeps the space of a log that was deleted."""
        (tmp_path / "x.log").write_text(LOG, encoding="utf-8")

        def opened():
            return [
                path for path in Path("/proc/self/fd").iterdir() if path.exists() and path.samefile(tmp_path / "x.log")
            ]

        async def scene(one):
            await one.exporter.become(one.written("a", logs=("a",)))
            await until(opened)
            await one.exporter.become(one.written("a"))
            await until(lambda: one.task.done() or not opened())
            return opened(), one.task.done()

        assert ([], False) == live(tmp_path, scene)

    def test_log_of_an_unchanged_backend_is_not_read_again(self, tmp_path):
        """Its lines would be counted twice."""
        (tmp_path / "x.log").write_text(LOG, encoding="utf-8")

        async def scene(one):
            counts = []
            for names in (("a",), ("b", "a"), ("c", "a")):
                await one.exporter.become(one.written(*names, logs=("a",)))
                state = one.exporter.watch.states["a"]
                await until(lambda state=state: state.history(0.0).counts.log_lines)
                await asyncio.sleep(0.1)
                counts.append(dict(state.history(0.0).counts.log_lines)["parsed"])
            return counts

        assert [1, 1, 1] == live(tmp_path, scene)

    def test_log_of_a_changed_backend_is_read_for_it(self, tmp_path):
        """Another server under the same name and log: what the log says is now its."""
        (tmp_path / "x.log").write_text(LOG, encoding="utf-8")

        async def scene(one):
            await one.exporter.become(one.written("a", logs=("a",)))
            old = one.exporter.watch.states["a"]
            await until(lambda: old.history(0.0).counts.log_lines)
            one.url += "/."
            await one.exporter.become(one.written("a", logs=("a",)))
            new = one.exporter.watch.states["a"]
            await until(lambda: new.history(0.0).counts.log_lines)
            (tmp_path / "x.log").write_text(LOG * 3, encoding="utf-8")
            await until(lambda: new.history(0.0).counts.log_lines["parsed"] == 3)
            return old.history(0.0).counts.log_lines["parsed"]

        assert 1 == live(tmp_path, scene)

    def test_answer_for_a_backend_that_left_is_nobodys(self, tmp_path):
        """Its endpoints were asked before, and answer after another server took the name."""

        async def scene(one):
            await one.polled("a", "b")
            old = one.exporter.watch.states["a"]
            await one.exporter.become(one.replacing("a"))
            one.server.version.set()
            await until(lambda: old.history(0.0).version)
            return [state.history(0.0).version for state in one.exporter.watch.states.values()]

        assert [None] == live(tmp_path, scene)

    def test_answer_for_one_that_leaves_before_it_is_asked_is_nobodys_either(self, tmp_path):
        """Another server may take the name between a first page and the questions that follow it."""

        async def scene(one):
            one.server.version.set()
            spawn, old = one.exporter._spawn, dict(one.exporter.watch.states)

            def late(coroutine):
                one.exporter._spawn = spawn
                one.exporter._go_on(one.replacing("a", "b"), Kept())
                spawn(coroutine)

            one.exporter._spawn = late
            await until(lambda: one.exporter._spawn == spawn and not one.exporter._tasks)
            return [[one.history(0.0).version for one in of.values()] for of in (old, one.exporter.watch.states)]

        old, new = live(tmp_path, scene)
        assert {None, "0.9.9"} == set(old)
        assert [None, None] == new
