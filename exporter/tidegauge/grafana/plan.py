"""What is to become of each board, given what is there: pure, so that a dry run and a real one decide the same.

A board is written with the version that was seen and never with Grafana's `overwrite`: up to 11.2 that would also
replace another board that happens to have the same title in the folder, and in any version what was saved meanwhile.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import attrs

from tidegauge.grafana.boards import Board, Json

Action = Literal["create", "update", "move", "keep", "refuse"]

_GRAFANAS_OWN: Final = frozenset({"id", "version", "refresh"})
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_INTERVAL: Final = re.compile(r"(\d+)(ms|[smhdw])")


@attrs.frozen
class Folder:
    """A folder of Grafana. `uid` is empty for its root and None for a folder that has yet to be made."""

    title: str
    uid: str | None


ROOT: Final = Folder("General", "")


@attrs.frozen
class Present:
    """A board as Grafana has it; `provisioned` if it comes from Grafana's own files and cannot be saved."""

    content: Json = attrs.field(repr=False)
    folder: Folder
    version: int
    provisioned: bool = False


@attrs.frozen
class Step:
    """What is to be done with one board: where it is to lie, where it lies now, and the version it replaces.

    `namesakes` are the uids of other boards that have the same title where this one arrives.
    """

    board: Board
    action: Action
    folder: Folder
    present: Present | None = None
    namesakes: tuple[str, ...] = ()

    @property
    def arrives(self) -> bool:
        """Whether the board will be where it is not now."""
        return self.action in {"create", "move", "update"} and not (
            self.present and self.present.folder.uid == self.folder.uid
        )


def decide(board: Board, present: Present | None, asked: Folder | None) -> Step:
    """The step for one board. It stays in its folder unless another one is *asked* for; a new one goes to the root."""
    if present is None:
        return Step(board, "create", asked or ROOT)
    folder = asked or present.folder
    alike, stays = same(board.content, present.content), folder.uid == present.folder.uid
    if alike and stays:
        return Step(board, "keep", folder, present)
    if present.provisioned:
        return Step(board, "refuse", present.folder, present)
    return Step(board, "move" if alike else "update", folder, present)


def same(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether Grafana holds the board as it is, but for what Grafana itself sets: id, version, a raised refresh."""

    def rest(board: Mapping[str, Any]) -> Json:
        return {key: value for key, value in board.items() if key not in _GRAFANAS_OWN}

    wanted, found = ours.get("refresh"), theirs.get("refresh")
    # Below its `min_refresh_interval` Grafana saves that interval instead, without a word.
    return rest(ours) == rest(theirs) and (wanted == found or 0 < _seconds(wanted) < _seconds(found))


def _seconds(interval: Any) -> float:
    """A refresh interval such as `10s`; 0 for none."""
    match = _INTERVAL.fullmatch(interval) if isinstance(interval, str) else None
    return int(match[1]) * _UNITS[match[2]] if match else 0.0


def with_namesakes(step: Step, found: Iterable[Mapping[str, Any]]) -> Step:
    """The step that knows which of the boards *found* by its title (uid, title, folderUid) it will lie beside."""
    uids = (
        str(one.get("uid"))
        for one in found
        if one.get("title") == step.board.title and (one.get("folderUid") or "") == step.folder.uid
    )
    return attrs.evolve(step, namesakes=tuple(sorted(uid for uid in uids if uid != step.board.uid)))


def payload(step: Step, message: str) -> Json:
    """What `POST /api/dashboards/db` is to be sent for a step into a folder that exists."""
    version = step.present.version if step.present else 0
    body: Json = {
        "dashboard": step.board.content | {"id": None, "version": version},
        "message": message,
        "overwrite": False,
    }
    # Without a folder Grafana takes the root.
    return body | ({"folderUid": step.folder.uid} if step.folder.uid else {})


def told(step: Step, *, dry: bool) -> str:
    """One line that says what was done, or would be."""
    would = "would be " if dry else ""
    lies = step.present.folder.title if step.present else ""
    said = {
        "create": f"{would}created in {step.folder.title}",
        "keep": f"already there, in {step.folder.title}",
        "move": f"{would}moved from {lies} to {step.folder.title}",
        "update": f"{would}updated in {lies}" + (f" and moved to {step.folder.title}" if step.arrives else ""),
        "refuse": f"provisioned from a file of Grafana's, in {lies}: it can be changed there only",
    }[step.action]
    beside = ""
    if step.namesakes:
        beside = f", beside another board of that title, which is left alone (uid {', '.join(step.namesakes)})"
        beside += "; Grafana before 11.3 will refuse it" if dry else ""
    return f"{step.board.uid}: {said}{beside}"


def refusal(step: Step, status: int, code: str, said: str) -> str:
    """One line that says why Grafana did not take a board: its *status*, its *code* and what it *said*."""
    why = {
        "version-mismatch": "somebody changed it just now, and that is kept; look at it, and push again",
        "name-exists": (
            f"another board has the title {step.board.title!r} in {step.folder.title}, and is kept: "
            "rename it, or push to another folder with --folder"
        ),
    }.get(code)
    needed = "dashboards:write" if step.present else "dashboards:create"
    if status == 403:
        why = f"the token may not save boards in {step.folder.title} ({needed})"
    return f"{step.board.uid}: {status}: {f'{why} ({said})' if why and said else why or said or 'no reason given'}"
