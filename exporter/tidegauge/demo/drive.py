"""The workload in real time against HTTP servers. The limiter and the barrier's reporter are handed in.

So an instrumented caller plugs in: `limiter.slot()` is held while a call is in flight, `barrier(fan_out)` is open from
the moment the calls are launched until the last one has returned.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from typing import Protocol

import aiohttp
import attrs

from tidegauge.demo.completions import body_for
from tidegauge.demo.workload import Call

Barrier = Callable[[int], AbstractContextManager[object]]
"""Opens a barrier of so many calls, and closes it on exit."""


class Limiter(Protocol):
    """The caller's ceiling."""

    def slot(self) -> AbstractAsyncContextManager[object]:
        """Wait for a slot, first come first served, and hold it."""


class Unlimited:
    """No ceiling."""

    def slot(self) -> AbstractAsyncContextManager[object]:
        return nullcontext()


class Capped:
    """A plain ceiling that reports nothing."""

    def __init__(self, cap: int) -> None:
        self._slots = asyncio.Semaphore(cap)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        async with self._slots:
            yield


@attrs.frozen
class Outcome:
    """One call as the caller saw it; unix seconds. `error` is empty if it was answered."""

    call: Call
    submitted: float
    sent: float
    ended: float
    error: str = ""


class HttpFleet:
    """Backends by index: sends a call to the one its agent keeps."""

    def __init__(self, session: aiohttp.ClientSession, urls: Sequence[str], model_name: str) -> None:
        self._session = session
        self._urls = tuple(urls)
        self._model_name = model_name

    async def send(self, call: Call) -> str:
        """Send one call and wait for its answer: what went wrong, or nothing."""
        url = f"{self._urls[call.backend]}/v1/completions"
        try:
            async with self._session.post(url, json=body_for(call.request, self._model_name)) as response:
                await response.read()
                return "" if response.ok else f"{url}: HTTP {response.status}"
        except (aiohttp.ClientError, TimeoutError) as error:
            return f"{url}: {error or type(error).__name__}"


async def drive_barrier(
    calls: Sequence[Call], fleet: HttpFleet, limiter: Limiter, barrier: Barrier = nullcontext
) -> list[Outcome]:
    """Launch the calls of one barrier at once and wait for all of them; failed ones are told in their outcome."""
    with barrier(len(calls)):
        return await asyncio.gather(*(_one(call, fleet, limiter) for call in calls))


async def drive_barriers(  # noqa: PLR0913 - the seams at which a caller plugs in
    barriers: Iterable[Sequence[Call]],
    fleet: HttpFleet,
    limiter: Limiter,
    barrier: Barrier = nullcontext,
    *,
    pause: float = 0.2,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[list[Outcome]]:
    """Barrier after barrier, `pause` seconds apart, until the calls run out or `stop` is set between two of them."""
    for calls in barriers:
        if stop is not None and stop.is_set():
            return
        yield await drive_barrier(calls, fleet, limiter, barrier)
        await asyncio.sleep(pause)


async def drive_steady(
    arrivals: Iterable[tuple[float, Call]], fleet: HttpFleet, limiter: Limiter, seconds: float
) -> list[Outcome]:
    """Independent calls at their own times for so many seconds; returns when the last one has been answered."""
    start = time.monotonic()
    tasks = []
    for at, call in arrivals:
        if at > seconds:
            break
        await asyncio.sleep(max(0.0, start + at - time.monotonic()))
        tasks.append(asyncio.create_task(_one(call, fleet, limiter)))
    return await asyncio.gather(*tasks)


async def _one(call: Call, fleet: HttpFleet, limiter: Limiter) -> Outcome:
    submitted = time.time()
    async with limiter.slot():
        sent = time.time()
        error = await fleet.send(call)
    return Outcome(call, submitted, sent, time.time(), error)
