"""Real captures as input of promtool: every poll of a trimmed capture is one scrape, 15 s after the one before.

The captures were polled every 3 s, so they run at a fifth of their speed: rates are a fifth of the real ones, shares,
means and quantiles are what they were, and the windows hold as many scrapes as they do in production.
"""

import json
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.rules.promtool import ROOT, Series, Value, committed, labels, series
from tidegauge.sources import captures

FOLDER = ROOT / "tests" / "fixtures" / "replays"
STEP = 15
LINE = re.compile(r"^(?P<name>[^{ ]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")


def samples(path: Path, instance: str) -> list[Series]:
    """The series of one server as Prometheus would have stored them; a failed scrape ends them until the next."""
    polls = list(captures.read(path))
    target = f'instance="{instance}",job="vllm"'
    values: dict[str, list[str]] = defaultdict(lambda: ["_"] * len(polls))
    for index, poll in enumerate(polls):
        for line in (poll.body or "").splitlines():
            if found := LINE.match(line):
                inside = f"{found['labels']},{target}" if found["labels"] else target
                values[f"{found['name']}{{{inside}}}"][index] = f"{float(found['value']):.12g}"
        if poll.body is None and index and polls[index - 1].body is not None:
            for row in values.values():
                row[index] = "stale"
    up = [float(poll.body is not None) for poll in polls]
    return [
        *({"series": name, "values": " ".join(row)} for name, row in sorted(values.items())),
        series("up", up, instance=instance, job="vllm"),
    ]


def replayed(name: str) -> tuple[list[Series], float]:
    """All series of a capture's servers, called a:8000 and b:8000, and the minute of its end."""
    servers = [samples(path, f"{path.name[0]}:8000") for path in sorted((FOLDER / name).glob("*.scrapes.gz"))]
    steps = max(len(one["values"].split()) for rows in servers for one in rows)
    return [one for rows in servers for one in rows], (steps - 1) * STEP / 60


def fired(alerts: Mapping[str, tuple[str, str]], at: float) -> dict[str, Any]:
    """promtool's check that these alerts, by name with severity and backend, and no others fired up to a minute."""
    rows = [
        {"labels": labels(alertname=name, severity=severity, backend=backend), "value": 1}
        for name, (severity, backend) in alerts.items()
    ]
    return {
        "expr": 'group by (alertname, severity, backend) (max_over_time(ALERTS{alertstate="firing"}[1d]))',
        "eval_time": f"{round(at * 60)}s",
        "exp_samples": rows,
    }


def run(binary: str, name: str, alerts: Mapping[str, tuple[str, str]], values: list[Value], folder: Path) -> str:
    """What promtool says against the committed rules on the capture: empty if it has nothing to say."""
    rows, end = replayed(name)
    checks = [fired(alerts, end), *({**value.as_yaml(), "eval_time": f"{round(end * 60)}s"} for value in values)]
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{STEP}s",
        "group_eval_order": [group["name"] for group in committed()["groups"]],
        "tests": [{"name": name, "interval": f"{STEP}s", "input_series": rows, "promql_expr_test": checks}],
    }
    (folder / "rules.yaml").write_text(json.dumps(committed()), encoding="utf-8")
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
