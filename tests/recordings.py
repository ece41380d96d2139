"""Captures of pages made up for a test, and the command that reports them."""

import io
from itertools import pairwise

from rich.console import Console

from tests.builders import LENGTH_EDGES, exposition, histogram, spread
from tests.golden import reference
from tidegauge import vllm
from tidegauge.derive.settings import Settings
from tidegauge.report import replay, text
from tidegauge.report.document import document
from tidegauge.sources import captures

FAMILIES = {"e2e": vllm.E2E, "queue": vllm.QUEUE, "prefill": vllm.PREFILL, "decode": vllm.DECODE}


def report(paths, settings=None, **logs):
    loaded = replay.load(paths, logs, {}, "captures")
    return document(replay.replay(loaded, settings or Settings()))


def shown(report, width=140, **more):
    """The text of a report on a terminal of that width."""
    console = Console(file=io.StringIO(), width=width, **more)
    text.show(report, console)
    return console.file.getvalue()


def one_backend(path, **more):
    return report({"a": path}, **more)["backends"][0]


def pages(path):
    """By page: the process start, and sum and count per family over the engines, read by prometheus_client."""
    for taken in captures.read(path):
        if taken.body is None:
            continue
        found = reference.figures(taken.body)
        starts = [line.split()[1] for line in taken.body.splitlines() if line.startswith(vllm.PROCESS_START)]
        totals = dict.fromkeys(FAMILIES, (0.0, 0.0))
        for stage, family in FAMILIES.items():
            parts = [
                [value for (key, part), value in found.items() if key.family == family and part == name]
                for name in ("sum", "count")
            ]
            totals[stage] = tuple(sum(part) for part in parts)
        yield starts, totals  # data parallelism: several processes, no start


def expected(path):
    """Sum and count by stage over the whole capture: differences within a process, all of a later one."""
    everything = list(pages(path))
    rises = dict.fromkeys(FAMILIES, (0.0, 0.0))
    for (old, before), (new, after) in pairwise(everything):
        for stage in FAMILIES:
            base = before[stage] if old == new else (0.0, 0.0)
            rises[stage] = tuple(rises[stage][part] + after[stage][part] - base[part] for part in (0, 1))
    return rises


LOG = """\
INFO 11-29 23:50:01 [utils.py:253] non-default args: {'model': '/models/agent', 'max_num_seqs': 160}
INFO 11-29 23:50:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='/models/agent', \
max_seq_len=131072, tensor_parallel_size=1
(EngineCore_DP0 pid=71) INFO 11-29 23:50:05 [kv_cache_utils.py:1229] GPU KV cache size: 1,490,818 tokens
(EngineCore_DP0 pid=71) INFO 11-29 23:50:05 [kv_cache_utils.py:1234] Maximum concurrency for 131,072 tokens per \
request: 11.37x
INFO 11-29 23:50:09 [api_server.py:1100] Application startup complete.
"""


def case_page(count=528, e2e=20.47, start=1000.0):
    """A page with the case's sums and counts; p90 of the prompts is 100,000 tokens."""
    late = round(count * 53 / 528)
    waits = [0.05] * (count - late - 11) + [25.0] * 11 + [32.0] * late
    queue = histogram(waits)
    queue = type(queue)(queue.edges, queue.cumulative, 3.75 * count, queue.count)
    latencies = {
        "queue": queue,
        "prefill": spread(count, 2.78 * count),
        "decode": spread(count, 13.72 * count),
        "e2e": spread(count, e2e * count),
        # A tenth lies beyond the last finite edge, 100,000: that edge is what the quantile gives.
        vllm.PROMPT_LENGTH: histogram([90_000.0] * (count - 53) + [120_000.0] * 53, LENGTH_EDGES),
    }
    values = {vllm.RUNNING: 0.0, vllm.WAITING: 0.0, vllm.PREFIX_QUERIES: 1000.0, vllm.PREFIX_HITS: 583.0}
    return exposition(latencies, values=values, start=start)


def write(folder, name, *bodies):
    """A plain capture of the bodies, one second apart."""
    path = folder / f"{name}.scrapes"
    path.write_text(
        "".join(f"# SCRAPE ts={1000 + at} dur_ms=2.0 status=200\n{body}" for at, body in enumerate(bodies)),
        encoding="utf-8",
    )
    return path
