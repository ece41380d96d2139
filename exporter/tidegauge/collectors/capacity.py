"""What a backend can hold, and where the figure came from."""

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import Metric

from tidegauge.catalogue import Series
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors.families import by_label, family
from tidegauge.derive.capacity import Fact
from tidegauge.derive.figures import Figures


def collect(figures: Figures) -> Iterator[Metric]:
    """Facts with their source, request capacity per backend and fleet."""
    facts = [(one.facts, {lb.BACKEND: one.name}) for one in figures.backends]
    for series, name in (
        (ex.KV_CAPACITY, "kv_tokens"),
        (ex.MAX_NUM_SEQS, "max_num_seqs"),
        (ex.MAX_BATCHED_TOKENS, "max_num_batched_tokens"),
        (ex.MAX_MODEL_LEN, "max_model_len"),
    ):
        yield _sourced(series, [(labels, getattr(fact, name)) for fact, labels in facts])
    yield _sourced(ex.P90_PROMPT, [({lb.BACKEND: one.name}, one.p90_prompt) for one in figures.backends])
    yield family(
        ex.KV_DISAGREE,
        [(labels, float(fact.kv_disagree)) for fact, labels in facts if fact.kv_disagree is not None],
    )
    yield family(
        ex.REQUEST_CAPACITY,
        [row for one in figures.backends for row in by_label({lb.BACKEND: one.name}, lb.BASIS, one.capacity)],
    )
    yield family(
        ex.FLEET_REQUEST_CAPACITY,
        [row for one in figures.fleets for row in by_label({lb.FLEET: one.name}, lb.BASIS, one.capacity)],
    )
    yield family(
        ex.NARROWEST_REQUEST_CAPACITY,
        [row for one in figures.fleets for row in by_label({lb.FLEET: one.name}, lb.BASIS, one.narrowest)],
    )


def _sourced(series: Series, facts: Iterable[tuple[Mapping[str, str], Fact | None]]) -> Metric:
    """The series with one row per known fact, which says where it came from."""
    return family(
        series, [({**labels, lb.SOURCE: fact.source}, fact.value) for labels, fact in facts if fact is not None]
    )
