"""Records of vLLM's logger inside one line of plain text: who said it, when, and the message alone.

A record has a header (`INFO 11-29 23:50:05 [core.py:133] `, with or without date and bracket), before it any number of
process prefixes (`(EngineCore pid=1) `) and a tag of the user's. Two records may share a line. Text without such a
header is kept whole, for the patterns to be tried after another logger's header.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from enum import IntEnum
from typing import Final

import attrs

from tidegauge.parsing.logtext import Piece

PROCESS: Final = re.compile(r"\((?P<name>[^()]{1,200}?) pid=(?P<pid>\d+)[^()]{0,120}\)")
HEADER: Final = re.compile(
    r"(?P<chain>(?:\([^()]{1,200}? pid=\d+[^()]{0,120}\)\s{0,4}){0,6})(?:\[(?P<tag>[A-Za-z][\w.-]{0,40})\]\s{0,4})?"
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) "
    r"(?:(?:\d{4}-)?(?P<clock>\d\d-\d\d \d\d:\d\d:\d\d)(?:[.,]\d+)? )?\[?[\w./-]+\.(?:py|rs):\d+\] ?"
)
_ENGINE = re.compile(r"EngineCore(?:_\w+)?")
_CLIENT_WORDS = re.compile(
    r"(?:prompt|content|text|input|query|question|completion|output)s?\\?['\"]?\s*[:=]\s*\\?['\"\[{]|Received request",
    re.IGNORECASE,
)
_REQUEST = re.compile(r"(?:Received|Added|Aborted|Generated) (?:request|response|streaming)|Request \S+ ")
_FIRST_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - headers have no year and no zone; a leap year holds every date


class Style(IntEnum):
    """How sure a line is vLLM's: its own header, another logger's header (or a JSON record's), nothing at all."""

    OWN = 0
    FOREIGN = 1
    BARE = 2


@attrs.frozen
class Record:
    """One message. `engine` is the EngineCore process it came from (with the user's tag), empty where none is named.

    `clock` is seconds since the start of a year, None where the header has no date. `process` is false where no process
    prefix stands before it.
    """

    message: str
    style: Style
    engine: str = ""
    tag: str = ""
    pid: str = ""
    clock: float | None = None
    process: bool = False


def records(piece: Piece) -> Iterator[Record]:
    """Yield the records of one line; a line without vLLM's header is one record of a lesser style."""
    headers = list(HEADER.finditer(piece.text))
    if not headers:
        if piece.labelled:
            yield _headless(piece)
        return
    if quotes_client(piece.text[: headers[0].start()]):
        return
    ends = [*(header.start() for header in headers[1:]), len(piece.text)]
    for header, end in zip(headers, ends, strict=True):
        message = piece.text[header.end() : end].strip()
        if _REQUEST.match(message):
            return
        yield _record(piece, header, message, first=header is headers[0])
        if _open_quote(message):
            return


def quotes_client(before: str) -> bool:
    """Tell whether what stands before a message says that the message is a client's text."""
    return _CLIENT_WORDS.search(before) is not None


def _record(piece: Piece, header: re.Match[str], message: str, *, first: bool) -> Record:
    chain = piece.text[: header.end()] if first else header["chain"]
    engine, pid, any_process = _speaker(chain)
    return Record(
        message=message,
        style=Style.OWN,
        engine=engine or piece.engine,
        tag=header["tag"] or "",
        pid=pid or piece.pid,
        clock=_seconds(header["clock"] or piece.clock),
        process=any_process,
    )


def _headless(piece: Piece) -> Record:
    engine, pid, any_process = _speaker(piece.text[:400])
    return Record(
        message=piece.text.strip(),
        style=Style.FOREIGN if piece.structured else Style.BARE,
        engine=engine or piece.engine,
        pid=pid or piece.pid,
        clock=_seconds(piece.clock),
        process=any_process,
    )


def _speaker(chain: str) -> tuple[str, str, bool]:
    processes = list(PROCESS.finditer(chain))
    for process in reversed(processes):
        if _ENGINE.fullmatch(process["name"]):
            return process["name"], process["pid"], True
    return "", "", bool(processes)


def _open_quote(message: str) -> bool:
    """Tell whether a quotation is still open at the end: what follows is then part of it, not a record of its own."""
    bare = re.sub(r"\\.", "", message)
    return bare.count("'") % 2 == 1 or bare.count('"') % 2 == 1


def _seconds(clock: str | None) -> float | None:
    if clock is None:
        return None
    try:
        moment = datetime.strptime(f"2000-{clock}", "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - see above
    except ValueError:
        return None
    return (moment - _FIRST_DAY).total_seconds()
