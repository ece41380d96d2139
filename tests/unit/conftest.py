"""Fixtures that several unit tests share."""

import json

import pytest

from tests.little_exporter import Exporter
from tidegauge import cli
from tidegauge.caller import reporter as reporter_module


@pytest.fixture(name="exporter")
def _exporter():
    """A little exporter that takes everything."""
    exporter = Exporter()
    yield exporter
    exporter.close()


@pytest.fixture
def hurried(monkeypatch):
    """A caller's retries follow at once."""
    monkeypatch.setattr(reporter_module, "_FIRST_BACKOFF", 0.005)
    monkeypatch.setattr(reporter_module, "_LAST_BACKOFF", 0.01)


@pytest.fixture
def run(capsys):
    """Run the report command and return its exit code and its JSON."""

    def command(*arguments):
        code = cli.main(["report", *map(str, arguments), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return command
