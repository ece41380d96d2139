"""The exporter's tasks, known by what each of them works on."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]


class Jobs:
    """Tasks by what they are for: one that is still wanted runs on undisturbed, whatever begins and ends around it."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._running: dict[Hashable, asyncio.Task[None]] = {}

    def want(self, wanted: Mapping[Hashable, Work]) -> None:
        """Let exactly these run from now on: end those that are not among them, begin those that are new."""
        for key in self._running.keys() - wanted.keys():
            self._running.pop(key).cancel()
        for key, work in wanted.items():
            if key not in self._running:
                self._running[key] = self._group.create_task(work())
