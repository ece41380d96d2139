"""Captures of real servers: what the rules record of them, and which alerts they make."""

import pytest

from tests.generations import GENERATIONS, program
from tests.rules import replay
from tests.rules.promtool import Value, labels
from tidegauge.catalogue import recorded as rec

MODELS = {"a": "/models/tiny", "b": "tiny-llm"}


def shares(**servers):
    """Queue, prefill, decode and other of each server, as its requests' own timing adds up, to the per cent."""
    return Value(
        rec.STAGE_SHARE,
        0,
        {
            labels(backend=f"{server}:8000", model_name=MODELS[server], stage=stage): share
            for server, row in servers.items()
            for stage, share in zip(("queue", "prefill", "decode", "other"), row, strict=True)
        },
        to=0.01,
    )


CAPTURES = {
    "uncapped": ({}, [shares(a=(0.28, 0.12, 0.53, 0.07), b=(0.08, 0.1, 0.75, 0.07))]),
    # The wait is in the client, and the servers cannot know.
    "capped": ({}, [shares(a=(0.02, 0.17, 0.75, 0.06), b=(0, 0.06, 0.91, 0.03))]),
    "idle": ({}, [shares()]),
    "restart": ({"VllmBackendDown": ("critical", "a:8000")}, []),
    "tinykv": (
        {"VllmPreempting": ("warning", "b:8000")},
        [shares(a=(0.34, 0.08, 0.52, 0.05), b=(0.02, 0.06, 0.88, 0.04))],
    ),
    "aborts": ({}, []),
    "two_engines": ({}, [shares(a=(0.19, 0.13, 0.61, 0.08))]),
}


@pytest.fixture(params=GENERATIONS)
def promtool(request):
    return program("promtool", request.param)


def test_every_capture_is_replayed():
    """A capture without expectations would be dead weight."""
    assert CAPTURES.keys() == {path.name for path in replay.FOLDER.iterdir() if path.is_dir()}


@pytest.mark.parametrize("name", CAPTURES)
def test_capture(promtool, name, tmp_path):
    """The alerts that the capture gives reason for fire, no others; shares are those of the requests' own timing."""
    alerts, values = CAPTURES[name]
    complaint = replay.run(promtool, name, alerts, values, tmp_path)

    if complaint:
        pytest.fail(complaint, pytrace=False)
