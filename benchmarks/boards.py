"""Each board opened over 24 h on 100 backends: seconds and samples; and some panels against the same on raw histograms.

The day is made: the series of a hundred made-up servers, with all that exporter and rules make of them, are drawn out
over 24 h at a sample a minute. A board's queries are asked one after the other, those of folded rows left out.
"""

import itertools
import math
import os
import re
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from dashboards.queries import select, weighted_mean
from tests import histories, tsdb
from tests.boards import EVERYTHING, GENERATED, MOST_POINTS, defaults, panels_of, substituted
from tests.generations import program
from tests.history import BEGIN
from tests.promql import COUNTERS, names
from tidegauge import vllm
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.demo.exposition import labels

_DAY = 86400
_BLOCK = 7200
_EVERY = 60
_STEP = -(-_DAY // MOST_POINTS)
_END = BEGIN + _DAY - _EVERY
_REPEATS = 3
_WINDOW = "5m"
_BLOCKS = ("--storage.tsdb.min-block-duration=2h", "--storage.tsdb.max-block-duration=2h")
"""Nothing is compacted meanwhile."""
_SERVER = "instance, model_name"
_FIXED = re.compile(r"\w+_over_time\([^()\[\]]*\[[^\]]*\] @ end\(\)\)")


def _rate(name, part, by=""):
    return f"sum{by}(rate(vllm:{name}_{part}[{_WINDOW}]))"


def _raw_mean(name, by=""):
    return f"{_rate(name, 'sum', by)} / {_rate(name, 'count', by)}"


def _raw_quantile(name, q):
    return f"histogram_quantile({q}, {_rate(name, 'bucket', f' by (le, {_SERVER}) ')})"


def _raw_late():
    on_time = f'sum by ({_SERVER}) (rate(vllm:{vllm.QUEUE}_bucket{{le="0.3"}}[{_WINDOW}]))'
    return f"1 - {on_time} / {_rate(vllm.QUEUE, 'count', f' by ({_SERVER}) ')}"


def _pairs():
    """Panels by what they show: the queries as the boards have them, and the same figures from raw histograms."""
    phases = {"queue": vllm.QUEUE, "prefill": vllm.PREFILL, "decode": vllm.DECODE}
    means = [weighted_mean(select(rc.STAGE_MEAN, stage=name), select(rc.WINDOW_REQUESTS), lb.STAGE) for name in phases]
    by_server = f" by ({_SERVER}) "
    quantiles = ("0.5", "0.9")
    return {
        "mean of three stages, all backends": (means, [_raw_mean(family) for family in phases.values()]),
        "mean end-to-end, each backend": ([select(rc.E2E_MEAN)], [_raw_mean(vllm.E2E, by_server)]),
        "late ratio, each backend": ([select(rc.LATE_RATIO, where=lb.SERVER)], [_raw_late()]),
        "queue p50 and p90, each backend": (
            [select(rc.QUEUE_TIME, where=lb.SERVER, quantile=q) for q in quantiles],
            [_raw_quantile(vllm.QUEUE, q) for q in quantiles],
        ),
        "end-to-end p50 and p90, each backend": (
            [select(rc.E2E_5M, quantile=q) for q in quantiles],
            [_raw_quantile(vllm.E2E, q) for q in quantiles],
        ),
    }


def run():
    """The rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tidegauge-boards-") as name:
        folder = Path(name)
        series = _sources(folder)
        count = _write(series, folder)
        yield f"{count} series, {count * _DAY // _EVERY / 1e6:.1f} million samples; points {_STEP} s apart"
        with tsdb.running(program("prometheus"), folder / "data", *_BLOCKS, lookback=300) as server:
            yield from _boards(server)
            yield from _compared(server)
    yield f"load average meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; seconds are wall time"


def _sources(folder):
    """The series that the boards or the raw queries read, by their text, with a value each."""
    history = histories.hundred()
    (folder / "source").mkdir()
    tsdb.build(program("prometheus"), program("promtool"), history, folder / "source" / "data")
    queries = [
        target["expr"]
        for board in GENERATED.values()
        for panel in panels_of(board)
        for target in panel.get("targets", [])
    ]
    raw = [expr for _, exprs in _pairs().values() for expr in exprs]
    wanted = sorted(set().union(*map(names, [*queries, *raw])))
    with tsdb.running(program("prometheus"), folder / "source" / "data") as server:
        return {
            name + labels({key: value for key, value in row["metric"].items() if key != "__name__"}): float(
                row["value"][1]
            )
            for name in wanted
            for row in server.at(f"last_over_time({name}[1h])", history.end)
        }


def _write(series, folder):
    """A day of them, a block of two hours at a time, on all cores."""
    heads = sorted(series.items())
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(_block, heads, BEGIN + start, folder / "data") for start in range(0, _DAY, _BLOCK)]
        for job in jobs:
            job.result()
    return len(heads)


def _block(heads, begin, data):
    tsdb.blocks(program("promtool"), _samples(heads, begin), data)


def _samples(heads, begin):
    """Counters rise at a pace that changes over the day; gauges go up and down, but for those that are whole."""
    for number, (head, value) in enumerate(heads):
        rising = head.partition("{")[0] in COUNTERS
        for at in range(begin, begin + _BLOCK, _EVERY):
            wave = 1 + math.sin((at - BEGIN) / 7000 + number) / 5
            grown = value * ((at - BEGIN) / 300 + wave) if rising else value if value == int(value) else value * wave
            yield f"{head} {grown:.9g} {at}"


def _asked(server, queries, values):
    """Seconds, samples loaded and the most of them at once for some queries, each asked three times."""
    seconds, samples, peak = 0.0, 0, 0
    for expr, instant in queries:
        text = substituted(expr, values, step=_STEP, span=_DAY)
        begin = None if instant else BEGIN
        costs = [server.cost(text, _END, begin, _STEP) for _ in range(_REPEATS)]
        seconds += sorted(cost["timings"]["execTotalTime"] for cost in costs)[_REPEATS // 2]
        samples += costs[0]["samples"]["totalQueryableSamples"] - (0 if instant else _again(server, text))
        peak = max(peak, costs[0]["samples"]["peakSamples"])
    return seconds, samples, peak


def _again(server, text):
    """What Prometheus counts at every point of a range and loads once: the parts that are fixed to the range's end."""
    fixed = (server.cost(part, _END)["samples"]["totalQueryableSamples"] for part in _FIXED.findall(text))
    return sum(fixed) * ((_END - BEGIN) // _STEP)


def _boards(server):
    yield f"{'board':12}{'queries':>8}{'seconds':>9}{'samples':>12}{'most at once':>14}   slowest panel"
    for name, board in GENERATED.items():
        costs = {}
        for panel in board["panels"]:
            queries = [(target["expr"], target["instant"]) for target in panel.get("targets", [])]
            if queries:
                costs[panel["title"]] = (*_asked(server, queries, defaults(board)), len(queries))
        seconds, samples, peaks, queries = zip(*costs.values(), strict=True)
        slowest = max(costs, key=lambda title: costs[title][0])
        yield (
            f"{name:12}{sum(queries):8}{sum(seconds):9.2f}{sum(samples):12,}{max(peaks):14,}"
            f"   {slowest}, {costs[slowest][0]:.2f} s"
        )


def _compared(server):
    yield f"{'panel over 24 h':38}{'ours: s':>9}{'samples':>11}{'raw: s':>9}{'samples':>12}   raw / ours"
    values = dict.fromkeys(itertools.chain(*map(defaults, GENERATED.values())), EVERYTHING)
    for title, sides in _pairs().items():
        (ours, our_samples, _), (raw, raw_samples, _) = (
            _asked(server, [(expr, False) for expr in side], values) for side in sides
        )
        yield (
            f"{title:38}{ours:9.3f}{our_samples:11,}{raw:9.3f}{raw_samples:12,}"
            f"   {raw / ours:.1f} in seconds, {raw_samples / our_samples:.1f} in samples"
        )
