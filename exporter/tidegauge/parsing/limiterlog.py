"""A limiter's own log: which pattern can find the ceiling in it, and what a line that it matched says."""

import re
import warnings
from collections.abc import Mapping
from typing import Final

import attrs

from tidegauge.parsing.events import MAX_COUNT

LONGEST_PATTERN: Final = 500
LONGEST_LINE: Final = 1000
"""Characters; a longer line is dropped, not cut: a cut `28` would be read as 2."""

LONGEST_REASON: Final = 64
_VALUE: Final = ("ceiling", "to")
_GROUPS: Final = (*_VALUE, "from", "reason")
_DIGITS: Final = re.compile(r"\d{1,3}(?:[,_]?\d{1,3}){0,3}", re.ASCII)


@attrs.frozen
class CeilingChange:
    """A line says that the limiter lets `to` requests through at once, `before` until then, and why.

    `before` is None and `reason` empty where the line does not say.
    """

    to: int
    before: int | None = None
    reason: str = ""


def fault(pattern: str) -> tuple[str, str] | None:
    """What was expected and found when this pattern cannot be used, None for a good one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            groups = re.compile(pattern).groupindex
    except (re.error, RecursionError, OverflowError, Warning) as error:
        return "a regular expression", f"one with a mistake: {error}"
    unknown = [name for name in groups if name not in _GROUPS]
    if unknown:
        return f"groups named {', '.join(_GROUPS)}", repr(unknown[0])
    given = [name for name in _VALUE if name in groups]
    if len(given) != 1:
        return "one group named `ceiling` or `to`", "both" if given else "none"
    return None


def read_change(groups: Mapping[str, str | None]) -> CeilingChange | None:
    """What the groups of a match say; None where the ceiling is no whole number from 0 to 100000."""
    to = _count(groups.get("to") or groups.get("ceiling"))
    if to is None:
        return None
    return CeilingChange(to, _count(groups.get("from")), _clean(groups.get("reason") or ""))


def _count(text: str | None) -> int | None:
    if text is None or not _DIGITS.fullmatch(text.strip()):
        return None
    value = int(re.sub("[,_]", "", text))
    return value if value <= MAX_COUNT else None


def _clean(text: str) -> str:
    """On one line, printable, short."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 4 * LONGEST_REASON])
    return " ".join(printable.split())[:LONGEST_REASON].rstrip()
