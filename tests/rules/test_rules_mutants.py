"""Wrong variants of the rules, each of which a truth table must notice."""

import copy

import attrs
import pytest

from tests.generations import program
from tests.rules import cases_fleet, cases_health, cases_split, cases_split_exporter, cases_stages
from tests.rules.promtool import Group, committed, run

PAGE = ("VllmQueueTimeBimodal", "critical")
SATURATED = ("VllmQueueSaturated", "warning")
STALLED = ("VllmAdmissionStalled", "critical")
P50, P90 = (f'where:queue_time_seconds:window{{quantile="{quantile}"}}' for quantile in ("0.5", "0.9"))
LATE_RATIO = "where:queue_late_ratio:window"
LATE_SECONDS = "where:queue_late_seconds:window"
REQUESTS_5M = "backend_model:request_queue_time_seconds_count:increase5m"
ON_TIME_5M = "backend_model:queue_on_time:increase5m"
EDGE = "backend_model:queue_edge_seconds:min"
FINISHED = 'label_replace(rate(vllm:request_success_total[2m]), "backend", "$1", "instance", "(.*)")'


@attrs.frozen
class Mutant:
    """A fault put into a rule, named by its record, or by alert and severity: *old* becomes *new* in *part*.

    An *old* of `*` replaces the whole. `killer` is the group of cases that must notice.
    """

    name: str
    rule: str | tuple[str, str]
    old: str
    new: str
    killer: Group
    part: str = "expr"


SPLIT = [
    Mutant(
        "p90/p50 as the only condition", PAGE, "*", f"{P90} / ignoring (quantile) {P50} >= 10", cases_split.SITUATIONS
    ),
    Mutant("no upper bound of the late share", PAGE, " <= 0.95", "", cases_split.SITUATIONS),
    Mutant("no lower bound of the late share", PAGE, " >= 0.05", "", cases_split.EDGES_OF_IT),
    Mutant("lower bound exclusive", PAGE, ">= 0.05", "> 0.05", cases_split.SITUATIONS),
    Mutant("no impact", PAGE, " and where:queue_impact_ratio:window >= 0.1", "", cases_split.EDGES_OF_IT),
    Mutant("no distance of the modes", PAGE, " and where:queue_split:ratio >= 10", "", cases_split.EDGES_OF_IT),
    Mutant("no hold", PAGE, "1m", "0s", cases_split.SITUATIONS, "for"),
    Mutant("hold twice as long", PAGE, "1m", "2m", cases_split.SITUATIONS, "for"),
    Mutant(
        "on-time requests left in the count of the late mean",
        LATE_SECONDS,
        f">= 20) - {ON_TIME_5M} > 0",
        ">= 20) > 0",
        cases_split.PARTS,
    ),
    Mutant(
        "on-time requests not charged in the late mean",
        LATE_SECONDS,
        f" - {EDGE} * {ON_TIME_5M}",
        "",
        cases_split.PARTS,
    ),
    Mutant("late mean of a poisoned sum", LATE_SECONDS, "resets(", "0 * resets(", cases_split.POISONED),
    Mutant("no minimum of requests", LATE_RATIO, ">= 20", ">= 0", cases_split.EDGES_OF_IT),
    Mutant("edge typed, not read", EDGE, "*", f"0 * {ON_TIME_5M} + 0.3", cases_split.EDGES_OF_IT),
    Mutant("engines told apart", REQUESTS_5M, "model_name)", "model_name, engine)", cases_split.EDGES_OF_IT),
    Mutant(
        "native figures in spite of the exporter",
        LATE_RATIO,
        "unless on (backend) (backend:tidegauge_backend_up:max == 1)",
        "",
        cases_split_exporter.SILENT_EXPORTER,
    ),
    Mutant("no native figures at all", LATE_RATIO, "label_replace(", "0 > label_replace(", cases_split_exporter.BOTH),
    Mutant(
        "instance kept",
        LATE_RATIO,
        "(where, backend,",
        "(where, instance, backend,",
        cases_split_exporter.WITH_EXPORTER,
    ),
    Mutant("saturated from half on", SATURATED, "> 0.95", "> 0.5", cases_split.SITUATIONS),
]

OTHERS = [
    Mutant(
        "residual may be negative",
        "backend_model:stage_seconds:mean",
        ", 0)",
        ", -99)",
        cases_stages.RESIDUAL,
    ),
    Mutant(
        "native means in spite of the exporter",
        "backend_model:stage_seconds:mean",
        "avg by",
        "0 > avg by",
        cases_stages.BOTH,
    ),
    Mutant(
        "stall by finished requests only",
        "backend_model:progress:rate2m",
        "*",
        f"sum by (backend, model_name) ({FINISHED})",
        cases_health.STALL,
    ),
    Mutant("stall without requests", STALLED, "sum > 0", "sum >= 0", cases_health.STALL),
    Mutant("skew of a single backend", "fleet:e2e_seconds:max_min_ratio", ") > 1)", ") >= 1)", cases_fleet.NATIVE),
    Mutant("skew of too few requests", "fleet_backend:e2e_seconds:mean", ">= 20", ">= 0", cases_fleet.NATIVE),
    Mutant("skew at any ratio", ("VllmBackendSkew", "warning"), "> 1.5", "> 0.5", cases_fleet.HEALTHY),
    Mutant("down by one observer", "backend:up:max", "max by", "min by", cases_health.BACKENDS),
    Mutant(
        "silent without data",
        ("VllmBackendDown", "critical"),
        " or absent(backend:up:max)",
        "",
        cases_health.VANISHED,
    ),
    Mutant(
        "missing exporter not missed",
        ("TidegaugeDown", "warning"),
        " or absent(",
        " and absent(",
        cases_health.EXPORTER_VANISHED,
    ),
]

MUTANTS = [*SPLIT, *OTHERS]


def mutate(rules, mutant):
    """The rules with the fault in every rule that it names; fails if it changes nothing."""
    changed = copy.deepcopy(rules)
    touched = 0
    for rule in (rule for group in changed["groups"] for rule in group["rules"]):
        severity = rule.get("labels", {}).get("severity")
        if mutant.rule not in {rule.get("record"), (rule.get("alert"), severity)}:
            continue
        before = rule[mutant.part]
        rule[mutant.part] = mutant.new if mutant.old == "*" else before.replace(mutant.old, mutant.new)
        touched += before != rule[mutant.part]
    assert touched, f"{mutant.name}: nothing to change"
    return changed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_is_killed(mutant, tmp_path):
    """The truth table notices the fault, and not because the rule no longer parses."""
    complaint = run(program("promtool"), mutate(committed(), mutant), [mutant.killer], tmp_path)

    assert "FAILED" in complaint
    assert "parse" not in complaint
