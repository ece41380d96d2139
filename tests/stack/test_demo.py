"""The whole path by one command: real pages in, a delivered page out, the report at the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.stack
@pytest.mark.timeout(420)
def test_demo_plays_the_case(tmp_path):
    """The page comes with its place and resolves, the ceilings are judged, and nothing is left behind."""
    done = subprocess.run(
        [sys.executable, "-m", "tidegauge.demo"],
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
