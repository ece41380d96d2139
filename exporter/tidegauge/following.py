"""Logs followed for as long as the exporter wants them: what they say goes to the state that it concerns."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tidegauge import config as cf
from tidegauge.clock import Clock
from tidegauge.complaints import Complaints
from tidegauge.parsing.logs import StartupReader
from tidegauge.sources.limiterlog import TAIL, ChangeReader
from tidegauge.sources.logfile import LogFollower, LogProgress
from tidegauge.sources.logscan import BlockScanner
from tidegauge.state.backend import BackendState
from tidegauge.state.limiter import LimiterState

MOST_READ: Final = 16
"""Logs that are read at once, on threads for logs alone.

One whose disk hangs keeps its thread, so this many of them keep other logs unread, and nothing else waiting.
"""
_LOG_EVERY: Final = 1.0


class Following:
    """Follows logs until cancelled: on *clock*, telling *complaints* what is wrong with them."""

    def __init__(self, clock: Clock, complaints: Complaints) -> None:
        self._clock = clock
        self._complaints = complaints
        self._threads = ThreadPoolExecutor(MOST_READ, thread_name_prefix="tidegauge-logs")

    def close(self) -> None:
        """Begin no further reading; does not wait for one under way."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def startup_log(self, path: Path, state: BackendState) -> None:
        """Keep the backend's startup facts those of its log."""
        reader = StartupReader()

        def book(progress: LogProgress) -> str:
            state.log(progress.lines, up=progress.error is None)
            if progress.changed:
                state.startup(reader.facts())
            return progress.error or ""

        await self._follow(startup_subject(state.backend.name), LogFollower(path, BlockScanner(reader)), book)

    async def limiter_log(self, log: cf.LimiterLog, state: LimiterState) -> None:
        """Keep the fleet's ceiling the one that its limiter's log names last."""
        reader, path = ChangeReader(log.pattern), Path(log.file)
        live = False

        def book(progress: LogProgress) -> str:
            nonlocal live
            problem = (progress.error or "").removeprefix(f"{path}: ") or reader.fault
            state.read(log.file, progress.lines, up=not problem)
            for change in reader.take():
                state.change(log.file, change, live=live)
            # What stood in the file before is the ceiling in force, not news.
            live = live or progress.caught_up or progress.error is not None
            return problem

        try:
            await self._follow(limiter_subject(log), LogFollower(path, reader, TAIL), book)
        finally:
            reader.close()

    async def _follow(self, subject: str, follower: LogFollower, book: Callable[[LogProgress], str]) -> None:
        """Poll a log for ever; *book* takes what each poll did and tells what is wrong."""
        polling: Future[LogProgress] | None = None
        try:
            while True:
                polling = self._threads.submit(follower.poll)
                self._complaints.tell(subject, book(progress := await _polled(follower, polling)))
                if progress.caught_up or progress.error is not None:
                    await self._clock.sleep(_LOG_EVERY)
        finally:
            if polling is not None:
                # A thread that reads cannot be stopped: the file is closed when it has done.
                polling.add_done_callback(lambda _: follower.close())


async def _polled(follower: LogFollower, polling: Future[LogProgress]) -> LogProgress:
    try:
        # Whoever ends this takes back what no thread has begun yet.
        return await asyncio.wrap_future(polling)
    except Exception as error:  # noqa: BLE001 - whatever a log provokes stays with its subject
        return LogProgress(error=f"{follower.path}: {type(error).__name__}: {error}")


def startup_subject(backend: str) -> str:
    """What complaints call the backend's log."""
    return f"{backend} log"


def limiter_subject(log: cf.LimiterLog) -> str:
    """What complaints call a limiter's log, of which a fleet may have several."""
    return f"{log.fleet} limiter log {log.file}"
