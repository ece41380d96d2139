"""The layout of a page: which line holds which figure. Found once, reused while the next pages keep it.

A server spells its page the same way at every poll; only numbers change, and most of them do not. So the next page is
compared with the last one line by line, and of the lines that differ only the number is read, provided that all
before it is unchanged. Any other difference means a new layout. All of it happens in `map`, which is what makes it
fast; the outcome never depends on which of the two ways a page was read.
"""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from operator import getitem, le, ne
from typing import TypeVar

from tidegauge import vllm
from tidegauge.model import Histogram, Page, SeriesKey
from tidegauge.parsing import samples
from tidegauge.parsing.samples import Place, Series
from tidegauge.parsing.targets import Distribution, Line, Target, assemble, cache_configs

MOST_FIGURES = 20_000
"""Gauges, counters and histograms of one page."""
_NO_HEAD = "\n"  # no line begins with it
_GAUGES = frozenset(family for family, kind in vllm.KINDS.items() if kind == "gauge")
_NOT_MEASURED = -1.0
_LOWEST = -sys.float_info.max

_CUT: Callable[[str, slice], str] = getitem

T = TypeVar("T")


class Layout:
    """The last page of a server and how it is laid out."""

    def __init__(self, lines: list[str], table: Mapping[str, samples.Name], known: Mapping[str, Series]) -> None:
        self.series: dict[str, Series] = {}
        """The series of this page by the text before their number."""
        self.routers = 0
        self.ours = 0
        self.overfull = False
        """There are more than MOST_FIGURES; the rest was not read."""
        self._keys: set[SeriesKey] = set()
        self._table = table
        self._lines = lines
        self._heads = [_NO_HEAD] * len(lines)
        self._cuts = [slice(0)] * len(lines)
        self._floors = [-math.inf] * len(lines)
        self._places: dict[int, Place] = {}
        self._targets: list[Target | None] = [None] * len(lines)
        self._numbers = [math.nan] * len(lines)
        self._faulty: set[int] = set()
        self._problems = {"line": 0, "duplicate": 0}
        self._values: dict[SeriesKey, float] = {}
        self._histograms: dict[SeriesKey, Histogram] = {}
        self._process_start: float | None = None
        self._lay_out(known)

    def page(self) -> Page:
        """The figures of the last page."""
        problems = self._problems | {"value": len(self._faulty)}
        return Page(
            values=self._values,
            histograms=self._histograms,
            cache_configs=self._cache_configs,
            process_start=self._process_start,
            problems={reason: count for reason, count in problems.items() if count},
            blind=not self.ours,
        )

    def update(self, lines: list[str]) -> bool:
        """Take in the next page; False, and nothing is changed, if it is laid out in another way."""
        if len(lines) != len(self._lines):
            return False
        changed = list(compress(range(len(lines)), map(ne, lines, self._lines)))
        new = list(map(lines.__getitem__, changed))
        if not all(map(str.startswith, new, map(self._heads.__getitem__, changed))):
            return False
        tails = list(map(_CUT, new, map(self._cuts.__getitem__, changed)))
        try:
            numbers = list(map(float, tails))
        except ValueError:  # timestamps, exemplars, damage
            careful = list(map(samples.number, tails))
            numbers = [number for number in careful if number is not None]
            if len(numbers) != len(careful):
                return False
        self._lines = lines
        self._store(changed, numbers)
        return True

    # --- a new layout -------------------------------------------------------------------------------------------
    def _lay_out(self, known: Mapping[str, Series]) -> None:
        cut_off = len(self._lines) - 1 if self._lines[-1].strip() else None
        at, numbers = [], []
        for index, line in enumerate(self._lines):
            if not line or line.isspace() or line.lstrip().startswith("#"):
                continue
            found = self._sample(line, known) if index != cut_off else None
            if found is None:
                self._problems["line"] += 1
                continue
            at.append(index)
            numbers.append(found[1])
            self._place(index, found[0])
            if len(self._keys) > MOST_FIGURES:
                self.overfull = True
                return
        self._assign()
        self._store(at, numbers)

    def _sample(self, line: str, known: Mapping[str, Series]) -> tuple[Series, float] | None:
        head, blank, tail = line.rpartition(" ")
        series = known.get(head + blank)
        if series is None:
            try:
                series, tail = samples.parse(line, self._table)
            except samples.Unreadable:
                return None
        number = samples.number(tail)
        return None if number is None else (series, number)

    def _place(self, index: int, series: Series) -> None:
        self.series.setdefault(series.head, series)
        self._heads[index] = series.head
        self._cuts[index] = slice(len(series.head), None)
        self.routers += series.router
        if series.place is not None:
            self._places[index] = series.place
            self._keys.add(series.place.key)

    def _assign(self) -> None:
        lines = self._distinct()
        self.ours = sum(place.part != "start" for _, place in lines)
        self._cache_configs = cache_configs([place for _, place in lines if place.part == "info"])
        targets, repeated = assemble([line for line in lines if line[1].part != "info"])
        self._problems["duplicate"] += repeated
        for target, used in targets:
            for index in used:
                self._targets[index] = target
                self._floors[index] = _LOWEST if self._places[index].part == "sum" else 0.0

    def _distinct(self) -> list[Line]:
        seen: set[str] = set()
        distinct: list[Line] = []
        for index, place in self._places.items():
            identity = self.series[self._heads[index]].identity
            if identity in seen:
                self._problems["duplicate"] += 1
            else:
                seen.add(identity)
                distinct.append((index, place))
        return distinct

    # --- numbers ------------------------------------------------------------------------------------------------
    def _store(self, at: Sequence[int], numbers: Sequence[float]) -> None:
        if self._faulty:
            self._faulty.difference_update(at)
        if not all(map(le, map(self._floors.__getitem__, at), numbers)) or math.inf in numbers:
            numbers = [self._possible(index, number) for index, number in zip(at, numbers, strict=True)]
        for index, number in zip(at, numbers, strict=True):
            self._numbers[index] = number
        self._read(dict.fromkeys(map(self._targets.__getitem__, at)))

    def _possible(self, index: int, number: float) -> float:
        """The number, or NaN if it cannot be; -1 is how vLLM's gauges say `not measured`, and no fault."""
        if self._targets[index] is None or (self._floors[index] <= number and math.isfinite(number)):
            return number
        if number != _NOT_MEASURED or self._places[index].key.family not in _GAUGES:
            self._faulty.add(index)
        return math.nan

    def _read(self, touched: Iterable[Target | None]) -> None:
        """Read the touched figures anew; earlier pages keep the mappings they were given."""
        values, histograms = dict(self._values), dict(self._histograms)
        for target in touched:
            if isinstance(target, Distribution):
                _put(histograms, target.key, target.read(self._numbers))
            elif target is not None and target.key.family == vllm.PROCESS_START:
                self._process_start = target.read(self._numbers)
            elif target is not None:
                _put(values, target.key, target.read(self._numbers))
        self._values, self._histograms = values, histograms


def _put(mapping: dict[SeriesKey, T], key: SeriesKey, value: T | None) -> None:
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value
