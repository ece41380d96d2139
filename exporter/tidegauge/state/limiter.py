"""What the limiter logs of one fleet said: the ceiling in force, the reasons it changed for, lines by result."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import attrs

from tidegauge.parsing.limiterlog import CeilingChange

MOST_REASONS: Final = 20
OTHER: Final = "other"


@attrs.frozen
class Limiter:
    """A fleet's limiter logs at one moment: `up` if all of them can be read and matched, None before the first poll.

    `changes` counts by reason those that were seen live, history left out.
    """

    up: bool | None
    ceiling: int | None
    lines: Mapping[str, int]
    changes: Mapping[str, int]


class LimiterState:
    """Collects from the fleet's logs, each known by its file; the smallest ceiling is the fleet's."""

    def __init__(self) -> None:
        self._up: dict[str, bool] = {}
        self._ceilings: dict[str, int] = {}
        self._lines: Counter[str] = Counter()
        self._changes: Counter[str] = Counter()

    @property
    def ceiling(self) -> int | None:
        """Requests that the narrowest limiter lets through, None before a log named it."""
        return min(self._ceilings.values(), default=None)

    def read(self, file: str, lines: Mapping[str, int], *, up: bool) -> None:
        """Count the lines of one poll; `up` if the log can be read and its pattern be used."""
        self._up[file] = up
        self._lines.update(lines)

    def change(self, file: str, change: CeilingChange, *, live: bool) -> None:
        """Book what a line said; one that only states the ceiling in force again is no change."""
        before = self._ceilings.get(file) if change.before is None else change.before
        self._ceilings[file] = change.to
        if live and before != change.to:
            self._changes[self._bounded(change.reason)] += 1

    def forget(self, file: str) -> bool:
        """A log is followed no more: its ceiling holds no longer. Whether no other is followed either."""
        self._up.pop(file, None)
        self._ceilings.pop(file, None)
        return not self._up

    def snapshot(self) -> Limiter:
        up = all(self._up.values()) if self._up else None
        return Limiter(up, self.ceiling, dict(self._lines), dict(self._changes))

    def _bounded(self, reason: str) -> str:
        """The reason itself for the first twenty, `other` for the rest."""
        known = reason in self._changes or len(self._changes.keys() - {OTHER}) < MOST_REASONS
        return reason if known else OTHER
