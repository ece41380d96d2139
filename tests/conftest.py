"""What a run must say aloud."""

from tests import generations


def pytest_terminal_summary(terminalreporter):
    """Say so when one generation of Prometheus only was there to test with."""
    if not generations.newer_is_there():
        terminalreporter.write_line(generations.MISSING, yellow=True, bold=True)
