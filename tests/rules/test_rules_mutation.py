"""How wrong variants are made, and a sample of them killed; `make mutants` runs all."""

import pytest

from tests.generations import program
from tests.rules import mutants as run
from tests.rules.mutation import edits, mutants
from tests.rules.promtool import committed

ALL = mutants(committed())
KNOWN = run.explained()
# Each counter by a name that no series has, and some of everything else; `>=` against `>` differs at one value only,
# which not every table holds: those are for the whole run.
SAMPLE = [one for one in ALL if one.kind == "name without _total"]
SAMPLE += [one for one in ALL if one.kind in {"threshold", "matcher selects nothing", "set operator"}][::37]


def variants(expr, kind):
    return sorted(expr[: e.start] + e.new + expr[e.end :] for e in edits(expr) if e.kind == kind)


@pytest.mark.parametrize(
    ("kind", "expr", "expected"),
    [
        ("threshold", "a > 0.5", ["a > 0.25", "a > 1"]),
        ("threshold", "a == 0", ["a == 1"]),
        ("number", "a * 60", ["a * 120", "a * 30"]),
        ("comparison", 'a{b="c"} >= 1', ['a{b="c"} < 1', 'a{b="c"} > 1']),
        ("window", "rate(a[5m])", ["rate(a[150s])", "rate(a[600s])"]),
        (
            "window",
            "max_over_time((a)[1m:2m])",
            [f"max_over_time((a)[{one}])" for one in ("120s:2m", "1m:240s", "1m:60s", "30s:2m")],
        ),
        ("matcher selects nothing", "max_over_time((a)[1h:5m])", ['max_over_time((a{none="nothing"})[1h:5m])']),
        ("label left out", "sum by (x, y) (a)", ["sum by (x) (a)", "sum by (y) (a)"]),
        ("label left out", "a * on (x) group_left (y) b", ["a * on () group_left (y) b", "a * on (x) group_left () b"]),
        ("label too many", "sum by (x) (up)", ["sum by (instance, engine, x) (up)"]),
        ("label too many", "sum by (x) (level:metric:sum)", []),
        ("set operator", "a and b unless c", ["a and b and c", "a unless b unless c"]),
        ("matcher selects nothing", 'a{b="c"} + d', ['a{b="c"} + d{none="nothing"}', 'a{none="nothing",b="c"} + d']),
        ("name without _total", "rate(a_total[5m])", ["rate(a[5m])"]),
    ],
)
def test_wrong_variants(kind, expr, expected):
    """Each kind of fault is put in wherever it can be, and nowhere else."""
    assert expected == variants(expr, kind)


def test_text_is_left_alone():
    """What stands in quotes is no number, no name and no label."""
    assert [] == variants('label_replace(a, "by", "5", "x", "(.*) > 3")', "threshold")


def test_every_rule_has_variants():
    """A rule without wrong variants would not be held against anything."""
    changed = {place for one in ALL for place in one.changes}
    rules = committed()["groups"]

    assert {(group, rule) for group in range(len(rules)) for rule in range(len(rules[group]["rules"]))} == changed


def test_names_are_unique():
    """The list of survivors goes by name."""
    assert len(ALL) == len({one.name for one in ALL})


def test_survivors_are_explained():
    """Each known survivor has a reason, and they are few enough."""
    assert all(KNOWN.values())
    assert KNOWN.keys() <= {one.name for one in ALL}
    assert len(KNOWN) <= (1 - run.LEAST) * len(ALL)


@pytest.mark.parametrize("mutant", [one for one in SAMPLE if one.name not in KNOWN], ids=lambda one: one.name)
def test_sample_is_killed(mutant):
    """A truth table notices the fault."""
    assert run.killed(mutant, program("promtool"))
