"""Whether a ceiling cuts barriers: its states in words and colours, and whose ceiling it is."""

from collections.abc import Mapping
from typing import Final

from dashboards import charts as c
from dashboards.fields import BAD, GOOD, NEUTRAL, PURPLE, VERMILION, WARN, Json, Panel, Query, override, state
from dashboards.queries import ON_BACKEND, UNKNOWN, by, or_unknown, otherwise, reads, select
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

WHOSE: Final[Mapping[str, str]] = {lb.CLIENT: "caller's", lb.SERVER: "servers'"}
"""What the caller's limiter lets through, and the sequence slots of all servers together."""
COLOURS: Final[Mapping[str, str]] = {lb.CLIENT: PURPLE, lb.SERVER: VERMILION}
_SHORT: Final = "one short"
_STATES: Final[Mapping[str, str]] = {"inert": GOOD, "unmeasured": NEUTRAL, _SHORT: WARN, "clips": BAD}
"""The more it needs a look the higher it counts, so that the largest of several fleets is the one to look at."""
_NUMBERS: Final = {name: number for number, name in enumerate(_STATES)}
MEANING: Final = (
    "Clips: some barriers are larger than what it lets through at once, and come in waves. Inert: not even the largest "
    "one reaches it. One short: the slots of all servers together would do, yet requests wait for those of one. "
    f"Unmeasured: no barrier was seen. {reads(rc.CEILING_VERDICT, rc.WAITING_CAUSE, rc.FLEET_MEMBER)}"
)


def state_of(kind: str, *labels: str) -> str:
    """The number of the state to look at, of that kind of ceiling, for each set of the labels."""
    states = [
        f"({select(rc.CEILING_VERDICT, ceiling=kind, state=name)} == 1) * 0 + {_NUMBERS[name]}" for name in lb.STATES
    ]
    if kind == lb.SERVER:
        waits = f"{select(rc.WAITING_CAUSE, cause='sequence_slots')} > 0"
        states.append(f"({select(rc.FLEET_MEMBER)} and {ON_BACKEND} ({waits})) * {_NUMBERS[_SHORT]}")
    return by("max", otherwise(*states), *labels)


def words() -> list[Json]:
    """What to show for the number of a state."""
    return [
        state(UNKNOWN, "unknown", NEUTRAL),
        *(state(number, name, _STATES[name]) for name, number in _NUMBERS.items()),
    ]


def verdict(id_: int, title: str) -> Panel:
    """The state of either kind now; of several fleets that of the one to look at."""
    return c.stat(
        id_,
        title,
        "The caller's ceiling, and the servers' sequence slots. Of several fleets, the one to look at. Unknown: no "
        f"exporter knows such a ceiling. {MEANING}",
        "none",
        *(Query(or_unknown(state_of(kind)), whose, instant=True) for kind, whose in WHOSE.items()),
        mappings=words(),
        named=True,
    )


def named() -> list[Json]:
    """Series that have the name of their kind of ceiling say whose it is."""
    return [override(kind, displayName=whose) for kind, whose in WHOSE.items()]
