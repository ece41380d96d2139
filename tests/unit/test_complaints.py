"""What the log says of a subject: once, the change, the recovery, and never a flood."""

import logging

import pytest

from tests.unit.little_servers import ManualClock
from tidegauge.complaints import BURST, REFILL_SECONDS, Complaints


@pytest.fixture
def told(caplog):
    """Tell complaints of a subject at a time and get all lines so far."""
    caplog.set_level(logging.INFO)
    clock = ManualClock(1000.0)
    complaints = Complaints(clock, logging.getLogger("tidegauge.test"))

    def tell(at, subject, message):
        clock.time = at
        complaints.tell(subject, message)
        return [record.getMessage() for record in caplog.records]

    return tell


class TestComplaints:
    def test_the_same_is_said_once(self, told):
        """A backend that is down for a night writes one line, and one when it is back."""
        for second in range(1000):
            told(1000.0 + second, "a", "http://a: refused")

        assert ["a: http://a: refused", "a: well again"] == told(2000.0, "a", "")

    def test_another_text_at_every_poll_is_no_flood(self, told):
        """A server that answers other garbage at every poll writes a burst, then a line a minute."""
        for second in range(600):
            lines = told(1000.0 + second, "a", f"garbage {second}")
        told(1600.0, "b", "its own allowance")

        assert BURST + 600 // REFILL_SECONDS >= len(lines) >= BURST + 600 // REFILL_SECONDS - 1
        assert ["a: garbage 0", "a: garbage 1"] == lines[:2]
        assert "changes before this one not logged" in lines[BURST]
        assert "b: its own allowance" == told(1601.0, "b", "its own allowance")[-1]

    @pytest.mark.parametrize("last", ["", "down"])
    def test_after_flapping_the_log_says_what_holds(self, told, last):
        """Ill and well in turns for an hour: few lines, and the last one is true."""
        for second in range(3600):
            told(1000.0 + second, "a", "down" if second % 2 else "")
        for second in range(61):
            lines = told(4600.0 + second, "a", last)

        assert 3600 / REFILL_SECONDS + BURST + 1 >= len(lines)
        assert lines[-1].startswith("a: down" if last else "a: well again")

    def test_a_clock_set_back_neither_floods_nor_silences(self, told):
        """An hour back in time fills no allowance and empties none."""
        for number in range(20):
            lines = told(1000.0 - 3600 * (number % 2), "a", f"text {number}")
        quiet = len(lines)

        # Ten steps of an hour forward filled the allowance again each time.
        assert 20 >= quiet >= BURST
        assert "a: new" in told(5000.0, "a", "new")[-1]
