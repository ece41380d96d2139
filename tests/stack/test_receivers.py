"""stack/alertmanager.receivers.yml and its templates: the routes of the stack, secrets from files, texts."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.generations import GENERATIONS, NEWER, program

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "stack/alertmanager.receivers.yml"
TEMPLATES = ROOT / "stack/templates/*.tmpl"
SETTINGS = yaml.safe_load(CONFIG.read_text())
LABELS = {"alertname": "VllmQueueSaturated", "severity": "warning", "backend": "a:8000", "model_name": "m"}
NOTES = {
    "summary": "m on a:8000: 96% of requests wait.",
    "description": "Look first at the queue.",
    "dashboard_url": "http://g/d/x",
    "runbook_url": "http://r/VllmQueueSaturated.md",
}


def alert(status):
    return {"status": status, "labels": LABELS, "annotations": NOTES, "startsAt": "2026-11-30T08:00:00Z"}


def data(*statuses):
    """What Alertmanager gives its templates."""
    alerts = [alert(status) for status in statuses]
    status = "firing" if "firing" in statuses else "resolved"
    return {"status": status, "alerts": alerts, "commonLabels": LABELS, "groupLabels": LABELS, "receiver": "ticket"}


@pytest.fixture(params=GENERATIONS)
def amtool(request):
    return program("amtool", request.param)


def rendered(amtool, template, content, folder):
    (folder / "data.json").write_text(json.dumps(content))
    command = [amtool, "template", "render", f"--template.glob={TEMPLATES}", f"--template.data={folder / 'data.json'}"]
    done = subprocess.run([*command, f"--template.text={template}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_newer_alertmanager_takes_the_file(tmp_path):
    """The file is valid, its templates are found and parsed."""
    file = tmp_path / "alertmanager.yml"
    file.write_text(CONFIG.read_text().replace("/etc/alertmanager/templates", str(TEMPLATES.parent)))
    done = subprocess.run(
        [program("amtool", NEWER), "check-config", str(file)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 templates" in done.stdout


def test_routes_and_silences_are_those_of_the_stack():
    """Whoever takes this file gets the routing that the stack's tests hold."""
    stack = yaml.safe_load((ROOT / "stack/alertmanager.yml").read_text())

    assert stack["route"] == SETTINGS["route"]
    assert stack["inhibit_rules"] == SETTINGS["inhibit_rules"]


def test_every_receiver_is_told_of_the_end():
    """Each channel of each receiver gets the resolution."""
    channels = [
        channel
        for receiver in SETTINGS["receivers"]
        for name, channels in receiver.items()
        if name.endswith("_configs")
        for channel in channels
    ]

    assert len(channels) >= 5
    assert all(channel["send_resolved"] for channel in channels)


def test_secrets_are_files():
    """No key, password or webhook stands in the file, and each secret file is documented."""
    text = CONFIG.read_text()
    files = set(re.findall(r"/etc/alertmanager/secrets/(\w+)", text))

    assert {"slack_url", "pagerduty_key", "smtp_password", "chat_adapter_url"} == files
    assert not re.search(r"^ *(routing_key|service_key|api_url|url|password|auth_password):", text, flags=re.MULTILINE)
    documented = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/alertmanager.md").read_text(), flags=re.MULTILINE))
    assert files <= documented


def test_named_templates_exist():
    """A template that the receivers name and nobody defines would send empty messages."""
    defined = set(re.findall(r'define "([^"]+)"', (ROOT / "stack/templates/tidegauge.tmpl").read_text()))
    named = set(re.findall(r'template "([^"]+)"', CONFIG.read_text()))

    assert named
    assert named <= defined


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (data("firing"), "[FIRING 1] VllmQueueSaturated m a:8000"),
        (data("firing", "firing", "resolved"), "[FIRING 2] VllmQueueSaturated m a:8000"),
        (data("resolved"), "[RESOLVED] VllmQueueSaturated m a:8000"),
        (
            {**data("firing"), "commonLabels": {"alertname": "VllmBackendSkew", "fleet": "f"}},
            "[FIRING 1] VllmBackendSkew fleet f",
        ),
        (
            {**data("firing"), "commonLabels": {"alertname": "VllmBackendDown", "backend": "a:8000", "cluster": "eu"}},
            "[FIRING 1] VllmBackendDown a:8000 cluster eu",
        ),
    ],
)
def test_title(amtool, tmp_path, content, expected):
    """One line says whether it still is, what, and where."""
    assert expected == rendered(amtool, '{{ template "tidegauge.title" . }}', content, tmp_path)


@pytest.mark.parametrize("template", ["tidegauge.text", "tidegauge.markdown"])
def test_text(amtool, tmp_path, template):
    """A firing alert comes with its figure, what to look at, and both links; a resolved one with its figure."""
    call = f'{{{{ template "{template}" . }}}}'
    firing = rendered(amtool, call, data("firing"), tmp_path)
    resolved = rendered(amtool, call, data("resolved"), tmp_path)

    assert all(note in firing for note in NOTES.values())
    assert "WARNING" in firing
    assert "RESOLVED" not in firing
    assert NOTES["summary"] in resolved
    assert "RESOLVED" in resolved
    assert NOTES["description"] not in resolved
