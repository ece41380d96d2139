"""Barriers, the ceilings that cut them, and what callers said."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import Row, by_label, family, histogram_family
from tidegauge.derive.ceiling import CeilingFigures, Order
from tidegauge.derive.figures import Figures, FleetFigures


def collect(figures: Figures) -> Iterator[Metric]:
    """Everything per fleet that its callers reported, and the ceilings held against it."""
    told = [(fleet, fleet.callers, {lb.FLEET: fleet.name}) for fleet in figures.fleets]
    reported = [(fleet, callers, labels) for fleet, callers, labels in told if callers is not None]
    source = {lb.SOURCE: "reported"}
    yield family(ex.BARRIERS, [({**labels, **source}, callers.barriers_total) for _, callers, labels in reported])
    yield family(
        ex.BARRIER_FANOUT, [row for fleet, _, labels in reported for row in _order(fleet.fan_out, {**labels, **source})]
    )
    yield family(
        ex.BARRIER_DURATION,
        [row for fleet, _, labels in reported for row in _order(fleet.duration, {**labels, **source})],
    )
    yield from _ceilings(figures)
    yield family(ex.CALLER_HEALTHY, [(labels, callers.healthy) for _, callers, labels in reported])
    yield histogram_family(ex.CALLER_WAIT, [(labels, callers.all_waits) for _, callers, labels in reported])
    yield family(
        ex.CALLER_EVENTS,
        [row for _, callers, labels in reported for row in by_label(labels, lb.RESULT, callers.results)],
    )


def _ceilings(figures: Figures) -> Iterator[Metric]:
    pairs = [(fleet, one) for fleet in figures.fleets for one in fleet.ceilings]
    kinds = [(one, _kind(fleet, one)) for fleet, one in pairs]
    yield family(ex.CEILING, [({**labels, lb.SOURCE: one.source}, one.value) for one, labels in kinds])
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
        [({**labels, lb.STATE: state}, float(one.state == state)) for one, labels in kinds for state in lb.STATES],
    )
    reported = {lb.SOURCE: "reported"}
    yield family(ex.BARRIER_WAVES, [row for one, labels in kinds for row in _order(one.waves, {**labels, **reported})])
    yield family(ex.BARRIER_CLIPPED, [({**labels, **reported}, one.clipped_ratio) for one, labels in kinds])


def _kind(fleet: FleetFigures, one: CeilingFigures) -> dict[str, str]:
    return {lb.FLEET: fleet.name, lb.CEILING: one.kind}


def _order(order: Order | None, labels: dict[str, str]) -> list[Row]:
    if order is None:
        return []
    return [
        ({**labels, lb.STAT: stat}, value)
        for stat, value in (("median", order.median), ("p90", order.p90), ("max", order.max))
    ]
