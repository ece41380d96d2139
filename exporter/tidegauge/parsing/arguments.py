"""Argument lists as vLLM prints them: `{'key': value, ...}` and `Namespace(key=value, ...)`, read key by key.

Both are Python representations, but not literals: values hold objects (`KVTransferConfig(...)`, `<Enum.A: 'a'>`), and a
posted log is often cut off in the middle. So only the top-level keys are walked, and a value counts once its end is
seen.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"\\.|['\"]|[\[({]|[\])}]|,", re.DOTALL)
_PAIR = re.compile(r"\s*(?:'(?P<quoted>\w+)'\s*:|(?P<plain>\w+)=)\s*(?P<value>.*)", re.DOTALL)
_INTEGER = re.compile(r"-?\d+")


def pairs(text: str, start: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the top-level `(key, value)` texts of the list that begins at `start`, until it ends or is cut."""
    depth, quote, begin = 0, "", start
    for token in _TOKEN.finditer(text, start):
        char = token.group()
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[({":
            depth += 1
        elif depth and char in "])}":
            depth -= 1
        elif not depth and char in ",)}":
            if found := _PAIR.fullmatch(text, begin, token.start()):
                yield found["quoted"] or found["plain"], found["value"].strip()
            if char != ",":
                return
            begin = token.end()


def integers(text: str, wanted: frozenset[str], start: int = 0) -> dict[str, int]:
    """Return the wanted keys whose value is a positive integer; `None`, `'auto'` and -1 mean that nothing was set."""
    found = {}
    for key, value in pairs(text, start):
        if key in wanted and _INTEGER.fullmatch(value) and int(value) > 0:
            found[key] = int(value)
    return found
