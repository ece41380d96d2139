"""The configuration read again while the exporter runs: one that cannot be used changes nothing."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from tidegauge import config as cf

_LOG: Final = logging.getLogger(__name__)
_STAYS: Final = "configuration not reloaded, the one in force stays"


class Reloader:
    """Reads the configuration again whenever asked, and hands it to *take*; *refused* is told of one that is no good.

    *read* may block. However often it is asked while it reads, it reads once more after that.
    """

    def __init__(
        self, read: Callable[[], cf.Config], take: Callable[[cf.Config], Awaitable[None]], refused: Callable[[], None]
    ) -> None:
        self._read = read
        self._take = take
        self._refused = refused
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """Have the configuration read again; returns at once."""
        self._asked.set()

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            try:
                config = await asyncio.to_thread(self._read)
            except cf.ConfigError as error:
                self._refused()
                _LOG.error("%s: %s", _STAYS, error)
            except Exception:  # noqa: BLE001 - a running exporter must not die of a file, whatever reading it provokes
                self._refused()
                _LOG.exception(_STAYS)
            else:
                await self._take(config)
