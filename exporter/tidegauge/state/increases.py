"""From page to page: by how much each counter and histogram rose, with restarts, gaps and impossible figures handled.

The rules (definitions, section 1 and notation): a restarted server counts from zero; a `_sum` that falls while its
`_count` rises is no restart but a poisoned figure; an interval that cannot be true is dropped and counted, never
averaged in.
"""

from collections.abc import Iterable, Mapping
from math import inf, isfinite
from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.model import Histogram, Page, SeriesKey

PHASES: Final = (vllm.QUEUE, vllm.PREFILL, vllm.DECODE)
LATENCIES: Final = (vllm.E2E, *PHASES, vllm.INFERENCE)
CLOCK_SKEW_SECONDS: Final = 60.0
"""How far the clocks of exporter and server may differ when a process start is compared with a poll."""
TORN_SECONDS: Final = 60.0
"""The least that a torn page may be off by, see `_torn`."""


@attrs.frozen
class Increase:
    """What happened between two usable pages of one backend, engines summed.

    `counters` and `histograms` are keyed by family, model and extra label, `engine` left empty. `restarted` tells
    that the server is another process than before. `dropped` counts what was left out, by reason: `reset` (counters
    fell and nothing tells when the process began), `other_server` (another, older process answered), `gap` (longer
    than the window), `sum_fell` and `impossible` (poisoned sums).
    """

    at: float
    seconds: float
    counters: Mapping[SeriesKey, float] = attrs.field(factory=dict)
    histograms: Mapping[SeriesKey, Histogram] = attrs.field(factory=dict)
    restarted: bool = False
    dropped: Mapping[str, int] = attrs.field(factory=dict)


class Increases:
    """Follows one backend's counters.

    *longest_gap* is the longest interval, in seconds, whose increase can still be placed in a window. *since* is the
    time from which this backend has been watched: a process that began later is known from its first count on; minus
    infinity takes the first page's totals as an increase from zero, whatever the process.
    """

    def __init__(self, longest_gap: float = inf, since: float = inf) -> None:
        self._longest_gap = longest_gap
        self._since = since
        self._at: float | None = None
        self._process_start: float | None = None
        self._counters: dict[SeriesKey, float] = {}
        self._histograms: dict[SeriesKey, Histogram] = {}
        self._whole = True

    def advance(self, page: Page, at: float) -> Increase:
        """The increase since the page before; the first page of a server that ran before is only a baseline."""
        verdict = self._verdict(page, at)
        seconds = 0.0 if self._at is None else at - self._at
        if verdict == "restart":
            self._counters, self._histograms = {}, {}
        if verdict in ("restart", "same"):
            increase = self._difference(page, at, seconds, from_zero=verdict == "restart")
        else:
            dropped = {} if verdict == "first" else {verdict: 1}
            increase = Increase(at, seconds, restarted=verdict == "reset", dropped=dropped)
        if verdict != "other_server":
            self._remember(page, at, fresh=verdict in ("first", "reset"))
        return increase

    def _verdict(self, page: Page, at: float) -> str:
        """What the page is to the one before: `first`, `same`, `restart`, `reset`, `other_server` or `gap`."""
        start = page.process_start
        if self._at is None:
            return "restart" if self._since == -inf or (start is not None and start > self._since) else "first"
        if start is not None and self._process_start is not None and start != self._process_start:
            return "restart" if start > self._at - CLOCK_SKEW_SECONDS else "other_server"
        if self._fell(page):
            return "reset"
        return "gap" if at - self._at > self._longest_gap else "same"

    def _fell(self, page: Page) -> bool:
        """Whether a count fell; sums are not asked, as they fall when poisoned."""
        counters = self._counters
        if any(value < counters.get(key, value) for key, value in page.values.items() if _is_counter(key)):
            return True
        return any(
            before is not None and before.count is not None and now.count is not None and now.count < before.count
            for key, now in page.histograms.items()
            for before in (self._histograms.get(key),)
        )

    def _difference(self, page: Page, at: float, seconds: float, *, from_zero: bool) -> Increase:
        new_from_zero = from_zero or self._whole
        counters: dict[SeriesKey, float] = {}
        for key, value in page.values.items():
            if not _is_counter(key):
                continue
            before = self._counters.get(key, 0.0 if new_from_zero else value)
            if value != before:
                merged = key._replace(engine="")
                counters[merged] = counters.get(merged, 0.0) + value - before
        lifetime = self._at is None and self._since == -inf
        uptime = (
            inf if page.process_start is None or lifetime else max(at - page.process_start, 0.0) + CLOCK_SKEW_SECONDS
        )
        rises = {
            key: rise
            for key, now in page.histograms.items()
            if (rise := _rise(now, self._histograms.get(key), from_zero=new_from_zero)) is not None
        }
        dropped = _drop_poisoned(rises, page.histograms, uptime)
        return Increase(
            at, seconds, counters, _sum_engines(rises), restarted=from_zero and self._at is not None, dropped=dropped
        )

    def _remember(self, page: Page, at: float, *, fresh: bool) -> None:
        if fresh:
            self._counters, self._histograms = {}, {}
        self._counters.update((key, value) for key, value in page.values.items() if _is_counter(key))
        self._histograms.update(page.histograms)
        self._at = at
        self._process_start = page.process_start
        # A series that a damaged page lacked is not a new one: it must not be counted from zero later.
        self._whole = not page.problems


def _is_counter(key: SeriesKey) -> bool:
    return vllm.KINDS.get(key.family) == "counter"


def _rise(now: Histogram, before: Histogram | None, *, from_zero: bool) -> Histogram | None:
    """The increase of one histogram; None when there is nothing to compare with or nothing happened."""
    if before is None or before.edges != now.edges:
        return now if from_zero and now.count else None
    if before.count == now.count and before.sum == now.sum:
        return None
    return Histogram(
        now.edges,
        tuple([a - b for a, b in zip(now.cumulative, before.cumulative, strict=True)]),
        None if now.sum is None or before.sum is None else now.sum - before.sum,
        None if now.count is None or before.count is None else now.count - before.count,
    )


def _drop_poisoned(
    rises: dict[SeriesKey, Histogram], page: Mapping[SeriesKey, Histogram], uptime: float
) -> dict[str, int]:
    """Take the latency histograms of a model out of *rises* where one of them cannot be true."""
    dropped: dict[str, int] = {}
    for owner in {key._replace(family="") for key in rises if key.family in LATENCIES}:
        keys = [owner._replace(family=family) for family in LATENCIES]
        group = {key.family: rises[key] for key in keys if key in rises}
        reason = _poison(group, _torn(page.get(owner._replace(family=vllm.E2E))), uptime)
        if reason:
            dropped[reason] = dropped.get(reason, 0) + 1
            for key in keys:
                rises.pop(key, None)
    return dropped


def _torn(e2e: Histogram | None) -> float:
    """What one observation may be worth that a page has in one sum and not yet in a count or another sum.

    vLLM answers a scrape while it books requests, so a page can be torn by one of them; twice the longest request so
    far is a generous measure of it, and far below the host uptimes that poison sums.
    """
    if e2e is None:
        return TORN_SECONDS
    filled = [
        edge
        for edge, below, upto in zip(e2e.edges, (0.0, *e2e.cumulative), e2e.cumulative, strict=False)
        if upto > below and isfinite(edge)
    ]
    return max(2 * max(filled, default=0.0), TORN_SECONDS)


def _poison(group: Mapping[str, Histogram], torn: float, uptime: float) -> str | None:
    """Why the latency rises of one engine cannot be true, or None.

    A stage lies within its request, and all of a request's histograms move at once, so no stage's sum can rise by
    more than end-to-end does (a margin covers vLLM's use of two clocks); and no request is older than its process.
    """
    for rise in group.values():
        if rise.sum is not None and rise.sum < 0:
            return "sum_fell"
        if rise.sum is not None and isfinite(uptime) and rise.sum > _most(rise, uptime) + torn:
            return "impossible"
    e2e = group.get(vllm.E2E)
    if e2e is None or e2e.sum is None or e2e.count is None:
        return None
    limit = e2e.sum * 1.05 + 0.1 * e2e.count + torn
    stages = [rise.sum for family, rise in group.items() if family != vllm.E2E and rise.count == e2e.count]
    return "impossible" if any(total is not None and total > limit for total in stages) else None


def _most(rise: Histogram, uptime: float) -> float:
    """The largest sum that the bucket counts allow when no observation exceeds *uptime* seconds."""
    total = below = 0.0
    for edge, cumulative in zip(rise.edges, rise.cumulative, strict=True):
        total += (cumulative - below) * min(edge, uptime)
        below = cumulative
    beyond = (rise.count or below) - below
    return (total + max(beyond, 0.0) * uptime) * 1.000001 + 0.001


def _sum_engines(rises: Mapping[SeriesKey, Histogram]) -> dict[SeriesKey, Histogram]:
    """Engines of one server added up; engines with other buckets keep out of the sum of the first."""
    summed: dict[SeriesKey, Histogram] = {}
    for key, rise in rises.items():
        merged = key._replace(engine="")
        before = summed.get(merged)
        if before is None:
            summed[merged] = rise
        elif before.edges == rise.edges:
            summed[merged] = add((before, rise))
    return summed


def add(parts: Iterable[Histogram]) -> Histogram:
    """Histograms with the same edges added up; an unknown sum or count makes the total unknown."""
    first, *rest = parts
    if not rest:
        return first
    everything = (first, *rest)
    sums = [part.sum for part in everything]
    counts = [part.count for part in everything]
    return Histogram(
        first.edges,
        tuple([sum(column) for column in zip(*(part.cumulative for part in everything), strict=True)]),
        None if None in sums else sum(value for value in sums if value is not None),
        None if None in counts else sum(value for value in counts if value is not None),
    )
