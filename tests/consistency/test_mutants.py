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
        "found = [(fan_out, in_force if value is None else value) for fan_out, value in values]",
        "found = [(fan_out, ceiling.value) for fan_out, value in values]",
        ("ceiling",),
    ),
    Mutant(
        "fleet capacity from the narrowest backend times their number",
        "derive/fleets.py",
        "capacity=_over(counted, sum),",
        "capacity={basis: value * len(counted) for basis, value in _over(counted, min).items()},",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "capacity of two names of one server",
        "derive/backends.py",
        "return bool(self.history.up) and self.twin_of is None",
        "return bool(self.history.up)",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "capacity of a backend that is down",
        "derive/backends.py",
        "return bool(self.history.up) and self.twin_of is None",
        "return self.twin_of is None",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "skew against oneself",
        "derive/fleets.py",
        "distinct = [one for one in backends if one.twin_of is None]",
        "distinct = list(backends)",
        (
            "figures",
            "figures_callers",
        ),
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
        (
            "increases",
            "lineage",
            "poison",
        ),
    ),
    Mutant(
        "torn pages dropped",
        "state/poison.py",
        "return max(2 * max(filled, default=0.0), TORN_SECONDS)",
        "return 0.0",
        (
            "increases",
            "lineage",
            "poison",
        ),
    ),
    Mutant(
        "lost bucket line counted from zero",
        "state/increases.py",
        "    if before is None:\n        return now if from_zero and now.count else None",
        "    if before is None or before.edges != now.edges:\n        return now if from_zero and now.count else None",
        (
            "increases",
            "lineage",
            "poison",
        ),
    ),
    Mutant(
        "a younger server behind the same URL taken for a restart, and back",
        "state/lineage.py",
        "if start < (base.process_start or start) or start <= base.at - CLOCK_SKEW_SECONDS:",
        "if False:",
        (
            "increases",
            "lineage",
            "poison",
        ),
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
        "facts.slots.value if facts.slots else None",
        "facts.max_num_seqs.value if facts.max_num_seqs else None",
        ("capacity",),
    ),
    Mutant(
        "roster taken for a measurement",
        "derive/fleets.py",
        "ceilings.state_of(one.value, bound[0] if bound and sources else None)",
        "ceilings.state_of(one.value, bound[0] if bound else None)",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "roster as the bound of barriers that exceed it",
        "derive/fleets.py",
        "if roster is not None and (largest is None or largest <= roster):",
        "if roster is not None:",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "ceiling from configured instead of distinct backends",
        "derive/fleets.py",
        "known = _ceilings(name, counted, callers, inferred, settings)",
        "known = _ceilings(name, backends, callers, inferred, settings)",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "ceiling of so many per backend times healthy ones put back",
        "derive/fleets.py",
        'Ceiling("client", callers.ceiling, ',
        'Ceiling("client", 8.0 * len(counted), ',
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "observed slots as a ceiling",
        "derive/fleets.py",
        "slots = [one.facts.slots for one in counted]",
        "slots = [one.facts.max_num_seqs for one in counted]",
        (
            "figures",
            "figures_callers",
        ),
    ),
    Mutant(
        "fan-out counted in activities",
        "derive/segments.py",
        "self.fan_out += move.arrived - move.retracted",
        "self.fan_out += move.arrived > 0",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "calls of a server under two names counted twice",
        "watch.py",
        "if not self._twin(state):",
        "if True:",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "last barrier of a record lost",
        "derive/inference.py",
        "self._take(self._tracker.finish())",
        "pass",
        ("inference",),
    ),
    Mutant(
        "one chance plateau as the caller's ceiling",
        "derive/inference.py",
        "return median_low(met) if len(met) >= max(2, len(larger) / 2) else None",
        "return last",
        ("inference",),
    ),
    Mutant(
        "inferred fan-outs remembered as reported ones",
        "watch.py",
        "self.callers.restore(reported)",
        "self.callers.restore({**reported, **inferred})",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "largest fan-outs of another fleet",
        "watch.py",
        "largest = self._restored.get(fleet)",
        "largest = max(self._restored.values(), default=None)",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "one poll interval for every fleet",
        "watch.py",
        "interval = max(self._intervals[name] for name in members)",
        "interval = max(self._intervals.values())",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "waiting booked to two causes",
        "derive/causes.py",
        '(("deferred", deferred), (cause, waiting - deferred))',
        '(("deferred", deferred), (cause, waiting))',
        ("causes",),
    ),
    Mutant(
        "waiting booked over a gap",
        "derive/causes.py",
        "step = min(max(seconds, 0.0), longest)",
        "step = max(seconds, 0.0)",
        ("causes",),
    ),
    Mutant(
        "waiting booked over a restart",
        "state/backend.py",
        "before = None if increase.restarted else self._page",
        "before = self._page",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "waiting of another server booked",
        "watch.py",
        "        if not step.foreign:\n            self._waiting(state, page, step)",
        "        self._waiting(state, page, attrs.evolve(step, before=page))",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "slots observed taken for known",
        "watch.py",
        "server_facts(evidence_of(history), self._settings.disagree).slots",
        "server_facts(evidence_of(history), self._settings.disagree).max_num_seqs",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "slots of all engines for each",
        "watch.py",
        "slots.value / max(history.engines, 1)",
        "slots.value",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "KV cache full for any who wait in the same server",
        "derive/causes.py",
        "if key.family == vllm.KV_USAGE and key.engine == engine",
        "if key.family == vllm.KV_USAGE",
        ("causes",),
    ),
    Mutant(
        "plateau of a dead process",
        "state/backend.py",
        "        self._slots = ObservedSlots(self._kv_full)\n        self._served",
        "        self._served",
        ("slots",),
    ),
    Mutant(
        "hidden wait without preemptions",
        "derive/backends.py",
        "if history.totals.counter(vllm.PREEMPTIONS) <= 0 or not history.totals.seconds:",
        "if not history.totals.seconds:",
        (
            "watch",
            "watch_waiting",
        ),
    ),
    Mutant(
        "ceiling of a caller that is gone",
        "state/callers.py",
        "            del self._heard[caller]\n",
        "            continue\n",
        ("callers_state",),
    ),
)


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
