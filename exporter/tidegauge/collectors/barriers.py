"""Barriers, and the ceilings that cut them."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import Row, by_label, family
from tidegauge.derive.ceiling import Order
from tidegauge.derive.figures import Figures


def collect(figures: Figures) -> Iterator[Metric]:
    """Per fleet and source the barriers, and the ceilings held against them."""
    yield from _barriers(figures)
    yield from _ceilings(figures)


def _barriers(figures: Figures) -> Iterator[Metric]:
    known = [(one, {lb.FLEET: fleet.name, lb.SOURCE: one.source}) for fleet in figures.fleets for one in fleet.barriers]
    yield family(ex.BARRIERS, [(labels, one.total) for one, labels in known])
    yield family(ex.BARRIER_FANOUT, [row for one, labels in known for row in _order(one.fan_out, labels)])
    yield family(ex.BARRIER_DURATION, [row for one, labels in known for row in _order(one.duration, labels)])
    yield family(
        ex.BARRIER_WAVES,
        [
            row
            for one, labels in known
            for kind, order in one.waves.items()
            for row in _order(order, {**labels, lb.CEILING: kind})
        ],
    )
    yield family(
        ex.BARRIER_CLIPPED, [row for one, labels in known for row in by_label(labels, lb.CEILING, one.clipped)]
    )


def _ceilings(figures: Figures) -> Iterator[Metric]:
    kinds = [
        (fleet, one, {lb.FLEET: fleet.name, lb.CEILING: one.kind}) for fleet in figures.fleets for one in fleet.ceilings
    ]
    yield family(ex.CEILING, [({**labels, lb.SOURCE: one.source}, one.value) for _, one, labels in kinds])
    yield family(
        ex.NATURAL_BOUND,
        [
            ({lb.FLEET: fleet.name, lb.SOURCE: fleet.natural_bound[1]}, fleet.natural_bound[0])
            for fleet in figures.fleets
            if fleet.natural_bound is not None
        ],
    )
    yield family(
        ex.CEILING_STATE,
        [
            ({**labels, lb.STATE: state}, float(fleet.states[one.kind] == state))
            for fleet, one, labels in kinds
            for state in lb.STATES
        ],
    )


def _order(order: Order | None, labels: dict[str, str]) -> list[Row]:
    if order is None:
        return []
    return [
        ({**labels, lb.STAT: stat}, value)
        for stat, value in (("median", order.median), ("p90", order.p90), ("max", order.max))
    ]
