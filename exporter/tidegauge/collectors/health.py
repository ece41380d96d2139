"""The exporter itself."""

from collections.abc import Iterator

from prometheus_client.core import Metric

import tidegauge
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import family
from tidegauge.derive.figures import Figures


def collect(figures: Figures) -> Iterator[Metric]:
    """Build info, what the configuration asks for, and how its last reading went."""
    yield family(ex.BUILD_INFO, [({lb.VERSION: tidegauge.__version__}, 1)])
    yield family(ex.WINDOW_SECONDS, [({}, figures.window)])
    yield family(ex.BACKENDS_CONFIGURED, [({}, len(figures.backends))])
    loading = figures.loading
    if loading is not None:
        yield family(ex.CONFIG_LOADED, [({}, loading.succeeded)])
        yield family(ex.CONFIG_LOADED_AT, [({}, loading.at)])
