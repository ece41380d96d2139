"""Follows one log file through rotation, truncation and deletion, and hands its whole lines on."""

import os
import stat
import zlib
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import attrs

from tidegauge.sources.logscan import BLOCK, LONGEST_LINE, Place, Tally

SLICE: Final = 64 << 20
"""Bytes that one poll reads at most."""

_MOST_LINES: Final = 20_000  # lines parsed in one poll at most, about
_HEAD: Final = 1024


@attrs.frozen
class LogProgress:
    """What one poll did.

    `parsed` lines said something, `ignored` ones only looked like it, `dropped` ones were too long or not text; lines
    without a needle are not counted. `changed`: the sink's facts are others than before. `caught_up`: everything
    written so far was read, apart from an unfinished last line. `error` names the file and what is wrong with it.
    """

    read_bytes: int = 0
    parsed: int = 0
    ignored: int = 0
    dropped: int = 0
    changed: bool = False
    caught_up: bool = False
    error: str | None = None

    @property
    def lines(self) -> dict[str, int]:
        """Lines by what became of them."""
        return {"parsed": self.parsed, "ignored": self.ignored, "dropped": self.dropped}


class UnusableLogError(Exception):
    """The file is there, but it is no log."""


class Sink(Protocol):
    """What takes the lines, in blocks of whole ones, and counts in the tally what became of them."""

    def restart(self) -> None:
        """Begin with another file, or with the same one from its start."""

    def scan(self, block: bytearray, end: int, place: Place, tally: Tally) -> None:
        """Take the lines of `block[:end]`, which stands at `place`."""

    def read(self, block: bytearray, end: int, tally: Tally) -> None:
        """Take the lines of `block[:end]`, all of them."""

    def facts(self) -> object:
        """What was learnt so far, to be compared."""


class LogFollower:
    """Reads one log file, however often it is replaced; one poll at a time.

    `position` is the offset of the first byte not yet read in the file that is open now. No text is kept between
    polls: an unfinished last line is read again when it is complete. Of a file that is there at the first poll, `tail`
    bytes before its end are read; None reads all of it.
    """

    def __init__(self, path: Path, sink: Sink, tail: int | None = None) -> None:
        self.path = path
        self.position = 0
        self._sink = sink
        self._tail = tail
        self._file: int | None = None
        self._head = (0, 0)
        self._in_long_line = False

    def poll(self, budget: int = SLICE) -> LogProgress:
        """Read on, at most about `budget` bytes. Blocks; whatever befalls the file is told, not raised."""
        before, tally = self._sink.facts(), Tally()
        caught_up, error = False, None
        try:
            caught_up, error = self._read(budget, tally)
        except UnusableLogError as problem:
            error = f"{self.path}: {problem}"
        except OSError as problem:
            error = f"{self.path}: {problem.strerror or problem}"
        self._tail = None
        if error and not caught_up:
            self.close()
        return self._progress(before, tally, caught_up=caught_up, error=error)

    def finish(self) -> LogProgress:
        """Read an unfinished last line as well: nothing will be written any more."""
        before, tally = self._sink.facts(), Tally()
        if self._file is not None:
            self._read_unfinished(self._file, tally)
        return self._progress(before, tally, caught_up=True, error=None)

    def close(self) -> None:
        """Let go of the file; the next poll opens it again, from its start."""
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def _progress(self, before: object, tally: Tally, *, caught_up: bool, error: str | None) -> LogProgress:
        changed = self._sink.facts() != before
        return LogProgress(tally.read_bytes, tally.parsed, tally.ignored, tally.dropped, changed, caught_up, error)

    def _read(self, budget: int, tally: Tally) -> tuple[bool, str | None]:
        """Return whether all is read, and what is wrong all the same."""
        file = self._opened()
        self._check_rewritten(file)
        block = bytearray(BLOCK)  # its pages are only touched as far as there is something to read
        while tally.read_bytes < budget and tally.parsed + tally.ignored < _MOST_LINES:
            if self._step(file, block, tally):
                continue
            replaced, problem = self._replaced(file)
            if not replaced:
                return True, problem
            if self._step(file, block, tally):  # written between the last read and the replacement
                continue
            self._read_unfinished(file, tally)
            self.close()
            file = self._opened()
        return False, None

    def _opened(self) -> int:
        if self._file is None:
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._file = file
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise UnusableLogError("not a regular file")
            self._begin(file)
        return self._file

    def _begin(self, file: int) -> None:
        """Start at the first byte of what the file is now."""
        self.position, self._in_long_line = 0, False
        if self._tail is not None and (skipped := os.fstat(file).st_size - self._tail) > 0:
            self.position, self._in_long_line = skipped, True  # in the middle of a line, whose rest is passed over
        self._sink.restart()
        self._take_head(os.pread(file, _HEAD, 0))

    def _take_head(self, head: bytes) -> None:
        if b"\0" in head.lstrip(b"\0"):  # zeros alone are what truncating under a writer leaves
            raise UnusableLogError("not text: compressed, UTF-16 or binary")
        self._head = (len(head), zlib.crc32(head))

    def _check_rewritten(self, file: int) -> None:
        """Start again if the file was truncated, even if it has grown past the old position since."""
        head = os.pread(file, _HEAD, 0)
        size, checksum = self._head
        if os.fstat(file).st_size < self.position or zlib.crc32(head[:size]) != checksum:
            self._begin(file)
        elif len(head) > size:
            self._take_head(head)

    def _replaced(self, file: int) -> tuple[bool, str | None]:
        """Tell whether the path leads to another file now, and what is wrong with it."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return False, f"{self.path}: deleted; waiting for a new one"
        except OSError as problem:
            return False, f"{self.path}: {problem.strerror or problem}"
        return not os.path.samestat(now, os.fstat(file)), None

    def _step(self, file: int, block: bytearray, tally: Tally) -> int:
        """Read the next whole lines, at most a block; return their size, 0 if there are none (yet)."""
        size = os.preadv(file, [block], self.position)
        if self._in_long_line:
            end = block.find(b"\n", 0, size) + 1
            self._in_long_line, done = not end, end or size
        else:
            done = _whole_lines(block, size)
            if done:
                place = Place(self.position, live=size < len(block), read_again=partial(os.pread, file))
                self._sink.scan(block, done, place, tally)
            elif size > LONGEST_LINE:
                self._in_long_line, done = True, size
                tally.dropped += 1
        self.position += done
        tally.read_bytes += done
        return done

    def _read_unfinished(self, file: int, tally: Tally) -> None:
        """Take what is left as the last line: its writer is gone."""
        rest = bytearray(os.pread(file, LONGEST_LINE, self.position))
        if not self._in_long_line:
            self._sink.read(rest, len(rest), tally)
        self.position += len(rest)
        tally.read_bytes += len(rest)


def _whole_lines(block: bytearray, size: int) -> int:
    """Return where the last whole line ends. A progress bar may redraw its line for ever without ending it."""
    end = block.rfind(b"\n", 0, size) + 1
    if not end and size > LONGEST_LINE:
        end = block.rfind(b"\r", 0, size) + 1
    return end
