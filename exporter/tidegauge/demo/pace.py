"""An engine in real time: simulated steps end when the wall clock gets there."""

import asyncio
from collections.abc import Callable

from tidegauge.demo.engine import Engine
from tidegauge.demo.requests import Finished, Request


class Pacer:
    """Lets an engine follow a clock (`now`, on the engine's time scale) inside the running event loop."""

    def __init__(self, engine: Engine, now: Callable[[], float]) -> None:
        self._engine = engine
        self._now = now
        self._waiting: dict[str, asyncio.Future[Finished]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def complete(self, request: Request) -> Finished:
        """Submit a request and wait for its end. Raises ValueError if it is too long; cancelling it aborts it."""
        self.catch_up()
        self._engine.submit(request, self._engine.now)
        future: asyncio.Future[Finished] = asyncio.get_running_loop().create_future()
        self._waiting[request.request_id] = future
        self._arm()
        try:
            return await future
        except asyncio.CancelledError:
            self.catch_up()
            self._engine.abort(request.request_id)
            raise
        finally:
            self._waiting.pop(request.request_id, None)

    def catch_up(self) -> None:
        """Bring the engine to the present, and hand out what finished."""
        for done in self._engine.advance(self._now()):
            future = self._waiting.get(done.request.request_id)
            if future is not None and not future.done():
                future.set_result(done)
        self._arm()

    def close(self) -> None:
        """Stop the clock; requests on their way are cancelled."""
        if self._timer is not None:
            self._timer.cancel()
        for future in self._waiting.values():
            future.cancel()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        event = self._engine.next_event()
        self._timer = None
        if event is not None:
            delay = max(0.0, event - self._now())
            self._timer = asyncio.get_running_loop().call_later(delay, self.catch_up)
