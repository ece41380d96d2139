"""The programs of both generations of Prometheus that the tests run: found in one place, missed for one reason.

The installed generation must be there: a test that needs it fails without. The newer one comes from a Debian suite that
moves and may not be had (stack/newer.sh), which is no fault of what is tested: then its half of the tests is skipped,
each with the command that brings it, and the summary of the run says so.
"""

import shutil
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "build" / "newer" / "usr" / "bin"
INSTALLED, NEWER = "installed", "newer"
GENERATIONS = (INSTALLED, NEWER)
MISSING = "NOT TESTED UNDER PROMETHEUS 3 AND THE NEWER ALERTMANAGER: nothing in build/newer; run `make newer`"
# Debian calls Alertmanager's binary prometheus-alertmanager.
NAMES = {"alertmanager": ("prometheus-alertmanager", "alertmanager")}


def program(name, generation=INSTALLED):
    """The path of a program. Fails the test where the installed one is missing, skips it where the newer one is."""
    folder = str(FOLDER) if generation == NEWER else None
    found = next((path for one in NAMES.get(name, (name,)) if (path := shutil.which(one, path=folder))), None)
    if found is None and generation == INSTALLED:
        pytest.fail(f"{name} is not on PATH: run stack/tools.sh")
    if found is None:
        pytest.skip(MISSING)
    return found


def newer_is_there():
    """Whether the newer generation can be tested."""
    return (FOLDER / "promtool").exists()
