"""What is known of one backend between polls: its windows, its last page, its startup facts.

Values go in through methods named for what happened, and come out as one frozen `BackendHistory`; nothing here does
I/O or reads a clock.
"""

from collections import Counter
from collections.abc import Mapping
from math import inf
from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.catalogue import thresholds as th
from tidegauge.model import CacheConfig, Identity, Page, Pinned, Remembered, SeriesKey, StartupFacts
from tidegauge.state.bounds import Bounds
from tidegauge.state.gauges import Gauges, engines_of, gauges_of
from tidegauge.state.increases import Increase, Increases
from tidegauge.state.lineage import is_counter
from tidegauge.state.slots import ObservedSlots
from tidegauge.state.windows import EMPTY, Totals, Window

WAITED: Final = "waiting_seconds"
"""Our own counter in the window: waiting-seconds, its extra label the cause."""
_LENGTHS: Final = frozenset({vllm.PROMPT_LENGTH, vllm.OUTPUT_LENGTH})


@attrs.frozen
class Backend:
    """One backend as configured; `fleet` None means the model it serves."""

    name: str
    fleet: str | None = None
    pinned: Pinned = Pinned()
    p90_prompt: float | None = None


@attrs.frozen
class SelfCounts:
    """What happened to this backend's input since the exporter started, by reason.

    `last_failure` is the reason of the last poll that gave no page, None while none failed.
    """

    failures: Mapping[str, int]
    problems: Mapping[str, int]
    dropped: Mapping[str, int]
    log_lines: Mapping[str, int]
    restarts: int
    log_up: bool | None
    last_failure: str | None


@attrs.frozen
class BackendHistory:
    """One backend at one moment, for derivation.

    `up` is None before the first poll; `engines` is 0 before the first page; `restarted_at` is the unix time of the
    first page of the process that answers now, None if it is the first process seen; `waited` is waiting-seconds by
    cause since the start; `observed_slots` the plateau of running requests, see `ObservedSlots`; `covered` the seconds
    of the window that polls covered, None where figures are of the server's whole life.
    """

    backend: Backend
    up: bool | None
    scrape_seconds: float | None
    models: tuple[str, ...]
    engines: int
    totals: Totals
    lengths: Totals
    gauges: Gauges
    cache_configs: tuple[CacheConfig, ...]
    startup: StartupFacts | None
    served: Pinned
    version: str | None
    identity: Identity | None
    counts: SelfCounts
    restarted_at: float | None = None
    waited: Mapping[str, float] = attrs.field(factory=dict)
    observed_slots: float | None = None
    covered: float | None = None

    @property
    def fleet(self) -> str:
        """The configured fleet, else the model served, else nothing (it was never seen)."""
        return self.backend.fleet or (self.models[0] if self.models else "")


@attrs.frozen
class Step:
    """What a usable page brought: `before` is the page before it of the same process, None if there is none.

    `fresh` tells that a process answers that was not known before, `foreign` that it is another server's page.
    """

    increase: Increase
    before: Page | None
    fresh: bool

    @property
    def foreign(self) -> bool:
        """Whether the page is to be left out."""
        return self.increase.foreign


class BackendState:
    """The history of one backend.

    *span* and *length_span* are window lengths in seconds, *since* as in `Increases`, *kv_full* as in `ObservedSlots`.
    """

    def __init__(
        self, backend: Backend, span: float, length_span: float, since: float, kv_full: float = th.KV_FULL.value
    ) -> None:
        self.backend = backend
        self._increases = Increases(span, since)
        self._lifetime = since == -inf
        self._bounds = Bounds(max(span, length_span))
        self._window = Window(span)
        self._lengths = Window(length_span, _LENGTHS)
        self._page: Page | None = None
        self._identity: Identity | None = None
        self._up: bool | None = None
        self._seconds: float | None = None
        self._failures: Counter[str] = Counter()
        self._last_failure: str | None = None
        self._problems: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._log_lines: Counter[str] = Counter()
        self._restarts = 0
        self._restarted_at: float | None = None
        self._log_up: bool | None = None
        self._startup: StartupFacts | None = None
        self._used_run: int | None = None
        self._stale_run: int | None = None
        self._remembered: Remembered | None = None
        self._served = Pinned()
        self._version: str | None = None
        self._waited: Counter[str] = Counter()
        self._kv_full = kv_full
        self._slots = ObservedSlots(kv_full)

    @property
    def up(self) -> bool | None:
        """Whether the last poll gave a usable page; None before the first poll."""
        return self._up

    @property
    def fleet(self) -> str:
        """The configured fleet, else the model that its pages name first, else nothing."""
        models = _models(self._page, EMPTY) if self._page is not None else ()
        return self.backend.fleet or (models[0] if models else "")

    @property
    def restarts(self) -> int:
        """Restarts seen."""
        return self._restarts

    @property
    def process_start(self) -> float | None:
        """Unix time at which the process of the last page began; None if unknown."""
        return self._page.process_start if self._page is not None else None

    def identity(self) -> Identity | None:
        """What tells the process that answered the last poll from others; None while none answers."""
        return self._identity if self._up else None

    def within(self, page: Page, at: float) -> Page:
        """The page without models and reasons that are too many to keep."""
        return self._bounds.within(page, at)

    def page(self, page: Page, at: float, seconds: float) -> Step:
        """Book a usable page."""
        increase = self._increases.advance(page, at)
        self._dropped.update(increase.dropped)
        self._problems.update(page.problems)
        self._seconds, self._up = seconds, True
        if increase.foreign:
            # Another server's facts and gauges must not be taken for this one's.
            return Step(increase, None, fresh=False)
        self._window.add(increase)
        self._lengths.add(increase)
        before = None if increase.restarted else self._page
        if increase.restarted:
            self._restarted(at)
        self._page = page
        counters = {key: value for key, value in page.values.items() if is_counter(key)}
        self._identity = Identity(self.backend.name, at, page.process_start, counters)
        gauges = gauges_of(page)
        self._slots.see(gauges.running, gauges.waiting, gauges.kv_usage)
        if self._startup is not None and self._startup.run != self._stale_run:
            self._used_run = self._startup.run
        return Step(increase, before, fresh=before is None)

    def waited(self, at: float, causes: Mapping[str, float]) -> None:
        """Book waiting-seconds by cause."""
        self._waited.update(causes)
        self._window.add(Increase(at, 0.0, {SeriesKey(WAITED, extra=cause): value for cause, value in causes.items()}))

    def failed(self, reason: str, seconds: float) -> None:
        """Book a poll that gave no usable page."""
        self._failures[reason] += 1
        self._last_failure = reason
        self._up, self._seconds = False, seconds

    def startup(self, facts: StartupFacts) -> None:
        """Take what the log says of the last start."""
        self._startup = facts

    def log(self, lines: Mapping[str, int], *, up: bool) -> None:
        """Count lines of the log by what became of them, and whether it can be read."""
        self._log_lines.update(lines)
        self._log_up = up

    def served(self, facts: Pinned, version: str | None) -> None:
        """Take what the server's own endpoints say; it holds until the process changes."""
        self._served, self._version = facts, version

    def restore(self, remembered: Remembered) -> None:
        """Offer facts from before the exporter's restart; used only while the same process answers."""
        self._remembered = remembered

    def remembered(self) -> Remembered | None:
        """The facts worth keeping on disk, None while the process or its facts are unknown."""
        startup = self._usable_startup()
        if startup is None or self._page is None or self._page.process_start is None:
            return self._remembered
        return Remembered(self._page.process_start, startup)

    def history(self, now: float) -> BackendHistory:
        """Everything derivation needs, as of *now*."""
        page = self._page
        startup = self._usable_startup()
        totals = self._window.total(now)
        current = page if page is not None and self._up else None
        return BackendHistory(
            backend=self.backend,
            up=self._up,
            scrape_seconds=self._seconds,
            models=_models(page, totals),
            engines=len(engines_of(page)),
            totals=totals,
            lengths=self._lengths.total(now),
            gauges=gauges_of(current),
            cache_configs=page.cache_configs if page is not None else (),
            startup=startup,
            served=self._served,
            version=self._version or (startup.version if startup else None),
            identity=self.identity(),
            counts=self._counts(),
            restarted_at=self._restarted_at,
            waited=dict(self._waited),
            observed_slots=self._slots.value,
            covered=None if self._lifetime else totals.seconds,
        )

    def _counts(self) -> SelfCounts:
        failures, problems, dropped = dict(self._failures), dict(self._problems), dict(self._dropped)
        lines, restarts, failed = dict(self._log_lines), self._restarts, self._last_failure
        return SelfCounts(failures, problems, dropped, lines, restarts, self._log_up, failed)

    def _restarted(self, at: float) -> None:
        """The facts of the old process do not hold for the new one, unless the log has moved on too."""
        self._restarts += 1
        self._restarted_at = at
        self._slots = ObservedSlots(self._kv_full)
        self._served, self._version, self._remembered = Pinned(), None, None
        if self._startup is not None and self._startup.run == self._used_run:
            self._stale_run = self._startup.run

    def _usable_startup(self) -> StartupFacts | None:
        logged = self._startup if self._startup is not None and self._startup.run != self._stale_run else None
        kept = self._remembered
        start = self.process_start
        if kept is None or start is None or kept.process_start != start:
            return logged
        return kept.startup if logged is None else _complete(logged, kept.startup)


def _complete(logged: StartupFacts, kept: StartupFacts) -> StartupFacts:
    """*logged*, with what it lacks taken from *kept*: the log may have been rotated since."""
    missing = {
        field: getattr(kept, field)
        for field in ("version", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "data_parallel_size")
        if getattr(logged, field) is None
    }
    if not any(engine.kv_cache_tokens for engine in logged.engines):
        missing["engines"] = kept.engines
    return attrs.evolve(logged, **missing)


def _models(page: Page | None, totals: Totals) -> tuple[str, ...]:
    """Models in the order of their first series on the page, then those only the window knows."""
    on_page = [key.model_name for key in (*page.histograms, *page.values) if key.model_name] if page else []
    named = tuple(dict.fromkeys((*on_page, *totals.models())))
    # Releases before 0.3.3 do not name the model.
    return named or (("",) if page is not None and (page.histograms or page.values) else ())
