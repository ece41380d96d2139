"""A log of 1 GB: time to the startup facts of the last run, beside grep -F on the same file, page cache warm for both.

The log is made of real lines: a start, access and statistics lines, after two thirds another start with other settings,
and again access and statistics lines. grep counts matching lines, once for the one needle "KV cache size:" and once for
all needles of the follower; the follower reads the facts.
"""

import itertools
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tidegauge.parsing.logs import NEEDLES, StartupReader
from tidegauge.sources.logfile import LogFollower
from tidegauge.sources.logscan import BlockScanner

_LOGS = Path(__file__).parent.parent / "tests" / "fixtures" / "logs"
_SIZE = 1 << 30
_RUNS = 5
_ACCESS = b'INFO:     192.0.2.%d:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
_SCRAPE = b'INFO:     192.0.2.1:%d - "GET /metrics HTTP/1.1" 200 OK\n'
_STATS = (
    b"(APIServer pid=%d) INFO 11-30 %02d:%02d:%02d [loggers.py:335] Engine 000: Avg prompt throughput: %d.4 tokens/s, "
    b"Avg generation throughput: %d.2 tokens/s, Running: %d reqs, Waiting: 0 reqs, GPU KV cache usage: %d.2%%, "
    b"Prefix cache hit rate: %d.0%%\n"
)


def run():
    """The rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tidegauge-logscan-") as folder:
        log = Path(folder) / "server.log"
        lines = _write(log)
        needles = Path(folder) / "needles"
        needles.write_bytes(b"\n".join(NEEDLES))
        ways = {
            "follower, to the facts of the last run": lambda: _follow(log),
            "grep -c -F 'KV cache size:'": lambda: _grep(log, "-e", "KV cache size:"),
            f"grep -c -F, the same {len(NEEDLES)} needles": lambda: _grep(log, "-f", str(needles)),
            "grep -c -F, the same needles, LC_ALL=C": lambda: _grep(log, "-f", str(needles), locale="C"),
        }
        times = {name: [] for name in ways}
        for _, (name, way) in itertools.product(range(_RUNS + 1), ways.items()):
            times[name].append(_timed(way))
    yield f"{log.name}: {_SIZE / 1e9:.2f} GB, {lines:,} lines; medians of {_RUNS} runs after one to warm up"
    yield f"{'':44}{'wall':>9}{'CPU':>10}   follower takes"
    medians = {
        name: [statistics.median(column) for column in zip(*runs[1:], strict=True)] for name, runs in times.items()
    }
    ours = next(iter(medians.values()))
    for name, (wall, cpu) in medians.items():
        ratios = f"{ours[0] / wall:4.2f} times the wall, {ours[1] / cpu:4.2f} times the CPU"
        yield f"{name:44}{wall:7.3f} s{cpu:8.3f} s   {ratios}"


def _timed(way):
    """Wall and CPU seconds, those of the child process too."""
    before, started = os.times(), time.perf_counter()
    way()
    wall, after = time.perf_counter() - started, os.times()
    return wall, sum(after[:4]) - sum(before[:4])


def _follow(log):
    reader = StartupReader()
    follower = LogFollower(log, BlockScanner(reader))
    while not (progress := follower.poll()).caught_up:
        assert progress.error is None, progress.error
    follower.close()
    facts = reader.facts()
    # A benchmark that finds nothing is fast: the last run's figures, not the first's.
    assert (facts.run, facts.max_num_seqs, [each.kv_cache_tokens for each in facts.engines]) == (2, 24, [655_360]), (
        facts
    )


def _grep(log, *options, locale=None):
    environment = {"PATH": "/usr/bin:/bin", **({"LC_ALL": locale} if locale else {"LC_ALL": "C.UTF-8"})}
    found = subprocess.run(["grep", "-c", "-F", *options, str(log)], capture_output=True, env=environment, check=True)
    assert int(found.stdout) >= 2


def _write(log):
    first = (_LOGS / "vllm-0.32-one-engine.log").read_bytes()
    second = first.replace(b"'max_num_seqs': 8", b"'max_num_seqs': 24").replace(b"524,288", b"655,360")
    second = second.replace(b"64.00x", b"80.00x").replace(b"11-29", b"11-30").replace(b"pid=4", b"pid=7")
    assert second.count(b"655,360") == second.count(b"'max_num_seqs': 24") == 1
    block = b"".join(_line(number) for number in range(400_000))
    written = lines = 0
    with log.open("wb") as file:
        for start, share in ((first, 2 / 3), (second, 1)):
            for part in itertools.chain([start], itertools.repeat(block)):
                file.write(part)
                written, lines = written + len(part), lines + part.count(b"\n")
                if written >= _SIZE * share:
                    break
    return lines


def _line(number):
    if number % 12 == 0:
        clock = (number // 3600 % 24, number // 60 % 60, number % 60)
        return _STATS % (4052, *clock, number % 9000, number % 700, number % 64, number % 90, number % 97)
    if number % 4 == 0:
        return _SCRAPE % (32768 + number % 20000)
    return _ACCESS % (number % 250, 32768 + number * 7 % 28000)
