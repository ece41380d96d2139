"""A watch over made-up pages, for tests of the heart."""

from pathlib import Path

from tests.builders import exposition, histogram
from tidegauge import vllm
from tidegauge.derive.settings import Settings
from tidegauge.state.backend import Backend, BackendState
from tidegauge.watch import Watch

FIXTURES = Path(__file__).parent / "fixtures"


RUNS = FIXTURES / "runs"


def page(*, running=0.0, waiting=0.0, kv=0.2, preempted=0.0, finished=0.0, queued=(), start=1000.0, **more):
    """The text of a page: gauges, preemptions, and the queue times of the requests that were scheduled so far."""
    values = {
        vllm.RUNNING: running,
        vllm.WAITING: waiting,
        vllm.KV_USAGE: kv,
        vllm.PREEMPTIONS: preempted,
        vllm.FINISHED: finished,
    }
    return exposition({"queue": histogram(queued)} | more.pop("latencies", {}), values=values, start=start, **more)


def watching(*backends, interval=1.0, window=900.0, callers=None, **facts):
    states = [
        BackendState(Backend(name) if isinstance(name, str) else name, window, 3600.0, 0.0)
        for name in backends or ("a",)
    ]
    for name, startup in facts.items():
        next(state for state in states if state.backend.name == name).startup(startup)
    return Watch(states, Settings(window=window), interval, callers)


def feed(watch, *bodies, name="a", begin=2000.0, step=1.0):
    return [watch.page(name, begin + number * step, 0.01, body) for number, body in enumerate(bodies)]
