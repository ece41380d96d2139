"""Removed designs of what is counted from poll to poll: increases, windows, waits, what a fleet shows."""

from tests.consistency.removed import Mutant

COUNTING = (
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
        "ceiling of a caller that is gone",
        "state/callers.py",
        "            del self._heard[caller]\n",
        "            continue\n",
        ("callers_state",),
    ),
)
