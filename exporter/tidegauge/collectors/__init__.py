"""Figures in, prometheus_client families out; one module per subject, listed here so that a reader can see them."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import Metric

from tidegauge.collectors import backends, barriers, callers, capacity, health, load, queueing, stages
from tidegauge.derive.figures import Figures

SUBJECTS: Final[tuple[Callable[[Figures], Iterator[Metric]], ...]] = (
    health.collect,
    backends.collect,
    capacity.collect,
    stages.collect,
    queueing.collect,
    load.collect,
    barriers.collect,
    callers.collect,
)


class FiguresCollector:
    """A prometheus_client collector over whatever *figures* returns at the time of the scrape.

    Families are built anew each time, so that series of a backend that left disappear.
    """

    def __init__(self, figures: Callable[[], Figures]) -> None:
        self._figures = figures

    def describe(self) -> list[Metric]:
        """Nothing: names are checked against the catalogue by a test, not at registration."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All families of the moment."""
        moment = self._figures()
        for subject in SUBJECTS:
            yield from subject(moment)
