"""Pages, histograms and figures for tests, spelt out in the terms of the definitions."""

from math import inf

from tidegauge import vllm
from tidegauge.derive.figures import derive
from tidegauge.derive.moves import Reading
from tidegauge.derive.settings import Settings
from tidegauge.model import CacheConfig, Histogram, Page, SeriesKey
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.increases import Increase
from tidegauge.state.windows import Window

PHASE_EDGES = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680, inf)
"""vLLM's buckets of queue, prefill, decode, inference and end-to-end, in seconds."""

LENGTH_EDGES = (*(float(m * 10**e) for e in range(6) for m in (1, 2, 5) if m * 10**e <= 131_072), inf)
"""vLLM's buckets of prompt and output lengths for max_model_len 131,072, in tokens."""

STAGES = {"queue": vllm.QUEUE, "prefill": vllm.PREFILL, "decode": vllm.DECODE, "e2e": vllm.E2E}


def histogram(values, edges=PHASE_EDGES):
    """The histogram of the single observations *values*."""
    values = list(values)
    cumulative = tuple(float(sum(value <= edge for value in values)) for edge in edges)
    return Histogram(edges, cumulative, float(sum(values)), float(len(values)))


def spread(count, total, edges=PHASE_EDGES):
    """*count* observations that add up to *total*, all alike."""
    return histogram([total / count] * count, edges) if count else histogram([], edges)


def key(family, model="m", engine="0", extra=""):
    return SeriesKey(family, model, engine, extra)


def page(latencies=None, *, model="m", engine="0", start=1000.0, values=None, problems=None, configs=()):
    """A page with the given latency histograms (by stage or family) and values (by family)."""
    return Page(
        values={key(family, model, engine): value for family, value in (values or {}).items()},
        histograms={key(STAGES.get(name, name), model, engine): value for name, value in (latencies or {}).items()},
        cache_configs=tuple(configs),
        process_start=start,
        problems=problems or {},
    )


def merged(*pages):
    """Pages of engines that one server answers with."""
    values, histograms, configs = {}, {}, ()
    for one in pages:
        values |= one.values
        histograms |= one.histograms
        configs += one.cache_configs
    return Page(values, histograms, configs, pages[0].process_start)


def requests(*rows):
    """Latency histograms of requests (queue, prefill, decode, other), one tuple of seconds each."""
    return {
        "queue": histogram(row[0] for row in rows),
        "prefill": histogram(row[1] for row in rows),
        "decode": histogram(row[2] for row in rows),
        "e2e": histogram(sum(row) for row in rows),
    }


def config(engine="0", **labels):
    return CacheConfig(engine, {name: str(value) for name, value in labels.items()})


def totals(latencies, model="m"):
    """Window totals that hold exactly the given increases."""
    window = Window(inf)
    rises = {SeriesKey(STAGES.get(name, name), model): value for name, value in latencies.items()}
    window.add(Increase(0.0, 1.0, {}, rises))
    return window.total(0.0)


def lifetime(backend, *pages, startup=None, step=1.0, begin=2000.0):
    """The state of a backend whose first page counts from zero, after *pages* one *step* apart."""
    state = BackendState(backend if isinstance(backend, Backend) else Backend(backend), inf, inf, -inf)
    if startup is not None:
        state.startup(startup)
    for number, one in enumerate(pages):
        state.page(one, begin + number * step, 0.01)
    return state


def figures(*states, callers=(), inferred=(), now=2000.0, settings=None):
    """All figures of *states* as of *now*."""
    return derive([state.history(now) for state in states], callers, inferred, settings or Settings(), now)


def clipped(*, barriers, fan_out, ceiling, backend="a", begin=1800.0):
    """Readings of barriers a second apart: *fan_out* calls through the caller's *ceiling*, three a second are done."""
    at = begin
    for _ in range(barriers):
        yield Reading(backend, at, 0.0, 0.0)
        left = fan_out
        running = 0
        while left or running:
            done = min(3, running)
            running, left = min(running - done + left, ceiling), left - min(left, ceiling - running + done)
            at += 1.0
            yield Reading(backend, at, float(running), float(done))
        for _ in range(3):
            at += 1.0
            yield Reading(backend, at, 0.0, 0.0)


def exposition(latencies, *, model="m", engine="0", values=None, info=None, start=1000.0):
    """The text of a vLLM page with those histograms and values; `info` is the labels of cache_config_info."""
    own = f'engine="{engine}",model_name="{model}"'
    lines = []
    for name, one in latencies.items():
        family = f"vllm:{STAGES.get(name, name)}"
        lines += [f"# HELP {family} As vLLM says.", f"# TYPE {family} histogram"]
        lines += [
            f'{family}_bucket{{{own},le="{"+Inf" if edge == inf else float(edge)}"}} {count}'
            for edge, count in zip(one.edges, one.cumulative, strict=True)
        ]
        lines += [f"{family}_count{{{own}}} {one.count}", f"{family}_sum{{{own}}} {one.sum!r}"]
    lines += [f"vllm:{family}{{{own}}} {value}" for family, value in (values or {}).items()]
    if info:
        labels = ",".join(f'{name}="{value}"' for name, value in info.items())
        lines.append(f'vllm:cache_config_info{{{labels},engine="{engine}"}} 1.0')
    if start is not None:
        lines.append(f"process_start_time_seconds {start}")
    return "\n".join(lines) + "\n"
