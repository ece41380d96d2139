"""What programs do when they are signalled: end, or read their configuration again."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.little_servers import DEADLINE, until
from tidegauge import signals

ROOT = Path(__file__).parents[2]


def heard(*numbers):
    """What each handler hears when this process is sent *numbers*, one after the other."""
    told = []

    async def run():
        signals.on_end(lambda: told.append("end"))
        signals.on_hangup(lambda: told.append("hangup"))
        for count, number in enumerate(numbers, 1):
            os.kill(os.getpid(), number)
            await until(lambda count=count: len(told) == count)

    asyncio.run(run())
    return told


def test_each_signal_is_heard_by_its_own_handler():
    """Every time it comes."""
    sent = (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

    assert ["hangup", "end", "hangup", "end", "end"] == heard(*sent)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "command",
    [
        ("inbox", "--port", "0"),
        ("server",),
        ("traffic", "--exporter", "http://127.0.0.1:9", "--backend", "http://127.0.0.1:9"),
    ],
    ids=lambda command: command[0],
)
def test_demo_programs_end_when_they_are_asked_to(command, number):
    """As docker and Ctrl-C ask; as if all were well."""
    waits = (
        "import runpy, sys, tidegauge.signals as s\n"
        "on = s.on_end\n"
        "s.on_end = lambda call: (on(call), print('ready', flush=True))\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_module(sys.argv[0], run_name='__main__')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", waits, f"tidegauge.demo.{command[0]}", *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "exporter")},
    )
    first = process.stdout.readline()
    process.send_signal(number)
    _, said = process.communicate(timeout=DEADLINE)

    assert ("ready\n", 0, False) == (first, process.returncode, "Traceback" in said)
