"""When backends are polled, and that nobody waits for a neighbour."""

import asyncio
import socket
import threading
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import web

from tests.unit.little_servers import (
    CA,
    DEADLINE,
    PAGE,
    ManualClock,
    answering,
    server_context,
    serving,
    until,
)
from tidegauge.clock import SystemClock
from tidegauge.sources.credentials import TlsContexts
from tidegauge.sources.scrape import Fetched, fetch, next_slot, phase, poll_forever
from tidegauge.sources.session import open_session
from tidegauge.sources.target import Target, Tls


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
