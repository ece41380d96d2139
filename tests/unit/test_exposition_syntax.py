"""The two text formats as servers, proxies and people write them, and what damage costs."""

import math

import pytest

from tidegauge import vllm
from tidegauge.model import Histogram, SeriesKey
from tidegauge.parsing.exposition import read_page

WAITING = SeriesKey(vllm.WAITING, "", "0")
RUNNING = SeriesKey(vllm.RUNNING, "", "0")
QUEUE = SeriesKey(vllm.QUEUE, "", "0")


def page(*lines):
    return "\n".join(lines) + "\n"


class TestWriting:
    @pytest.mark.parametrize(
        "line",
        [
            'vllm:num_requests_waiting{engine="0"} 12',
            '    vllm:num_requests_waiting{engine="0"} 12.0   ',
            '\tvllm:num_requests_waiting{engine="0"}\t1.2e1',
            'vllm:num_requests_waiting { engine = "0" } 12',
            'vllm:num_requests_waiting{engine="0",} 12',
            'vllm:num_requests_waiting{ engine="0" , }   12',
            'vllm:num_requests_waiting{engine="0"} 1.2e+001',
            'vllm:num_requests_waiting{engine="0"} +12',
            'vllm:num_requests_waiting{engine="0"} 12 1764460800000',
            'vllm:num_requests_waiting{engine="0"} 12 1764460800.25',
            'vllm:num_requests_waiting{engine="0"} 12 # {trace_id="a # \\"b} 9"} 3 17.5',
            'vllm:num_requests_waiting{engine="0"} 12 1764460800.25 # {} 3',
            'vllm:num_requests_waiting{engine="0"} 12\r',
            'vllm:num_requests_waiting{engine="0"}12',
        ],
    )
    def test_one_sample_in_many_hands(self, line):
        """Indentation, blanks, tabs, commas, exponents, timestamps, exemplars and CRLF do not change the sample."""
        found = read_page(page("# TYPE vllm:num_requests_waiting gauge", line))

        assert {WAITING: 12.0} == found.values
        assert {} == found.problems

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ('x \\"y\\" {z}, a=\\"1\\"} 7', 'x "y" {z}, a="1"} 7'),
            ("C:\\\\new\\nline", "C:\\new\nline"),
            ("keeps \\t and \\d", "keeps \\t and \\d"),
            ("two\u2028lines\x0b\x85 \xa0é", "two\u2028lines\x0b\x85 \xa0é"),
            ("# HELP", "# HELP"),
            ("", ""),
        ],
    )
    def test_label_values_may_hold_anything(self, text, value):
        """Quotes, braces, commas, odd line separators and escapes inside a value are the value's."""
        found = read_page(page(f'vllm:num_requests_running{{model_name="{text}",engine="0"}} 3'))

        assert {SeriesKey(vllm.RUNNING, value, "0"): 3.0} == found.values

    def test_openmetrics(self):
        """Counters' TYPE has no suffix, `_created` is no figure, `# EOF` needs no line end."""
        found = read_page(
            page(
                "# TYPE vllm_prompt_tokens counter",
                'vllm_prompt_tokens_total{engine="0"} 71.0',
                'vllm_prompt_tokens_created{engine="0"} 1.7e+09',
                "# TYPE vllm_request_queue_time_seconds histogram",
                'vllm_request_queue_time_seconds_bucket{engine="0",le="0.3"} 5.0 # {span="x"} 0.2',
                'vllm_request_queue_time_seconds_bucket{engine="0",le="+Inf"} 8.0',
                'vllm_request_queue_time_seconds_count{engine="0"} 8.0',
                'vllm_request_queue_time_seconds_sum{engine="0"} 21.5',
                'vllm_request_queue_time_seconds_created{engine="0"} 1.7e+09',
            )
            + "# EOF"
        )

        assert {SeriesKey(vllm.PROMPT_TOKENS, "", "0"): 71.0} == found.values
        assert {QUEUE: Histogram((0.3, math.inf), (5.0, 8.0), 21.5, 8.0)} == found.histograms
        assert {} == found.problems


class TestHistograms:
    def test_buckets_are_put_in_order(self):
        """Edges come ascending whatever the order of the lines, sum first or last, other series in between."""
        found = read_page(
            page(
                'vllm:request_queue_time_seconds_sum{engine="0"} 50',
                'vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf"} 9',
                'vllm:request_queue_time_seconds_bucket{engine="1",le="0.3"} 77',
                'vllm:request_queue_time_seconds_bucket{engine="0",le="20.0"} 6',
                'vllm:request_queue_time_seconds_bucket{engine="0",le="3"} 4',
                'vllm:request_queue_time_seconds_count{engine="0"} 9',
            )
        )

        assert Histogram((3.0, 20.0, math.inf), (4.0, 6.0, 9.0), 50.0, 9.0) == found.histograms[QUEUE]

    def test_what_the_page_lacks_is_unknown(self):
        """Missing sum, count or last bucket are not made up."""
        found = read_page(page('vllm:request_queue_time_seconds_bucket{engine="0",le="0.3"} 4'))

        assert {QUEUE: Histogram((0.3,), (4.0,), None, None)} == found.histograms

    def test_impossible_numbers_leave_gaps(self):
        """A NaN bucket costs its edge, a negative count is unknown, a negative sum stays: vLLM does poison sums."""
        found = read_page(
            page(
                'vllm:request_queue_time_seconds_bucket{engine="0",le="0.3"} NaN',
                'vllm:request_queue_time_seconds_bucket{engine="0",le="+Inf"} 4',
                'vllm:request_queue_time_seconds_count{engine="0"} -4',
                'vllm:request_queue_time_seconds_sum{engine="0"} -731.5',
            )
        )

        assert {QUEUE: Histogram((math.inf,), (4.0,), -731.5, None)} == found.histograms
        assert {"value": 2} == found.problems

    def test_the_histogram_that_looks_like_a_counter(self):
        """`iteration_tokens_total` is a histogram."""
        found = read_page(
            page('vllm:iteration_tokens_total_sum{engine="0"} 88', 'vllm:iteration_tokens_total_count{engine="0"} 6')
        )

        assert {SeriesKey(vllm.ITERATION_TOKENS, "", "0"): Histogram((), (), 88.0, 6.0)} == found.histograms


class TestValues:
    @pytest.mark.parametrize("text", ["NaN", "nan", "-3", "-0.5", "+Inf", "-Inf"])
    def test_a_gauge_that_cannot_be_is_unknown(self, text):
        """NaN, negative and infinite gauges are left out and counted; the rest of the page stays."""
        found = read_page(
            page(f'vllm:num_requests_waiting{{engine="0"}} {text}', 'vllm:num_requests_running{engine="0"} 2')
        )

        assert {RUNNING: 2.0} == found.values
        assert {"value": 1} == found.problems

    def test_minus_one_means_not_measured(self):
        """Such a gauge is left out, and that is no fault; for a counter it is one."""
        found = read_page(
            page('vllm:kv_cache_usage_perc{engine="0"} -1.0', 'vllm:num_preemptions_total{engine="0"} -1')
        )

        assert {} == found.values
        assert {"value": 1} == found.problems
        assert not found.blind

    def test_an_unknown_part_of_a_sum_is_left_out(self):
        """What one process does not know, the others still add up to."""
        lines = [
            f'vllm:num_requests_running{{engine="0",pid="{pid}"}} {number}'
            for pid, number in ((1, 3), (2, "NaN"), (3, 5))
        ]

        assert {RUNNING: 8.0} == read_page(page(*lines)).values


class TestDamage:
    @pytest.mark.parametrize(
        "line",
        [
            "bogus line",
            'vllm:num_requests_running{engine="2",model_name="unterminated',
            'vllm:num_requests_running{engine="2"',
            "vllm:num_requests_running{engine=2} 4",
            'vllm:num_requests_running{engine="2" model_name="x"} 4',
            'vllm:num_requests_running{engine="2",engine="3"} 4',
            'vllm:num_requests_running{,engine="2"} 4',
            'vllm:num_requests_running{engine="2"} 4 5 6',
            'vllm:num_requests_running{engine="2"} four',
            'vllm:num_requests_running{engine="2"}',
            "vllm:num_requests_running",
            'vllm:request_queue_time_seconds_bucket{engine="2"} 4',
            'vllm:request_queue_time_seconds_bucket{engine="2",le="wide"} 4',
            'vllm:request_queue_time_seconds_bucket{engine="2",le="NaN"} 4',
            "http_requests_total many",
            "{} 4",
            "\x00",
        ],
    )
    def test_a_broken_line_costs_itself(self, line):
        """It is counted, and its neighbours stay good."""
        found = read_page(
            page('vllm:num_requests_waiting{engine="0"} 1', line, 'vllm:num_requests_running{engine="0"} 2')
        )

        assert {WAITING: 1.0, RUNNING: 2.0} == found.values
        assert {} == found.histograms
        assert {"line": 1} == found.problems

    def test_a_page_cut_anywhere_gives_only_true_figures(self):
        """Every figure of a cut page is one of the whole page, and a cut inside a line is counted."""
        whole = page(
            'vllm:num_requests_waiting{engine="0"} 123.25',
            'vllm:prompt_tokens_total{engine="0"} 45678.0',
            'vllm:num_requests_running{engine="0"} 2.0',
        )
        figures = read_page(whole).values
        first = whole.index("\n") + 1

        for end in range(first, len(whole)):
            found = read_page(whole[:end])
            assert found.values.items() <= figures.items()
            assert ({} if whole[end - 1] == "\n" else {"line": 1}) == found.problems

    def test_blank_lines_and_comments_are_no_faults(self):
        """Nor is a last comment without its line end."""
        body = page("", "   ", "#", "# SCRAPE ts=1", "\r", 'vllm:num_requests_running{engine="0"} 2') + "  # EOF"

        assert ({RUNNING: 2.0}, {}) == (read_page(body).values, read_page(body).problems)
