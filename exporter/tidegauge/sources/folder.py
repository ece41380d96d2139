"""Folders to write into: what can be none is told before anything is asked for, and in words."""

import os
from pathlib import Path


class NoFolderError(OSError):
    """There is no such folder and none can be made; the message names it, what was expected and what was found."""


def expected(given: str) -> Path:
    """The folder, which need not be there yet. Raises NoFolderError where something else is in its place or above."""
    folder = Path(given)
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not there.is_dir():
        raise NoFolderError(f"{given}: expected a folder to write into, found {there}, which is none")
    return folder


def make(folder: Path) -> None:
    """Make the folder and those above it, where they are missing. Raises NoFolderError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NoFolderError(f"{folder}: expected a folder to write into, found: {error.strerror}") from error
