"""From page to page: by how much each counter and histogram rose, with restarts, gaps and impossible figures handled.

The rules: a restarted server counts from zero; a `_sum` that falls while its
`_count` rises is no restart but a poisoned figure; an interval that cannot be true is dropped and counted, never
averaged in.
"""

from collections.abc import Iterable, Mapping
from math import inf

import attrs

from tidegauge.model import Histogram, Page, SeriesKey
from tidegauge.state.lineage import CLOCK_SKEW_SECONDS, Baseline, Lineage, is_counter, remembered
from tidegauge.state.poison import drop_poisoned


@attrs.frozen
class Increase:
    """What happened between two usable pages of one backend, engines summed.

    `seconds` is the time that the figures cover, 0 where they were left out. `counters` and `histograms` are keyed by
    family, model and extra label, `engine` left empty. `restarted` tells that the server is another process than
    before, `foreign` that the page is of another server behind the same URL and says nothing of the one that is
    followed. `dropped` counts what was left out, by reason: `reset` (counters fell and nothing tells when the process
    began), `other_server` (another process answered), `gap` (longer than the window), `sum_fell` and `impossible`
    (poisoned sums).
    """

    at: float
    seconds: float
    counters: Mapping[SeriesKey, float] = attrs.field(factory=dict)
    histograms: Mapping[SeriesKey, Histogram] = attrs.field(factory=dict)
    restarted: bool = False
    dropped: Mapping[str, int] = attrs.field(factory=dict)
    foreign: bool = False


class Increases:
    """Follows one backend's counters.

    *longest_gap* is the longest interval, in seconds, whose increase can still be placed in a window. *since* is the
    time from which this backend has been watched: a process that began later is known from its first count on; minus
    infinity takes the first page's totals as an increase from zero, whatever the process.
    """

    def __init__(self, longest_gap: float = inf, since: float = inf) -> None:
        self._lifetime = since == -inf
        self._lineage = Lineage(longest_gap, since)
        self._base: Baseline | None = None

    def advance(self, page: Page, at: float) -> Increase:
        """The increase since the page before; the first page of a server that ran before is only a baseline."""
        base = self._base
        verdict = self._lineage.verdict(base, page, at)
        if verdict.foreign:
            return Increase(at, 0.0, foreign=True, dropped={verdict.reason: 1})
        self._base = remembered(None if verdict.fresh else base, page, at)
        if verdict.reason:
            return Increase(at, 0.0, restarted=verdict.another, dropped={verdict.reason: 1})
        if base is None and not verdict.from_zero:
            return Increase(at, 0.0)
        start = None if verdict.from_zero else base
        seconds = 0.0 if base is None else max(at - base.at, 0.0)
        uptime = self._uptime(page, at, first=base is None)
        return attrs.evolve(_difference(start, page, at, uptime), seconds=seconds, restarted=verdict.another)

    def _uptime(self, page: Page, at: float, *, first: bool) -> float:
        """The longest a request of this page can have taken."""
        if page.process_start is None or (first and self._lifetime):
            return inf
        return max(at - page.process_start, 0.0) + CLOCK_SKEW_SECONDS


def _difference(base: Baseline | None, page: Page, at: float, uptime: float) -> Increase:
    """The increase of *page* over *base*, over zero without one."""
    # A series that a damaged page lacked is not a new one: it must not be counted from zero.
    new_from_zero = base is None or base.whole
    counters: dict[SeriesKey, float] = {}
    for key, value in page.values.items():
        if not is_counter(key):
            continue
        origin = 0.0 if new_from_zero else value
        before = origin if base is None else base.counters.get(key, origin)
        if value != before:
            merged = key._replace(engine="")
            counters[merged] = counters.get(merged, 0.0) + value - before
    rises = {
        key: rise
        for key, now in page.histograms.items()
        if (rise := _rise(now, base.histograms.get(key) if base else None, from_zero=new_from_zero)) is not None
    }
    dropped = drop_poisoned(rises, page.histograms, uptime)
    return Increase(at, 0.0, counters, _sum_engines(rises), dropped=dropped)


def _rise(now: Histogram, before: Histogram | None, *, from_zero: bool) -> Histogram | None:
    """The increase of one histogram; None when there is nothing to compare with or nothing happened."""
    if before is None:
        return now if from_zero and now.count else None
    if not _comparable(now, before) or (before.count == now.count and before.sum == now.sum):
        return None
    return Histogram(
        now.edges,
        tuple([a - b for a, b in zip(now.cumulative, before.cumulative, strict=True)]),
        None if now.sum is None or before.sum is None else now.sum - before.sum,
        None if now.count is None or before.count is None else now.count - before.count,
    )


def _comparable(now: Histogram, before: Histogram) -> bool:
    """Whether both have the same lines; a damaged page lacks some, and its figures show at the next whole one."""
    return (now.edges, now.sum is None, now.count is None) == (before.edges, before.sum is None, before.count is None)


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
