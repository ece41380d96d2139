"""Barriers of random workloads on the simulated fleet, held against its own record."""

import random

import attrs
import pytest
from barrier_readings import SimulatedPolls, matched

from tests.streams import fan_outs
from tidegauge.demo.engine import Engine
from tidegauge.demo.settings import CostModel, EngineSettings
from tidegauge.demo.simulate import Simulation
from tidegauge.demo.workload import DEMO, Call, Caller, roster
from tidegauge.derive.barriers import infer


def fleet_of(rng, backends):
    """Backends that differ in slots, batch size and speed."""
    return [
        Engine(
            EngineSettings(
                max_num_seqs=rng.choice((6, 12, 24, 64)),
                max_num_batched_tokens=rng.choice((1024, 2048, 8192)),
                cost=CostModel(base=rng.uniform(0.03, 0.09)),
            ),
            start=1000.0,
        )
        for _ in range(backends)
    ]


class TestSimulatedFleet:
    """Random workloads through the simulated fleet, against its own truth."""

    def run(self, seed, backends, agents, cap, *, every, pause, missing=0.0):
        rng = random.Random(seed)
        simulation = Simulation(fleet_of(rng, backends), cap)
        phases = [rng.random() if seed % 3 else 0.0 for _ in range(backends)]
        fleet = SimulatedPolls(simulation, every, phases, missing, seed)
        caller = Caller(roster(agents, backends, seed), DEMO, seed, act=rng.choice((0.6, 0.9)))
        fleet.barriers(caller, 30, lambda: every * rng.uniform(*pause))
        truth = [(barrier.opened, barrier.fan_out) for barrier in simulation.barriers]
        found, _ = infer(fleet.readings)
        return truth, found, list(matched(truth, found, 2 * every))

    @pytest.mark.parametrize("seed", range(24))
    def test_uncapped(self, seed):
        """Without a cap, with pauses of one and a half polls or more, every fan-out is exact, hardly any clipped."""
        rng = random.Random(1000 + seed)
        backends = rng.randint(1, 5)
        agents = rng.randint(6, 40)
        truth, found, pairs = self.run(
            seed, backends, agents, None, every=rng.choice((0.25, 0.5, 1.0, 2.0)), pause=(1.5, 6)
        )
        assert [fan_out for fan_out, _ in pairs] == [best and best.fan_out for _, best in pairs]
        assert len(truth) == len(found)
        assert sum(barrier.clipped for barrier in found) <= 1

    @pytest.mark.parametrize("seed", range(24))
    def test_capped(self, seed):
        """Through a cap, polled well within a call, 95 % of fan-outs are exact, waves right for 90 %."""
        rng = random.Random(2000 + seed)
        backends = rng.randint(1, 4)
        cap = rng.choice((3, 5, 8)) * backends + 1
        truth, found, pairs = self.run(seed, backends, cap * 3, cap, every=0.25, pause=(3, 9))
        exact = sum(best is not None and fan_out == best.fan_out for fan_out, best in pairs)
        assert exact >= 0.95 * len(truth)
        assert sum(fan_out for _, fan_out in truth) == sum(barrier.fan_out for barrier in found)
        seen = [best.plateau for _, best in pairs if best is not None and best.clipped]
        assert len(seen) >= 0.9 * len(truth)
        assert all(abs(plateau - cap) <= max(1, 0.2 * cap) for plateau in seen)

    @pytest.mark.parametrize("seed", range(12))
    def test_missing_polls_invent_nothing(self, seed):
        """With one poll in ten missing, eight of ten barriers are reported, and each of them is exact."""
        truth, found, pairs = self.run(seed, 2, 20, None, every=0.5, pause=(5, 12), missing=0.1)
        assert len(found) <= len(truth)
        assert all(best is None or fan_out == best.fan_out for fan_out, best in pairs)
        assert sum(best is not None for _, best in pairs) >= 0.8 * len(truth)

    def test_calls_not_activities(self):
        """Agents that make several calls each at once count with every call."""
        simulation = Simulation(fleet_of(random.Random(5), 2), None)
        fleet = SimulatedPolls(simulation, 0.5, (0.0, 0.3))
        caller = Caller(roster(10, 2, 5), DEMO, 5, act=1.0)
        fleet.barriers(Several(caller), 12, lambda: 2.5)
        assert [29] * 12 == fan_outs(fleet.readings)

    @pytest.mark.parametrize("seed", range(16))
    def test_steady(self, seed):
        """Steady traffic has no barriers, from hardly any to more than the fleet can serve."""
        rng = random.Random(3000 + seed)
        simulation = Simulation(fleet_of(rng, rng.randint(1, 3)), None)
        every = rng.choice((0.25, 1.0, 3.0))
        fleet = SimulatedPolls(simulation, every, [rng.random() for _ in simulation.fleet])
        caller = Caller(roster(20, len(simulation.fleet), seed), DEMO, seed)
        fleet.steady(caller, rng.choice((0.2, 0.8, 2.4, 6.0)), 150.0)
        found, confidence = infer(fleet.readings)
        assert ([], False) == (found, confidence.sure)

    @pytest.mark.parametrize("seed", range(6))
    def test_steady_traffic_after_barriers(self, seed):
        """When steady traffic follows barriers, at most ten more would-be barriers are reported."""
        rng = random.Random(seed)
        simulation = Simulation(fleet_of(rng, 2), rng.choice((None, 8)))
        fleet = SimulatedPolls(simulation, 0.5, (rng.random(), rng.random()))
        caller = Caller(roster(24, 2, seed), DEMO, seed)
        fleet.barriers(caller, 15, lambda: rng.uniform(0.5, 4))
        end = simulation.now
        fleet.steady(caller, rng.choice((0.5, 1.0, 2.0)), 400.0)
        opened = [barrier.opened_at for barrier in infer(fleet.readings)[0]]
        assert 15 == sum(at < end - 3 for at in opened)
        assert sum(at >= end for at in opened) <= 10

    def test_idle(self):
        """An idle fleet has no barriers."""
        fleet = SimulatedPolls(Simulation(fleet_of(random.Random(1), 2), None), 1.0, (0.0, 0.5))
        fleet.idle(60)
        assert [] == infer(fleet.readings)[0]


@attrs.frozen
class Several:
    """A caller whose agents make three calls at once, all but one of them, so that 10 agents make 29."""

    caller: Caller

    def barriers(self):
        for calls in self.caller.barriers():
            more = [self.copied(call, copy) for call in calls for copy in range(3)]
            yield tuple(more[1:])

    @staticmethod
    def copied(call: Call, copy: int) -> Call:
        request = attrs.evolve(call.request, request_id=f"{call.request.request_id}-{copy}")
        return attrs.evolve(call, request=request)
