"""Barriers against the ceiling that cuts them into waves (definitions, sections 3 and 5)."""

from collections.abc import Sequence
from math import ceil
from typing import Literal

import attrs

from tidegauge.model import Barrier

State = Literal["clips", "inert", "unmeasured"]


@attrs.frozen
class Order:
    """Exact order statistics: median, p90 and maximum are values that occurred (nearest rank)."""

    median: float
    p90: float
    max: float


def order(values: Sequence[float]) -> Order | None:
    """Order statistics of *values* by nearest rank, None for none."""
    if not values:
        return None
    ranked = sorted(values)
    return Order(*(ranked[max(ceil(q * len(ranked)), 1) - 1] for q in (0.5, 0.9, 1.0)))


def waves(fan_out: int, ceiling: float) -> int:
    """Waves that a barrier is cut into: ceil(fan-out / ceiling). 29 through 16, 28, 48: 2, 2, 1."""
    return ceil(fan_out / ceiling)


@attrs.frozen
class CeilingFigures:
    """One kind of ceiling against the barriers of a window."""

    kind: str
    value: float
    source: str
    state: State
    waves: Order | None
    clipped_ratio: float | None


def state_of(ceiling: float, bound: float | None) -> State:
    """`unmeasured` without a bound, `inert` where the ceiling can never bind, else `clips`."""
    if bound is None:
        return "unmeasured"
    return "inert" if ceiling >= bound else "clips"


def against(kind: str, value: float, source: str, barriers: Sequence[Barrier], bound: float | None) -> CeilingFigures:
    """The ceiling's figures: waves and clipped ratio with the ceiling that each barrier met, the state for now.

    *bound* is the natural bound, None until a barrier was seen. A roster that a barrier of the window exceeds is no
    bound: the barrier is.
    """
    bound = max([bound, *(barrier.fan_out for barrier in barriers)]) if bound is not None else None
    met = [(barrier.fan_out, ceiling) for barrier in barriers if (ceiling := barrier.ceiling(kind)) and ceiling > 0]
    return CeilingFigures(
        kind=kind,
        value=value,
        source=source,
        state=state_of(value, bound),
        waves=order([waves(fan_out, ceiling) for fan_out, ceiling in met]),
        clipped_ratio=sum(fan_out > ceiling for fan_out, ceiling in met) / len(met) if met else None,
    )
