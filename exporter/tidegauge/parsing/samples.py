"""One line of a metrics page: which series it names, what that series is to us, and its number.

This is the slow, careful reading. `tidegauge.parsing.layout` does it once per series and remembers the outcome.
"""

import functools
import math
import re
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final, Literal

import attrs

from tidegauge import vllm
from tidegauge.model import SeriesKey

Part = Literal["value", "bucket", "sum", "count", "info", "start"]
Labels = tuple[tuple[str, str], ...]
LONGEST_VALUE: Final = 1024
"""Characters of a label value that becomes one of ours; more is no name."""
_OURS: Final = frozenset({vllm.MODEL_NAME, vllm.ENGINE, *chain.from_iterable(vllm.EXTRA_LABELS.values())})

_SAMPLE = re.compile(
    r"""(?P<head> \s* (?P<name> [a-zA-Z_:][a-zA-Z0-9_:]* )
          (?: \s* \{ (?P<labels> (?: [^"{}] | "(?: [^"\\] | \\. )*+" )*+ ) \} \s* | \s+ ) )
        (?P<tail> [^\s{}] .* )""",
    re.VERBOSE,
)
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*+)"\s*(?:,|$)')
_ESCAPE = re.compile(r'\\([\\"n])')
_AFTER_NUMBER = re.compile(r"(?:[-+]?[0-9][0-9.eE+-]*)?\s*(?:#.*)?")

_HISTOGRAM_PARTS: Final[tuple[tuple[str, Part], ...]] = (("_bucket", "bucket"), ("_sum", "sum"), ("_count", "count"))
_ROUTER_LABEL: Final = "server"
_PROCESS_LABEL: Final = "pid"


class Unreadable(ValueError):  # noqa: N818 - a finding about the line, never an error of the program
    """The line is no sample."""


@attrs.frozen
class Name:
    """What a full sample name stands for; of several names for one thing the lowest `rank` wins."""

    family: str
    part: Part
    rank: int


@attrs.frozen
class Place:
    """Where the number of a series belongs; `source` is the labels that the key leaves out, `edge` a bucket's."""

    key: SeriesKey
    part: Part
    rank: int
    source: Labels = ()
    edge: float = math.inf


@attrs.frozen
class Series:
    """A series as a page spells it.

    `head` is the text of the line up to its number, `identity` its name and labels in one spelling, empty for series
    that are not ours. These have no `place`; `router` is true for one of vLLM's families that a router reports about
    other machines.
    """

    head: str
    name: str
    identity: str = ""
    place: Place | None = None
    router: bool = False


@functools.lru_cache(maxsize=16)
def names(prefixes: tuple[str, ...]) -> Mapping[str, Name]:
    """Every full sample name that is read: prefixes x families in all their spellings x suffixes.

    Rank order: today's name before an older one before a counter without `_total` (Ray exposes those), and within
    these the order of `prefixes`.
    """
    table: dict[str, Name] = {}
    for position, prefix in enumerate(prefixes):
        for age, (family, spelling) in enumerate(_spellings()):
            for suffix, part in _parts(family):
                name = Name(family, part, age * len(prefixes) + position)
                table.setdefault(f"{prefix}{spelling}{suffix}", name)
    table.setdefault(vllm.PROCESS_START, Name(vllm.PROCESS_START, "start", 0))
    return MappingProxyType(table)


def _spellings() -> list[tuple[str, str]]:
    today = [(family, family) for family in vllm.KINDS]
    older = [(family, alias) for alias, family in vllm.ALIASES.items()]
    bare = [
        (family, spelling.removesuffix("_total"))
        for family, spelling in today + older
        if vllm.KINDS[family] == "counter"
    ]
    return today + older + bare


def _parts(family: str) -> tuple[tuple[str, Part], ...]:
    kind = vllm.KINDS[family]
    if kind == "histogram":
        return _HISTOGRAM_PARTS
    return (("", "info"),) if kind == "info" else (("", "value"),)


def parse(line: str, table: Mapping[str, Name]) -> tuple[Series, str]:
    """The series of a line and the text after it; raises `Unreadable`."""
    match = _SAMPLE.fullmatch(line)
    if match is None:
        raise Unreadable(line)
    name = table.get(match["name"])
    if name is None:
        return Series(match["head"], match["name"]), match["tail"]
    labels = _labels(match["labels"] or "")
    router = _ROUTER_LABEL in labels and not (vllm.MODEL_NAME in labels or vllm.ENGINE in labels)
    place = None if router else _place(name, labels)
    identity = f"{match['name']} {sorted(labels.items())}"
    return Series(match["head"], match["name"], identity, place, router), match["tail"]


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    position = 0
    end = len(text.rstrip())
    while position < end:
        match = _LABEL.match(text, position)
        if match is None or match[1] in labels:
            raise Unreadable(text)
        value = match[2]
        if len(value) > LONGEST_VALUE and match[1] in _OURS:
            raise Unreadable(f"{match[1]} of {len(value)} characters")
        labels[match[1]] = _ESCAPE.sub(_unescape, value) if "\\" in value else value
        position = match.end()
    return labels


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _place(name: Name, labels: Mapping[str, str]) -> Place:
    family = name.family
    if name.part == "info":
        kept = tuple(sorted((label, value) for label, value in labels.items() if label != _PROCESS_LABEL))
        return Place(SeriesKey(family, engine=labels.get(vllm.ENGINE, "")), "info", name.rank, kept)
    own = (vllm.MODEL_NAME, vllm.ENGINE, *vllm.EXTRA_LABELS.get(family, ()))
    extra = "/".join(labels.get(label, "") for label in own[2:])
    key = SeriesKey(family, labels.get(vllm.MODEL_NAME, ""), labels.get(vllm.ENGINE, ""), extra)
    edge = math.inf
    if name.part == "bucket":
        edge, own = _edge(labels.get("le")), (*own, "le")
    source = tuple(sorted((label, value) for label, value in labels.items() if label not in own))
    return Place(key, name.part, name.rank, source, edge)


def _edge(text: str | None) -> float:
    try:
        edge = float(text or "")
    except ValueError:
        edge = math.nan
    if math.isnan(edge):
        raise Unreadable(f"bucket edge {text!r}")
    return edge


def number(tail: str) -> float | None:
    """The number at the start of the text after a series; a timestamp and an exemplar may follow. None if unreadable.

    Numbers are read as Python's `float` reads them, which covers the formats' (`1.17e+010`, `+Inf`, `NaN`).
    """
    first, *rest = tail.split(None, 1) or ("",)
    try:
        value = float(first)
    except ValueError:
        return None
    return value if not rest or _AFTER_NUMBER.fullmatch(rest[0].rstrip()) else None
