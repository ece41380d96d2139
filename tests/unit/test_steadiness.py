"""Bursts told from steady traffic."""

import pytest

from tidegauge.derive.steadiness import Steadiness, pair_evidence


class TestSteadiness:
    """Evidence for bursts."""

    def test_pairs(self):
        """Calls on one side speak for bursts, evenly spread ones against, one call or none says nothing."""
        assert pair_evidence(5, 0) == pair_evidence(0, 5) > 0 > pair_evidence(5, 5)
        assert 0.0 == pair_evidence(0, 0) == pair_evidence(1, 0)

    def test_limit(self):
        """However large a burst, one pair says at most 100."""
        assert 100 == pytest.approx(2.718281828459045 ** pair_evidence(500, 0))

    def test_unequal_times(self):
        """An interval three times as long may hold three times as many calls."""
        assert pair_evidence(30, 10, 0.75) < 0 < pair_evidence(30, 10, 0.5)

    @pytest.mark.parametrize("share", [0.5, 0.3])
    def test_is_a_likelihood_ratio(self, share):
        """Its mean over the splits that steady traffic gives is at most 1."""
        from math import comb, exp  # noqa: PLC0415 - only here

        for calls in (2, 7, 30):
            mean = sum(
                comb(calls, first)
                * share**first
                * (1 - share) ** (calls - first)
                * exp(pair_evidence(first, calls - first, share))
                for first in range(calls + 1)
            )
            assert 0 < mean <= 1.0000001

    def test_nothing_yet(self):
        """Before anything was seen, nothing is sure."""
        assert (0.0, False) == (Steadiness(1.0).log_ratio, Steadiness(1.0).sure)
