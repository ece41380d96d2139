"""The simulated log says what a real 0.32 log says, in its words."""

import re

import attrs
import pytest

from tidegauge.demo.engine import Engine
from tidegauge.demo.requests import Request
from tidegauge.demo.settings import CASE, EngineSettings
from tidegauge.demo.startup import Place, StatsLines, loading_lines, ready_lines, shutdown_lines

PLACE = Place("127.0.0.1", 8101, 4052, 4485)
AT = 1_795_996_154.0
HEADER = re.compile(
    r"^\((?:APIServer pid=4052|EngineCore pid=4485)\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[[a-z_]+\.py:\d+\] "
)


def log(settings):
    return [*loading_lines(settings, PLACE, AT), *ready_lines(settings, PLACE, AT + 15.7, 15.721)]


def messages(lines):
    return [HEADER.sub("", line) for line in lines]


class TestStartup:
    def test_every_line_has_vllms_header_or_is_the_web_servers(self):
        """Process, pid, level, date and source stand before each message; the web server's lines have none of it."""
        for line in log(CASE):
            assert HEADER.match(line) or line.startswith("INFO:     ")

    def test_the_capacity_line_is_the_real_one(self):
        """The true-size server prints its 1,490,818 tokens and 11.37 windows in one line, as the engine core."""
        line = next(line for line in log(CASE) if "KV cache size" in line)
        assert line.startswith("(EngineCore pid=4485) INFO ")
        assert line.endswith(
            "[kv_cache_utils.py:2327] GPU KV cache size: 1,490,818 tokens, "
            "Maximum concurrency for 131,072 tokens per request: 11.37x"
        )

    @pytest.mark.parametrize(
        "expected",
        [
            "Using max model len 4096",
            "Chunked prefill is enabled with max_num_batched_tokens=1024.",
            "init engine (profile, create kv cache, warmup model) took 15.72 s",
            "Starting vLLM server on http://127.0.0.1:8101",
            (
                "non-default args: {'model_tag': 'm', 'host': '127.0.0.1', 'port': 8101, 'model': 'm', "
                "'max_model_len': 4096, 'enable_prefix_caching': False, "
                "'max_num_batched_tokens': 1024, 'max_num_seqs': 16}"
            ),
            "  █▄█▀ █     █     █     █  model   m\r",
            " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0\r",
        ],
    )
    def test_settings_appear_in_their_lines(self, expected):
        """Each setting stands in the line in which a real server prints it."""
        settings = EngineSettings(
            model_name="m", max_num_seqs=16, max_num_batched_tokens=1024, max_model_len=4096, prefix_caching=False
        )
        assert expected in messages(log(settings))

    def test_the_engine_line_has_the_window_and_no_slots(self):
        """max_seq_len is in the configuration line; max_num_seqs is not, as on a real server."""
        line = next(
            line for line in messages(log(CASE)) if line.startswith("Initializing a V1 LLM engine (v0.32.0) with")
        )
        assert "max_seq_len=131072," in line
        assert "max_num_seqs" not in line

    def test_the_default_budget_is_not_announced(self):
        """With 2048 batched tokens the chunked-prefill line is missing, as in real logs."""
        lines = messages(log(attrs.evolve(CASE, max_num_batched_tokens=2048)))
        assert not [line for line in lines if line.startswith("Chunked prefill")]

    def test_a_stopping_server_says_so(self):
        """SIGTERM aborts what is in flight at once."""
        assert "mode=abort timeout=0s" in "\n".join(shutdown_lines(PLACE, AT))


class TestStatsLine:
    def test_the_line_gives_rates_and_gauges(self):
        """Rates are per second of the interval; cached prompt tokens are left out; the hit rate is over requests."""
        engine = Engine(EngineSettings(max_num_seqs=1))
        stats = StatsLines(engine.tally, PLACE)
        for number in range(3):
            engine.submit(Request(f"r{number}", "s", 400, 10, 320), 0.0)
        engine.advance(10.0)
        line = messages([stats.next(AT, 10.0)])[0]
        assert (
            "Engine 000: Avg prompt throughput: 56.0 tokens/s, Avg generation throughput: 3.0 tokens/s, "
            "Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 53.3%"
        ) == line

    def test_an_idle_engine_falls_silent(self):
        """One all-zero line is printed, then none until something happens."""
        engine = Engine(EngineSettings())
        stats = StatsLines(engine.tally, PLACE)
        assert [True, False, False] == [stats.next(AT, 10.0) is not None for _ in range(3)]
        engine.submit(Request("r", "s", 40, 1), 0.0)
        engine.advance(10.0)
        assert "Avg prompt throughput: 4.0 tokens/s" in stats.next(AT, 10.0)
