"""What the golden pairs cannot say: real logs, reading line by line, and what is kept of a log."""

import pickle
from pathlib import Path

import pytest

from tidegauge.model import EngineFacts, StartupFacts
from tidegauge.parsing import arguments
from tidegauge.parsing.logs import LANDMARKS, NEEDLES, StartupReader, read_log

FIXTURES = Path(__file__).parent.parent / "fixtures" / "logs"


def real(name):
    return (FIXTURES / f"vllm-0.32-{name}.log").read_bytes().decode()


class TestRealLogs:
    def test_a_server_with_one_engine(self):
        """The figures of the page that this server served: 524,288 tokens, 64 requests of 8,192."""
        engine = EngineFacts("EngineCore", 524_288, "printed", max_concurrency=64.0)

        assert StartupFacts(1, "0.32.0", (engine,), 8192, 8, 2048, 1, started=True) == read_log(real("one-engine"))

    def test_two_data_parallel_engines_are_kept_apart(self):
        """Each engine's capacity is its own; nothing is summed and nothing overwritten."""
        facts = read_log(real("data-parallel"))

        assert [("EngineCore_DP0", 524_288), ("EngineCore_DP1", 524_288)] == [
            (engine.name, engine.kv_cache_tokens) for engine in facts.engines
        ]
        assert (1, 2, 8, True) == (facts.run, facts.data_parallel_size, facts.max_num_seqs, facts.started)

    def test_a_terminal_changes_nothing(self):
        """Colours and CR CR LF line ends give the facts of the same server without a terminal."""
        assert read_log(real("one-engine")) == read_log(real("terminal"))

    def test_a_restart_with_other_settings_inherits_nothing(self):
        """The second run of a log says only what its own lines say, though the pids are the same."""
        second = (
            real("one-engine").replace("'max_num_seqs': 8", "'max_log_len': 8").replace("524,288 tokens", "32 tokens")
        )
        facts = read_log(real("one-engine") + second.replace("64.00x", "0.00x"))

        assert (2, None) == (facts.run, facts.max_num_seqs)
        assert [32] == [engine.kv_cache_tokens for engine in facts.engines]


class TestLineByLine:
    def test_a_line_is_told_by_what_it_says(self):
        """True for a line that says something, False for one that does not or only looks like it."""
        reader = StartupReader()

        assert reader.feed("INFO 01-02 03:04:05 [config.py:1] Using max model len 640")
        assert not reader.feed("INFO 01-02 03:04:05 [config.py:1] Not Using max model len 641")
        assert not reader.feed('INFO:     192.0.2.1:5 - "GET /metrics HTTP/1.1" 200 OK')
        assert 640 == reader.facts().max_model_len

    def test_facts_grow_with_the_lines(self):
        """A size counts at once; the concurrency line that follows can correct it (hybrid models)."""
        reader = StartupReader()
        reader.feed("INFO 01-02 03:04:05 [kv_cache_utils.py:1] GPU KV cache size: 1,000 tokens")
        alone = reader.facts().engines[0]
        reader.feed("INFO 01-02 03:04:05 [kv_cache_utils.py:1] Maximum concurrency for 2,000 tokens per request: 3.00x")

        assert (1000, "printed") == (alone.kv_cache_tokens, alone.rule)
        assert (6000, "concurrency_x_max_model_len") == (
            reader.facts().engines[0].kv_cache_tokens,
            reader.facts().engines[0].rule,
        )

    @pytest.mark.parametrize(
        "noise", ["", "{", "[", '"', "{}", '{"a":', "\0\0", "\x1b[", "{" * 5000, '[{"log":' * 3000]
    )
    def test_noise_is_survived(self, noise):
        """Whatever a line holds, reading goes on, with a needle in it or without."""
        reader = StartupReader()

        assert not reader.feed(noise)
        assert not reader.feed(noise + " version ")
        assert StartupFacts() == reader.facts()

    @pytest.mark.timeout(30)
    @pytest.mark.parametrize(
        "unit",
        [
            "x",
            " ",
            "?",
            "(",
            "[",
            "{",
            '"',
            "\\",
            "#",
            "A",
            "(a pid=1) ",
            "INFO ",
            '{"log":"',
            "\x1b[1m",
            "# GPU blocks: 1, ",
            "GPU KV cache size: 1 tokens ",
            "INFO 01-02 03:04:05 [a.py:1] ",
            "prompt: '",
            "Maximum concurrency for 1 ",
        ],
    )
    def test_a_long_line_takes_time_in_proportion(self, unit):
        """Half a megabyte of anything is read in no time, whatever the patterns make of it."""
        reader = StartupReader()
        reader.feed(unit * (500_000 // len(unit)) + " version KV cache size: ")
        reader.feed(" version KV cache size: " + unit * (500_000 // len(unit)))

        assert [] == [engine for engine in reader.facts().engines if engine.kv_cache_tokens not in (None, 1, 16)]

    def test_huge_numbers_of_engines_and_workers_stay_bounded(self):
        """A log that invents engines or workers cannot make the reader grow without limit."""
        reader = StartupReader()
        for number in range(6000):
            line = f"(EngineCore_DP{number} pid=1) INFO 01-02 03:04:05 [k.py:1] GPU KV cache size: 16 tokens"
            reader.feed(line)
            reader.feed("INFO 01-02 03:04:05 [k.py:1] GPU KV cache size: 16 tokens")

        assert len(pickle.dumps(reader)) < 2_000_000


class TestPrivacy:
    def test_no_text_of_a_line_is_kept(self):
        """Prompts, model names, paths and keys leave no trace in the reader."""
        reader = StartupReader()
        for line in real("one-engine").splitlines():
            reader.feed(line.replace("/models/tiny", "SECRET-model"))
        reader.feed(
            "INFO 01-02 03:04:05 [l.py:1] Received request cmpl-SECRET: prompt: 'SECRET GPU KV cache size: 5 tokens'"
        )
        reader.feed("2026-09-30T05:41:21Z stdout P " + "SECRET " * 4000)

        assert 8 == reader.facts().max_num_seqs
        assert b"SECRET" not in pickle.dumps(reader)


class TestNeedles:
    def test_landmarks_are_needles(self):
        """What finds the starts is among what finds their lines."""
        assert set(LANDMARKS) <= set(NEEDLES)

    def test_access_and_statistics_lines_hold_no_needle(self):
        """The bulk of a log is passed over."""
        bulk = [
            line
            for line in real("data-parallel").splitlines()
            if "HTTP/1.1" in line or "throughput" in line or "Route:" in line
        ]

        assert len(bulk) > 40
        assert not [line for line in bulk for needle in NEEDLES if needle.decode() in line]


class TestArguments:
    def test_only_top_level_keys_count(self):
        """Inner dictionaries, objects, tuples and quoted text may hold the same keys."""
        text = (
            """'a': {'n': 1}, 'b': X(n=2, y=[3]), 'c': "it's, 'n': 4", 'd': 'q\\', n', 'n': 5, 'e': <E.n: 6>}, 'n': 7"""
        )

        assert {"n": 5} == arguments.integers(text, frozenset("n"))

    def test_namespaces_are_read_too(self):
        """Values run to the next comma at the top level."""
        assert [("a", "None"), ("b", "['x', 'y']"), ("c", "3")] == list(arguments.pairs("a=None, b=['x', 'y'], c=3)"))

    @pytest.mark.parametrize("value", ["None", "-1", "0", "'auto'", "1.5", "True", "8"])
    def test_a_value_that_is_no_positive_number_or_may_be_cut_is_none(self, value):
        """Unset, automatic and unfinished values are unknown, not 0."""
        assert {} == arguments.integers(f"'n': {value}" + ("" if value == "8" else ","), frozenset("n"))
