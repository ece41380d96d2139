"""Which server process a page comes from: the one that is followed, its successor, or another behind the same URL.

A process is known by its start time. Without one (several API server processes) its counters must tell: a page whose
counts fell is not of the process before, unless it goes on where another one was seen a moment ago.
"""

from collections.abc import Mapping
from math import inf
from typing import Final, TypeVar

import attrs

from tidegauge import vllm
from tidegauge.model import Histogram, Page, SeriesKey

CLOCK_SKEW_SECONDS: Final = 60.0
"""How far the clocks of exporter and server may differ when a process start is compared with a poll."""
PATIENCE: Final = 20
"""Pages in a row that another server must answer before it is the one to follow; so long, too, it is remembered."""

MOST_KEPT: Final = 20_000
"""Figures of one backend that are remembered, those that its last page lacked among them."""
T = TypeVar("T")


@attrs.frozen
class Baseline:
    """The counts of one process at its last page. `whole` is false for a page that was damaged."""

    at: float
    process_start: float | None
    counters: Mapping[SeriesKey, float]
    histograms: Mapping[SeriesKey, Histogram]
    whole: bool = True

    def goes_on(self, page: Page) -> bool:
        """Whether no count of *page* fell; sums are not asked, as they fall when poisoned."""
        if any(value < self.counters.get(key, value) for key, value in page.values.items() if is_counter(key)):
            return False
        return not any(
            before is not None and before.count is not None and now.count is not None and now.count < before.count
            for key, now in page.histograms.items()
            for before in (self.histograms.get(key),)
        )

    def size(self) -> float:
        """All that was counted: of two processes that a page may go on from, it goes on from the larger one."""
        return sum(self.counters.values())


@attrs.frozen
class Verdict:
    """What a page is to the baseline.

    `reason` tells why its increase cannot be used, empty where it can; `from_zero` that it counts from zero;
    `another` that the process is another one than before; `fresh` that the baseline is to be forgotten; `foreign`
    that the page is to be left out altogether.
    """

    reason: str = ""
    from_zero: bool = False
    another: bool = False
    fresh: bool = False
    foreign: bool = False


SAME: Final = Verdict()
GAP: Final = Verdict("gap")
RESET: Final = Verdict("reset", fresh=True)
FOREIGN: Final = Verdict("other_server", foreign=True)
ADOPTED: Final = Verdict("other_server", another=True, fresh=True)


class Lineage:
    """Gives the verdict on each page; *longest_gap* and *since* as in `Increases`."""

    def __init__(self, longest_gap: float, since: float) -> None:
        self._longest_gap = longest_gap
        self._since = since
        self._stranger: Baseline | None = None
        self._in_a_row = 0
        self._unseen = 0

    def verdict(self, base: Baseline | None, page: Page, at: float) -> Verdict:
        """What *page* is to *base*, the last page of the process that is followed; None before the first."""
        if base is None:
            return self._first(page, at)
        verdict = self._against(base, page, at)
        if not verdict.foreign:
            self._in_a_row = 0
            return verdict
        self._in_a_row += 1
        if self._in_a_row < PATIENCE:
            return verdict
        self._in_a_row, self._stranger = 0, None
        return ADOPTED

    def _first(self, page: Page, at: float) -> Verdict:
        start = page.process_start
        if self._since == -inf:
            return Verdict(from_zero=True, fresh=True)
        # A start that is yet to come tells nothing of what was counted before.
        possible = start is not None and start <= at + CLOCK_SKEW_SECONDS
        began_in_sight = possible and start is not None and start > self._since and at - start <= self._longest_gap
        return Verdict(from_zero=began_in_sight, fresh=True)

    def _against(self, base: Baseline, page: Page, at: float) -> Verdict:
        start = page.process_start
        unseen = at - base.at > self._longest_gap
        if start is not None and base.process_start is not None:
            if start != base.process_start:
                return self._other(base, start, at)
            # The process goes on; something in it, a replica, began anew.
            return RESET if not base.goes_on(page) else GAP if unseen else SAME
        return self._by_counts(base, page, at) or (GAP if unseen else SAME)

    def _other(self, base: Baseline, start: float, at: float) -> Verdict:
        if start < (base.process_start or start) or start <= base.at - CLOCK_SKEW_SECONDS:
            return FOREIGN
        if at - max(start, base.at) > self._longest_gap:
            return Verdict("gap", another=True, fresh=True)
        return Verdict(from_zero=True, another=True, fresh=True)

    def _by_counts(self, base: Baseline, page: Page, at: float) -> Verdict | None:
        """The verdict where no process start tells; None for a page that goes on from *base*."""
        self._unseen += 1
        if self._unseen > PATIENCE:
            self._stranger = None
        stranger, goes_on = self._stranger, base.goes_on(page)
        if stranger is not None and stranger.goes_on(page) and not (goes_on and base.size() >= stranger.size()):
            self._meet(remembered(stranger, page, at))
            return FOREIGN
        if goes_on:
            return None
        self._meet(base)
        return attrs.evolve(RESET, another=True)

    def _meet(self, stranger: Baseline) -> None:
        self._stranger, self._unseen = stranger, 0


def remembered(base: Baseline | None, page: Page, at: float) -> Baseline:
    """The baseline after *page*; what a damaged page lacks is kept from before."""
    counters = {key: value for key, value in page.values.items() if is_counter(key)}
    if base is None:
        return Baseline(at, page.process_start, counters, page.histograms, not page.problems)
    kept = {
        key: now
        for key, now in page.histograms.items()
        if (before := base.histograms.get(key)) is None or not poorer(now, before)
    }
    return Baseline(
        at,
        base.process_start if page.process_start is None else page.process_start,
        _bounded({**base.counters, **counters}, counters),
        _bounded({**base.histograms, **kept}, page.histograms),
        not page.problems,
    )


def _bounded(kept: Mapping[SeriesKey, T], now: Mapping[SeriesKey, T]) -> Mapping[SeriesKey, T]:
    """*kept*, but *now* alone where engines come and go for ever: what is gone must not pile up."""
    return kept if len(kept) <= MOST_KEPT else now


def poorer(now: Histogram, before: Histogram) -> bool:
    """Whether a page lost lines of a histogram that the page before had."""
    lost_total = (now.sum is None and before.sum is not None) or (now.count is None and before.count is not None)
    return lost_total or (now.edges != before.edges and set(now.edges) < set(before.edges))


def is_counter(key: SeriesKey) -> bool:
    """Whether the value only grows while its process lives."""
    return vllm.KINDS.get(key.family) == "counter"
