"""What a run must say aloud."""

from pathlib import Path

NEWER = Path(__file__).resolve().parents[1] / "build" / "newer" / "usr" / "bin" / "promtool"


def pytest_terminal_summary(terminalreporter):
    """Say so when the rules were held against one generation of Prometheus only."""
    if not NEWER.exists():
        terminalreporter.write_line(
            "RULES NOT TESTED UNDER PROMETHEUS 3: no promtool in build/newer; run `make newer`", yellow=True, bold=True
        )
