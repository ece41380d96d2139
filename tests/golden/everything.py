"""A fleet with everything that tidegauge exports: two different backends, one of them troubled, a caller, barriers."""

import attrs

from tests.builders import LENGTH_EDGES, config, histogram, page, requests, spread
from tidegauge import vllm
from tidegauge.derive.figures import Loading, derive
from tidegauge.derive.inference import FleetInference
from tidegauge.derive.moves import Reading
from tidegauge.derive.settings import Settings
from tidegauge.model import EngineFacts, Pinned, StartupFacts
from tidegauge.parsing.events import Batch
from tidegauge.parsing.limiterlog import CeilingChange
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.callers import FleetCallersState
from tidegauge.state.limiter import LimiterState

NOW = 10_000.0


def _values(running, waiting, tokens):
    return {
        vllm.RUNNING: running,
        vllm.WAITING: waiting,
        vllm.KV_USAGE: 0.22,
        vllm.PROMPT_TOKENS: tokens,
        vllm.PREFIX_QUERIES: tokens,
        vllm.PREFIX_HITS: tokens / 4,
        vllm.PREEMPTIONS: tokens / 1000,
    }


def _latencies(waits, prefill, decode, prompt, output):
    rows = requests(*((wait, prefill, decode, 0.25) for wait in waits))
    lengths = {
        vllm.PROMPT_LENGTH: histogram([prompt] * len(waits), LENGTH_EDGES),
        vllm.OUTPUT_LENGTH: histogram([output] * len(waits), LENGTH_EDGES),
    }
    return rows | lengths | {vllm.TTFT: spread(len(waits), len(waits) * (prefill + 1))}


def _steady():
    """A server known by its info label, its log and a pinned limit; its queue is split."""
    state = BackendState(Backend("10.0.0.1:8000", "agents", Pinned(max_num_seqs=16.0)), 900.0, 3600.0, 5000.0)
    engine = EngineFacts("EngineCore_DP0", 1_490_818, "printed")
    state.startup(StartupFacts(1, "0.32.0", (engine,), 131_072, 160, 8192, started=True))
    state.log({"parsed": 4, "ignored": 2, "dropped": 1}, up=True)
    configs = [config(kv_cache_size_tokens=1_400_000)]
    state.page(page({}, start=1000.0, values=_values(0.0, 0.0, 0.0), configs=configs), NOW - 60, 0.012)
    latencies = _latencies([0.0625] * 60 + [12.0] * 40, 2.5, 14.0, 90_000.0, 900.0)
    state.page(page(latencies, start=1000.0, values=_values(9.0, 3.0, 8000.0), configs=configs), NOW - 1, 0.015)
    state.waited(NOW - 1, {"deferred": 4.5, "kv_cache": 250.0, "sequence_slots": 240.0, "prefill_budget": 30.0})
    return state


def _troubled():
    """A server that restarted, failed polls, sent a damaged page and a poisoned sum; its endpoints tell its slots."""
    state = BackendState(Backend("10.0.0.2:8000", "agents", p90_prompt=20_000.0), 900.0, 3600.0, 5000.0)
    configs = [config(num_gpu_blocks=30_000, block_size=16)]
    start = NOW - 250
    state.page(
        page({}, start=2000.0, values=_values(0.0, 0.0, 50.0), problems={"line": 2, "value": 1}), NOW - 300, 0.02
    )
    state.failed("refused", 0.001)
    state.failed("timeout", 5.0)
    state.page(page(requests(), start=start, values=_values(0.0, 0.0, 0.0), configs=configs), NOW - 240, 0.03)
    state.served(Pinned(max_num_seqs=64.0, max_num_batched_tokens=2048.0, max_model_len=32_768.0), "0.11.0")
    poisoned = (-256.0, 1.0, 1.0, 256.0)
    state.page(page(requests(poisoned), start=start, values=_values(0.0, 0.0, 90.0), configs=configs), NOW - 100, 0.03)
    rows = requests(poisoned, *[(0.125, 0.5, 6.0, 0.25)] * 25)
    after = _latencies([0.125] * 25, 0.5, 6.0, 18_000.0, 400.0) | rows
    state.page(page(after, start=start, values=_values(4.0, 0.0, 900.0), configs=configs), NOW - 2, 0.03)
    state.waited(NOW - 2, {"unknown": 2.0})
    return state


def _callers():
    state = FleetCallersState("agents", 900.0, 0.1)
    state.ceiling("simulation", NOW - 500, 16)
    state.healthy("simulation", NOW - 500, 4)
    for number, fan_out in enumerate((29, 31, 14)):
        state.opened("simulation", str(number), NOW - 400 + number * 60, fan_out)
        state.closed("simulation", str(number), NOW - 380 + number * 60)
    state.closed("simulation", "unknown", NOW - 100)
    state.waited(NOW - 90, (0.0,) * 60 + (9.5,) * 40)
    for instance in ("first", "second", "first"):
        state.take(Batch("simulation", "agents", (), instance))
    state.limiter = LimiterState()
    state.limiter.read("/var/log/limiter.log", {"parsed": 3, "ignored": 40, "dropped": 1}, up=True)
    state.limiter.change("/var/log/limiter.log", CeilingChange(32), live=False)
    state.limiter.change("/var/log/limiter.log", CeilingChange(28, 32, "clamp: fleet ceiling"), live=True)
    state.limiter.change("/var/log/limiter.log", CeilingChange(16, 28, "clamp: fleet ceiling"), live=True)
    return state


def _inference():
    """Barriers as polls a second apart show them: a quarter of the calls goes to the second backend, one is aborted."""
    inference = FleetInference("agents", 900.0, 1.0)
    for number, fan_out in enumerate((29, 31, 14, 24, 29, 29, 30, 12, 29, 32)):
        begin = NOW - 300 + number * 20
        for second in range(20):
            for backend, calls in (("10.0.0.1:8000", fan_out - fan_out // 4), ("10.0.0.2:8000", fan_out // 4)):
                running = calls if 2 <= second < 6 else 0
                gone = calls if second == 6 else 0
                aborted = second == 6 and number == 3
                inference.feed(Reading(backend, begin + second, float(running), float(gone - aborted)))
    return inference.snapshot(NOW)


def everything():
    """The figures of the moment NOW."""
    histories = [_steady().history(NOW), _troubled().history(NOW)]
    figures = derive(histories, [_callers().snapshot(NOW)], [_inference()], Settings(rosters={"agents": 32}), NOW)
    return attrs.evolve(
        figures,
        refused={"format": 3, "rate": 2},
        loading=Loading(succeeded=False, at=NOW - 3600),
        intervals={"10.0.0.1:8000": 1.0, "10.0.0.2:8000": 5.0},
    )
