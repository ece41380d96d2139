"""The wiring of the live exporter: sources to states, states to figures, figures to the web."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import attrs
from aiohttp import web

from tidegauge import config as cf
from tidegauge import vllm
from tidegauge.clock import Clock, SystemClock
from tidegauge.derive.figures import Figures, Settings, derive
from tidegauge.derive.queueing import Limits
from tidegauge.model import Pinned
from tidegauge.parsing.exposition import NotMetrics, PageReader
from tidegauge.parsing.logs import StartupReader
from tidegauge.sources import endpoints, store
from tidegauge.sources.logfile import LogFollower
from tidegauge.sources.scrape import Failed, Fetched, poll_forever
from tidegauge.sources.session import open_session
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.callers import CallersState
from tidegauge.web.events import EventsHandler
from tidegauge.web.pages import build

_LOG = logging.getLogger(__name__)
_SAVE_EVERY: Final = 10.0
_LOG_EVERY: Final = 1.0


class Exporter:
    """All backends of one configuration, live. *since* is when watching began, unix seconds."""

    def __init__(self, config: cf.Config, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        since = clock.now()
        self._settings = settings(config)
        self._states = {one.name: _state(one, config, since) for one in config.backends}
        self._readers = {one.name: PageReader(_prefixes(config)) for one in config.backends}
        self._complaints: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.callers = CallersState(config.window, config.thresholds["caller_edge_seconds"], config.callers.max_fleets)
        self._restore()

    def figures(self) -> Figures:
        """The figures of now."""
        now = self._clock.now()
        histories = [state.history(now) for state in self._states.values()]
        return derive(histories, self.callers.snapshots(now), self._settings, now)

    def waiting_for(self) -> list[str]:
        """Backends that have not been polled once yet."""
        return [name for name, state in self._states.items() if state.up is None]

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Poll, follow logs and save until cancelled."""
        async with asyncio.TaskGroup() as group:
            for one in self._config.backends:
                group.create_task(
                    poll_forever(session, one.target, one.poll_interval, self._clock, self._on_poll(one, session))
                )
                if one.log is not None:
                    group.create_task(self._follow(one.name, Path(one.log.file)))
            if self._config.state_file is not None:
                group.create_task(self._save_forever(Path(self._config.state_file)))

    def _on_poll(self, one: cf.Backend, session: aiohttp.ClientSession) -> Callable[[Fetched | Failed], None]:
        def take(outcome: Fetched | Failed) -> None:
            if self.book(one.name, outcome):
                self._spawn(self._ask(one, session))

        return take

    def book(self, name: str, outcome: Fetched | Failed) -> bool:
        """Take the outcome of one poll; true if a server process answered that was not known before."""
        state = self._states[name]
        if isinstance(outcome, Failed):
            state.failed(outcome.reason, outcome.seconds)
            self._complain(name, outcome.message)
            return False
        try:
            page = self._readers[name].read(outcome.body)
        except NotMetrics as error:
            state.failed("not_metrics", outcome.seconds)
            self._complain(name, str(error))
            return False
        self._complain(name, "")
        return state.page(page, outcome.at, outcome.seconds)

    async def _ask(self, one: cf.Backend, session: aiohttp.ClientSession) -> None:
        served = await endpoints.ask(session, one.target, self._clock)
        self._states[one.name].served(served.limits, served.version)

    async def _follow(self, name: str, path: Path) -> None:
        reader = StartupReader()
        follower = LogFollower(path, reader)
        state = self._states[name]
        while True:
            try:
                progress = await asyncio.to_thread(follower.poll)
            except Exception as error:  # noqa: BLE001 - whatever a log provokes stays with its backend
                state.log({}, up=False)
                self._complain(f"{name} log", f"{path}: {type(error).__name__}: {error}")
                await self._clock.sleep(_LOG_EVERY)
                continue
            state.log(
                {"parsed": progress.parsed, "ignored": progress.ignored, "dropped": progress.dropped},
                up=progress.error is None,
            )
            self._complain(f"{name} log", progress.error or "")
            if progress.changed:
                state.startup(reader.facts())
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
            self._complain("state_file", str(error))
        else:
            self._complain("state_file", "")

    def _kept(self) -> store.Kept:
        remembered = {name: state.remembered() for name, state in self._states.items()}
        return store.Kept(
            {name: entry for name, entry in remembered.items() if entry is not None}, self.callers.largest()
        )

    def _restore(self) -> None:
        if self._config.state_file is None:
            return
        path = Path(self._config.state_file)
        try:
            kept = store.load(path)
        except store.StoreError as error:
            aside = store.set_aside(path)
            self._complain("state_file", f"{error}; kept as {aside}" if aside else str(error))
            return
        for name, entry in kept.backends.items():
            if name in self._states:
                self._states[name].restore(entry)
        self.callers.restore(kept.largest_fan_out)

    def _complain(self, subject: str, message: str) -> None:
        """Log a message once until it changes; an empty one ends the complaint."""
        if message and self._complaints.get(subject) != message:
            _LOG.warning("%s: %s", subject, message)
        elif not message and self._complaints.get(subject):
            _LOG.info("%s: well again", subject)
        self._complaints[subject] = message

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def settings(config: cf.Config) -> Settings:
    """What derivation needs of *config*."""
    thresholds = config.thresholds
    limits = Limits(
        min_requests=thresholds["min_requests"],
        late_low=thresholds["bimodal_late_low"],
        late_high=thresholds["bimodal_late_high"],
        split=thresholds["bimodal_split"],
        impact=thresholds["page_impact"],
    )
    return Settings(config.window, limits, thresholds["sources_disagree"], config.callers.roster)


def _state(one: cf.Backend, config: cf.Config, since: float) -> BackendState:
    pinned = Pinned(one.kv_cache_capacity_tokens, one.max_num_seqs, one.max_num_batched_tokens, one.max_model_len)
    backend = Backend(one.name, one.fleet, pinned, one.p90_prompt_tokens)
    return BackendState(backend, config.window, config.length_window, since)


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
    events = EventsHandler(exporter.callers.take, clock, token_file, config.callers.max_body)
    async with AsyncExitStack() as stack:
        runner = web.AppRunner(build(exporter, events), access_log=None, shutdown_timeout=2)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, config.listen.host, config.listen.port)
        await site.start()
        session = await stack.enter_async_context(open_session(len(config.backends)))
        stack.callback(exporter.save)
        host, port = runner.addresses[0][:2]
        started(Served(host, port))
        with suppress(asyncio.CancelledError):
            await exporter.run(session)
