"""Matches lines against a configured pattern, in a process that may die of it."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

Groups = Mapping[str, str | None]

SECONDS: Final = 0.5
"""CPU time that one line may cost."""

_AT_ONCE: Final = 200
_WORKER: Final = Path(__file__).with_name("match_worker.py")


class Matcher:
    """One pattern. Blocks while it matches: not for the event loop."""

    def __init__(self, pattern: str, seconds: float = SECONDS) -> None:
        self._command = (sys.executable, "-I", "-S", str(_WORKER), pattern, str(seconds))
        self._worker: subprocess.Popen[str] | None = None
        self._over = False

    def search(self, lines: Sequence[str]) -> Iterator[Groups | None]:
        """For each line the groups of the first match, empty where there is none, None where it took too long.

        Whoever stops asking before the last line closes the matcher.
        """
        done = 0
        while done < len(lines):
            some = lines[done : done + _AT_ONCE]
            answered = 0
            for groups in self._answers(some):
                answered += 1
                yield groups
            if answered < len(some):  # the worker died of this line
                self._end()
                answered += 1
                yield None
            done += answered

    def kill(self) -> None:
        """Let a search that runs in another thread come to its end; no process is started any more."""
        self._over = True
        worker = self._worker
        if worker is not None:
            worker.kill()

    def close(self) -> None:
        """End the process for good."""
        self.kill()
        self._end()

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.kill()
        with contextlib.suppress(OSError), worker:  # closes its pipes and waits for it
            pass

    def _answers(self, lines: Sequence[str]) -> Iterator[Groups]:
        if self._over:
            return
        questions, answers = self._pipes()
        with contextlib.suppress(BrokenPipeError):
            questions.write(json.dumps(lines) + "\n")
            questions.flush()
        for _ in lines:
            answer = answers.readline()
            if not answer.endswith("\n"):
                return
            yield json.loads(answer) or {}

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._worker is None:
            self._worker = subprocess.Popen(  # noqa: S603 - our own file, the pattern as an argument, no shell
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="ascii",
                start_new_session=True,  # Ctrl-C is for us
            )
        worker = self._worker
        if worker.stdin is None or worker.stdout is None:
            raise RuntimeError("a process without pipes")
        return worker.stdin, worker.stdout
