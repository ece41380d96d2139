# ruff: noqa: T201  a command that prints its result
"""The mutation run over rules and alerts: `python -m tests.rules.mutants`.

Every wrong variant that tests/rules/mutation.py makes of the committed rules is held against the truth tables, by the
promtool on PATH. It fails when a variant survives that `survivors.txt` does not explain, when an explained one is
killed or gone, or when less than 95 % are killed.
"""

import argparse
import functools
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from tests.generations import program
from tests.rules.cases import GROUPS
from tests.rules.mutation import Mutant, mutants
from tests.rules.promtool import ROOT, Group, committed, needed, reads, run

SURVIVORS = ROOT / "tests" / "rules" / "survivors.txt"
LEAST = 0.95
FAR = 5
"""Groups that check only what rests on a rule, and are asked after those that check the rule itself."""


@functools.cache
def readers() -> dict[str, frozenset[str]]:
    """Rules by the series that they read, in expressions and in texts."""
    found: dict[str, set[str]] = {}
    rules = [rule for group in committed()["groups"] for rule in group["rules"]]
    records = {rule["record"] for rule in rules if "record" in rule}
    for rule in rules:
        told = str(rule.get("annotations", ""))
        for name in {*reads(rule["expr"]), *(record for record in records if record in told)}:
            found.setdefault(name, set()).add(rule.get("record") or rule["alert"])
    return {name: frozenset(who) for name, who in found.items()}


@functools.cache
def affected(name: str) -> frozenset[str]:
    """A rule's name and those of all rules that its values reach."""
    found, front = {name}, {name}
    while front := {one for before in front for one in readers().get(before, ())} - found:
        found |= front
    return frozenset(found)


def about(group: Group, names: frozenset[str]) -> Group:
    """The group with the checks of these rules only."""
    return attrs.evolve(
        group,
        values=[one for one in group.values if one.recorded.name in names],
        alerts=[one for one in group.alerts if one.name in names],
    )


def effort(group: Group) -> float:
    """How long promtool takes for it, roughly: steps times series."""
    last = max([*(one.at for one in group.values), *(one.at for one in group.alerts)])
    return (last * 60 / (group.every or group.step) + 5) * (len(group.series) + 5)


@functools.cache
def attempts(name: str) -> tuple[tuple[Group, ...], ...]:
    """Groups that may notice a fault in a rule, in the order in which to ask: its own first, the quick ones first."""
    names = affected(name)
    able = sorted((about(group, names) for group in GROUPS if group.asked & names), key=effort)
    own = [group for group in able if name in group.asked]
    others = [group for group in able if group not in own][:FAR]
    ranked = [*own, *others]
    by_step: dict[int, list[Group]] = {}
    for group in ranked[1:]:
        by_step.setdefault(group.every or group.step, []).append(group)
    halves = (part for groups in by_step.values() for part in (groups[:3], groups[3:]) if part)
    return (tuple(ranked[:1]), *(tuple(part) for part in halves))


def killed(mutant: Mutant, binary: str) -> bool:
    """Whether a truth table notices it."""
    rules = mutant.applied(committed())
    with tempfile.TemporaryDirectory() as folder:
        return any(run(binary, needed(rules, groups), groups, Path(folder)) for groups in attempts(mutant.subject))


def _judge(mutant: Mutant) -> tuple[Mutant, bool]:
    return mutant, killed(mutant, program("promtool"))


def judged(chosen: Sequence[Mutant], processes: int = 2) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant, and whether it was killed, as they come."""
    with multiprocessing.Pool(processes) as pool:
        yield from pool.imap_unordered(_judge, chosen, chunksize=4)


def explained() -> dict[str, str]:
    """The survivors that are known, with the reason, which is a line of its own above them that begins with `# `."""
    reason, found = "", {}
    for line in SURVIVORS.read_text(encoding="utf-8").splitlines() if SURVIVORS.exists() else []:
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            found[line] = reason
    return found


def report(results: Iterable[tuple[Mutant, bool]], known: dict[str, str], *, complete: bool) -> int:
    """Print what became of the mutants; the number of things that are wrong."""
    all_of, dead = Counter[str](), Counter[str]()
    wrong = []
    names = set()
    for mutant, was_killed in results:
        names.add(mutant.name)
        all_of[mutant.kind] += 1
        dead[mutant.kind] += was_killed
        if was_killed == (mutant.name in known):
            wrong.append(f"{'killed, and listed as a survivor' if was_killed else 'SURVIVES'}: {mutant.name}")
            print(wrong[-1], flush=True)
    if complete:
        wrong += [f"listed, and no longer made: {name}" for name in known.keys() - names]
    for kind in sorted(all_of):
        print(f"{kind:28} {dead[kind]:5} of {all_of[kind]:5} killed")
    share = dead.total() / max(all_of.total(), 1)
    print(f"{'all':28} {dead.total():5} of {all_of.total():5} killed, {share:.1%}")
    if share < LEAST:
        wrong.append(f"less than {LEAST:.0%} killed")
    return len(wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rule", default="", help="only mutants whose name has this text")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th of them")
    options = parser.parse_args(arguments)
    chosen = [one for one in mutants(committed()) if options.rule in one.name][:: options.every]
    begun = time.monotonic()
    wrong = report(judged(chosen), explained(), complete=not options.rule and options.every == 1)
    print(f"{len(chosen)} mutants in {time.monotonic() - begun:.0f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
