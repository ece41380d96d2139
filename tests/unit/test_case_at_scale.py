"""Case A on the simulated fleet at its true size, in simulated time: what the servers and the caller show of it."""

from statistics import median

import pytest

from tidegauge.demo.engine import Engine
from tidegauge.demo.settings import CASE as SERVER
from tidegauge.demo.simulate import Simulation, run_barriers
from tidegauge.demo.workload import CASE as LENGTHS
from tidegauge.demo.workload import Caller, roster
from tidegauge.derive.ceiling import waves
from tidegauge.derive.settings import Settings
from tidegauge.model import Pinned
from tidegauge.parsing.events import BarrierClosed, BarrierOpened, Batch, Ceiling, Wait
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.fleets import CallersState
from tidegauge.watch import Watch

AGENTS, FLEET, BARRIERS, POLL = 32, "world", 40, 1.0
NO_CAP = 48  # the fuse that is left after the removal: above the roster


class Replay:
    """The case under one ceiling: pages polled once a second, and what an instrumented caller would have sent."""

    def __init__(self, cap):
        self.simulation = Simulation([Engine(SERVER, start=1e6), Engine(SERVER, start=1e6 - 70)], cap)
        # Sticky routing left one server with more agents than the other.
        caller = Caller(roster(AGENTS, 2, 11, (0.5, 0.5)), LENGTHS, 11)
        names = ["b0", "b1"]
        pinned = Pinned(max_num_seqs=SERVER.max_num_seqs, max_model_len=SERVER.max_model_len)
        states = [BackendState(Backend(name, FLEET, pinned), 1e9, 1e9, -1) for name in names]
        self.watch = Watch(states, Settings(window=1e9), POLL, CallersState(1e9, 0.1, 5))
        for scrape in run_barriers(self.simulation, caller, BARRIERS, poll=POLL):
            self.watch.page(names[scrape.backend], scrape.ts, 0.01, scrape.page)
        self._tell(cap)
        self.figures = self.watch.figures(self.simulation.now)
        self.fleet = self.figures.fleets[0]

    def _tell(self, cap):
        """Barriers, ceiling and waits, as they really were."""
        events = [Ceiling(1e6, cap)]
        for one in self.simulation.barriers:
            events.append(BarrierOpened(one.opened, str(one.number), one.fan_out))
            events.append(BarrierClosed(one.closed, str(one.number)))
        events += [Wait(truth.sent, (truth.limiter_wait,)) for truth in self.simulation.truths]
        for event in sorted(events, key=lambda event: event.at):
            assert self.watch.take(Batch("sim", FLEET, (event,))) is None

    @property
    def causes(self):
        """Seconds that requests waited, by cause, in the servers and at the caller."""
        found = {"caller": self.fleet.callers.all_waits.sum}
        for backend in self.figures.backends:
            for cause, seconds in backend.waiting_seconds.items():
                found[cause] = found.get(cause, 0.0) + seconds
        return {cause: seconds for cause, seconds in found.items() if seconds > 0}

    @property
    def barriers(self):
        """The barriers as reported."""
        return next(one for one in self.fleet.barriers if one.source == "reported")


@pytest.fixture(scope="module")
def replays():
    return {cap: Replay(cap) for cap in (16, 28, NO_CAP)}


@pytest.fixture(params=[16, 28, NO_CAP])
def case(request, replays):
    return request.param, replays[request.param]


def test_fan_out_is_that_of_the_case(case):
    """About 29 of 32 agents act, and never more than 32."""
    _, replay = case
    truth = [one.fan_out for one in replay.simulation.barriers]

    assert 29 == round(median(truth))
    assert (median(truth), max(truth)) == (replay.barriers.fan_out.median, replay.barriers.fan_out.max)


def test_waves_are_two_two_and_one(case):
    """29 calls through 16, 28 and 48."""
    cap, replay = case

    assert {16: 2, 28: 2, NO_CAP: 1}[cap] == replay.barriers.waves["client"].median == waves(29, cap)


def test_ceiling_clips_until_it_is_above_the_roster(case):
    """The state turns from clips to inert."""
    cap, replay = case

    assert {16: "clips", 28: "clips", NO_CAP: "inert"}[cap] == replay.fleet.states["client"]


def test_requests_wait_for_the_caller_and_the_prefill_budget(case):
    """Never for the KV cache, and never for a cause that cannot be told."""
    cap, replay = case
    expected = {16: {"caller", "prefill_budget"}, 28: {"caller", "prefill_budget"}, NO_CAP: {"prefill_budget"}}

    assert expected[cap] == set(replay.causes)


def test_capacity_is_measured(case):
    """Two servers of 1,490,818 tokens hold about 14 requests each at prompts around 100,000."""
    _, replay = case

    assert 26 <= replay.fleet.capacity["p90_prompt"] <= 34
    assert pytest.approx(11.37, abs=0.01) == replay.fleet.narrowest["context_window"]


def test_inferred_barriers_agree_with_the_callers_report(case):
    """From the servers alone: the number of barriers, and the median fan-out."""
    _, replay = case
    inferred = next(one for one in replay.fleet.barriers if one.source == "inferred")

    assert abs(inferred.count - BARRIERS) <= 2
    assert abs(inferred.fan_out.median - replay.barriers.fan_out.median) <= 1


def test_skew_falls_when_the_ceiling_is_raised(replays):
    """Under the tight cap the server with more agents is further behind than without."""
    skews = {cap: replay.fleet.skew.ratio for cap, replay in replays.items()}

    assert skews[28] < skews[16]
    assert skews[NO_CAP] < skews[16]
