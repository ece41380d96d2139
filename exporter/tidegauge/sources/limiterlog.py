"""What a limiter's log says of its ceiling: takes the lines of a LogFollower, keeps the changes only."""

import threading
from collections.abc import Sequence
from typing import Final

from tidegauge.parsing.limiterlog import LONGEST_LINE, CeilingChange, read_change
from tidegauge.parsing.logtext import clean
from tidegauge.sources.logscan import Place, Tally
from tidegauge.sources.matcher import SECONDS, Groups, Matcher

TAIL: Final = 16 << 20
"""Bytes of history that are read for the ceiling in force when the exporter starts."""

_MOST_SLOW: Final = 3


class ChangeReader:
    """The lines of one limiter's log against its pattern.

    A line that matches and names a ceiling is `parsed`, one that does not match `ignored`; `dropped` are those that
    are too long, not text, or match without a usable number. `fault` says why a pattern was given up: it took too
    long on three lines in a row.
    """

    def __init__(self, pattern: str, seconds: float = SECONDS) -> None:
        self.fault = ""
        self._matcher = Matcher(pattern, seconds)
        self._found: list[CeilingChange] = []
        self._seen = 0
        self._slow = 0
        self._reading = threading.RLock()

    def restart(self) -> None:
        """Another file begins: nothing to forget."""

    def facts(self) -> int:
        """How many changes were seen so far."""
        return self._seen

    def scan(self, block: bytearray, end: int, place: Place, tally: Tally) -> None:
        """Read the lines of `block[:end]`, wherever it stands."""
        del place
        self.read(block, end, tally)

    def read(self, block: bytearray, end: int, tally: Tally) -> None:
        """Read every line of `block[:end]`."""
        whole = [line for line in bytes(block[:end]).split(b"\n") if line.strip()]
        lines = [text for line in whole if (text := _text(line))]
        tally.dropped += len(whole) - len(lines)
        if self.fault:
            tally.dropped += len(lines)
            return
        with self._reading:
            for number, groups in enumerate(self._matcher.search(lines)):
                self._take(groups, tally)
                if self.fault:
                    tally.dropped += len(lines) - number - 1
                    break

    def take(self) -> Sequence[CeilingChange]:
        """The changes since the last call, oldest first."""
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        """End the process that matches, also under a thread that reads."""
        self._matcher.kill()
        with self._reading:
            self._matcher.close()

    def _take(self, groups: Groups | None, tally: Tally) -> None:
        self._slow = self._slow + 1 if groups is None else 0
        if self._slow == _MOST_SLOW:
            self.fault = "the pattern takes too long and is given up until it is changed; make it simpler"
            self.close()
        if groups is not None and not groups:
            tally.ignored += 1
            return
        change = read_change(groups) if groups is not None else None
        if change is None:
            tally.dropped += 1
            return
        tally.parsed += 1
        self._seen += 1
        self._found.append(change)


def _text(line: bytes) -> str:
    """The line as plain text, empty where it is too long or not text."""
    if len(line) > 4 * LONGEST_LINE or b"\0" in line.strip(b"\0"):
        return ""
    text = clean(line.strip(b"\0").decode(errors="replace")).rstrip("\r")
    return text if len(text) <= LONGEST_LINE else ""
