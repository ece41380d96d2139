"""Burstiness: arrivals per second, P99 over mean."""

import pytest
from barrier_readings import polls

from tests.streams import BURST, repeated
from tidegauge.derive.barriers import BarrierTracker
from tidegauge.derive.burstiness import ArrivalRates, burstiness


class TestBurstiness:
    """P99 of arrivals per second over their mean."""

    def test_even(self):
        """An even stream has 1, one second in a hundred with everything has 100, none has none."""
        assert 1.0 == burstiness([3.0] * 50)
        assert 100.0 == burstiness([0.0] * 98 + [7.0, 7.0]) * 2
        assert burstiness([0.0] * 5) is None

    def test_window(self):
        """Only whole seconds of the window count."""
        rates = ArrivalRates(100.0)
        for second in range(300):
            rates.add(float(second), second + 1.0, 50.0 if second < 150 and second % 5 == 0 else 2.0)
        assert 1.0 == rates.value(300.0)
        assert burstiness([50.0 if second % 5 == 0 else 2.0 for second in range(50, 150)]) == pytest.approx(
            self.earlier(150)
        )

    @staticmethod
    def earlier(seconds):
        rates = ArrivalRates(100.0)
        for second in range(seconds):
            rates.add(float(second), second + 1.0, 50.0 if second % 5 == 0 else 2.0)
        return rates.value(float(seconds))

    def test_backends_at_other_phases(self):
        """Arrivals of backends are added up second by second, spread over the interval between their polls."""
        rates = ArrivalRates(100.0)
        for second in range(20):
            rates.add(second - 0.5, second + 0.5, 4.0)
            rates.add(second - 1.0, second + 0.0, 6.0)
        assert 1.0 == pytest.approx(rates.value(19.0), rel=0.1)

    def test_tracker(self):
        """The tracker knows the burstiness of its fleet's arrivals: 17 calls in one second of seven."""
        tracker = BarrierTracker(1.0)
        for reading in polls("a", repeated(BURST, 20)):
            tracker.feed(reading)
        assert 7.0 == pytest.approx(tracker.burstiness(140.0), rel=0.02)
