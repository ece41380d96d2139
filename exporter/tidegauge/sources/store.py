"""Facts that must outlive the exporter: one JSON file, written whole or not at all."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from tidegauge.model import EngineFacts, Remembered, StartupFacts
from tidegauge.sources import regular

FORMAT: Final = 1
_LONGEST: Final = 64 * 1024 * 1024
_MOST: Final = 1e15
_TEXTS: Final = frozenset({"version", "name", "rule"})


class StoreError(Exception):
    """The state file cannot be read or written; the message names it."""


@attrs.frozen
class Kept:
    """What is kept: startup facts by backend; by fleet the largest fan-out that callers reported or servers showed."""

    backends: Mapping[str, Remembered] = attrs.field(factory=dict)
    largest_fan_out: Mapping[str, int] = attrs.field(factory=dict)
    largest_inferred: Mapping[str, int] = attrs.field(factory=dict)

    def under(self, newer: "Kept") -> "Kept":
        """All of both; where both know something, *newer*."""
        return Kept(
            {**self.backends, **newer.backends},
            {**self.largest_fan_out, **newer.largest_fan_out},
            {**self.largest_inferred, **newer.largest_inferred},
        )


def load(path: Path) -> Kept:
    """What the file holds; nothing if there is none yet. Raises StoreError for a file that is not ours."""
    try:
        text = regular.read_text(path, _LONGEST)
    except regular.UnreadableError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return Kept()
        raise StoreError(str(error)) from error
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            msg = f"{path}: expected format {FORMAT}, found {data['format']!r}"
            raise StoreError(msg)
        backends = {name: _remembered(entry) for name, entry in data["backends"].items()}
        # Files from before fan-outs were inferred lack the third.
        return Kept(backends, _counts(data["largest_fan_out"]), _counts(data.get("largest_inferred", {})))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        msg = f"{path}: expected tidegauge's state, found something else ({type(error).__name__}: {error})"
        raise StoreError(msg) from error


def taken_up(path: Path | None) -> tuple[Kept, str]:
    """What the file holds, and what is wrong with it; one that is not ours is set aside. No file holds nothing."""
    if path is None:
        return Kept(), ""
    try:
        return load(path), ""
    except StoreError as error:
        aside = set_aside(path)
        return Kept(), f"{error}; kept as {aside}" if aside else str(error)


def set_aside(path: Path) -> Path | None:
    """Move a file that is not ours out of the way of the next save; where it went, None if it stays."""
    aside = path.with_name(f"{path.name}.unreadable")
    try:
        return path.replace(aside) if path.is_file() else None
    except OSError:
        return None


def save(path: Path, kept: Kept) -> None:
    """Replace the file's content. Raises StoreError, and leaves the old file, where that fails."""
    data = {
        "format": FORMAT,
        "backends": {name: attrs.asdict(entry) for name, entry in kept.backends.items()},
        "largest_fan_out": dict(kept.largest_fan_out),
        "largest_inferred": dict(kept.largest_inferred),
    }
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe would be replaced by a file: as root, even /dev/null.
            raise OSError("expected a regular file or none, found something else")  # noqa: TRY301 - one message
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    except OSError as error:
        msg = f"{path}: cannot be written: {error}"
        raise StoreError(msg) from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(data, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        msg = f"{path}: cannot be written: {error}"
        raise StoreError(msg) from error


def _counts(entry: dict[str, Any]) -> dict[str, int]:
    return {name: int(_number(name, value)) for name, value in entry.items()}


def _remembered(entry: dict[str, Any]) -> Remembered:
    startup = dict(entry["startup"])
    engines = tuple(EngineFacts(**_checked(engine)) for engine in startup.pop("engines"))
    return Remembered(
        _number("process_start", entry["process_start"]), StartupFacts(engines=engines, **_checked(startup))
    )


def _checked(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts as they are; TypeError for a text where a number belongs, which would fail much later."""
    for name, value in facts.items():
        if value is not None and isinstance(value, str) != (name in _TEXTS):
            msg = f"{name}: {value!r}"
            raise TypeError(msg)
        if isinstance(value, dict | list):
            raise TypeError(name)
        if value is not None and not isinstance(value, str):
            _number(name, value)
    return facts


def _number(name: str, value: float) -> float:
    """A number that a count or a time can be; ValueError for any other, TypeError for what is none."""
    if not 0 <= float(value) < _MOST:
        msg = f"{name}: {value!r}"
        raise ValueError(msg)
    return float(value)
