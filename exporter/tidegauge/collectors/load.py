"""What arrives, how unevenly, how long it is, and why it waits in the servers."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import Row, by_label, family
from tidegauge.derive.figures import Figures


def collect(figures: Figures) -> Iterator[Metric]:
    """Arrivals, departures, burstiness, waiting-seconds by cause, hidden wait, token lengths."""
    seen = [(fleet.inferred, fleet) for fleet in figures.fleets if fleet.inferred is not None]
    # A backend that serves another model now has left a fleet that may still remember it.
    counted = [(one, backend.name) for one, fleet in seen for backend in fleet.backends]
    yield family(ex.ARRIVALS, [({lb.BACKEND: name}, one.arrivals.get(name)) for one, name in counted])
    yield family(ex.DEPARTED_UNFINISHED, [({lb.BACKEND: name}, one.departed.get(name)) for one, name in counted])
    yield family(ex.ARRIVAL_BURSTINESS, [({lb.FLEET: one.fleet}, one.burstiness) for one, _ in seen])
    yield family(ex.WAITING_SECONDS, [*_server(figures), *_caller(figures)])
    yield family(ex.HIDDEN_WAIT, [({lb.BACKEND: one.name}, one.hidden_wait) for one in figures.backends])
    models = [
        (model, {lb.BACKEND: one.name, lb.MODEL_NAME: model.model_name})
        for one in figures.backends
        for model in one.models
    ]
    for series, lengths in (
        (ex.PROMPT_LENGTH, [(model.prompt_tokens, labels) for model, labels in models]),
        (ex.OUTPUT_LENGTH, [(model.output_tokens, labels) for model, labels in models]),
    ):
        yield family(
            series,
            [
                ({**labels, lb.QUANTILE: str(q)}, value)
                for quantiles, labels in lengths
                for q, value in quantiles.items()
            ],
        )


def _server(figures: Figures) -> list[Row]:
    return [row for one in figures.backends for row in by_label({lb.BACKEND: one.name}, lb.CAUSE, one.history.waited)]


def _caller(figures: Figures) -> list[Row]:
    told = [(fleet.name, fleet.callers) for fleet in figures.fleets]
    return [
        ({lb.FLEET: name, lb.CAUSE: lb.CALLER}, callers.all_waits.sum)
        for name, callers in told
        if callers is not None and callers.results
    ]
