"""The shapes of a catalogue entry."""

from typing import Literal

import attrs

Kind = Literal["gauge", "counter", "histogram", "summary"]


@attrs.frozen
class Series:
    """A series that the exporter exposes.

    `name` is the full exposed name (counters with `_total`); `labels` is the complete label set in order; a label
    whose value is empty is left out of the exposition. `buckets` is set for histograms only.
    """

    key: str
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


@attrs.frozen
class Recorded:
    """A series that a recording rule writes; `labels` are the labels it is aggregated to."""

    key: str
    name: str
    help: str
    labels: tuple[str, ...]
    unit: str


def recorded(key: str, name: str, unit: str, help_: str, *labels: str) -> Recorded:
    """A recorded series, in the order in which its declaration reads."""
    return Recorded(key, name, help_, labels, unit)
