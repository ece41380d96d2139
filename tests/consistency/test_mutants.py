"""Removed designs, put back one at a time: each must be caught by a test, so that none returns unnoticed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "exporter" / "tidegauge"


@attrs.frozen
class Mutant:
    """A wrong design: in `module`, `right` replaced by `wrong`; the tests of `subjects` must notice."""

    name: str
    module: str
    right: str
    wrong: str
    subjects: tuple[str, ...]


MUTANTS = (
    Mutant(
        "p50 interpolated below the lowest edge",
        "derive/quantiles.py",
        """    if index in (0, len(finite)):
        return finite[min(index, len(finite) - 1)][0]
    (low, before), (high, upto) = finite[index - 1], finite[index]""",
        """    if index == len(finite):
        return finite[-1][0]
    (low, before), (high, upto) = finite[index - 1] if index else (0.0, 0.0), finite[index]""",
        ("queueing",),
    ),
    Mutant(
        "ratio as the page's only condition",
        "derive/queueing.py",
        "return self.bimodal and self.impact is not None and self.impact >= limits.impact",
        "return self.ratio >= limits.split",
        ("queueing",),
    ),
    Mutant(
        "split without impact pages",
        "derive/queueing.py",
        "return self.bimodal and self.impact is not None and self.impact >= limits.impact",
        "return self.bimodal",
        ("queueing",),
    ),
    Mutant(
        "late mean without the on-time requests' edge",
        "derive/queueing.py",
        "(waits.sum - edge * on_time) / late",
        "waits.sum / late",
        ("queueing",),
    ),
    Mutant(
        "waves by floor",
        "derive/ceiling.py",
        "return ceil(fan_out / ceiling)",
        "return max(int(fan_out // ceiling), 1)",
        ("ceiling",),
    ),
    Mutant(
        "every barrier held against today's ceiling",
        "derive/ceiling.py",
        "if (ceiling := barrier.ceiling(kind)) and ceiling > 0]",
        "if (ceiling := value) > 0]",
        ("ceiling",),
    ),
    Mutant(
        "fleet capacity from the narrowest backend times their number",
        "derive/figures.py",
        "capacity=_over(counted, sum),",
        "capacity={basis: value * len(counted) for basis, value in _over(counted, min).items()},",
        ("figures",),
    ),
    Mutant(
        "capacity of two names of one server",
        "derive/figures.py",
        "return bool(self.history.up) and self.twin_of is None",
        "return bool(self.history.up)",
        ("figures",),
    ),
    Mutant(
        "capacity of a backend that is down",
        "derive/figures.py",
        "return bool(self.history.up) and self.twin_of is None",
        "return self.twin_of is None",
        ("figures",),
    ),
    Mutant(
        "skew against oneself",
        "derive/figures.py",
        "distinct = [one for one in backends if one.twin_of is None]",
        "distinct = list(backends)",
        ("figures",),
    ),
    Mutant(
        "sums not divided by counts",
        "derive/stages.py",
        "return rise.sum / rise.count",
        "return rise.sum",
        ("stages",),
    ),
    Mutant(
        "fleet stages as a mean of means",
        "derive/stages.py",
        "usable = [part for part in parts if part.requests > 0]",
        "usable = [attrs.evolve(part, requests=1.0) for part in parts if part.requests > 0]",
        ("stages",),
    ),
    Mutant(
        "share of the three called share of end-to-end",
        "derive/stages.py",
        "return self.seconds[stage] / self.e2e",
        "return self.engine_share(stage)",
        ("stages",),
    ),
    Mutant(
        "poisoned sum averaged in",
        "state/increases.py",
        "dropped = drop_poisoned(rises, page.histograms, uptime)",
        "dropped = {}",
        ("increases",),
    ),
    Mutant(
        "torn pages dropped",
        "state/poison.py",
        "return max(2 * max(filled, default=0.0), TORN_SECONDS)",
        "return 0.0",
        ("increases",),
    ),
    Mutant(
        "lost bucket line counted from zero",
        "state/increases.py",
        "    if before is None:\n        return now if from_zero and now.count else None",
        "    if before is None or before.edges != now.edges:\n        return now if from_zero and now.count else None",
        ("increases",),
    ),
    Mutant(
        "a younger server behind the same URL taken for a restart, and back",
        "state/lineage.py",
        "if start < (base.process_start or start) or start <= base.at - CLOCK_SKEW_SECONDS:",
        "if False:",
        ("increases",),
    ),
    Mutant(
        "facts of a dead process inherited",
        "state/backend.py",
        "if self._startup is not None and self._startup.run == self._used_run:",
        "if False:",
        ("backend_state",),
    ),
    Mutant(
        "remembered facts of another process used",
        "state/backend.py",
        "if kept is None or start is None or kept.process_start != start:",
        "if kept is None or start is None:",
        ("backend_state",),
    ),
    Mutant(
        "block count multiplied by the engines that repeat it",
        "derive/capacity.py",
        "return blocks * size",
        "return blocks * size * len(configs)",
        ("capacity",),
    ),
    Mutant(
        "slots of one rank for all",
        "derive/capacity.py",
        '("log", _times(log.max_num_seqs, ranks)),',
        '("log", log.max_num_seqs),',
        ("capacity",),
    ),
    Mutant(
        "observed plateau as a limit",
        "derive/capacity.py",
        'facts.max_num_seqs.value if facts.max_num_seqs and facts.max_num_seqs.source != "observed" else None',
        "facts.max_num_seqs.value if facts.max_num_seqs else None",
        ("capacity",),
    ),
    Mutant(
        "roster taken for a measurement",
        "derive/figures.py",
        "bound = None  # a roster alone measures nothing",
        "pass",
        ("figures",),
    ),
    Mutant(
        "ceiling of a caller that is gone",
        "state/callers.py",
        "            del self._heard[caller]\n",
        "            continue\n",
        ("callers_state",),
    ),
)


def survives(mutant, folder):
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
    return found.returncode == 0


def test_the_right_design_passes(tmp_path):
    """Else every mutant would count as caught."""
    subjects = tuple(sorted({subject for mutant in MUTANTS for subject in mutant.subjects}))

    assert survives(Mutant("none", "", "", "", subjects), tmp_path)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_wrong_design_is_caught(mutant, tmp_path):
    """At least one test of its subject fails."""
    assert not survives(mutant, tmp_path), f"{mutant.name} survives the tests of {', '.join(mutant.subjects)}"
