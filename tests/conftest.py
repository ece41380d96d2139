"""What a run must say aloud."""

from tests import generations, typescript


def pytest_terminal_summary(terminalreporter):
    """Say so when one generation of Prometheus only was there to test with, or no types to check the boards against."""
    if not generations.newer_is_there():
        terminalreporter.write_line(generations.MISSING, yellow=True, bold=True)
    if not typescript.is_there():
        terminalreporter.write_line(typescript.MISSING, yellow=True, bold=True)
