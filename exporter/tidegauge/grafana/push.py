"""Push boards: look at what is there, plan, and do what was planned."""

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from tidegauge import __version__
from tidegauge.grafana.boards import Board
from tidegauge.grafana.client import Grafana, GrafanaError, RefusedError
from tidegauge.grafana.plan import ROOT, Folder, Step, decide, payload, refusal, told, with_namesakes

Tell = Callable[[str], None]

_MESSAGE: Final = f"tidegauge {__version__}"


@attrs.frozen
class Voices:
    """Where a line goes: `done` of what is in place, `failed` of what is not."""

    done: Tell
    failed: Tell


async def push(
    grafana: Grafana, boards: Sequence[Board], folder: str | None, voices: Voices, *, dry: bool = False
) -> bool:
    """Whether every board is in place, or would be after a run that is not *dry*, which asks and never writes.

    Nothing is written before everything was looked at. Raises GrafanaError where Grafana cannot be had at all.
    """
    await grafana.check()
    asked = await _asked(grafana, folder) if folder is not None else None
    steps = [step for board in boards if (step := await _planned(grafana, board, asked, voices))]
    if asked is not None and asked.uid is None and any(step.arrives for step in steps):
        asked = await _made(grafana, asked, voices, dry=dry)
        steps = [attrs.evolve(step, folder=asked) if step.arrives else step for step in steps]
    in_place = [await _carried_out(grafana, step, voices, dry=dry) for step in steps]
    return len(in_place) == len(boards) and all(in_place)


async def _asked(grafana: Grafana, title: str) -> Folder:
    """The folder of that title, which may have to be made. A plain `General` is the root, as Grafana calls it."""
    try:
        found = [one for one in await grafana.folders() if one.title == title]
    except RefusedError as error:
        raise GrafanaError(f"{error} (looking for the folder {title}: folders:read)") from error
    if len(found) > 1:
        uids = ", ".join(sorted(str(one.uid) for one in found))
        raise GrafanaError(f"{grafana.base}: expected one folder {title}, found {len(found)} (uid {uids})")
    if not found and title.casefold() == ROOT.title.casefold():
        return ROOT
    return found[0] if found else Folder(title, None)


async def _planned(grafana: Grafana, board: Board, asked: Folder | None, voices: Voices) -> Step | None:
    try:
        step = decide(board, await grafana.board(board.uid), asked)
        if step.arrives and step.folder.uid is not None:
            step = with_namesakes(step, await grafana.titled(board.title))
    except RefusedError as error:
        voices.failed(f"{board.uid}: {error} (looking for it: dashboards:read)")
        return None
    return step


async def _made(grafana: Grafana, folder: Folder, voices: Voices, *, dry: bool) -> Folder:
    if dry:
        voices.done(f"folder {folder.title}: would be created")
        return folder
    try:
        made = await grafana.create_folder(folder.title)
    except RefusedError as error:
        raise GrafanaError(f"{error} (creating the folder {folder.title}: folders:create)") from error
    voices.done(f"folder {folder.title}: created")
    return made


async def _carried_out(grafana: Grafana, step: Step, voices: Voices, *, dry: bool) -> bool:
    if step.action == "refuse":
        voices.failed(told(step, dry=dry))
        return False
    if step.action != "keep" and not dry:
        try:
            await grafana.save(payload(step, _MESSAGE))
        except RefusedError as error:
            voices.failed(refusal(step, error.status, error.code, error.said))
            return False
    voices.done(told(step, dry=dry))
    return True
