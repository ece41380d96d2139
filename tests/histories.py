"""The histories that the boards are tried on: the demo's case, real captures, a hundred servers."""

import re

from tests.history import BEGIN, STEP, History, Poll, sample, scraped
from tests.rules.promtool import ROOT
from tidegauge import dcgm, vllm
from tidegauge.demo import startup
from tidegauge.demo.engine import Engine
from tidegauge.demo.pages import PageWriter
from tidegauge.demo.settings import CASE as SERVER
from tidegauge.demo.simulate import Simulation, run_barriers
from tidegauge.demo.workload import CASE as LENGTHS
from tidegauge.demo.workload import Caller, roster
from tidegauge.derive.settings import Settings
from tidegauge.model import Pinned
from tidegauge.parsing.events import BarrierClosed, BarrierOpened, Batch, Ceiling, Healthy, Wait
from tidegauge.parsing.limiterlog import CeilingChange
from tidegauge.parsing.logs import read_log
from tidegauge.sources import captures
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.fleets import CallersState
from tidegauge.watch import Watch

REPLAYS = ROOT / "tests" / "fixtures" / "replays"
WINDOW = 300.0
FLEET = "world"
LOG = "limiter.log"
A, B = "10.0.0.1:8000", "10.0.0.2:8000"
AWAY = 90
"""Seconds that a server of the demo is away between its two ceilings: long enough for its alert."""


SLOTS = {"a:8000": 8, "b:8000": 16}
"""What the captured servers were started with."""


def watching(instances, interval, fleet=FLEET):
    """A watch over servers from BEGIN on, told by its configuration how many slots the captured ones have."""
    backends = [Backend(name, fleet, Pinned(max_num_seqs=SLOTS.get(name))) for name in instances]
    states = [BackendState(one, WINDOW, 3600.0, BEGIN) for one in backends]
    return Watch(states, Settings(window=WINDOW), interval, CallersState(WINDOW, 0.1, 5))


class Demo:
    """The case at its true size on two simulated servers: a ceiling of 16, a restart of one server, then 48."""

    def __init__(self, barriers=(14, 16), ceilings=(16, 48)):
        self.phases = tuple(zip(barriers, ceilings, strict=True))
        self.watch = watching((A, B), 1.0)
        self.simulation = Simulation([Engine(SERVER, start=BEGIN - 40), Engine(SERVER, start=BEGIN - 70)], 16)
        self.caller = Caller(roster(32, 2, 11, (0.5, 0.5)), LENGTHS, 11)
        self.told = [0, 0]
        self.moments = []

    def history(self):
        lines = tuple(scraped(self._polls(), self.watch, BEGIN))
        return History(lines, BEGIN, self.moments[-1], tuple(self.moments))

    def _polls(self):
        for name, engine in zip((A, B), self.simulation.fleet, strict=True):
            self._logged(name, engine)
        self._ceiling(16, live=False)
        for number, (barriers, ceiling) in enumerate(self.phases):
            if number:
                yield from self._restart(B)
                self._ceiling(ceiling, live=True)
            for scrape in run_barriers(self.simulation, self.caller, barriers, poll=1.0):
                self._tell()
                yield Poll(scrape.ts, (A, B)[scrape.backend], scrape.page)
            self._spoil()
            self.moments.append(int(self.simulation.now - BEGIN) // STEP * STEP + BEGIN)

    def _spoil(self):
        """One page with a line that is none, and one batch of a caller that comes too fast."""
        self.watch.refused("rate")
        page = PageWriter(self.simulation.fleet[0]).page()
        self.watch.page(A, self.simulation.now, 0.01, f"{page}vllm:num_requests_running{{ broken\n")

    def _logged(self, name, engine):
        """The log of a start, as it would have been read."""
        place = startup.Place(*name.split(":"), 70, 71)
        settings, at = engine.settings, engine.started
        text = "\n".join([*startup.loading_lines(settings, place, at), *startup.ready_lines(settings, place, at, 9.5)])
        state = self.watch.states[name]
        state.startup(read_log(text))
        state.log({"parsed": 4, "ignored": text.count("\n") - 3}, up=True)

    def _ceiling(self, value, *, live):
        """The limiter's ceiling, told by the caller and seen in the limiter's own log."""
        self.simulation.cap = value
        self._take(Ceiling(self.simulation.now, value))
        limiter = self.watch.callers.limiter(FLEET)
        limiter.read(LOG, {"parsed": 1, "ignored": 3}, up=True)
        limiter.change(LOG, CeilingChange(value, reason="clamp: fleet ceiling"), live=live)

    def _take(self, *events):
        refused = self.watch.take(Batch("sim", FLEET, events))
        assert refused is None, refused

    def _tell(self):
        """Barriers and waits that came to an end, as they really were."""
        barriers, truths = self.simulation.barriers[self.told[0] :], self.simulation.truths[self.told[1] :]
        self.told = [len(self.simulation.barriers), len(self.simulation.truths)]
        events = [Wait(truth.sent, (truth.limiter_wait,)) for truth in truths]
        for one in barriers:
            events += [
                BarrierOpened(one.opened, str(one.number), one.fan_out),
                BarrierClosed(one.closed, str(one.number)),
            ]
            events.append(Healthy(one.closed, 2))
        if events:
            self._take(*sorted(events, key=lambda event: event.at))

    def _restart(self, name):
        """The server is away for a while, and another process answers from then on."""
        begun = int(self.simulation.now) + 1
        index = (A, B).index(name)
        for at in range(begun, begun + AWAY):
            yield Poll(at, name, None)
        fleet = [
            Engine(one.settings, start=begun + AWAY - 5) if n == index else one
            for n, one in enumerate(self.simulation.fleet)
        ]
        self.simulation.fleet = tuple(fleet)
        self.simulation.step(begun + AWAY)
        self._logged(name, fleet[index])


def demo():
    """The demo's case, with its caller's side."""
    return Demo().history()


def capture(name, *, exporter=True):
    """A capture of real servers, a poll as one scrape: at a fifth of its speed, as the rules' replay has it.

    Without the *exporter*, there are vLLM's own series and what rules make of them.
    """
    servers = {
        f"{path.name[0]}:8000": list(captures.read(path)) for path in sorted((REPLAYS / name).glob("*.scrapes.gz"))
    }
    watch = watching(servers, float(STEP), fleet="") if exporter else None
    polls = [
        Poll(BEGIN + STEP * index, instance, poll.body, poll.reason)
        for index in range(max(map(len, servers.values())))
        for instance, taken in servers.items()
        for poll in taken[index : index + 1]
    ]
    end = int(polls[-1].at)
    return History(tuple(scraped(polls, watch, BEGIN)), BEGIN, end, (end,))


FLEETS = {"agents": ("uncapped", "meta-llama/Llama-3.1-8B"), "chat": ("aborts", "qwen.2+x/(1)")}
"""Fleets to the capture and the model of their servers: names that a regular expression would read otherwise."""


def two_fleets():
    """Two fleets of captured servers, with a model each."""
    backends, polls = [], []
    for fleet, (captured, model) in FLEETS.items():
        for path in sorted((REPLAYS / captured).glob("*.scrapes.gz")):
            name = f"{path.name[0]}.{fleet}:8000"
            backends.append(Backend(name, fleet))
            polls += [
                Poll(BEGIN + STEP * index, name, _served(poll.body, model, len(backends)), poll.reason)
                for index, poll in enumerate(captures.read(path))
            ]
    polls.sort(key=lambda poll: poll.at)
    end = int(polls[-1].at)
    states = [BackendState(one, WINDOW, 3600.0, BEGIN) for one in backends]
    watch = Watch(states, Settings(window=WINDOW), float(STEP), CallersState(WINDOW, 0.1, 5))
    return History(tuple(scraped(polls, watch, BEGIN)), BEGIN, end, (end,))


def _served(body, model, number):
    """The page as one of a server of that model."""
    named = body and re.sub(r'model_name="[^"]*"', f'model_name="{model}"', body)
    return named and _as_process(named, number)


SIZE = 100
SHIFTS = 20


def hundred():
    """A hundred servers, scraped every 30 s for six minutes: the two of a real capture, each at a moment of its own."""
    taken = [list(captures.read(path)) for path in sorted((REPLAYS / "uncapped").glob("*.scrapes.gz"))]
    names = [f"10.1.0.{number}:8000" for number in range(SIZE)]
    step = 2 * STEP
    polls = [
        Poll(BEGIN + step * index, name, _as_process(taken[number % 2][2 * index + number % SHIFTS].body, number))
        for index in range(13)
        for number, name in enumerate(names)
    ]
    end = int(polls[-1].at)
    watch = watching(names, float(step), fleet="")
    lines = scraped(polls, watch, BEGIN, step=step, more=lambda at: gpus(names, at))
    return History(tuple(lines), BEGIN, end, (end,), step)


def _as_process(body, number):
    """The page as one of a server of its own: with a process start and a KV cache that no other has."""
    size = 100_000 + 1000 * number
    facts = f'vllm:{vllm.CACHE_INFO}{{{vllm.ENGINE}="0",kv_cache_size_tokens="{size}",block_size="16"}} 1.0'
    own = [line for line in body.splitlines() if not line.startswith((vllm.PROCESS_START, f"vllm:{vllm.CACHE_INFO}"))]
    return "".join(f"{line}\n" for line in [*own, facts, f"{vllm.PROCESS_START} {BEGIN - 5000 - number}"])


def gpus(names, at):
    """DCGM's series of two GPUs on each server's host, of different load; on some of them very different."""
    for number, name in enumerate(names):
        for gpu in (0, 1):
            own = {"Hostname": name.partition(":")[0], "gpu": str(gpu), "job": "dcgm"}
            busy = 0.5 + number % 50 / 100 - gpu * (0.4 if number % 7 == 0 else 0.1)
            yield sample(dcgm.SM_ACTIVE, own, busy, at)
            yield sample(dcgm.DRAM_ACTIVE, own, busy / 2, at)
            yield sample(dcgm.GPU_UTIL, own, 100 * busy, at)


HISTORIES = {
    "demo": demo,
    "uncapped": lambda: capture("uncapped"),
    "two_engines": lambda: capture("two_engines"),
    "aborts": lambda: capture("aborts"),
    "restart": lambda: capture("restart"),
    "tinykv": lambda: capture("tinykv"),
    "tinykv, no exporter": lambda: capture("tinykv", exporter=False),
    "hundred": hundred,
    "two fleets": two_fleets,
}
