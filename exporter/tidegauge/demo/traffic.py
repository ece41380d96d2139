"""A caller that launches barriers through a limiter, instrumented with `tidegauge.caller`.

Also a command, for the demo profile of docker compose:
`python -m tidegauge.demo.traffic --exporter URL --backend URL --backend URL --ceiling 16`.
"""

import argparse
import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Self

import aiohttp

from tidegauge import signals
from tidegauge.caller import Reporter
from tidegauge.demo.drive import HttpFleet, drive_barriers
from tidegauge.demo.settings import EngineSettings
from tidegauge.demo.workload import DEMO, Caller, roster

AGENTS: Final = 32
ACT: Final = 0.9
"""Thirty-two agents of which nine in ten act: about 29 calls a barrier, never more than 32."""


class Traffic:
    """Barriers without end against *backends*, reported to the exporter as *fleet*."""

    def __init__(self, exporter: str, fleet: str, backends: Sequence[str], ceiling: int, seed: int = 7) -> None:
        self._backends = backends
        self._caller = Caller(roster(AGENTS, len(backends), seed), DEMO, seed, ACT)
        self._reporter = Reporter(exporter, fleet=fleet, caller="simulation")
        self._limiter = self._reporter.limiter(ceiling)
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.fan_outs: deque[int] = deque(maxlen=1000)
        self.errors: deque[str] = deque(maxlen=20)

    async def __aenter__(self) -> Self:
        self._reporter.healthy(len(self._backends))
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self._reporter.close)

    def set_ceiling(self, ceiling: int) -> None:
        """Move the limiter's ceiling while calls are in flight."""
        self._limiter.set_ceiling(ceiling)

    async def run(self) -> None:
        """Drive until cancelled or stopped."""
        timeout = aiohttp.ClientTimeout(total=120)
        async with aiohttp.ClientSession(
            timeout=timeout, connector=aiohttp.TCPConnector(limit=0, force_close=True)
        ) as session:
            fleet = HttpFleet(session, self._backends, EngineSettings().model_name)
            rounds = drive_barriers(
                self._caller.barriers(), fleet, self._limiter, self._reporter.barrier, stop=self._stop
            )
            async for outcomes in rounds:
                self.fan_outs.append(len(outcomes))
                self.errors += [one.error for one in outcomes if one.error]


async def _forever(arguments: argparse.Namespace) -> None:
    stop = signals.ending()
    async with Traffic(arguments.exporter, arguments.fleet, arguments.backend, arguments.ceiling):
        await stop.wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the caller until it is told to stop."""
    flags = argparse.ArgumentParser(prog="python -m tidegauge.demo.traffic", description=__doc__)
    flags.add_argument("--exporter", required=True, metavar="URL")
    flags.add_argument("--backend", required=True, action="append", metavar="URL")
    flags.add_argument("--fleet", default="demo")
    flags.add_argument("--ceiling", type=int, default=16)
    asyncio.run(_forever(flags.parse_args(argv)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
