"""Where the latency goes."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import Row, by_label, family
from tidegauge.derive.figures import Figures
from tidegauge.derive.stages import Stages


def collect(figures: Figures) -> Iterator[Metric]:
    """Requests in the window, stage means, shares and end-to-end; the client stage per fleet."""
    found = [
        (model.stages, {lb.BACKEND: one.name, lb.MODEL_NAME: model.model_name})
        for one in figures.backends
        for model in one.models
        if model.stages is not None
    ]
    yield family(ex.WINDOW_REQUESTS, [(labels, stages.requests) for stages, labels in found])
    yield family(ex.E2E_SECONDS, [(labels, stages.e2e) for stages, labels in found])
    rows = [row for stages, labels in found for row in by_label(labels, lb.STAGE, stages.seconds)]
    yield family(ex.STAGE_SECONDS, [*rows, *_client(figures)])
    yield family(ex.STAGE_SHARE, [row for stages, labels in found for row in _shares(stages, labels)])


def _shares(stages: Stages, labels: dict[str, str]) -> list[Row]:
    return [({**labels, lb.STAGE: stage}, stages.share(stage)) for stage in lb.SERVER_STAGES]


def _client(figures: Figures) -> list[Row]:
    return [({lb.FLEET: fleet.name, lb.STAGE: lb.CLIENT}, fleet.client_seconds) for fleet in figures.fleets]
