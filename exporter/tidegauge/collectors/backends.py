"""Whether each backend is there, and what became of its input."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import Row, by_label, family
from tidegauge.derive.backends import BackendFigures
from tidegauge.derive.figures import Figures


def collect(figures: Figures) -> Iterator[Metric]:
    """Up, distinct, poll interval and duration, failures, problems, log lines, dropped intervals, restarts."""
    backends = [(one, {lb.BACKEND: one.name}) for one in figures.backends]
    histories = [(one.history, labels) for one, labels in backends]
    yield family(ex.BACKEND_UP, [(labels, _flag(history.up)) for history, labels in histories])
    yield family(ex.BACKEND_DISTINCT, [(labels, float(one.twin_of is None)) for one, labels in backends])
    yield family(ex.BACKEND_INFO, [_info(one) for one in figures.backends])
    yield family(ex.POLL_INTERVAL, [(labels, figures.intervals.get(one.name)) for one, labels in backends])
    yield family(ex.SCRAPE_DURATION, [(labels, history.scrape_seconds) for history, labels in histories])
    yield family(
        ex.SCRAPE_FAILURES,
        [row for history, labels in histories for row in by_label(labels, lb.REASON, history.counts.failures)],
    )
    yield family(
        ex.PAGE_PROBLEMS,
        [row for history, labels in histories for row in by_label(labels, lb.REASON, history.counts.problems)],
    )
    yield family(
        ex.INTERVALS_DROPPED,
        [row for history, labels in histories for row in by_label(labels, lb.REASON, history.counts.dropped)],
    )
    yield family(
        ex.LOG_LINES,
        [row for history, labels in histories for row in by_label(labels, lb.RESULT, history.counts.log_lines)],
    )
    yield family(ex.LOG_UP, [(labels, _flag(history.counts.log_up)) for history, labels in histories])
    yield family(ex.RESTARTS, [(labels, history.counts.restarts) for history, labels in histories])


def _flag(value: bool | None) -> float | None:  # noqa: FBT001 - a state, not an option
    return None if value is None else float(value)


def _info(one: BackendFigures) -> Row:
    return {lb.BACKEND: one.name, lb.FLEET: one.history.fleet, lb.VERSION: one.history.version or ""}, 1
