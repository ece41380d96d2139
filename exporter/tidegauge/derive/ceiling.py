"""Barriers against the ceiling that cuts them into waves."""

from collections.abc import Mapping, Sequence
from math import ceil
from statistics import median
from typing import Literal

import attrs

from tidegauge.model import Barrier

State = Literal["clips", "inert", "unmeasured"]


@attrs.frozen
class Order:
    """Exact order statistics: the median (between the middle two of an even number), p90 (nearest rank), maximum."""

    median: float
    p90: float
    max: float


def order(values: Sequence[float]) -> Order | None:
    """Order statistics of *values*, None for none."""
    if not values:
        return None
    ranked = sorted(values)
    return Order(median(ranked), ranked[ceil(0.9 * len(ranked)) - 1], ranked[-1])


def waves(fan_out: int, ceiling: float) -> int:
    """Waves that a barrier is cut into: ceil(fan-out / ceiling). 29 through 16, 28, 48: 2, 2, 1."""
    return ceil(fan_out / ceiling)


@attrs.frozen
class Ceiling:
    """A ceiling in force: `kind` is `client` or `server`, `source` where its value is from."""

    kind: str
    value: float
    source: str


@attrs.frozen
class BarrierFigures:
    """The barriers of a window as one source knows them; `total` counts those since the start.

    `waves` and `clipped` are by kind of ceiling, absent where no ceiling of that kind is known.
    """

    source: str
    total: int
    count: int
    fan_out: Order | None
    duration: Order | None
    waves: Mapping[str, Order]
    clipped: Mapping[str, float]


def state_of(ceiling: float, bound: float | None) -> State:
    """`unmeasured` without a bound, `inert` where the ceiling can never bind, else `clips`."""
    if bound is None:
        return "unmeasured"
    return "inert" if ceiling >= bound else "clips"


def figures(source: str, total: int, barriers: Sequence[Barrier], ceilings: Sequence[Ceiling]) -> BarrierFigures:
    """The barriers' order statistics, and their waves through each ceiling.

    A barrier is held against the ceiling that it met (reported when it opened, or the plateau it ran into); where
    that is not known, against the one in force.
    """
    met = {one.kind: _met(source, barriers, one) for one in ceilings}
    cut = {kind: order([waves(fan_out, value) for fan_out, value in pairs]) for kind, pairs in met.items()}
    return BarrierFigures(
        source=source,
        total=total,
        count=len(barriers),
        fan_out=order([barrier.fan_out for barrier in barriers]),
        duration=order([barrier.seconds for barrier in barriers if barrier.seconds is not None]),
        waves={kind: value for kind, value in cut.items() if value is not None},
        clipped={
            kind: sum(fan_out > value for fan_out, value in pairs) / len(pairs) for kind, pairs in met.items() if pairs
        },
    )


def _met(source: str, barriers: Sequence[Barrier], ceiling: Ceiling) -> list[tuple[int, float]]:
    """Each barrier's fan-out with its ceiling; without those that met none, or 0 (nothing was healthy)."""
    # A caller that reports its barriers and no ceiling has none: what another caller reports must not be held
    # against them.
    in_force = None if source == ceiling.source else ceiling.value
    values = [(barrier.fan_out, barrier.ceiling(ceiling.kind)) for barrier in barriers]
    found = [(fan_out, in_force if value is None else value) for fan_out, value in values]
    return [(fan_out, value) for fan_out, value in found if value]
