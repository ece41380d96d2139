"""The whole path by one command: real pages in, a delivered page out, the report at the end."""

import os
import signal
import subprocess
import sys
import urllib.request
from itertools import takewhile
from pathlib import Path

import pytest

from tidegauge.demo import __main__ as demo

ROOT = Path(__file__).parents[2]


@pytest.mark.stack
@pytest.mark.timeout(420)
def test_demo_plays_the_case(tmp_path):
    """The page comes with its place and resolves, the ceilings are judged, and nothing is left behind."""
    done = subprocess.run(
        [sys.executable, "-m", "tidegauge.demo", "--grafana", "http://grafana.example/at/"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "exporter"), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    printed = done.stdout

    assert 0 == done.returncode, printed + done.stderr
    firing, _, after = printed.partition("RESOLVED")
    for told in (
        "FIRING",
        "where=caller",
        "severity=critical",
        "runbook_url",
        "dashboard_url: http://grafana.example/at/d/tidegauge-",
        "ceiling 16: clips, 2 wave(s)",
        "late share 0.0%",
    ):
        assert told in firing
    # How many of a window's barriers exceed 28 is chance; that some do is not.
    assert "ceiling 28: clips" in firing
    assert "inert, 1 wave(s)" in printed.partition("ceiling 48")[2]
    for told in ("where the latency goes", "halving it wins at most", "barriers and ceilings", "capacity", "inert"):
        assert told in after
    assert [] == list(tmp_path.iterdir())


@pytest.mark.stack
def test_who_stays_is_told_at_once_where_to_look(tmp_path):
    """The addresses come before the page does, they answer, and Ctrl-C leaves nothing behind."""
    command = [sys.executable, "-m", "tidegauge.demo", "--stay"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "exporter"), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as running:
        told = list(takewhile(lambda line: "simulated vLLM  " not in line, running.stdout))
        (alerts,) = [line.split()[-1] for line in told if "Prometheus alerts" in line]
        with urllib.request.urlopen(alerts, timeout=10) as answer:
            status = answer.status
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()

    assert 200 == status
    assert "FIRING" not in "".join(told)
    assert "stopped" in rest
    assert 130 == running.returncode
    assert [] == list(tmp_path.iterdir())


def test_links_lead_to_an_address(capsys):
    """What cannot be the address of a Grafana is refused before anything starts."""
    with pytest.raises(SystemExit):
        demo.main(["--grafana", "grafana:3000"])

    assert "--grafana: expected http://host:port" in capsys.readouterr().err
