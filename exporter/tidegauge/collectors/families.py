"""From a catalogue entry to a prometheus_client family."""

from collections.abc import Iterable, Mapping
from math import isfinite, isinf

from prometheus_client.core import HistogramMetricFamily, Metric

from tidegauge.catalogue import Series
from tidegauge.model import Histogram

Row = tuple[Mapping[str, str], float | None]


def family(series: Series, rows: Iterable[Row]) -> Metric:
    """The series with one sample per row; a row without a value, or with one that is no number, is left out.

    A label that a row does not give, or gives as empty, is left out: to Prometheus that is the same.
    """
    # A family of counters is called by its name without the suffix that its samples have.
    result = Metric(series.name.removesuffix("_total"), series.help, series.kind)
    for labels, value in rows:
        if value is not None and isfinite(value):
            result.add_sample(series.name, _checked(series, labels), value)
    return result


def histogram_family(series: Series, rows: Iterable[tuple[Mapping[str, str], Histogram]]) -> Metric:
    """The histogram series with one set of buckets per row."""
    result = HistogramMetricFamily(series.name, series.help, labels=series.labels)
    for labels, value in rows:
        given = _checked(series, labels)
        buckets = [
            ("+Inf" if isinf(edge) else str(float(edge)), count)
            for edge, count in zip(value.edges, value.cumulative, strict=True)
        ]
        result.add_metric([given.get(label, "") for label in series.labels], buckets=buckets, sum_value=value.sum)
    return result


def by_label(labels: Mapping[str, str], name: str, values: Mapping[str, float]) -> Iterable[Row]:
    """One row per entry of *values*, its key as label *name*."""
    return [({**labels, name: key}, value) for key, value in values.items()]


def _checked(series: Series, labels: Mapping[str, str]) -> dict[str, str]:
    unknown = labels.keys() - set(series.labels)
    if unknown:
        msg = f"{series.name}: label {min(unknown)} is not in the catalogue"
        raise ValueError(msg)
    return {label: labels[label] for label in series.labels if labels.get(label)}
