"""The boards as files: those that ship with tidegauge, or a folder of one's own."""

import json
import re
from pathlib import Path
from typing import Any, Final

import attrs

from tidegauge import shipped
from tidegauge.sources import regular

Json = dict[str, Any]

FOLDER: Final = "dashboards/json"
_LARGEST: Final = 16 * 1024 * 1024
_RUNBOOKS: Final = "runbooks"
_UID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


class BoardsError(Exception):
    """Boards that are missing or that Grafana could not take; the message names the file or the folder."""


@attrs.frozen
class Board:
    """One board: the name of its file, and what Grafana knows it by. `content` is the whole of it, as in the file."""

    file: str
    uid: str
    title: str
    content: Json = attrs.field(repr=False)


def folder(given: str | None = None) -> Path:
    """The folder of the boards' files: the one *given*, else the checkout's, else the installation's.

    Raises BoardsError where there is none.
    """
    if given:
        if not Path(given).is_dir():
            raise BoardsError(f"--boards {given}: expected a folder of boards, found none")
        return Path(given)
    try:
        return shipped.root(FOLDER) / FOLDER
    except shipped.MissingError as error:
        raise BoardsError(f"{error}: give the folder of the boards with --boards DIR") from error


def read(place: Path) -> tuple[Board, ...]:
    """Every board of a folder, by the names of their files. Raises BoardsError, for an empty folder too."""
    found = tuple(_board(path) for path in sorted(place.glob("*.json")))
    if not found:
        raise BoardsError(f"{place}: expected boards, *.json, found none")
    files: dict[str, str] = {}
    for board in found:
        if board.uid in files:
            raise BoardsError(f"{place}: {files[board.uid]} and {board.file} have the same uid, {board.uid}")
        files[board.uid] = board.file
    return found


def with_runbooks(board: Board, url: str) -> Board:
    """The board with its links to runbooks leading to *url*: it holds their address as a constant variable."""
    templating = board.content.get("templating")
    if not isinstance(templating, dict) or not isinstance(templating.get("list"), list):
        return board
    variables = [_leading(one, url) for one in templating["list"]]
    return attrs.evolve(board, content=board.content | {"templating": templating | {"list": variables}})


def _leading(variable: Any, url: str) -> Any:
    """The variable as it is, but for the one that the links to runbooks begin with."""
    if not isinstance(variable, dict) or variable.get("name") != _RUNBOOKS:
        return variable
    current = variable.get("current")
    known = current if isinstance(current, dict) else {}
    return variable | {"query": url, "current": known | {"text": url, "value": url}}


def as_json(board: Board) -> str:
    """The board as a file's text."""
    return json.dumps(board.content, indent=2, ensure_ascii=False) + "\n"


def _board(path: Path) -> Board:
    try:
        content = json.loads(regular.read_text(path, _LARGEST))
        # Python also reads NaN and half a character, which no JSON can be made of.
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except regular.UnreadableError as error:
        raise BoardsError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise BoardsError(f"{path}: expected JSON, found: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("panels"), list):
        raise BoardsError(f"{path}: expected a Grafana board, found other JSON")
    uid, title = content.get("uid"), content.get("title")
    if not isinstance(uid, str) or not _UID.fullmatch(uid):
        raise BoardsError(f"{path}: expected a uid of 1 to 40 letters, digits, - and _, found {str(uid)[:60]!r}")
    if not isinstance(title, str) or not title.strip():
        raise BoardsError(f"{path}: expected a title, found none")
    if "__inputs" in content:
        raise BoardsError(f"{path}: expected a board as Grafana stores it, found an export for sharing (__inputs)")
    return Board(path.name, uid, title, content)
