"""Startup facts from a server's log, line by line: `StartupReader`, and `read_log` for a text at hand.

No text of a line is kept: only numbers, versions, and the names and pids of processes.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tidegauge.model import StartupFacts
from tidegauge.parsing import statements as st
from tidegauge.parsing.logrecords import HEADER, PROCESS, Record, Style, records
from tidegauge.parsing.logrestarts import begins_anew, carried_over
from tidegauge.parsing.logruns import Run
from tidegauge.parsing.logtext import clean, split_stream, stream_of, unwrap
from tidegauge.parsing.wordings import KNOWN_START, read

NEEDLES: Final[tuple[bytes, ...]] = (
    b"KV cache size:",
    b"Maximum concurrency for ",
    b" blocks: ",
    b"Initializing a",
    b"-default args: ",
    b"args: Namespace(",
    b" version ",
    b"Using max model len ",
    b"Auto-fit max_model_len",
    b"Chunked prefill is enabled with ",
    b" usage context",
    b"num_gpu_blocks",
    b"Application startup ",
    b"max seq len (",
    b"WorkerProc ",
    b"No available memory",
    b" failed to start",
    b"initialization failed",
)
"""Every line worth parsing contains one of these."""

LANDMARKS: Final[tuple[bytes, ...]] = (b"KV cache size:", b"Initializing a")
"""Every start of every version prints one of these: few and long, to find the starts in gigabytes of history."""

_WORTH = re.compile("|".join(re.escape(needle.decode()) for needle in NEEDLES))
_LOG_LINE = re.compile(f"{re.sub(r'[(][?]P<[a-z]+>', '(?:', HEADER.pattern)}|{KNOWN_START.pattern}")
_ENGINE_LINE = re.compile(r"\((?P<name>EngineCore(?:_\w+)?) pid=\d+\)")
_BEGINS = re.compile(
    rf"\s|[\[{{]|\S+ +\||{HEADER.pattern}|{PROCESS.pattern}|(?:DEBUG|INFO|WARNING|ERROR)\b|\d{{4}}-\d\d"
    rf"|{KNOWN_START.pattern}"
)
_WIDEST: Final = 500
_ANNOUNCEMENT = (st.Banner, st.Arguments, st.EngineStart)
_OUTCOME = (st.Ready, st.Failed)


class StartupReader:
    """Collects the startup facts of one server's log, line by line; a restart begins a new run and inherits nothing.

    The best style of line seen decides which are believed: once vLLM's own headers were seen, a bare line that reads
    like a fact is somebody's quotation.
    """

    def __init__(self) -> None:
        self._run = Run(0)
        self._style = Style.BARE
        self._unfinished: str | None = None

    def feed(self, line: str) -> bool:
        """Read one line, without its end; True if it said something that is read here."""
        rest_of_earlier = self._unfinished is not None and stream_of(line) == self._unfinished
        if not rest_of_earlier or not split_stream(line):
            self._unfinished = split_stream(line)
        heard = False
        if rest_of_earlier:
            return heard
        for piece in unwrap(line, _LOG_LINE) if _WORTH.search(line) else ():
            for record in records(piece):
                heard |= self._hear(record)
        if not heard:
            self._notice(line)
        return heard

    def facts(self) -> StartupFacts:
        """Return the facts of the last start seen; `run` is 0 when there was none."""
        return self._run.facts()

    def _notice(self, line: str) -> None:
        """Learn the name of an engine process from any line, as long as no start was seen."""
        if self._run.number == 0 and (found := _ENGINE_LINE.match(clean(line[:400]))):
            self._run.engine(Record("", Style.BARE, engine=found["name"]))

    def _hear(self, record: Record) -> bool:
        style, said = read(record)
        believed = [each for each in said if self._believes(style, each)]
        for each in believed:
            self._take(record, each)
        if believed and not isinstance(believed[0], _OUTCOME):
            self._style = style
        return bool(believed)

    def _believes(self, style: Style, said: st.Statement) -> bool:
        if isinstance(said, _OUTCOME):
            return True
        over = self._run.started is not None or self._run.cached()
        return style <= self._style or (style is Style.FOREIGN and isinstance(said, _ANNOUNCEMENT) and over)

    def _take(self, record: Record, said: st.Statement) -> None:
        if self._run.number == 0:
            self._run = Run(1)
        elif begins_anew(self._run, record, said):
            size = carried_over(self._run, record, said)
            self._run = Run(self._run.number + 1)
            if size:
                self._run.cache(record, size)
        self._run.take(record, said)


def read_log(text: str) -> StartupFacts:
    """Return the facts of the last start in a whole text, which a terminal may have wrapped."""
    reader = StartupReader()
    for line in _unwrapped(re.split(r"\r*\n", text)):
        reader.feed(line)
    return reader.facts()


def _unwrapped(lines: list[str]) -> Iterator[str]:
    """Join what a terminal broke where it ended: full-width lines that go on with text that begins no line of a log."""
    plain = [clean(line) for line in lines]
    lengths = Counter(map(len, plain))
    width = max(lengths)
    begun = ""
    for line, following in pairwise([*plain, ""]):
        begun += line
        full = len(line) == width <= _WIDEST and (lengths[width] > 1 or HEADER.search(line))
        if full and following and not _BEGINS.match(following):
            continue
        yield begun
        begun = ""
