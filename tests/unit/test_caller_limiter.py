"""The caller's limiter: order, ceiling, and nothing leaked, in tasks, in threads and across both."""

import asyncio
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegauge.caller import Limiter

DEADLINE = 20


def until(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


class Waits:
    """Hears what a limiter tells."""

    def __init__(self):
        self.told = []

    def __call__(self, kind, **fields):
        self.told.append((kind, *fields.values()))

    @property
    def waits(self):
        return [seconds for kind, seconds in self.told if kind == "wait"]


class TestAsyncLimiter:
    def test_first_come_first_served_within_the_ceiling(self):
        """Requests get their slots in the order they asked, never more at once than the ceiling."""
        order, most, tell = [], [], Waits()

        async def call(limiter, number):
            async with limiter.slot() as slot:
                order.append(number)
                most.append(limiter.in_flight)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            return slot.waited

        async def go():
            limiter = Limiter(3, tell)
            waited = await asyncio.gather(*(call(limiter, number) for number in range(20)))
            return limiter, waited

        limiter, waited = asyncio.run(go())

        assert (list(range(20)), 3) == (order, max(most))
        assert (0, 0) == (limiter.in_flight, limiter.waiting)
        assert ("ceiling", 3) == tell.told[0]
        assert 20 == len(tell.waits)
        assert sorted(waited) == pytest.approx(sorted(tell.waits), abs=1e-6)

    def test_ceiling_moves_live(self):
        """A higher ceiling lets waiting requests through at once; a lower one lets the excess finish first."""
        tell = Waits()

        async def go():
            limiter, gates, tasks = Limiter(2, tell), [], []

            async def call():
                async with limiter.slot():
                    gates.append(asyncio.get_running_loop().create_future())
                    await gates[-1]

            async def settled():
                for _ in range(10):
                    await asyncio.sleep(0)
                return limiter.in_flight, limiter.waiting

            tasks = [asyncio.create_task(call()) for _ in range(10)]
            seen = [await settled()]
            limiter.set_ceiling(5)
            seen.append(await settled())
            limiter.set_ceiling(3)
            for number in range(3):
                gates[number].set_result(None)
                seen.append(await settled())
            limiter.set_ceiling(3)
            limiter.set_ceiling(10)
            await settled()
            for gate in gates[3:]:
                gate.set_result(None)
            await asyncio.gather(*tasks)
            return seen

        assert [(2, 8), (5, 5), (4, 5), (3, 5), (3, 4)] == asyncio.run(go())
        assert [2, 5, 3, 10] == [value for kind, value in tell.told if kind == "ceiling"]

    def test_cancelled_waits_leak_nothing(self):
        """A wait that is cancelled, even in the moment its slot was granted, gives the place to the next in line."""

        async def go():
            limiter, order = Limiter(1), []

            async def call(name):
                async with limiter.slot():
                    order.append(name)

            async with limiter.slot():
                tasks = [asyncio.create_task(call(name)) for name in "abcd"]
                await asyncio.sleep(0)
                tasks[1].cancel()
                await asyncio.sleep(0)
                waiting = limiter.waiting
            tasks[0].cancel()  # granted, but not yet run
            await asyncio.gather(*tasks, return_exceptions=True)
            return waiting, order, limiter.in_flight, limiter.waiting, [task.cancelled() for task in tasks]

        assert (3, ["c", "d"], 0, 0, [True, True, False, False]) == asyncio.run(go())

    def test_exception_in_the_body(self):
        """An exception in the body gives the slot back."""

        async def go():
            limiter = Limiter(1)
            for _ in range(3):
                with pytest.raises(KeyError):
                    async with limiter.slot():
                        raise KeyError
            return limiter.in_flight

        assert 0 == asyncio.run(go())

    def test_task_of_a_dead_loop(self):
        """A task whose event loop is gone does not swallow the slot that would have been its."""
        limiter = Limiter(1)
        loop = asyncio.new_event_loop()
        with limiter.slot():
            task = loop.create_task(limiter.slot().__aenter__())
            loop.call_soon(loop.stop)
            loop.run_forever()
            loop.close()
            assert 1 == limiter.waiting
        assert (0, 0) == (limiter.in_flight, limiter.waiting)
        task._log_destroy_pending = False

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(st.sampled_from(["call", "cancel", "ceiling"]), st.integers(0, 6)), max_size=30))
    def test_any_history(self, steps):
        """Whatever comes, goes, is cancelled and changes, nobody is lost and nothing leaks."""

        async def go():
            limiter, tasks, done = Limiter(2), [], []

            async def call(rounds):
                async with limiter.slot():
                    assert limiter.in_flight >= 1
                    for _ in range(rounds):
                        await asyncio.sleep(0)
                done.append(rounds)

            for step, number in steps:
                if step == "call":
                    tasks.append(asyncio.create_task(call(number)))
                elif step == "cancel" and tasks:
                    tasks[number % len(tasks)].cancel()
                elif step == "ceiling":
                    limiter.set_ceiling(number)
                await asyncio.sleep(0)
            limiter.set_ceiling(1)
            async with asyncio.timeout(DEADLINE):
                await asyncio.gather(*tasks, return_exceptions=True)
            assert (0, 0) == (limiter.in_flight, limiter.waiting)
            assert len(done) == len([task for task in tasks if not task.cancelled()])

        asyncio.run(go())


class TestThreadLimiter:
    def test_ceiling_and_order(self):
        """Threads get slots in the order they asked, never more at once than the ceiling."""
        tell, order = Waits(), []
        limiter = Limiter(2, tell)
        gates = [threading.Event() for _ in range(6)]

        def call(number):
            with limiter.slot():
                order.append(number)
                gates[number].wait(DEADLINE)

        threads = []
        for number in range(6):
            threads.append(threading.Thread(target=call, args=(number,)))
            threads[-1].start()
            until(lambda number=number: limiter.in_flight + limiter.waiting == number + 1)
        assert (2, 4) == (limiter.in_flight, limiter.waiting)
        for number in range(6):
            until(lambda number=number: len(order) == min(6, number + 2))
            gates[number].set()
        for thread in threads:
            thread.join(DEADLINE)

        assert [0, 1] == sorted(order[:2])
        assert [2, 3, 4, 5] == order[2:]
        assert (0, 6) == (limiter.in_flight, len(tell.waits))

    def test_shared_with_a_loop(self):
        """A thread and a task share one ceiling, and each wakes the other."""
        limiter, order = Limiter(1), []

        def thread():
            with limiter.slot():
                order.append("thread")

        async def go():
            async with limiter.slot():
                order.append("task")
                other = asyncio.create_task(asyncio.to_thread(thread))
                async with asyncio.timeout(DEADLINE):
                    while not limiter.waiting:  # noqa: ASYNC110 - the thread tells nobody that it waits
                        await asyncio.sleep(0.001)
            await other
            with limiter.slot():
                late = asyncio.create_task(limiter.slot().__aenter__())
                await asyncio.sleep(0)
            async with asyncio.timeout(DEADLINE):
                await late

        asyncio.run(go())

        assert (["task", "thread"], 1) == (order, limiter.in_flight)

    def test_interrupted_wait(self, monkeypatch):
        """An interrupt while waiting leaves the queue and passes."""
        limiter = Limiter(1)
        with limiter.slot():
            monkeypatch.setattr(threading.Event, "wait", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt), limiter.slot():
                pass
            monkeypatch.undo()

        assert (0, 0) == (limiter.in_flight, limiter.waiting)

    def test_slot_is_used_once(self):
        """A slot taken twice is a mistake and says so."""
        slot = Limiter(2).slot()
        with slot:
            pass

        with pytest.raises(RuntimeError, match="a slot is used once"), slot:
            pass

    @pytest.mark.parametrize("ceiling", [-1, 2.0, True, "3", None])
    def test_bad_ceiling(self, ceiling):
        """A ceiling that is no whole number of at least 0 is refused and changes nothing."""
        limiter = Limiter(3)
        with pytest.raises(ValueError, match="ceiling: expected a whole number of at least 0"):
            limiter.set_ceiling(ceiling)

        assert 3 == limiter.ceiling
