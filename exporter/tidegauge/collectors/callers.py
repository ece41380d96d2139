"""What callers said, what became of it, and what their limiters' logs say."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import by_label, family, histogram_family
from tidegauge.derive.figures import Figures


def collect(figures: Figures) -> Iterator[Metric]:
    """Healthy count, waits, events and conflicts per fleet; refusals; the limiter logs."""
    known = [(one.callers, {lb.FLEET: one.name}) for one in figures.fleets if one.callers is not None]
    # A fleet whose limiter's log is all that is known has no waits, not none.
    heard = [(callers, labels) for callers, labels in known if callers.results]
    yield family(ex.CALLER_HEALTHY, [(labels, callers.healthy) for callers, labels in heard])
    yield histogram_family(ex.CALLER_WAIT, [(labels, callers.all_waits) for callers, labels in heard])
    yield family(
        ex.CALLER_EVENTS, [row for callers, labels in heard for row in by_label(labels, lb.RESULT, callers.results)]
    )
    yield family(ex.CALLER_CONFLICTS, [(labels, callers.conflicts) for callers, labels in heard])
    yield family(ex.BATCHES_REFUSED, by_label({}, lb.REASON, figures.refused))
    yield from _limiters(figures)


def _limiters(figures: Figures) -> Iterator[Metric]:
    logs = [
        (one.callers.limiter, {lb.FLEET: one.name})
        for one in figures.fleets
        if one.callers is not None and one.callers.limiter is not None
    ]
    yield family(ex.CEILING_CHANGES, [row for log, labels in logs for row in by_label(labels, lb.REASON, log.changes)])
    yield family(ex.LIMITER_LOG_LINES, [row for log, labels in logs for row in by_label(labels, lb.RESULT, log.lines)])
    yield family(ex.LIMITER_LOG_UP, [(labels, None if log.up is None else float(log.up)) for log, labels in logs])
