"""Finds the few lines of a log that matter, in blocks of bytes, without looking at the others.

Gigabytes of history hold a handful of starts. A block far from any start is only searched for landmarks, of which
every start prints one; near a start (the blocks around a landmark, the beginning of the file and its live end) every
line with a needle is read. What was passed over is read again when the next block turns out to hold a landmark, because
a start's first lines stand before it.
"""

from collections.abc import Callable, Iterator
from typing import Final

import attrs

from tidegauge.model import StartupFacts
from tidegauge.parsing.logs import LANDMARKS, NEEDLES, StartupReader

BLOCK: Final = 1 << 20
LONGEST_LINE: Final = 1 << 19
"""Bytes; a longer line is dropped, so that memory stays bounded."""

_NEAR: Final = 2  # blocks read in full after a landmark: a start prints far less
_CUT_PIECE: Final = (
    16_000  # container runtimes cut lines here; the piece before a line tells whether the line is a rest
)


@attrs.frozen
class Place:
    """Where a block stands: its offset, whether it is the live end, and how to get `(size, offset)` bytes again."""

    position: int
    live: bool
    read_again: Callable[[int, int], bytes]


@attrs.define
class Tally:
    """Bytes read, and what became of the lines that were looked at."""

    read_bytes: int = 0
    parsed: int = 0
    ignored: int = 0
    dropped: int = 0


class BlockScanner:
    """Feeds a reader from consecutive blocks of whole lines of one file."""

    def __init__(self, reader: StartupReader) -> None:
        self._reader = reader
        self._near = _NEAR
        self._passed: tuple[int, int] | None = None

    def facts(self) -> StartupFacts:
        """What the reader knows so far."""
        return self._reader.facts()

    def restart(self) -> None:
        """Begin with another file, or with the same one from its start."""
        self._near, self._passed = _NEAR, None

    def scan(self, block: bytearray, end: int, place: Place, tally: Tally) -> None:
        """Read the lines of `block[:end]`, which stands at `place`."""
        if place.live or any(block.find(landmark, 0, end) >= 0 for landmark in LANDMARKS):
            self._near = _NEAR + 1
            if self._passed:
                older = bytearray(place.read_again(*self._passed))
                self.read(older, len(older), tally)
        self._passed = None
        if self._near:
            self._near -= 1
            self.read(block, end, tally)
        else:
            self._passed = (end, place.position)

    def read(self, block: bytearray, end: int, tally: Tally) -> None:
        """Read every line of `block[:end]` that holds a needle."""
        lines = dict(_lines(block, end))
        for start in sorted(lines):
            self._feed_cut_piece(block, start)
            self._feed(block, start, lines[start], tally)
        self._feed_cut_piece(block, end)

    def _feed(self, block: bytearray, start: int, end: int, tally: Tally) -> None:
        line = bytes(block[start:end]).strip(b"\0") if end - start <= LONGEST_LINE else b"\0"
        if b"\0" in line:
            tally.dropped += 1
        elif self._reader.feed(line.decode(errors="replace").rstrip("\r")):
            tally.parsed += 1
        else:
            tally.ignored += 1

    def _feed_cut_piece(self, block: bytearray, end: int) -> None:
        """Show the reader the line before `end` if it may be the first part of a line that a runtime cut."""
        start = block.rfind(b"\n", 0, max(end - 1, 0)) + 1
        if _CUT_PIECE <= end - start <= LONGEST_LINE:
            self._reader.feed(bytes(block[start:end]).decode(errors="replace").rstrip("\r\n"))


def _lines(block: bytearray, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the lines with a needle, in no order, some more than once."""
    for needle in NEEDLES:
        found = block.find(needle, 0, end)
        while found >= 0:
            start, stop = block.rfind(b"\n", 0, found) + 1, block.find(b"\n", found, end)
            stop = end if stop < 0 else stop
            if stop - start > _CUT_PIECE:  # a progress bar's redrawings may stand before the message
                start = max(start, block.rfind(b"\r", start, found) + 1)
                redrawn = block.find(b"\r", found, stop)
                stop = stop if redrawn < 0 else redrawn
            yield start, stop
            found = block.find(needle, stop, end)
