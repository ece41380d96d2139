"""Backends held against each other."""

import pytest

from tidegauge import vllm
from tidegauge.derive.fleet import Skew, duplicates, skew
from tidegauge.model import Identity, SeriesKey

TOKENS = SeriesKey(vllm.PROMPT_TOKENS, "m", "0")


def identity(name, at, tokens, start=1000.0, key=TOKENS):
    return Identity(name, at, start, {key: tokens})


class TestSkew:
    @pytest.mark.parametrize(("left", "right", "expected"), [(32.91, 12.18, "2.70"), (17.90, 17.05, "1.05")])
    def test_the_case(self, left, right, expected):
        """Cap 16 and cap 28."""
        found = skew({"a": left, "b": right})

        assert expected == f"{found.ratio:.2f}"
        assert ("a", "b") == (found.highest, found.lowest)

    def test_of_three_backends(self):
        """Slowest over fastest, both named."""
        assert Skew(4.0, "c", "b") == skew({"a": 2.0, "b": 1.0, "c": 4.0})

    @pytest.mark.parametrize("values", [{}, {"a": 3.0}, {"a": 3.0, "b": 0.0}])
    def test_one_backend_or_a_zero_has_no_skew(self, values):
        """Absent, not 1 or infinite."""
        assert None is skew(values)


class TestDuplicates:
    def test_same_process_polled_a_moment_later_is_the_same_server(self):
        """Its counters went on, they never go back."""
        assert {"b": "a"} == duplicates([identity("a", 2000.0, 70.0), identity("b", 2000.4, 75.0)])

    def test_poll_order_does_not_matter(self):
        """The target listed first may have been polled last."""
        assert {"b": "a"} == duplicates([identity("a", 2000.4, 75.0), identity("b", 2000.0, 70.0)])

    def test_two_targets_counted_as_four(self):
        """The case's health check: every alias leads to the one listed first."""
        found = duplicates(
            [
                identity("a", 2000.0, 70.0),
                identity("b", 2000.1, 9.0, start=1100.0),
                identity("a-again", 2000.2, 71.0),
                identity("b-again", 2000.3, 9.0, start=1100.0),
            ]
        )

        assert {"a-again": "a", "b-again": "b"} == found

    @pytest.mark.parametrize(
        "other",
        [
            identity("b", 2000.4, 75.0, start=1000.01),
            identity("b", 2000.4, 69.0),
            identity("b", 2000.4, 75.0, key=TOKENS._replace(model_name="n")),
            identity("b", 2000.4, 75.0, start=None),
        ],
        ids=["another start", "counters behind", "another model", "no start"],
    )
    def test_another_process_is_another_server(self, other):
        """A different start, counters that go back, other series, or a start that only one of them tells."""
        assert {} == duplicates([identity("a", 2000.0, 70.0), other])

    def test_without_a_process_start_the_counters_must_be_the_same(self):
        """Several API server processes; two idle servers are not taken for one."""
        assert {"b": "a"} == duplicates([identity("a", 2000.0, 70.0, None), identity("b", 2000.4, 70.0, None)])
        assert {} == duplicates([identity("a", 2000.0, 70.0, None), identity("b", 2000.4, 71.0, None)])
        assert {} == duplicates([identity("a", 2000.0, 0.0, None), identity("b", 2000.4, 0.0, None)])
