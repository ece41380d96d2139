"""What is known of each server and where it is from: columns of tables, from the exporter's facts.

A fact has a `source`. In a table it is a word in a column of its own; `observed` is a lower bound and marked as such.
"""

from collections.abc import Mapping
from typing import Final

from dashboards.fields import GOOD, NEUTRAL, PLAIN, WARN, Column, Json, state
from dashboards.queries import ON_BACKEND, by, otherwise, per_backend, select
from tidegauge.catalogue import Series
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "metrics": ("metrics", GOOD),
    "log": ("log", GOOD),
    "server_info": ("server", GOOD),
    "config": ("configured", WARN),
    "observed": ("at least", WARN),
}
"""Each source as a word and its colour: what the server says itself, what someone wrote, a lower bound."""
UNTOLD: Final = len(SOURCES)
"""The place of what no source tells."""
FROM: Final[Mapping[Series, str]] = {
    ex.KV_CAPACITY: "KV from",
    ex.MAX_NUM_SEQS: "slots from",
    ex.MAX_BATCHED_TOKENS: "budget from",
    ex.MAX_MODEL_LEN: "length from",
    ex.P90_PROMPT: "prompt from",
}
"""How a table heads the source of a fact."""
DOUBT: Final = "KV capacity"
_DISPUTED, _UNKNOWN, _NOT_POLLED = 1, 2, 3

_MEMBERS: Final = by("group", select(rc.FLEET_MEMBER), lb.BACKEND)


def of_members(expr: str) -> str:
    """The values of the backends that serve one of the chosen models in one of the chosen fleets."""
    return f"({expr}) and {ON_BACKEND} {select(rc.FLEET_MEMBER)}"


def columns(fact: Series, title: str, unit: str) -> tuple[Column, Column]:
    """The fact, and where it is from."""
    told = otherwise(by("max", places_of(fact), lb.BACKEND), f"{_MEMBERS} * {UNTOLD}")
    return (
        Column(title, of_members(f"round({per_backend(fact)})"), unit),
        Column(FROM[fact], of_members(told), "none", mappings=source_words()),
    )


def places_of(fact: Series) -> str:
    """The source of each fact as its place in `SOURCES`."""
    return otherwise(*(f"{select(fact, source=name)} * 0 + {place}" for place, name in enumerate(SOURCES)))


def source_words() -> tuple[Json, ...]:
    """What to show for the place of a source."""
    return (
        *(state(place, *words) for place, words in enumerate(SOURCES.values())),
        state(UNTOLD, "unknown", NEUTRAL),
    )


def doubt() -> Column:
    """Whether the KV capacity of each backend is known for sure; if not, whether an exporter polls it at all."""
    disputed = per_backend(ex.KV_DISAGREE)
    known = f"{select(rc.KV_CAPACITY)} * 0"
    polled = f"({select(rc.BACKEND_COVERED)} == 1) * {_UNKNOWN}"
    words = (
        state(0, "known", PLAIN),
        state(_DISPUTED, "disputed", WARN),
        state(_UNKNOWN, "unknown", NEUTRAL),
        state(_NOT_POLLED, "not polled", NEUTRAL),
    )
    return Column(
        DOUBT, of_members(otherwise(disputed, known, polled, f"{_MEMBERS} * {_NOT_POLLED}")), "none", mappings=words
    )
