"""Removed designs, put back one at a time: each must be caught by a test, so that none returns unnoticed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.consistency.removed import Mutant
from tests.consistency.removed_counting import COUNTING
from tests.consistency.removed_figures import FIGURES

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "exporter" / "tidegauge"
MUTANTS = (*COUNTING, *FIGURES)


def survives(mutant, folder, *, show=False):
    """Whether the tests of the mutant's subjects pass against a copy of the package with it in."""
    copy = folder / "exporter"
    shutil.copytree(PACKAGE, copy / "tidegauge", ignore=shutil.ignore_patterns("__pycache__"))
    if mutant.right:
        path = copy / "tidegauge" / mutant.module
        source = path.read_text(encoding="utf-8")
        assert 1 == source.count(mutant.right), f"{mutant.module} has changed: rewrite the mutant {mutant.name!r}"
        path.write_text(source.replace(mutant.right, mutant.wrong), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-o", f"pythonpath={copy} {ROOT}"]
    command += [str(ROOT / "tests" / "unit" / f"test_{subject}.py") for subject in mutant.subjects]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
    found = subprocess.run(
        command,
        cwd=ROOT,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
        timeout=120,
    )
    text = found.stdout.decode()
    assert found.returncode in (0, 1), text + found.stderr.decode()
    assert "collected 0 items" not in text
    # A mutant that does not even run would be caught by anything.
    assert not any(word in text for word in ("SyntaxError", "NameError", "ImportError")), text
    assert not show or found.returncode == 0, text
    return found.returncode == 0


def test_the_right_design_passes(tmp_path):
    """Else every mutant would count as caught."""
    subjects = tuple(sorted({subject for mutant in MUTANTS for subject in mutant.subjects}))

    assert survives(Mutant("none", "", "", "", subjects), tmp_path, show=True)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_wrong_design_is_caught(mutant, tmp_path):
    """At least one test of its subject fails."""
    assert not survives(mutant, tmp_path), f"{mutant.name} survives the tests of {', '.join(mutant.subjects)}"
