"""The queue's split, at the server and at the caller."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import family
from tidegauge.derive.figures import Figures
from tidegauge.derive.queueing import QueueSplit


def collect(figures: Figures) -> Iterator[Metric]:
    """Quantiles, ratio, late share and mean, effective waves, verdict, edge and impact."""
    found = [*_server(figures), *_caller(figures)]
    yield family(
        ex.QUEUE_TIME,
        [({**labels, lb.QUANTILE: str(q)}, value) for queue, labels in found for q, value in queue.quantiles.items()],
    )
    for series, value in (
        (ex.QUEUE_P90_P50, lambda queue: queue.ratio),
        (ex.QUEUE_LATE_RATIO, lambda queue: queue.late_share),
        (ex.QUEUE_LATE_SECONDS, lambda queue: queue.late_mean),
        (ex.QUEUE_WAVES, lambda queue: queue.waves),
        (ex.QUEUE_BIMODAL, lambda queue: float(queue.bimodal)),
        (ex.QUEUE_EDGE, lambda queue: queue.edge),
        (ex.QUEUE_IMPACT, lambda queue: queue.impact),
    ):
        yield family(series, [(labels, value(queue)) for queue, labels in found])


def _server(figures: Figures) -> list[tuple[QueueSplit, dict[str, str]]]:
    return [
        (model.queue, {lb.BACKEND: one.name, lb.MODEL_NAME: model.model_name, lb.WHERE: lb.SERVER})
        for one in figures.backends
        for model in one.models
        if model.queue is not None
    ]


def _caller(figures: Figures) -> list[tuple[QueueSplit, dict[str, str]]]:
    return [
        (fleet.caller_queue, {lb.FLEET: fleet.name, lb.WHERE: lb.CALLER})
        for fleet in figures.fleets
        if fleet.caller_queue is not None
    ]
