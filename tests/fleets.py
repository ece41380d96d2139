"""Backends and fleets of given size and latency, for tests of figures."""

from tests.builders import config, figures, lifetime, page, requests
from tidegauge import vllm
from tidegauge.model import Pinned
from tidegauge.state.backend import Backend
from tidegauge.state.callers import FleetCallersState


def backend(name, *, kv=1000, start=1000.0, model="m", fleet=None, seqs=None, p90=100.0, e2e=10.0, count=30):
    """A backend with one page: its KV capacity, its slots, and *count* requests of *e2e* seconds."""
    one = Backend(name, fleet, Pinned(max_num_seqs=seqs), p90)
    rows = [(e2e / 10, e2e / 5, e2e / 2, e2e / 5)] * count
    configs = [config(kv_cache_size_tokens=kv)] if kv else []
    return lifetime(
        one, page(requests(*rows), model=model, start=start, configs=configs, values={vllm.PROMPT_TOKENS: 7.0})
    )


def callers(fleet="m", waits=(), fan_outs=(), ceiling=None, largest=None):
    state = FleetCallersState(fleet, 900.0, 0.1, largest)
    if ceiling is not None:
        state.ceiling("sim", 1990.0, ceiling)
    for number, fan_out in enumerate(fan_outs):
        state.opened("sim", str(number), 1991.0 + number, fan_out)
        state.closed("sim", str(number), 1991.5 + number)
    state.waited(1999.0, tuple(waits))
    return [state.snapshot(2000.0)]


def fleet_of(*states, **more):
    (found,) = figures(*states, **more).fleets
    return found
