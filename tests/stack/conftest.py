"""Real servers on the histories that the boards are tried on."""

import contextlib
import fcntl
import json
import os

import attrs
import pytest

from tests import tsdb
from tests.generations import program
from tests.histories import HISTORIES


@attrs.frozen
class Loaded:
    """A server on a history."""

    server: tsdb.Prometheus
    begin: int
    end: int
    moments: tuple[int, ...]


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of a history, made once for all workers of a run; gives its blocks and its times."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(name):
        folder = shared / f"history {name}"
        folder.mkdir(exist_ok=True)
        times = folder / "times.json"
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert not (folder / "data").exists() or times.exists(), f"making the history {name} failed before"
            if not times.exists():
                history = HISTORIES[name]()
                tsdb.build(program("prometheus"), program("promtool"), history, folder / "data")
                times.write_text(json.dumps([history.begin, history.end, history.moments]))
        return folder / "data", json.loads(times.read_text())

    return make


@pytest.fixture(scope="session")
def load(built, tmp_path_factory):
    """Servers by history and generation, started when they are first asked for."""
    found = {}
    with contextlib.ExitStack() as stack:

        def start(name, generation):
            if (name, generation) not in found:
                binary = program("prometheus", generation)
                data, (begin, end, moments) = built(name)
                copy = tsdb.copied(data, tmp_path_factory.mktemp("prometheus"))
                server = stack.enter_context(tsdb.running(binary, copy))
                found[name, generation] = Loaded(server, begin, end, tuple(moments))
            return found[name, generation]

        yield start
