"""The live exporter: sources to states, states to figures, and the same by another configuration while it runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import attrs

from tidegauge import config as cf
from tidegauge import vllm
from tidegauge.catalogue import thresholds as th
from tidegauge.clock import Clock
from tidegauge.complaints import Complaints
from tidegauge.derive.figures import Figures, Loading
from tidegauge.derive.settings import Settings
from tidegauge.following import Following, limiter_subject, startup_subject
from tidegauge.jobs import Jobs, Work
from tidegauge.model import Page, Pinned
from tidegauge.parsing.events import Batch, Refusal
from tidegauge.parsing.exposition import NotMetrics
from tidegauge.sources import endpoints, store
from tidegauge.sources.scrape import Failed, Fetched, poll_forever, shown
from tidegauge.sources.target import Target
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.fleets import CallersState
from tidegauge.state.rates import Rates
from tidegauge.watch import Watch

_LOG: Final = logging.getLogger(__name__)
_SAVE_EVERY: Final = 10.0
_STATE_FILE: Final = "state_file"
_LONG_PAGE: Final = 256 * 1024
"""Characters from which a page is read beside the event loop, one after the other: no backend may hold up another."""


class Exporter:
    """All backends of one configuration, live."""

    def __init__(self, config: cf.Config, clock: Clock) -> None:
        now = clock.now()
        self._config = config
        self._clock = clock
        self._complaints = Complaints(clock, _LOG)
        self._following = Following(clock, self._complaints)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loading = Loading(succeeded=True, at=now)
        self._callers = _callers(config)
        self._rates = _rates(config)
        states = [_state(one, config, now) for one in config.backends]
        self.watch = Watch(states, settings(config), _intervals(config), self._callers, prefixes(config))
        kept, problem = store.taken_up(_state_file(config))
        self._complaints.tell(_STATE_FILE, problem)
        self._offer(kept, self.watch.states)
        self._apply: Callable[[], None] = lambda: None
        self._started = False

    async def become(self, config: cf.Config) -> None:
        """Go on by *config*, which is checked: what it does not change goes on undisturbed.

        A backend that is still the same server, counted in the same way, keeps all that is known of it; any other
        begins as at a start of the exporter. The address to listen on stays. Another state file is read off the loop,
        and until it is read all goes on as before.
        """
        kept = store.Kept()
        if config.state_file != self._config.state_file:
            kept, problem = await asyncio.to_thread(store.taken_up, _state_file(config))
            self._complaints.forget(_STATE_FILE)
            self._complaints.tell(_STATE_FILE, problem)
        self._go_on(config, kept)

    def _go_on(self, config: cf.Config, stored: store.Kept) -> None:
        self._started = not self.waiting_for()
        before, kept, now = self._config, self._kept(), self._clock.now()
        if config.listen != before.listen:
            _LOG.warning("listen: stays %s until a restart, found %s", _address(before.listen), _address(config.listen))
        self._config = attrs.evolve(config, listen=before.listen)
        known = {one.name: _made_of(one, before) for one in before.backends}
        kept_on = {one.name for one in config.backends if known.get(one.name) == _made_of(one, config)}
        for name in known.keys() - kept_on:
            self._complaints.forget(name)
            self._complaints.forget(startup_subject(name))
        states = {
            one.name: self.watch.states[one.name] if one.name in kept_on else _state(one, config, now)
            for one in config.backends
        }
        self._keep_callers(before, config)
        self.watch.follow([*states.values()], settings(config), _intervals(config), self._callers, prefixes(config))
        self._offer(stored.under(kept), {name: state for name, state in states.items() if name not in kept_on})
        self._loading = Loading(succeeded=True, at=now)
        self._apply()
        changed, new, gone = (known.keys() & states) - kept_on, states.keys() - known, known.keys() - states
        counts = len(kept_on), len(changed), len(new), len(gone)
        _LOG.info("configuration reloaded; backends: %s go on, %s changed, %s new, %s gone", *counts)

    def refuse(self) -> None:
        """Note that a configuration was read that could not be used."""
        self._loading = attrs.evolve(self._loading, succeeded=False)

    def figures(self) -> Figures:
        """The figures of now."""
        return attrs.evolve(self.watch.figures(self._clock.now()), loading=self._loading)

    def take(self, batch: Batch) -> Refusal | None:
        """Book a caller's batch; the reason where it cannot be taken."""
        return self._rates.ask(batch, self._clock.now()) or self.watch.take(batch)

    def waiting_for(self) -> list[str]:
        """Backends that were not polled once yet, until each of them was: those that come later do not unmake that."""
        return [] if self._started else [name for name, state in self.watch.states.items() if state.up is None]

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Poll, follow logs and save until cancelled."""
        lane = ThreadPoolExecutor(1, thread_name_prefix="tidegauge-pages")
        try:
            async with asyncio.TaskGroup() as group:
                jobs = Jobs(group)
                self._apply = lambda: jobs.want(self._wanted(session, lane))
                self._apply()
                await asyncio.Event().wait()
        finally:
            lane.shutdown(wait=False, cancel_futures=True)
            self._following.close()

    def _wanted(self, session: aiohttp.ClientSession, lane: ThreadPoolExecutor) -> dict[Hashable, Work]:
        """What the configuration asks for, each job by what it works on: another state or file is another job."""
        jobs: dict[Hashable, Work] = {}
        for one in self._config.backends:
            state, every, take = self.watch.states[one.name], one.poll_interval, self._on_poll(one, session, lane)
            jobs[one.target, every, state] = partial(poll_forever, session, one.target, every, self._clock, take)
            if one.log is not None:
                path = Path(one.log.file)
                jobs[path, state] = partial(self._following.startup_log, path, state)
        for log in self._config.callers.limiter_logs:
            limiter = self._callers.limiter(log.fleet)
            jobs[log, limiter] = partial(self._following.limiter_log, log, limiter)
        if (file := _state_file(self._config)) is not None:
            jobs[file] = partial(self._save_forever, file)
        return jobs

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
                self._spawn(self._ask(one.target, self.watch.states[one.name], session))

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
        found = booked.complaint and f"{self._shown(name)}: expected a page of vLLM's metrics, found {booked.complaint}"
        self._complaints.tell(name, found)
        return booked.fresh

    def _shown(self, name: str) -> str:
        return next(shown(one.url) for one in self._config.backends if one.name == name)

    async def _ask(self, target: Target, state: BackendState, session: aiohttp.ClientSession) -> None:
        served = await endpoints.ask(session, target, self._clock)
        state.served(served.limits, served.version)

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
        if (path := _state_file(self._config)) is not None:
            self._save(path, self._kept())

    def _save(self, path: Path, kept: store.Kept) -> None:
        try:
            store.save(path, kept)
        except store.StoreError as error:
            self._complaints.tell(_STATE_FILE, str(error))
        else:
            self._complaints.tell(_STATE_FILE, "")

    def _kept(self) -> store.Kept:
        remembered = {name: state.remembered() for name, state in self.watch.states.items()}
        return store.Kept(
            {name: entry for name, entry in remembered.items() if entry is not None},
            self.watch.largest(),
            self.watch.largest_inferred(),
        )

    def _offer(self, kept: store.Kept, states: Mapping[str, BackendState]) -> None:
        for name, entry in kept.backends.items():
            if name in states:
                states[name].restore(entry)
        self.watch.restore(kept.largest_fan_out, kept.largest_inferred)

    def _keep_callers(self, before: cf.Config, config: cf.Config) -> None:
        """What callers and limiter logs told stays, unless it is counted in another way now."""
        if _counted(config) != _counted(before):
            self._callers = _callers(config)
        self._callers.allow(config.callers.max_fleets, config.callers.max_callers)
        for log in set(before.callers.limiter_logs) - set(config.callers.limiter_logs):
            self._callers.unfollow(log.fleet, log.file)
            self._complaints.forget(limiter_subject(log))
        if _rate(config) != _rate(before):
            self._rates = _rates(config)

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
    kv_full = config.thresholds[th.KV_FULL.key]
    return BackendState(_backend(one), config.window, config.length_window, since, kv_full)


def _backend(one: cf.Backend) -> Backend:
    pinned = Pinned(one.kv_cache_capacity_tokens, one.max_num_seqs, one.max_num_batched_tokens, one.max_model_len)
    return Backend(one.name, one.fleet, pinned, one.p90_prompt_tokens)


def _made_of(one: cf.Backend, config: cf.Config) -> Hashable:
    """What a backend's state goes by: which server it is of, and how it counts; not how the server is polled."""
    kv_full = config.thresholds[th.KV_FULL.key]
    return (_backend(one), one.url, one.log, config.window, config.length_window, kv_full, config.metric_prefix)


def _callers(config: cf.Config) -> CallersState:
    return CallersState(*_counted(config), config.callers.max_fleets, config.callers.max_callers)


def _counted(config: cf.Config) -> tuple[float, float]:
    """What all that callers tell is counted by: the window, and the wait that counts as none."""
    return config.window, config.thresholds[th.CALLER_EDGE_SECONDS.key]


def _rates(config: cf.Config) -> Rates:
    return Rates(*_rate(config))


def _rate(config: cf.Config) -> tuple[float, int]:
    return config.callers.max_rate, config.callers.max_fleets * config.callers.max_callers


def _intervals(config: cf.Config) -> dict[str, float]:
    return {one.name: one.poll_interval for one in config.backends}


def _state_file(config: cf.Config) -> Path | None:
    return None if config.state_file is None else Path(config.state_file)


def _address(at: cf.Listen) -> str:
    return f"{at.host}:{at.port}"


def prefixes(config: cf.Config) -> tuple[str, ...]:
    """How the names of vLLM's metrics may begin by *config*."""
    extra = () if config.metric_prefix is None else (config.metric_prefix,)
    return (*vllm.PREFIXES, *extra)
