"""What is known of each server and where it is from: columns of tables, from the exporter's facts.

A fact has a `source`. In a table it is a word in a column of its own; `observed` is a lower bound and marked as such.
"""

from collections.abc import Mapping
from typing import Final

from dashboards.fields import NEUTRAL, PLAIN, WARN, Column, state
from dashboards.queries import ON_BACKEND, by, otherwise, per_backend, select
from tidegauge.catalogue import Series
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    "config": ("configured", PLAIN),
    "metrics": ("metrics", PLAIN),
    "log": ("log", PLAIN),
    "server_info": ("server", PLAIN),
    "observed": ("at least", WARN),
}
"""Each source as a word and its colour, the most trusted first."""
NO_SOURCE: Final = ("no source", NEUTRAL)
DOUBT: Final = "KV capacity"
DISPUTED, UNKNOWN, UNTOLD = 1, 2, 3

_MEMBERS: Final = by("group", select(rc.FLEET_MEMBER), lb.BACKEND)


def of_members(expr: str) -> str:
    """The values of the backends that serve one of the chosen models in one of the chosen fleets."""
    return f"({expr}) and {ON_BACKEND} {select(rc.FLEET_MEMBER)}"


def columns(fact: Series, title: str, unit: str, origin: str) -> tuple[Column, Column]:
    """The fact and, under the heading *origin*, where it is from."""
    return (
        Column(title, of_members(f"round({per_backend(fact)})"), unit),
        Column(
            origin,
            of_members(otherwise(by("max", _places(fact), lb.BACKEND), f"{_MEMBERS} * {len(SOURCES)}")),
            "none",
            mappings=tuple(state(place, *words) for place, words in enumerate((*SOURCES.values(), NO_SOURCE))),
        ),
    )


def _places(fact: Series) -> str:
    """The source of each fact as its place in `SOURCES`."""
    return otherwise(*(f"{select(fact, source=name)} * 0 + {place}" for place, name in enumerate(SOURCES)))


def doubt() -> Column:
    """Whether the KV capacity of each backend is known for sure; if not, whether an exporter polls it at all."""
    disputed = per_backend(ex.KV_DISAGREE)
    known = f"{select(rc.KV_CAPACITY)} * 0"
    polled = f"({select(rc.BACKEND_COVERED)} == 1) * {UNKNOWN}"
    words = (
        state(0, "known", PLAIN),
        state(DISPUTED, "disputed", WARN),
        state(UNKNOWN, "unknown", WARN),
        state(UNTOLD, "not polled", NEUTRAL),
    )
    return Column(
        DOUBT, of_members(otherwise(disputed, known, polled, f"{_MEMBERS} * {UNTOLD}")), "none", mappings=words
    )
