"""The mixin installs as mixins do, and its settings are documented."""

import json
import re
import shutil
import subprocess

import _gojsonnet
import pytest

from mixin import generate
from tests.generations import program
from tests.rules.promtool import ROOT

PARTS = ("mixin", "recording_rules", "alerts", "dashboards/json")


@pytest.fixture(scope="module")
def vendored(tmp_path_factory):
    """The repository's tracked files of the mixin where jsonnet-bundler puts them."""
    folder = tmp_path_factory.mktemp("vendor")
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PARTS, "jsonnetfile.json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    for name in tracked:
        target = folder / "tidegauge" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    return folder


def evaluated(vendored, text):
    return json.loads(_gojsonnet.evaluate_snippet("user.libsonnet", text, jpathdir=[str(vendored)]))


def test_a_user_imports_rules_alerts_and_boards(vendored):
    """The four fields of a mixin, with a setting of the user's in force."""
    made = evaluated(
        vendored,
        """
        local tidegauge = (import 'tidegauge/mixin/mixin.libsonnet') + { _config+:: { backendLabel: 'pod' } };
        [tidegauge.prometheusRules, tidegauge.prometheusAlerts, tidegauge.grafanaDashboards]
        """,
    )

    rules, alerts, boards = made
    assert any('"pod"' in rule["expr"] for group in rules["groups"] for rule in group["rules"])
    assert all("alert" in rule for group in alerts["groups"] for rule in group["rules"])
    assert boards


def test_the_example_of_the_documentation_works(vendored):
    """What docs/rules.md shows can be pasted."""
    (example,) = re.findall(r"```jsonnet\n(.*?)```", (ROOT / "docs/rules.md").read_text(), flags=re.DOTALL)

    assert {"rules.json", "alerts.json", "latency.json"} <= evaluated(vendored, example).keys()


def test_the_scrape_configurations_of_the_documentation_work(tmp_path):
    """What docs/rules.md shows of Prometheus's own configuration is one."""
    for source in ("recording_rules/rules.yaml", "alerts/alerts.yaml"):
        shutil.copy(ROOT / source, tmp_path)
    examples = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/rules.md").read_text(), flags=re.DOTALL)

    assert len(examples) >= 2
    for example in examples:
        (tmp_path / "prometheus.yml").write_text(example)
        done = subprocess.run(
            [program("promtool"), "check", "config", "prometheus.yml"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_board_is_in_the_mixin():
    """A board that the mixin does not import would not be installed."""
    text = (ROOT / generate.CATALOGUE).read_text(encoding="utf-8")
    boards = generate.render_jsonnet("grafanaDashboards", text)

    committed = {path.name: json.loads(path.read_text()) for path in (ROOT / "dashboards/json").glob("*.json")}
    assert committed
    assert committed == boards


def test_groups_are_of_a_size_that_runs_in_parallel():
    """Rules of one group run one after the other, groups beside each other; names are unique."""
    text = (ROOT / generate.CATALOGUE).read_text(encoding="utf-8")
    groups = [
        g for one in ("prometheusRules", "prometheusAlerts") for g in generate.render_jsonnet(one, text)["groups"]
    ]

    assert len(groups) == len({group["name"] for group in groups})
    assert max(len(group["rules"]) for group in groups) <= 20


def test_package_file_is_jsonnet_bundlers():
    """The bundler reads version 1 and the list of dependencies, of which there are none."""
    assert {"version": 1, "dependencies": [], "legacyImports": True} == json.loads(
        (ROOT / "jsonnetfile.json").read_text()
    )


def keys(config, path=()):
    """Keys as the documentation writes them: groups of settings that are alike stand for all of them."""
    for key, value in config.items():
        if isinstance(value, dict) and key not in {
            "thresholds",
            "limits",
            "holds",
            "sloByModel",
            "labels",
            "dashboards",
        }:
            yield from keys(value, (*path, key))
        else:
            yield ".".join((*path, key))


def test_every_setting_is_documented():
    """Each key of the configuration is in the table of docs/rules.md."""
    config = generate.render_jsonnet("_config", (ROOT / generate.CATALOGUE).read_text(encoding="utf-8"))
    rows = re.findall(r"^\| (`[^|]+`) \|", (ROOT / "docs/rules.md").read_text(), flags=re.MULTILINE)
    documented = {key for row in rows for key in re.findall(r"`([\w.]+)`", row)}

    assert len(documented) > 20
    assert set() == set(keys(config)) - documented


def test_boards_link_to_the_runbooks_of_the_configuration():
    """Where alerts link to, boards link to as well: one setting moves both."""
    text = (ROOT / generate.CATALOGUE).read_text(encoding="utf-8")
    config = '{ runbookBaseUrl: "https://wiki.example/runbooks" }'
    boards = generate.render_jsonnet("grafanaDashboards", text, config)
    variables = {
        name: next(one for one in board["templating"]["list"] if one["name"] == "runbooks")
        for name, board in boards.items()
    }

    assert {path.name for path in (ROOT / "dashboards/json").glob("*.json")} == set(variables)
    for one in variables.values():
        assert "https://wiki.example/runbooks" == one["query"] == one["current"]["value"] == one["current"]["text"]
