"""Time as an argument: pure code gets `now`, loops get a clock that tests can move by hand."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What a loop needs of time."""

    def now(self) -> float:
        """Unix time in seconds."""

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of this clock."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
