"""Increases over the last so many seconds, in slots, so that memory does not grow with the poll rate."""

from collections.abc import Mapping
from math import floor, inf
from types import MappingProxyType
from typing import Final, TypeVar

import attrs

from tidegauge.model import Histogram, SeriesKey
from tidegauge.state.increases import Increase, add

SLOTS: Final = 60
AHEAD_SECONDS: Final = 120.0
"""What is further ahead was booked before the clock was set back; a caller's events are a minute ahead at most."""
_T = TypeVar("_T")


@attrs.frozen
class Totals:
    """Increases over a window: `seconds` is the time that polls really covered."""

    seconds: float = 0.0
    counters: Mapping[SeriesKey, float] = attrs.field(factory=dict)
    histograms: Mapping[SeriesKey, Histogram] = attrs.field(factory=dict)

    def histogram(self, family: str, model_name: str) -> Histogram | None:
        """The family's increase for one model, None if nothing was observed."""
        return self.histograms.get(SeriesKey(family, model_name))

    def counter(self, family: str, model_name: str | None = None, extra: str | None = None) -> float:
        """The counter's increase, over all models and extra labels that are not given."""
        return sum(
            value
            for key, value in self.counters.items()
            if key.family == family and model_name in (None, key.model_name) and extra in (None, key.extra)
        )

    def models(self) -> tuple[str, ...]:
        """The models that anything was observed for, sorted."""
        return tuple(sorted({key.model_name for key in (*self.histograms, *self.counters) if key.model_name}))


EMPTY: Final = Totals(0.0, MappingProxyType({}), MappingProxyType({}))


class Window:
    """The last *span* seconds of increases, in 60 slots: the oldest slot leaves as a whole.

    So a figure covers between 59/60 of the span and the span. `families` limits what is kept, empty keeps all.
    """

    def __init__(self, span: float, families: frozenset[str] = frozenset()) -> None:
        self.span = span
        self._width = span / SLOTS
        self._families = families
        self._slots: dict[int, Totals] = {}
        self._total: Totals | None = EMPTY

    def add(self, increase: Increase) -> None:
        """Book *increase* at its time."""
        part = Totals(increase.seconds, increase.counters, increase.histograms)
        if self._families:
            part = Totals(part.seconds, _only(part.counters, self._families), _only(part.histograms, self._families))
        if len(self._slots) > 2 * SLOTS:
            # Only where nobody asks: callers' clocks may be ahead, and must not push out what is still in the span.
            self._expire(increase.at)
        index = floor(increase.at / self._width)
        self._forget_other_edges(part)
        self._slots[index] = _merge(self._slots.get(index, EMPTY), part)
        if self._total is not None:
            self._total = _merge(self._total, part)

    def total(self, now: float) -> Totals:
        """Everything booked within the span before *now*."""
        self._expire(now, now + AHEAD_SECONDS)
        if self._total is None:
            self._total = EMPTY
            for slot in self._slots.values():
                self._total = _merge(self._total, slot)
        return self._total

    def _expire(self, now: float, latest: float = inf) -> None:
        oldest = floor(now / self._width) - SLOTS + 1
        # What lies in the future was booked before the clock was set back.
        newest = inf if latest == inf else floor(latest / self._width)
        gone = [index for index in self._slots if not oldest <= index <= newest]
        for index in gone:
            del self._slots[index]
        if gone:
            # Taking the old slot off again would leave rounding dust; adding up anew does not.
            self._total = None

    def _forget_other_edges(self, part: Totals) -> None:
        """Buckets that changed (a restart with other settings) make older observations incomparable."""
        total = self._held()
        changed = {key for key, rise in part.histograms.items() if key in total and total[key].edges != rise.edges}
        if changed:
            for index, slot in self._slots.items():
                kept = {key: value for key, value in slot.histograms.items() if key not in changed}
                self._slots[index] = attrs.evolve(slot, histograms=kept)
            self._total = None

    def _held(self) -> Mapping[SeriesKey, Histogram]:
        """The histograms held now, without expiring any."""
        if self._total is not None:
            return self._total.histograms
        return {key: value for slot in self._slots.values() for key, value in slot.histograms.items()}


def _only(values: Mapping[SeriesKey, _T], families: frozenset[str]) -> dict[SeriesKey, _T]:
    return {key: value for key, value in values.items() if key.family in families}


def _merge(left: Totals, right: Totals) -> Totals:
    if not right.counters and not right.histograms:
        return attrs.evolve(left, seconds=left.seconds + right.seconds)
    counters = dict(left.counters)
    for key, value in right.counters.items():
        counters[key] = counters.get(key, 0.0) + value
    histograms = dict(left.histograms)
    for key, rise in right.histograms.items():
        before = histograms.get(key)
        histograms[key] = rise if before is None else add((before, rise))
    return Totals(left.seconds + right.seconds, counters, histograms)
