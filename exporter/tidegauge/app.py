"""The wiring of the live exporter: sources to states, states to figures, figures to the web."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import attrs
from aiohttp import web

from tidegauge import config as cf
from tidegauge import vllm
from tidegauge.catalogue import thresholds as th
from tidegauge.clock import Clock, SystemClock
from tidegauge.complaints import Complaints
from tidegauge.derive.figures import Figures
from tidegauge.derive.settings import Settings
from tidegauge.model import Page, Pinned
from tidegauge.parsing.events import Batch, Refusal
from tidegauge.parsing.exposition import NotMetrics
from tidegauge.parsing.logs import StartupReader
from tidegauge.sources import endpoints, store
from tidegauge.sources.limiterlog import TAIL, ChangeReader
from tidegauge.sources.logfile import LogFollower, LogProgress
from tidegauge.sources.logscan import BlockScanner
from tidegauge.sources.scrape import Failed, Fetched, poll_forever, shown
from tidegauge.sources.session import open_session
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.callers import CallersState
from tidegauge.state.rates import Rates
from tidegauge.watch import Watch
from tidegauge.web.events import EventsHandler
from tidegauge.web.pages import build

_LOG: Final = logging.getLogger(__name__)
_SAVE_EVERY: Final = 10.0
_LOG_EVERY: Final = 1.0
_LONG_PAGE: Final = 256 * 1024
"""Characters from which a page is read beside the event loop, one after the other: no backend may hold up another."""


class Exporter:
    """All backends of one configuration, live."""

    def __init__(self, config: cf.Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        since = clock.now()
        states = [_state(one, config, since) for one in config.backends]
        told = config.callers
        edge = config.thresholds[th.CALLER_EDGE_SECONDS.key]
        callers = CallersState(config.window, edge, told.max_fleets, told.max_callers)
        self._callers = callers
        self._rates = Rates(told.max_rate, told.max_fleets * told.max_callers)
        intervals = {one.name: one.poll_interval for one in config.backends}
        self.watch = Watch(states, settings(config), intervals, callers, _prefixes(config))
        self._complaints = Complaints(clock, _LOG)
        self._tasks: set[asyncio.Task[None]] = set()
        self._shown = {one.name: shown(one.url) for one in config.backends}
        self._restore()

    def figures(self) -> Figures:
        """The figures of now."""
        return self.watch.figures(self._clock.now())

    def take(self, batch: Batch) -> Refusal | None:
        """Book a caller's batch; the reason where it cannot be taken."""
        return self._rates.ask(batch, self._clock.now()) or self.watch.take(batch)

    def waiting_for(self) -> list[str]:
        """Backends that have not been polled once yet."""
        return [name for name, state in self.watch.states.items() if state.up is None]

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Poll, follow logs and save until cancelled."""
        lane = ThreadPoolExecutor(1, thread_name_prefix="tidegauge-pages")
        try:
            await self._run(session, lane)
        finally:
            lane.shutdown(wait=False, cancel_futures=True)

    async def _run(self, session: aiohttp.ClientSession, lane: ThreadPoolExecutor) -> None:
        async with asyncio.TaskGroup() as group:
            for one in self._config.backends:
                group.create_task(
                    poll_forever(session, one.target, one.poll_interval, self._clock, self._on_poll(one, session, lane))
                )
                if one.log is not None:
                    group.create_task(self._startup_log(one.name, Path(one.log.file)))
            for log in self._config.callers.limiter_logs:
                group.create_task(self._limiter_log(log))
            if self._config.state_file is not None:
                group.create_task(self._save_forever(Path(self._config.state_file)))

    def _on_poll(
        self, one: cf.Backend, session: aiohttp.ClientSession, lane: ThreadPoolExecutor
    ) -> Callable[[Fetched | Failed], Awaitable[None]]:
        async def take(outcome: Fetched | Failed) -> None:
            if isinstance(outcome, Fetched) and len(outcome.body) > _LONG_PAGE:
                loop = asyncio.get_running_loop()
                read = await loop.run_in_executor(lane, self.watch.read, one.name, outcome.body)
                fresh = self._booked(one.name, outcome, read)
            else:
                fresh = self.book(one.name, outcome)
            if fresh:
                self._spawn(self._ask(one, session))

        return take

    def book(self, name: str, outcome: Fetched | Failed) -> bool:
        """Take the outcome of one poll; true if a server process answered that was not known before."""
        if isinstance(outcome, Failed):
            self.watch.failed(name, outcome.at, outcome.seconds, outcome.reason)
            self._complaints.tell(name, outcome.message)
            return False
        return self._booked(name, outcome, self.watch.read(name, outcome.body))

    def _booked(self, name: str, outcome: Fetched, read: Page | NotMetrics) -> bool:
        booked = self.watch.booked(name, outcome.at, outcome.seconds, read)
        found = f"{self._shown[name]}: expected a page of vLLM's metrics, found {booked.complaint}"
        self._complaints.tell(name, found if booked.complaint else "")
        return booked.fresh

    async def _ask(self, one: cf.Backend, session: aiohttp.ClientSession) -> None:
        served = await endpoints.ask(session, one.target, self._clock)
        self.watch.states[one.name].served(served.limits, served.version)

    async def _startup_log(self, name: str, path: Path) -> None:
        reader = StartupReader()
        state = self.watch.states[name]

        def book(progress: LogProgress) -> str:
            state.log(progress.lines, up=progress.error is None)
            if progress.changed:
                state.startup(reader.facts())
            return progress.error or ""

        await self._follow(f"{name} log", LogFollower(path, BlockScanner(reader)), book)

    async def _limiter_log(self, log: cf.LimiterLog) -> None:
        reader = ChangeReader(log.pattern)
        state = self._callers.limiter(log.fleet)
        live = False

        def book(progress: LogProgress) -> str:
            nonlocal live
            problem = progress.error or (f"{log.file}: {reader.fault}" if reader.fault else "")
            state.read(log.file, progress.lines, up=not problem)
            for change in reader.take():
                state.change(log.file, change, live=live)
            # What stood in the file before is the ceiling in force, not news.
            live = live or progress.caught_up or progress.error is not None
            return problem

        try:
            await self._follow(f"{log.fleet} limiter log", LogFollower(Path(log.file), reader, TAIL), book)
        finally:
            reader.close()

    async def _follow(self, subject: str, follower: LogFollower, book: Callable[[LogProgress], str]) -> None:
        """Poll a log for ever; *book* takes what each poll did and tells what is wrong."""
        while True:
            try:
                progress = await asyncio.to_thread(follower.poll)
            except Exception as error:  # noqa: BLE001 - whatever a log provokes stays with its subject
                progress = LogProgress(error=f"{follower.path}: {type(error).__name__}: {error}")
            self._complaints.tell(subject, book(progress))
            if progress.caught_up or progress.error is not None:
                await self._clock.sleep(_LOG_EVERY)

    async def _save_forever(self, path: Path) -> None:
        saved: store.Kept | None = None
        while True:
            await self._clock.sleep(_SAVE_EVERY)
            kept = self._kept()
            if kept != saved:
                saved = kept
                await asyncio.to_thread(self._save, path, kept)

    def save(self) -> None:
        """Keep what must outlive this process; called at the end, too."""
        if self._config.state_file is not None:
            self._save(Path(self._config.state_file), self._kept())

    def _save(self, path: Path, kept: store.Kept) -> None:
        try:
            store.save(path, kept)
        except store.StoreError as error:
            self._complaints.tell("state_file", str(error))
        else:
            self._complaints.tell("state_file", "")

    def _kept(self) -> store.Kept:
        remembered = {name: state.remembered() for name, state in self.watch.states.items()}
        return store.Kept(
            {name: entry for name, entry in remembered.items() if entry is not None},
            self.watch.largest(),
            self.watch.largest_inferred(),
        )

    def _restore(self) -> None:
        if self._config.state_file is None:
            return
        path = Path(self._config.state_file)
        try:
            kept = store.load(path)
        except store.StoreError as error:
            aside = store.set_aside(path)
            self._complaints.tell("state_file", f"{error}; kept as {aside}" if aside else str(error))
            return
        for name, entry in kept.backends.items():
            if name in self.watch.states:
                self.watch.states[name].restore(entry)
        self.watch.restore(kept.largest_fan_out, kept.largest_inferred)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def settings(config: cf.Config) -> Settings:
    """What derivation needs of *config*."""
    return Settings(
        window=config.window,
        thresholds=config.thresholds,
        rosters=config.callers.roster,
        ceilings=config.callers.ceilings,
    )


def _state(one: cf.Backend, config: cf.Config, since: float) -> BackendState:
    pinned = Pinned(one.kv_cache_capacity_tokens, one.max_num_seqs, one.max_num_batched_tokens, one.max_model_len)
    backend = Backend(one.name, one.fleet, pinned, one.p90_prompt_tokens)
    return BackendState(backend, config.window, config.length_window, since, config.thresholds[th.KV_FULL.key])


def _prefixes(config: cf.Config) -> tuple[str, ...]:
    extra = () if config.metric_prefix is None else (config.metric_prefix,)
    return (*vllm.PREFIXES, *extra)


@attrs.frozen
class Served:
    """A running exporter: the address it really listens on."""

    host: str
    port: int


async def serve(config: cf.Config, started: Callable[[Served], None], clock: Clock | None = None) -> None:
    """Run the exporter until cancelled; *started* is called once it listens.

    Raises OSError if the address cannot be had.
    """
    clock = clock or SystemClock()
    exporter = Exporter(config, clock)
    token_file = Path(config.callers.token_file) if config.callers.token_file else None
    events = EventsHandler(exporter.take, clock, token_file, config.callers.max_body, exporter.watch.refused)
    async with AsyncExitStack() as stack:
        runner = web.AppRunner(build(exporter, events), access_log=None, shutdown_timeout=2)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, config.listen.host, config.listen.port)
        try:
            await site.start()
        except OSError as error:
            at = f"{config.listen.host}:{config.listen.port}"
            raise OSError(f"listen: expected an address to be had, found {at}: {error.strerror or error}") from error
        session = await stack.enter_async_context(open_session(len(config.backends)))
        stack.callback(exporter.save)
        host, port = runner.addresses[0][:2]
        started(Served(host, port))
        with suppress(asyncio.CancelledError):
            await exporter.run(session)
