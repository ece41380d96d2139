"""Cases for promtool in a compact form: groups of series with the values and alerts that the rules must make of them.

Every sample lies on a step of 30 s unless the group says otherwise, and the rules are evaluated once per step,
recording rules first.
"""

import functools
import json
import os
import subprocess
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote_plus

import attrs
import promql_parser
import yaml

from tests.rules.opened import BOARD_OF
from tidegauge.catalogue import Recorded, places

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "recording_rules" / "rules.yaml"
ALERTS = ROOT / "alerts" / "alerts.yaml"
STEP = 30
BOARD = f"{places.GRAFANA}/d/tidegauge-%s?from=now-1h&to=now"

Kind = Literal["fires", "just_short", "healthy", "no_data", "reset"]
Series = dict[str, str]


def labels(**values: str) -> str:
    """A label set as PromQL writes it; empty labels are left out."""
    inside = ",".join(f'{key}="{value}"' for key, value in sorted(values.items()) if value)
    return f"{{{inside}}}"


def series(name: str, values: Iterable[float | None] | str, **label_values: str) -> Series:
    """One input series; a None is a sample that is missing, a text is promtool's own notation."""
    text = values if isinstance(values, str) else " ".join("_" if v is None else f"{v:.12g}" for v in values)
    return {"series": name + labels(**label_values), "values": text}


@attrs.frozen
class Value:
    """What a recorded series, rounded to *to*, must hold at minute *at*: by label set, and nothing else."""

    recorded: Recorded
    at: float
    samples: Mapping[str, float]
    matcher: str = ""
    to: float = 0.001

    def as_yaml(self) -> dict[str, Any]:
        rows = [{"labels": key, "value": value} for key, value in self.samples.items()]
        return {
            "expr": f"round({self.recorded.name}{self.matcher}, {self.to})",
            "eval_time": f"{round(self.at * 60)}s",
            "exp_samples": rows,
        }


@attrs.frozen
class Firing:
    """One alert that fires: its labels, without the name, and its text."""

    labels: Mapping[str, str]
    summary: str
    description: str

    def as_yaml(self, alert: str) -> dict[str, Any]:
        link = [
            f"&var-{variable}={quote_plus(self.labels[label])}"
            for label, variable in (("fleet", "fleet"), ("backend", "instance"), ("model_name", "model_name"))
            if label in self.labels
        ]
        annotations = {
            "summary": self.summary,
            "description": self.description,
            "runbook_url": f"{places.RUNBOOKS}/{alert}.md",
            "dashboard_url": BOARD % BOARD_OF[alert] + "".join(link),
        }
        return {"exp_labels": dict(self.labels), "exp_annotations": annotations}


@attrs.frozen
class Alert:
    """Everything that fires under one alert's name at minute *at*."""

    kind: Kind
    name: str
    at: float
    firing: Sequence[Firing] = ()

    def as_yaml(self) -> dict[str, Any]:
        return {
            "alertname": self.name,
            "eval_time": f"{round(self.at * 60)}s",
            "exp_alerts": [one.as_yaml(self.name) for one in self.firing],
        }


@attrs.frozen
class Group:
    """Series that share one timeline, a sample every *step* seconds, and what must come of them.

    The rules are evaluated at every sample, or every *every* seconds: values that rest on vLLM's series alone do not
    need the evaluations before.
    """

    name: str
    series: Sequence[Series] = ()
    values: Sequence[Value] = ()
    alerts: Sequence[Alert] = ()
    step: int = STEP
    every: int = 0
    extra: tuple[str, ...] = ()

    @property
    def asked(self) -> set[str]:
        """Recorded series and alerts that the group checks."""
        return {*(one.recorded.name for one in self.values), *(one.name for one in self.alerts), *self.extra}

    def as_yaml(self, read: Container[str]) -> dict[str, Any]:
        """For promtool, with the series that something reads."""
        return {
            "name": self.name,
            "interval": f"{self.step}s",
            "input_series": [one for one in self.series if one["series"].partition("{")[0] in read],
            "promql_expr_test": [value.as_yaml() for value in self.values],
            "alert_rule_test": [alert.as_yaml() for alert in self.alerts],
        }


@functools.cache
def committed() -> dict[str, Any]:
    """The rules and alerts as committed, in one file's shape."""
    files = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in (RULES, ALERTS)]
    return {"groups": [group for file in files for group in file["groups"]]}


def selected(node: Any) -> Iterator[str]:
    """Names of the series that a parsed expression reads."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node.name
        return
    for field in ("vector_selector", "expr", "lhs", "rhs", "args", "param"):
        child = getattr(node, field, None)
        for one in child if isinstance(child, list) else [child]:
            if one is not None and not isinstance(one, str | int | float):
                yield from selected(one)


@functools.cache
def reads(expr: str) -> frozenset[str]:
    """Names of the series that an expression reads."""
    return frozenset(selected(promql_parser.parse(expr)))


def needed(rules: dict[str, Any], groups: Iterable[Group]) -> dict[str, Any]:
    """The rules without those that nothing in *groups* asks for."""
    every = [rule for group in rules["groups"] for rule in group["rules"]]
    asked = {name for group in groups for name in group.asked}
    while (
        more := {
            name for rule in every if asked & {rule.get("record"), rule.get("alert")} for name in reads(rule["expr"])
        }
        - asked
    ):
        asked |= more
    # What an alert's text looks up is read as well.
    told = "".join(str(rule["annotations"]) for rule in every if rule.get("alert") in asked)
    records = {rule["record"] for rule in every if "record" in rule}
    if looked_up := {name for name in records - asked if name in told}:
        return needed(rules, [*groups, Group("texts", extra=tuple(looked_up))])
    kept = (
        {**group, "rules": [rule for rule in group["rules"] if asked & {rule.get("record"), rule.get("alert")}]}
        for group in rules["groups"]
    )
    return {"groups": [group for group in kept if group["rules"]]}


def run(binary: str, rules: dict[str, Any], groups: Iterable[Group], folder: Path) -> str:
    """What promtool says against *rules*: empty if it has nothing to say."""
    groups = list(groups)
    (every,) = {group.every or group.step for group in groups}
    every_rule = [rule for group in rules["groups"] for rule in group["rules"]]
    told = "".join(str(rule.get("annotations", "")) for rule in every_rule)
    given = {one["series"].partition("{")[0] for group in groups for one in group.series}
    read = {name for rule in every_rule for name in reads(rule["expr"])}
    read |= {name for group in groups for name in group.asked} | {name for name in given if name in told}
    (folder / "rules.yaml").write_text(json.dumps(rules), encoding="utf-8")
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{every}s",
        "group_eval_order": [group["name"] for group in rules["groups"]],
        "tests": [group.as_yaml(read) for group in groups],
    }
    (folder / "test.yaml").write_text(json.dumps(test), encoding="utf-8")
    done = subprocess.run(
        [binary, "test", "rules", "test.yaml"],
        cwd=folder,
        env={**os.environ, "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr
