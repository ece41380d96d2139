"""Child processes of the demo: output in a file, waited for, and gone at the end whatever happens."""

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import aiohttp

_PATIENCE: Final = 5.0


class DemoError(Exception):
    """A step of the demo did not happen; the message says which and what was seen instead."""


class Processes:
    """Starts programs and ends all of them on exit. *folder* takes their output, one file a program."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, asyncio.subprocess.Process] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(self.stop(name) for name in list(self._running)))

    async def start(self, name: str, *command: str) -> None:
        """Start a program in a process group of its own, so that Ctrl-C reaches it through us only."""
        with (self._folder / f"{name}.log").open("ab") as output:
            self._running[name] = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                start_new_session=True,
            )

    async def stop(self, name: str) -> None:
        """End a program: ask first, then kill its group."""
        process = self._running.pop(name, None)
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _PATIENCE)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    def check(self) -> None:
        """Raise DemoError if a program has ended by itself."""
        for name, process in self._running.items():
            if process.returncode is not None:
                msg = f"{name} ended with code {process.returncode}: {self._last_words(name)}"
                raise DemoError(msg)

    async def until(self, what: str, condition: Callable[[], Awaitable[bool]], seconds: float) -> None:
        """Wait until *condition* holds; DemoError after *seconds*, or as soon as a program ends."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not await condition():
            self.check()
            if loop.time() > end:
                msg = f"{what}: not within {seconds:.0f} s"
                raise DemoError(msg)
            await asyncio.sleep(0.25)

    def _last_words(self, name: str) -> str:
        lines = (self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return "\n  ".join(["", *(line[:300] for line in lines[-12:])]) if lines else "it printed nothing"


async def answers(session: aiohttp.ClientSession, url: str) -> bool:
    """Whether *url* answers 200."""
    try:
        async with session.get(url) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


def program(*names: str) -> str:
    """The first of *names* on PATH. Raises DemoError naming all of them."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        msg = f"none of {', '.join(names)} is on PATH; run: bash stack/tools.sh"
        raise DemoError(msg)
    return found


def free_ports(wanted: Sequence[int]) -> list[int]:
    """A port on 127.0.0.1 for each entry: the one wanted, or a free one for 0. DemoError for one that is taken."""
    sockets = []
    try:
        for port in wanted:
            probe = socket.socket()
            sockets.append(probe)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                msg = f"port {port} on 127.0.0.1 cannot be had: {error.strerror}"
                raise DemoError(msg) from error
        return [probe.getsockname()[1] for probe in sockets]
    finally:
        for probe in sockets:
            probe.close()
