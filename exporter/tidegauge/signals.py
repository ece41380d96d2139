"""What the signals of a terminal or a service manager ask for; each handler is called on the loop that runs."""

import asyncio
import signal
from collections.abc import Callable


def on_end(call: Callable[[], object]) -> None:
    """Call *call* when the program is asked to end: SIGTERM, or SIGINT (Ctrl-C)."""
    _on(call, signal.SIGTERM, signal.SIGINT)


def ending() -> asyncio.Event:
    """An event that is set as soon as the program is asked to end."""
    asked = asyncio.Event()
    on_end(asked.set)
    return asked


def on_hangup(call: Callable[[], object]) -> None:
    """Call *call* at SIGHUP: a service is asked to read its configuration again, a terminal was closed."""
    _on(call, signal.SIGHUP)


def _on(call: Callable[[], object], *numbers: signal.Signals) -> None:
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, call)
