"""Two processes that report under one name, told from one that was restarted."""

from collections import deque
from typing import Final

_REMEMBERED: Final = 8


class Namesakes:
    """Counts signs of two processes under one name of a fleet.

    A process that speaks again after another one spoke in its name is such a sign; a new process once, which is a
    restart, is none. So is a barrier that opens, unlike before, under an id that is open.
    """

    def __init__(self) -> None:
        self.conflicts = 0
        self._spoke: dict[str, deque[str]] = {}

    def meet(self, caller: str, instance: str) -> None:
        """A process of *caller* speaks; an empty *instance* does not say which one."""
        if not instance:
            return
        spoke = self._spoke.setdefault(caller, deque(maxlen=_REMEMBERED))
        if spoke and spoke[-1] == instance:
            return
        if instance in spoke:
            self.conflicts += 1
            spoke.remove(instance)
        spoke.append(instance)

    def clash(self) -> None:
        """Two barriers were given the same id."""
        self.conflicts += 1

    def forget(self, caller: str) -> None:
        """The caller was not heard of for a window."""
        self._spoke.pop(caller, None)
