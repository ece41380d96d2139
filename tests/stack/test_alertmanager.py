"""stack/alertmanager.yml: who is told, how fast, and what silences what."""

import contextlib
import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.generations import GENERATIONS, program

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "stack/alertmanager.yml"
DEADLINE = 15
A, B = "10.0.0.1:8000", "10.0.0.2:9000"

PAGE = {"alertname": "VllmQueueTimeBimodal", "severity": "critical", "where": "server", "model_name": "m", "backend": A}
WARNING = {**PAGE, "severity": "warning"}
DOWN = {"alertname": "VllmBackendDown", "severity": "critical", "backend": A}
CANARY = {"alertname": "Canary", "severity": "critical"}
CANARY_WARNING = {**CANARY, "severity": "warning"}
FLEET = {"alertname": "VllmQueueTimeBimodal", "severity": "critical", "where": "caller", "fleet": "f"}
ON_A = {"severity": "warning", "backend": A}
STALLED = {"alertname": "VllmAdmissionStalled", "severity": "critical", "model_name": "m", "backend": A}
SATURATED = {**ON_A, "alertname": "VllmQueueSaturated", "where": "server", "model_name": "m"}
REFUSING = {**ON_A, "alertname": "VllmAdmissionRejections", "model_name": "m"}
ABORTED = {**ON_A, "alertname": "VllmRequestsAborted"}
SLOTS = {**ON_A, "alertname": "VllmSequenceSlotsBound", "cause": "sequence_slots"}
FULL = {**ON_A, "alertname": "VllmKVCacheSaturated", "model_name": "m"}
PREEMPTING = {**ON_A, "alertname": "VllmPreempting", "model_name": "m"}
FAILING = {**ON_A, "alertname": "TidegaugeBackendFailing", "instance": "t:10011", "job": "tidegauge"}
EXPORTER = {"alertname": "TidegaugeDown", "severity": "warning", "instance": "t:10011", "job": "tidegauge"}
CLIPS = {"alertname": "VllmCallerCeilingClips", "severity": "warning", "fleet": "f", "ceiling": "client"}
BURN = {"alertname": "VllmTTFTBudgetBurn", "severity": "critical", "model_name": "m", "sli": "ttft", "window": "1h"}
EU, US = {"cluster": "eu"}, {"cluster": "us"}
SLOW_BURN = {**BURN, "severity": "warning", "window": "3d"}


@pytest.fixture(params=GENERATIONS)
def tools(request):
    return program("amtool", request.param), program("alertmanager", request.param)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def call(url, payload=None):
    data = None if payload is None else json.dumps(payload).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        body = answer.read()
    return json.loads(body) if body.startswith((b"[", b"{")) else body


def until(condition):
    """Poll the condition until it gives something true; what it gave last is returned in any case."""
    end = time.monotonic() + DEADLINE
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def running(binary, folder):
    """A real Alertmanager on the very file, on a free port of loopback; gives its address."""
    address = f"127.0.0.1:{free_port()}"
    flags = [f"--config.file={CONFIG}", f"--storage.path={folder}", f"--web.listen-address={address}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([binary, *flags, "--cluster.listen-address="], stdout=log, stderr=log)
        try:
            assert until(lambda: ready(address)), (folder / "log").read_text()
            yield address
        finally:
            process.terminate()
            process.wait(DEADLINE)


def ready(address):
    with contextlib.suppress(urllib.error.URLError):
        return call(f"http://{address}/-/ready")
    return None


def silenced(address, alerts):
    """Send the alerts and one pair more whose outcome is known; once that shows, give what else is inhibited."""
    call(f"http://{address}/api/v2/alerts", [{"labels": labels} for labels in (*alerts, CANARY, CANARY_WARNING)])

    def inhibited():
        known = call(f"http://{address}/api/v2/alerts")
        labels = [alert["labels"] for alert in known if alert["status"]["inhibitedBy"]]
        return labels if CANARY_WARNING in labels else []

    return [labels for labels in until(inhibited) if labels != CANARY_WARNING]


def in_order(alerts):
    """Alerts in an order that does not depend on who sent or answered first."""
    return sorted(sorted(labels.items()) for labels in alerts)


def test_file_is_valid(tools):
    """Both generations accept the file."""
    done = subprocess.run([tools[0], "check-config", str(CONFIG)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (PAGE, "page"),
        (FLEET, "page"),
        (DOWN, "page"),
        (WARNING, "ticket"),
        ({"alertname": "TidegaugeDown", "severity": "info"}, "ticket"),
        ({"alertname": "SomeoneElses"}, "ticket"),
    ],
)
def test_routes_by_severity(tools, labels, receiver):
    """Critical alerts page; everything else, known or not, becomes a ticket."""
    pairs = [f"{name}={value}" for name, value in labels.items()]
    command = [tools[0], "config", "routes", "test", f"--config.file={CONFIG}", f"--verify.receivers={receiver}"]
    done = subprocess.run([*command, *pairs], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_pages_go_out_and_resolve_quickly():
    """A page waits 5 s for its group and its resolution at most 15 s more; receivers are told of both."""
    config = yaml.safe_load(CONFIG.read_text())
    (page,) = config["route"]["routes"]
    assert {"group_wait": "5s", "group_interval": "15s"}.items() <= page.items()
    assert all(hook["send_resolved"] for receiver in config["receivers"] for hook in receiver["webhook_configs"])


def test_one_subject_is_one_notification():
    """Alerts are grouped by name and by every label that can be a subject."""
    config = yaml.safe_load(CONFIG.read_text())
    assert config["route"]["group_by"] == ["alertname", "cluster", "fleet", "backend", "model_name"]


def test_nothing_silences_across_clusters():
    """Every silence asks for the same cluster, which two alerts without one have as well."""
    rules = yaml.safe_load(CONFIG.read_text())["inhibit_rules"]
    assert len(rules) >= 6
    assert all("cluster" in rule["equal"] for rule in rules)


def test_one_line_is_a_placeholder():
    """The demo has exactly one URL to replace, and the file names no other."""
    text = CONFIG.read_text()
    assert len(re.findall(r"^ *- url: \S+ # PLACEHOLDER$", text, flags=re.MULTILINE)) == 1
    assert len(re.findall(r"https?://", text)) == 1


@pytest.mark.stack
def test_health_check_tells_up_from_down(tools, tmp_path):
    """The health check of docker-compose.yml succeeds on a running Alertmanager and fails on none."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    _, _, *arguments = compose["services"]["alertmanager"]["healthcheck"]["test"]

    def health(address):
        command = [tools[0], *(part.replace("127.0.0.1:9093", address) for part in arguments)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    with running(tools[1], tmp_path) as address:
        assert health(address) == 0
    assert health(address) != 0


@pytest.mark.stack
class TestInhibition:
    @pytest.mark.parametrize(
        ("alerts", "expected"),
        [
            pytest.param([PAGE, WARNING], [WARNING], id="page silences its own warning"),
            pytest.param([PAGE, {**WARNING, "backend": B}], [], id="another backend still warns"),
            pytest.param([PAGE, {**WARNING, "where": "caller"}], [], id="another side still warns"),
            pytest.param([PAGE, {**WARNING, "alertname": "VllmBackendSkew"}], [], id="another alert still warns"),
            pytest.param([FLEET, {**FLEET, "severity": "warning", "fleet": "g"}], [], id="another fleet still warns"),
            pytest.param([DOWN, PAGE], [PAGE], id="a dead backend explains its page"),
            pytest.param([DOWN, {**PAGE, "backend": B}], [], id="but not that of another backend"),
            pytest.param([DOWN, FLEET], [], id="nor one about a fleet"),
            pytest.param([DOWN, {**DOWN, "backend": B}], [], id="nor another dead backend"),
            pytest.param([{**DOWN, "backend": ""}, FLEET], [], id="a subject without backend silences no fleet"),
            pytest.param([DOWN, FAILING], [FAILING], id="a dead backend explains the exporter's polls of it"),
            pytest.param([DOWN, EXPORTER], [], id="but not an exporter that is gone"),
            pytest.param([STALLED, SATURATED, FAILING], [SATURATED, FAILING], id="a stall explains what waits"),
            pytest.param([STALLED, {**SATURATED, "backend": B}, CLIPS], [], id="on its backend, and of no fleet"),
            pytest.param([STALLED, PAGE], [], id="but no page"),
            pytest.param([SATURATED, REFUSING, ABORTED], [REFUSING, ABORTED], id="a saturated queue has consequences"),
            pytest.param([SATURATED, SLOTS], [], id="and causes, which are told"),
            pytest.param([SATURATED, {**REFUSING, "severity": "critical"}], [], id="and silences no page"),
            pytest.param([SATURATED, {**REFUSING, "backend": B}], [], id="nor another backend"),
            pytest.param(
                [{"alertname": "VllmQueueSaturated", "severity": "warning", "where": "caller", "fleet": "f"}, ABORTED],
                [],
                id="a caller's full queue silences no server",
            ),
            pytest.param([FULL, PREEMPTING], [PREEMPTING], id="a full cache preempts"),
            pytest.param([FULL, {**PREEMPTING, "model_name": "n"}], [], id="its own model only"),
            pytest.param([FLEET, CLIPS], [CLIPS], id="a caller's page explains its ceiling"),
            pytest.param([FLEET, {**CLIPS, "fleet": "g"}], [], id="not another fleet's"),
            pytest.param([{**FLEET, "severity": "warning"}, CLIPS], [], id="a caller's warning does not"),
            pytest.param([PAGE, CLIPS], [], id="nor a server's page"),
            pytest.param([BURN, SLOW_BURN], [SLOW_BURN], id="a fast burn silences the slow one of the same model"),
            pytest.param([BURN, {**SLOW_BURN, "model_name": "n"}], [], id="and of no other"),
            pytest.param([DOWN | EU, STALLED | EU], [STALLED | EU], id="a backend of a cluster explains its own pages"),
            pytest.param([DOWN | EU, STALLED | US], [], id="and not those of its namesake in another cluster"),
            pytest.param([PAGE | EU, WARNING | US], [], id="a page of a cluster silences no other cluster's warning"),
            pytest.param([FLEET | EU, CLIPS | US], [], id="nor does its fleet"),
        ],
    )
    def test_on_a_real_alertmanager(self, tools, tmp_path, alerts, expected):
        """What one alert silences, and what it must not."""
        with running(tools[1], tmp_path) as address:
            assert in_order(expected) == in_order(silenced(address, alerts))


def test_inhibited_names_are_those_of_the_alerts():
    """A rule about an alert that was renamed silences nothing, and nobody notices."""
    alerts = yaml.safe_load((ROOT / "alerts/alerts.yaml").read_text())
    known = {rule["alert"] for group in alerts["groups"] for rule in group["rules"]}
    matchers = [
        matcher
        for rule in yaml.safe_load(CONFIG.read_text())["inhibit_rules"]
        for matcher in (*rule["source_matchers"], *rule["target_matchers"])
    ]
    named = {name for matcher in matchers for name in re.findall(r"(?:Vllm|Tidegauge)[A-Za-z0-9]+", matcher)}

    assert len(named) >= 8
    assert named <= known
