"""Files that must be regular ones: to open a pipe would wait for its writer for ever, and some devices never end."""

import os
import stat
from pathlib import Path
from typing import BinaryIO


class UnreadableError(OSError):
    """The file cannot be used; the message names it, what was expected and what was found."""


def head(path: Path, size: int) -> bytes:
    """The first *size* bytes of the file, or all where it has fewer; raises UnreadableError."""
    with _opened(path) as file:
        try:
            return file.read(size)
        except OSError as error:
            # A file of a network that is gone, a broken disk.
            raise UnreadableError(f"{path}: cannot be read: {error.strerror}") from error


def read_text(path: Path, longest: int) -> str:
    """The whole of a UTF-8 text of at most *longest* bytes; raises UnreadableError."""
    content = head(path, longest + 1)
    if len(content) > longest:
        raise UnreadableError(f"{path}: cannot be read: expected at most {longest} bytes, found more")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        found = f"byte {content[error.start]:#04x} at offset {error.start}"
        raise UnreadableError(f"{path}: cannot be read: expected UTF-8 text, found {found}") from error


def _opened(path: Path) -> BinaryIO:
    """The file, open for reading bytes; raises UnreadableError for anything but a readable regular file."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnreadableError(f"{path}: cannot be read: expected a file, found: {error.strerror}") from error
    kind = os.fstat(number).st_mode
    if not stat.S_ISREG(kind):
        os.close(number)
        raise UnreadableError(f"{path}: cannot be read: expected a regular file, found {_named(kind)}")
    return os.fdopen(number, "rb")


def _named(kind: int) -> str:
    kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a named pipe"), (stat.S_ISSOCK, "a socket"))
    return next((name for test, name in kinds if test(kind)), "a device")
