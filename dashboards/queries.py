"""PromQL builders over the catalogue: names and labels come from there, the boards' variables are added here."""

import re
from typing import Final

from tidegauge.catalogue import Recorded, Series
from tidegauge.catalogue import labels as lb

FILTERS: Final = {lb.MODEL_NAME: "$chosen_model", lb.BACKEND: "$chosen_backend", lb.FLEET: "$chosen_fleet"}
"""Variables that a query filters by: what is left of a label by whatever is chosen, a fleet's backends for one."""
_SIDES: Final = {lb.SERVER: (lb.BACKEND, lb.MODEL_NAME), lb.CALLER: (lb.FLEET,)}
UNKNOWN: Final = -1
"""The number of a state that nothing tells."""
INSTANCE: Final = "instance"
"""What a scrape calls its target."""
NATIVE: Final = (INSTANCE, "pod")
"""What a scrape calls a backend; on Kubernetes a series may have both, and the second is the backend."""
_SELECTED: Final = re.compile(r"([a-zA-Z_:][\w:]*)\{")
SUBJECT: Final = (lb.BACKEND, lb.MODEL_NAME)
"""What most figures are about: a model on a backend."""
ON_SUBJECT: Final = f"on ({', '.join(SUBJECT)})"
ON_BACKEND: Final = f"on ({lb.BACKEND})"
ON_TARGET: Final = f"on (job, {INSTANCE})"
ON_FLEET: Final = f"on ({lb.FLEET})"
STEP: Final = "[$__rate_interval]"
"""What a point of a graph covers."""
RANGE: Final = "[$__range]"
"""The time that the dashboard shows; the same with `AT_END`, whatever point asks for it."""
AT_END: Final = f"{RANGE} @ end()"


def select(series: Series | Recorded, **labels: str) -> str:
    """A selector of the series with the given label values, filtered by every variable whose label it has.

    A series of the queue split has the labels of its side only: the server's are filtered by backend and model, the
    caller's by fleet; so is the client stage. A label value that begins with `~` is a regular expression. KeyError for
    a label that the series has not got.
    """
    unknown = set(labels) - set(series.labels)
    if unknown:
        raise KeyError(f"{series.name} has no label {', '.join(sorted(unknown))}")
    where = lb.CALLER if labels.get(lb.STAGE) == lb.CLIENT else labels.get(lb.WHERE, "")
    side = _SIDES.get(where, tuple(FILTERS))
    given = [f'{name}=~"{value[1:]}"' if value[:1] == "~" else f'{name}="{value}"' for name, value in labels.items()]
    filters = [
        f'{name}=~"{variable}"'
        for name, variable in FILTERS.items()
        if name in series.labels and name in side and name not in labels
    ]
    return f"{series.name}{{{', '.join((*given, *filters))}}}"


def buckets(series: Series) -> str:
    """A selector of the buckets of one of our histograms."""
    return select(series).replace("{", "_bucket{", 1)


def observed(series: Series) -> str:
    """A selector of the number of observations of one of our histograms."""
    return select(series).replace("{", "_count{", 1)


def native(build: str, *matchers: str) -> str:
    """Series of vLLM itself, of the chosen models and backends, in an expression where `%s` stands for the braces.

    *matchers* narrow them further. A scrape calls a backend `instance` or `pod`, so both are read; `or` keeps a series
    that matches both once.
    """
    model = f'{lb.MODEL_NAME}=~"{FILTERS[lb.MODEL_NAME]}"'
    filters = (f'{{{", ".join((*matchers, model))}, {label}=~"{FILTERS[lb.BACKEND]}"}}' for label in NATIVE)
    return " or ".join(build.replace("%s", one) for one in filters)


def by(aggregation: str, expr: str, *labels: str) -> str:
    """The aggregation of an expression, down to the given labels."""
    return f"{aggregation} by ({', '.join(labels)}) ({expr})" if labels else f"{aggregation}({expr})"


def per_backend(series: Series | Recorded, **labels: str) -> str:
    """The largest value of the series for each backend, as `select` selects it."""
    return by("max", select(series, **labels), lb.BACKEND)


def per_subject(series: Series | Recorded, **labels: str) -> str:
    """The same for each model on each backend."""
    return by("max", select(series, **labels), *SUBJECT)


def weighted_mean(value: str, weight: str, *labels: str, on: str = ON_SUBJECT) -> str:
    """Mean of a per-backend value over backends, each weighed by its requests; values without a weight drop out.

    *on* says what they are joined on, where they are of something else than models on backends.
    """
    joined = f"* {on} group_left () {weight}"
    return f"{by('sum', f'{value} {joined}', *labels)} / {by('sum', f'{value} ^ 0 {joined}', *labels)}"


def share_of(part: str, whole: str, weight: str, label: str) -> str:
    """Weighted time in each value of the label over weighted time in all: what `weighted_mean` gives, as a share."""
    parts = by("sum", f"{part} * {ON_SUBJECT} group_left () {weight}", label)
    return f"{parts} / on () group_left () {by('sum', f'{whole} * {ON_SUBJECT} {weight}')}"


def otherwise(expr: str, *fallbacks: str) -> str:
    """The first of the expressions that has a value, for each set of labels."""
    return " or ".join(f"({part})" for part in (expr, *fallbacks))


def or_unknown(verdict: str) -> str:
    """The number of a state, or `UNKNOWN` where there is none."""
    return otherwise(verdict, f"vector({UNKNOWN})")


def reads(*series: Series | Recorded) -> str:
    """The sentence of a description that names the series behind a panel."""
    return f"Reads {', '.join(f'`{one.name}`' for one in series)}."


def reads_in(*exprs: str) -> str:
    """The same for all series that the expressions select."""
    found = sorted({name for expr in exprs for name in _SELECTED.findall(expr)})
    return f"Reads {', '.join(f'`{name}`' for name in found)}."
