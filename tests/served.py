"""Pages of a server that has served given requests, for tests of increases."""

from tests.builders import page, requests
from tidegauge import vllm
from tidegauge.model import SeriesKey

UPTIME = 812_345.0  # of the host, in seconds: what a monotonic clock reads


def served(*rows, start=1000.0, finished=None, **more):
    """A page after the requests *rows* of (queue, prefill, decode, other)."""
    counted = len(rows) if finished is None else finished
    return page(
        requests(*rows), start=start, values={vllm.PREEMPTIONS: 0.0, vllm.PROMPT_TOKENS: counted * 100.0}, **more
    )


def rise(increase, family, model="m"):
    return increase.histograms.get(SeriesKey(family, model))


FIRST = [(0.1, 0.2, 3.0, 0.05)] * 4


LATER = [(6.0, 0.4, 5.0, 0.1)] * 3
