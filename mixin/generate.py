"""Write what is generated from the catalogue and the jsonnet: `python -m mixin.generate`.

`rendered` returns every generated file as text, so that a test compares without writing.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

import attrs

from mixin.reference import metrics_page
from tidegauge import catalogue, dcgm, rules, vllm
from tidegauge.catalogue import limits, places
from tidegauge.grafana import boards, configmaps

ROOT: Final = Path(__file__).resolve().parent.parent
CATALOGUE: Final = "mixin/catalogue.json"
RULES: Final = "recording_rules/rules.yaml"
ALERTS: Final = "alerts/alerts.yaml"
KUBERNETES: Final = "kubernetes/prometheusrule.yaml"
DASHBOARDS: Final = "kubernetes/dashboards.yaml"
METRICS: Final = "docs/metrics.md"
# A pod outlives its address in no dashboard or page.
ON_KUBERNETES: Final = "{ backendLabel: 'pod', gpu+: { label: 'pod', backendPattern: '(.*)' } }"


def names() -> dict[str, Any]:
    """The catalogue as jsonnet reads it: names by key, so that a typo there is a build error."""
    return {
        "exported": {series.key: series.name for series in catalogue.EXPORTED},
        "recorded": {series.key: series.name for series in catalogue.RECORDED},
        "thresholds": {threshold.key: threshold.value for threshold in catalogue.THRESHOLDS},
        "burn_rates": [attrs.asdict(rate) for rate in limits.BURN_RATES],
        "gpu": dict(limits.GPU),
        "limits": {"waiting_requests": limits.WAITING_REQUESTS},
        "vllm": {
            key.lower(): family
            for key, family in vars(vllm).items()
            if key.isupper() and isinstance(family, str) and family in vllm.KINDS
        },
        "aliases": {family: vllm.older(family) for family in vllm.KINDS},
        "prefixes": list(vllm.PREFIXES),
        "boards": {board.key: board.uid for board in places.BOARDS},
        "addresses": {
            "grafana": places.GRAFANA,
            "runbooks": places.RUNBOOKS,
            "beginnings": list(places.BEGINNINGS),
            "expected": places.EXPECTED,
        },
        "dcgm": {key.lower(): name for key, name in vars(dcgm).items() if isinstance(name, str) and name in dcgm.NAMES},
    }


def render_jsonnet(name: str, catalogue_text: str, config: str = "{}") -> dict[str, Any]:
    """What the mixin holds under *name*: `prometheusRules`, `prometheusAlerts`, `prometheusRule`, `grafanaDashboards`.

    *config* is jsonnet that is merged over the mixin's `_config`. Raises RulesError, as `tidegauge.rules` says.
    """
    return rules.evaluate(ROOT, name, config, {ROOT / CATALOGUE: catalogue_text})


def yaml_file(sources: str, *documents: dict[str, Any]) -> str:
    """A file as YAML whose first line says where it comes from."""
    return rules.as_yaml(f"make generate; edit {sources}", *documents)


def rendered() -> dict[str, str]:
    """Every generated file, by its path in the repository."""
    text = json.dumps(names(), indent=2) + "\n"
    both = "recording_rules/*.libsonnet, alerts/*.libsonnet"
    return {
        CATALOGUE: text,
        RULES: yaml_file("recording_rules/*.libsonnet", render_jsonnet("prometheusRules", text)),
        ALERTS: yaml_file("alerts/*.libsonnet", render_jsonnet("prometheusAlerts", text)),
        KUBERNETES: yaml_file(both, render_jsonnet("prometheusRule", text, ON_KUBERNETES)),
        DASHBOARDS: yaml_file("dashboards/*.py", *configmaps.configmaps(boards.read(ROOT / boards.FOLDER))),
        METRICS: metrics_page(),
    }


def main() -> None:
    """Write every generated file that differs; where jsonnet finds a fault in the sources, end with its message."""
    try:
        files = rendered()
    except rules.RulesError as error:
        sys.exit(str(error).rstrip())
    for path, text in files.items():
        target = ROOT / path
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
