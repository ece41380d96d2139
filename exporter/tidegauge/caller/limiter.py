"""A limiter for tasks and threads that tells what each request waited for."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol, Self, TypeVar

Tell = Callable[..., None]


class _Waiter(Protocol):
    granted: bool

    def wake(self) -> bool:
        """Wake whoever waits; False if nobody can be woken any more."""


W = TypeVar("W", bound=_Waiter)


class _ThreadWaiter:
    def __init__(self) -> None:
        self.granted = False
        self.woken = threading.Event()

    def wake(self) -> bool:
        self.woken.set()
        return True


class _TaskWaiter:
    def __init__(self) -> None:
        self.granted = False
        self._loop = asyncio.get_running_loop()
        self.woken: asyncio.Future[None] = self._loop.create_future()

    def wake(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._resolve)
        except RuntimeError:  # the loop was closed with its task still waiting
            return False
        return True

    def _resolve(self) -> None:
        if not self.woken.done():
            self.woken.set_result(None)


class Limiter:
    """Lets at most `ceiling` requests through at once, first come first served, across threads and event loops.

    `tell` is a reporter's: it hears each slot's wait and each change of the ceiling; without it this is a plain
    limiter.
    """

    def __init__(self, ceiling: int, tell: Tell | None = None) -> None:
        self._tell = tell
        self._lock = threading.RLock()  # reentrant: a task may be finalised while its thread is in here
        self._waiters: deque[_Waiter] = deque()
        self._in_flight = 0
        self._ceiling = -1
        self.set_ceiling(ceiling)

    @property
    def ceiling(self) -> int:
        return self._ceiling

    @property
    def in_flight(self) -> int:
        """Slots held now."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot now."""
        return len(self._waiters)

    def slot(self) -> "Slot":
        """A context (`with` in threads, `async with` in tasks) that waits for a slot and holds it; use once."""
        return Slot(self)

    def set_ceiling(self, ceiling: int) -> None:
        """Change the ceiling at once: a higher one lets waiting requests through, a lower one lets the excess finish.

        0 lets nothing through. Raises ValueError for anything but a whole number of at least 0.
        """
        if type(ceiling) is not int or ceiling < 0:
            raise ValueError(f"ceiling: expected a whole number of at least 0, found {ceiling!r}")
        with self._lock:
            changed, self._ceiling = ceiling != self._ceiling, ceiling
            if changed and self._tell is not None:
                self._tell("ceiling", value=ceiling)
            self._grant()

    def enter(self, make: Callable[[], W]) -> W | None:
        """Take a slot, or a place in the queue: None for a slot. For Slot."""
        with self._lock:
            if self._in_flight < self._ceiling:  # then nobody waits: every freed slot is granted at once
                self._in_flight += 1
                return None
            waiter = make()
            self._waiters.append(waiter)
            return waiter

    def leave(self) -> None:
        """Give a slot back. For Slot."""
        with self._lock:
            self._in_flight -= 1
            self._grant()

    def give_up(self, waiter: _Waiter) -> None:
        """Leave the queue, or hand on the slot that was granted in the same moment. For Slot."""
        with self._lock:
            if waiter.granted:
                self.leave()
            elif waiter in self._waiters:
                self._waiters.remove(waiter)

    def waited(self, seconds: float) -> None:
        """A request got its slot after so many seconds. For Slot."""
        if self._tell is not None:
            self._tell("wait", seconds=round(max(0.0, seconds), 6))

    def _grant(self) -> None:
        while self._waiters and self._in_flight < self._ceiling:
            waiter = self._waiters.popleft()
            if waiter.wake():
                waiter.granted = True
                self._in_flight += 1


class Slot:
    """One request's place in a limiter; `waited` is what it waited for, in seconds, once it is held."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._used = False
        self.waited = 0.0

    def __enter__(self) -> Self:
        began = self._begin()
        waiter = self._limiter.enter(_ThreadWaiter)
        if waiter is not None:
            try:
                waiter.woken.wait()
            except BaseException:
                self._limiter.give_up(waiter)
                raise
        return self._held(began)

    async def __aenter__(self) -> Self:
        began = self._begin()
        waiter = self._limiter.enter(_TaskWaiter)
        if waiter is not None:
            try:
                await waiter.woken
            except BaseException:
                self._limiter.give_up(waiter)
                raise
        return self._held(began)

    def _begin(self) -> float:
        if self._used:
            raise RuntimeError("a slot is used once: call limiter.slot() for each request")
        self._used = True
        return time.monotonic()

    def _held(self, began: float) -> Self:
        self.waited = time.monotonic() - began
        self._limiter.waited(self.waited)
        return self

    def __exit__(self, *_: object) -> None:
        self._limiter.leave()

    async def __aexit__(self, *_: object) -> None:
        self._limiter.leave()
