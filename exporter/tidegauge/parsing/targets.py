"""From numbered lines to values and histograms: how the series that make up one figure are put together.

Several lines make up one figure where a page tells series apart by labels that are not ours: Ray's `ReplicaId`,
`WorkerId` or `NodeAddress`, the `pid` of several API server processes. Two Ray replicas behind one endpoint both call
themselves engine 0; they are one engine to us: what they count is added up, their KV usage is the fuller one's. The
price is that the restart of one replica shows as a fall of the sum; an endpoint per replica avoids it.
"""

import math
from collections.abc import Iterable, Sequence

import attrs

from tidegauge import vllm
from tidegauge.model import CacheConfig, Histogram, SeriesKey
from tidegauge.parsing.samples import Labels, Place

Line = tuple[int, Place]


@attrs.frozen(eq=False)
class Scalar:
    """A gauge or counter, or the process start: the numbers of `lines`, added up (KV usage: their maximum)."""

    key: SeriesKey
    lines: tuple[int, ...]

    def read(self, numbers: Sequence[float]) -> float | None:
        """None if no line has a usable number; NaN marks the ones that have none."""
        if len(self.lines) == 1:
            only = numbers[self.lines[0]]
            return None if math.isnan(only) else only
        known = [numbers[line] for line in self.lines if not math.isnan(numbers[line])]
        if not known:
            return None
        if self.key.family == vllm.PROCESS_START:
            return known[0] if len(set(known)) == 1 else None
        return max(known) if self.key.family == vllm.KV_USAGE else math.fsum(known)


@attrs.define
class _Source:
    """The lines of one exposed histogram."""

    buckets: dict[float, int] = attrs.field(factory=dict)
    sum: int | None = None
    count: int | None = None

    def take(self, line: int, place: Place) -> bool:
        """False if the source has this line already."""
        if place.part == "bucket":
            return self.buckets.setdefault(place.edge, line) == line
        if getattr(self, place.part) is not None:
            return False
        setattr(self, place.part, line)
        return True


@attrs.frozen(eq=False)
class Distribution:
    """A histogram; of several sources those edges are kept that all of them have, where the counts add up exactly.

    A page without the `+Inf` bucket gives a histogram that ends at the last edge it has.
    """

    key: SeriesKey
    edges: tuple[float, ...]
    cells: tuple[tuple[int, ...], ...]
    sums: tuple[int | None, ...]
    counts: tuple[int | None, ...]

    def read(self, numbers: Sequence[float]) -> Histogram | None:
        """None if no line has a usable number."""
        if len(self.cells) == 1:
            cumulative = tuple(map(numbers.__getitem__, self.cells[0]))
        else:
            columns = ([numbers[line] for line in cells] for cells in self.cells)
            cumulative = tuple(map(math.fsum, zip(*columns, strict=True)))
        edges = self.edges
        if any(map(math.isnan, cumulative)):
            kept = [pair for pair in zip(edges, cumulative, strict=True) if not math.isnan(pair[1])]
            edges, cumulative = tuple(edge for edge, _ in kept), tuple(number for _, number in kept)
        total, count = _total(self.sums, numbers), _total(self.counts, numbers)
        if not edges and total is None and count is None:
            return None
        return Histogram(edges, cumulative, total, count)


def _total(lines: Iterable[int | None], numbers: Sequence[float]) -> float | None:
    total = 0.0
    for line in lines:
        if line is None:
            return None
        total += numbers[line]
    return None if math.isnan(total) else total


Target = Scalar | Distribution


def assemble(lines: Sequence[Line]) -> tuple[list[tuple[Target, list[int]]], int]:
    """The figures that the lines make up, each with its lines, and the number of lines that repeat another.

    Where a page has a figure under several spellings, those of the lowest rank make it up.
    """
    groups: dict[SeriesKey, list[Line]] = {}
    for line, place in lines:
        group = groups.setdefault(place.key, [])
        if group and place.rank < group[0][1].rank:
            group.clear()
        if not group or place.rank == group[0][1].rank:
            group.append((line, place))
    targets: list[tuple[Target, list[int]]] = []
    repeated = 0
    for key, group in groups.items():
        used = [line for line, _ in group]
        if group[0][1].part in ("value", "start"):
            targets.append((Scalar(key, tuple(used)), used))
        else:
            target, again = _distribution(key, group)
            repeated += len(again)
            targets.append((target, [line for line in used if line not in again]))
    return targets, repeated


def _distribution(key: SeriesKey, group: Sequence[Line]) -> tuple[Distribution, set[int]]:
    sources: dict[Labels, _Source] = {}
    again = {line for line, place in group if not sources.setdefault(place.source, _Source()).take(line, place)}
    found = tuple(sources.values())
    edges = sorted(set.intersection(*(set(source.buckets) for source in found)))
    cells = tuple(tuple(source.buckets[edge] for edge in edges) for source in found)
    sums, counts = tuple(source.sum for source in found), tuple(source.count for source in found)
    return Distribution(key, tuple(edges), cells, sums, counts), again


def cache_configs(places: Sequence[Place]) -> tuple[CacheConfig, ...]:
    """One entry per distinct label set, `pid` aside: API server processes repeat it, Ray's replicas each have one."""
    lowest = min((place.rank for place in places), default=0)
    distinct = dict.fromkeys((place.key.engine, place.source) for place in places if place.rank == lowest)
    return tuple(CacheConfig(engine, dict(labels)) for engine, labels in distinct)
