"""Captures: raw pages in a plain or gzip text file, each after one comment line that says when it was taken.

`# SCRAPE ts=<unix seconds> status=<code> ...`; a poll without a page has `status=ERR error="..."` and no body. A file
without such a line is taken as one page, as saved by hand.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import attrs

from tidegauge.sources import regular
from tidegauge.sources.scrape import Failed, Fetched

ENDING: Final = ".scrapes.gz"
"""How the file of a capture ends that `tidegauge record` writes."""
_MARK: Final = "# SCRAPE "
_LATEST: Final = 1e11  # unix seconds in the year 5138: milliseconds by mistake are beyond it
_FIELD: Final = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


class BadCaptureError(ValueError):
    """A file that is no capture; the message names the file and the line."""


@attrs.frozen
class Taken:
    """One poll of a capture: `body` is None where the poll gave no page, `reason` then says why."""

    at: float
    seconds: float
    body: str | None = attrs.field(repr=False)
    reason: str = ""


def read(path: Path) -> Iterator[Taken]:
    """The polls of the capture in file order; one page is held at a time.

    Raises BadCaptureError for an unreadable file or header. A gzip file cut short gives the pages that are whole: the
    last one is a poll without a page, `reason="cut"`.
    """
    header: Taken | None = None
    lines: list[str] = []
    try:
        with _open(path) as stream:
            for number, line in enumerate(stream, 1):
                if line.startswith(_MARK):
                    yield from _page(header, lines, path, followed=True)
                    header, lines = _header(line, path, number), []
                else:
                    lines.append(line)
    except EOFError:
        if header is None:
            msg = f"{path}: cannot be read: cut short within its first page"
            raise BadCaptureError(msg) from None
        yield attrs.evolve(header, body=None, reason=header.reason or "cut")
        return
    except regular.UnreadableError as error:
        raise BadCaptureError(str(error)) from error
    except (OSError, zlib.error) as error:
        msg = f"{path}: cannot be read: {error}"
        raise BadCaptureError(msg) from error
    yield from _page(header, lines, path, followed=False)


def write(stream: IO[str], outcome: Fetched | Failed) -> None:
    """Append one poll to an open capture."""
    if isinstance(outcome, Failed):
        stream.write(
            f"{_MARK}ts={outcome.at:.6f} dur_ms={outcome.seconds * 1e3:.1f} status=ERR "
            f"reason={outcome.reason} error={json.dumps(outcome.message)}\n"
        )
        return
    # A line of a page can only be taken for a header if it is a comment of ours.
    body = ("\n" + outcome.body).replace("\n" + _MARK, "\n# " + _MARK)[1:]
    size = len(outcome.body.encode())
    stream.write(f"{_MARK}ts={outcome.at:.6f} dur_ms={outcome.seconds * 1e3:.1f} status=200 bytes={size}\n")
    stream.write(body if body.endswith("\n") else body + "\n")


def _open(path: Path) -> IO[str]:
    if regular.head(path, 2) == b"\x1f\x8b":
        return gzip.open(path, "rt", encoding="utf-8", errors="replace")
    return path.open(encoding="utf-8", errors="replace")


def _header(line: str, path: Path, number: int) -> Taken:
    fields = dict(_FIELD.findall(line))
    try:
        at, seconds = float(fields["ts"]), float(fields.get("dur_ms", 0)) / 1e3
        status = fields["status"]
        if not (0 <= at < _LATEST and 0 <= seconds < _LATEST):
            raise ValueError(at)  # noqa: TRY301 - one message for whatever is no time
    except (KeyError, ValueError) as error:
        msg = f"{path}:{number}: expected '# SCRAPE ts=<unix seconds> status=<code>', found {line.strip()[:80]!r}"
        raise BadCaptureError(msg) from error
    usable = status == "200"
    return Taken(at, seconds, "" if usable else None, "" if usable else fields.get("reason", _reason(status)))


def _reason(status: str) -> str:
    return f"http_{status}" if status.isdigit() else "connection"


def _page(header: Taken | None, lines: list[str], path: Path, *, followed: bool) -> Iterator[Taken]:
    """The poll that *lines* belong to; what stands before the first header of a capture is its preface."""
    body = "".join(lines)
    if header is None:
        if body.strip() and not followed:
            yield Taken(path.stat().st_mtime, 0.0, body)
    elif header.body is None:
        yield header
    else:
        yield attrs.evolve(header, body=body)
