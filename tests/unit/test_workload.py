"""Barriers on the simulated fleet: the waves are made by the ceiling, and are where the ceiling is."""

from itertools import islice, pairwise
from statistics import mean, median

import attrs
import pytest

from tidegauge import vllm
from tidegauge.demo.engine import Engine
from tidegauge.demo.settings import CASE, EngineSettings
from tidegauge.demo.simulate import Simulation, idle, run_barriers, run_steady
from tidegauge.demo.workload import CASE as CASE_LENGTHS
from tidegauge.demo.workload import DEMO, Caller, Lengths, LogNormal, roster

LEFT = EngineSettings()
RIGHT = EngineSettings(max_num_seqs=48, max_num_batched_tokens=4096, block_size=32, num_blocks=3000)


def simulate(cap, *, fleet=(LEFT, RIGHT), lengths=DEMO, barriers=25, seed=7, agents=32, poll=None):
    """A run of barriers to its end; the scrapes, if it is polled."""
    simulation = Simulation([Engine(settings, start=1000.0) for settings in fleet], cap)
    caller = Caller(roster(agents, len(fleet), seed=1), lengths, seed)
    scrapes = list(run_barriers(simulation, caller, barriers, poll=poll))
    return simulation, scrapes


def of_barrier(simulation, number):
    return [truth for truth in simulation.truths if truth.call.barrier == number]


def late(waits):
    return sum(wait > 0.3 for wait in waits) / len(waits)


def server_waits(simulation, backend):
    return [truth.served.queue for truth in simulation.truths if truth.call.backend == backend]


class TestRoster:
    def test_agents_are_spread_evenly_and_keep_their_backend(self):
        """32 agents on 3 backends: 11, 11 and 10, not in turn, and the same under the same seed."""
        agents = roster(32, 3, seed=5)
        places = [agent.backend for agent in agents]
        assert [11, 11, 10] == [places.count(backend) for backend in range(3)]
        assert places != sorted(places)
        assert agents == roster(32, 3, seed=5)
        assert agents != roster(32, 3, seed=6)

    def test_weights_pile_agents_on_one_backend(self):
        """With weights 3 to 1 the first backend gets most agents."""
        places = [agent.backend for agent in roster(200, 2, seed=5, weights=(3, 1))]
        assert 130 < places.count(0) < 170

    def test_every_call_of_an_agent_goes_to_its_backend(self):
        """Routing is sticky."""
        agents = roster(8, 2, seed=2)
        homes = {agent.name: agent.backend for agent in agents}
        for calls in islice(Caller(agents, DEMO, 3).barriers(), 20):
            assert [homes[call.agent] for call in calls] == [call.backend for call in calls]


class TestCaller:
    def test_fan_out_is_about_29_of_32(self):
        """Over 681 barriers the median is 29 and the roster is the largest."""
        fan_outs = [len(calls) for calls in islice(Caller(roster(32, 2, 1), DEMO, 1).barriers(), 681)]
        assert (29, 32) == (median(fan_outs), max(fan_outs))

    def test_the_seed_decides_everything(self):
        """The same seed draws the same calls, another one others."""
        first, again, other = (list(islice(Caller(roster(9, 2, 1), DEMO, seed).barriers(), 9)) for seed in (4, 4, 5))
        assert first == again
        assert first != other

    def test_prompts_are_long_tailed_and_never_above_the_limit(self):
        """At true size the 90th percentile is near 100,000 tokens, the longest far above the median."""
        calls = [
            call for barrier in islice(Caller(roster(32, 2, 1), CASE_LENGTHS, 2).barriers(), 200) for call in barrier
        ]
        prompts = sorted(call.request.prompt_tokens for call in calls)
        assert 85_000 < prompts[len(prompts) * 9 // 10] < 110_000
        assert prompts[-1] > 1.7 * median(prompts)
        assert max(call.request.prompt_tokens + call.request.max_tokens for call in calls) <= CASE.max_model_len

    def test_a_sessions_shared_prefix_grows_and_is_part_of_each_prompt(self):
        """Within a session the next prompt begins with all that the last one left; a summary starts a new session."""
        sessions = {}
        for calls in islice(Caller(roster(5, 2, 1), DEMO, 2).barriers(), 120):
            for call in calls:
                sessions.setdefault(call.request.session, []).append(call.request)
        assert len(sessions) > 5
        for requests in sessions.values():
            for before, after in pairwise(requests):
                assert before.shared_tokens <= after.shared_tokens <= after.prompt_tokens
                assert before.shared_tokens < after.prompt_tokens

    def test_lengths_that_cannot_be_are_refused(self):
        """A prompt limit below the history limit leaves no room for anything new."""
        with pytest.raises(ValueError, match="prompt_limit must exceed"):
            Lengths(LogNormal(10, 1, high=50), LogNormal(10, 1), LogNormal(10, 1), history_limit=60, prompt_limit=60)

    def test_a_roster_without_agents_is_refused(self):
        """Nobody cannot call."""
        with pytest.raises(ValueError, match="at least one agent"):
            Caller((), DEMO, 1)


class TestCallersCeiling:
    @pytest.mark.parametrize("cap", [16, 28, 48, None])
    def test_just_the_calls_above_the_ceiling_wait_for_a_slot(self, cap):
        """Of each barrier, fan-out minus ceiling calls wait; the others go at once."""
        simulation, _ = simulate(cap)
        for barrier in simulation.barriers:
            waiting = [truth for truth in of_barrier(simulation, barrier.number) if truth.limiter_wait > 0]
            assert max(0, barrier.fan_out - (cap or 1000)) == len(waiting)

    def test_a_second_wave_waits_for_a_service_time(self):
        """At a ceiling of 16 nearly half of the calls wait, and those that do wait for more than a second."""
        simulation, _ = simulate(16)
        waits = [truth.limiter_wait for truth in simulation.truths]
        assert 0.38 < late(waits) < 0.5
        assert mean(wait for wait in waits if wait > 0.3) > 1.0

    def test_the_servers_own_queue_stays_empty_under_a_callers_ceiling(self):
        """What the limiter holds back no server sees: queue times of 0 while callers wait for a second."""
        simulation, _ = simulate(16)
        for backend, engine in enumerate(simulation.fleet):
            queue, e2e = (engine.tally.histograms[family].sum for family in (vllm.QUEUE, vllm.E2E))
            assert queue < 0.01 * e2e
            assert 0 == late(server_waits(simulation, backend))

    def test_the_ceiling_is_what_makes_barriers_long(self):
        """The same calls take markedly longer at 16 than without a ceiling, and 48 changes nothing."""
        capped, fuse, free = (simulate(cap)[0].barriers for cap in (16, 48, None))
        assert [barrier.fan_out for barrier in capped] == [barrier.fan_out for barrier in free]
        assert fuse == free
        lengths = [mean(barrier.closed - barrier.opened for barrier in run) for run in (capped, free)]
        assert lengths[0] > 1.3 * lengths[1]
        assert 2.5 < lengths[0] < 5.5

    @pytest.mark.parametrize("cap", [5, 16])
    def test_calls_in_flight_never_exceed_the_ceiling(self, cap):
        """At every moment of the truth at most `cap` calls are between send and return, over all backends."""
        simulation, _ = simulate(cap, barriers=6)
        moves = sorted(
            [(truth.sent, 1) for truth in simulation.truths] + [(truth.served.ended, -1) for truth in simulation.truths]
        )
        in_flight = [sum(step for _, step in moves[: position + 1]) for position in range(len(moves))]
        assert cap == max(in_flight)

    def test_the_limiter_is_first_come_first_served(self):
        """Within a barrier, calls are sent in the order in which they were handed over."""
        simulation, _ = simulate(7, barriers=3)
        for barrier in simulation.barriers:
            sent = sorted(of_barrier(simulation, barrier.number), key=lambda t: int(t.call.request.request_id[5:]))
            assert [truth.sent for truth in sent] == sorted(truth.sent for truth in sent)

    def test_a_limiter_without_slots_is_refused(self):
        """A ceiling of 0 would never send anything."""
        with pytest.raises(ValueError, match="not 0"):
            Simulation([Engine(LEFT)], 0)


class TestServersCeiling:
    def test_few_slots_split_that_servers_queue_and_no_other(self):
        """With 4 slots on one server and no ceiling before it, its queue splits; its neighbour's stays empty."""
        simulation, _ = simulate(None, fleet=(LEFT, attrs.evolve(RIGHT, max_num_seqs=4)))
        assert 0 == late(server_waits(simulation, 0))
        assert 0.6 < late(server_waits(simulation, 1)) < 0.85
        assert 0 == late([truth.limiter_wait for truth in simulation.truths])

    def test_long_prompts_wait_for_the_token_budget_with_the_cache_half_empty(self):
        """At true size requests queue with slots free and the cache not full: the token budget is short."""
        fleet = [Engine(CASE), Engine(attrs.evolve(CASE, max_num_seqs=120))]
        simulation = Simulation(fleet, None)
        caller = Caller(roster(20, 2, seed=1), CASE_LENGTHS, 3)
        seen = []
        for _ in run_barriers(simulation, caller, 3, poll=0.5):
            seen += [(engine.waiting, engine.running, engine.pool.usage) for engine in fleet]
        queued = [(running, usage) for waiting, running, usage in seen if waiting]
        assert len(queued) > 20
        assert max(running for running, _ in queued) < 40
        assert max(usage for _, usage in queued) < 0.8
        assert {0} == {engine.tally.counters[vllm.PREEMPTIONS] for engine in fleet}


class TestTruth:
    def test_every_call_returns_once_and_each_barrier_opens_after_the_last(self):
        """Calls are neither lost nor doubled, and barriers do not overlap."""
        simulation, _ = simulate(11)
        ids = [truth.call.request.request_id for truth in simulation.truths]
        assert len(ids) == len(set(ids)) == sum(barrier.fan_out for barrier in simulation.barriers)
        for before, after in pairwise(simulation.barriers):
            assert before.closed + 0.2 == pytest.approx(after.opened)
            assert before.closed == max(truth.served.ended for truth in of_barrier(simulation, before.number))

    def test_stamps_are_in_order(self):
        """Submitted, sent, queued, scheduled, first token, end."""
        for truth in simulate(9, barriers=5)[0].truths:
            served = truth.served
            stamps = (truth.submitted, truth.sent, served.queued, served.scheduled, served.first_token, served.ended)
            assert list(stamps) == sorted(stamps)
            assert truth.sent == served.arrived

    def test_the_run_repeats_under_its_seed(self):
        """Truth and barriers are equal under the same seed, and differ under another."""
        first, again, other = (simulate(16, barriers=5, seed=seed)[0] for seed in (7, 7, 8))
        assert (first.truths, first.barriers) == (again.truths, again.barriers)
        assert first.truths != other.truths


class TestScrapes:
    def test_pages_come_at_the_poll_interval_for_each_backend(self):
        """Every second one page per backend, from the first moment to the end."""
        simulation, scrapes = simulate(16, barriers=3, poll=1.0)
        for backend in (0, 1):
            moments = [scrape.ts for scrape in scrapes if scrape.backend == backend]
            assert [1000.0 + second for second in range(int(simulation.now - 1000) + 1)] == moments

    def test_polling_does_not_change_what_happens(self):
        """The truth is the same whether and how often the fleet is scraped."""
        quiet, polled = simulate(16, barriers=3)[0], simulate(16, barriers=3, poll=0.3)[0]
        assert quiet.truths == polled.truths

    def test_the_last_page_counts_what_the_truth_says(self):
        """At rest, each page's end-to-end count is the number of calls its backend answered."""
        simulation, scrapes = simulate(16, barriers=3, poll=1.0)
        scrapes += list(idle(simulation, 3.0, poll=1.0))
        for backend in (0, 1):
            page = [scrape.page for scrape in scrapes if scrape.backend == backend][-1]
            answered = sum(truth.call.backend == backend for truth in simulation.truths)
            label = f'{{engine="0",model_name="{LEFT.model_name}"}}'
            assert f"vllm:{vllm.E2E}_count{label} {float(answered)}\n" in page


class TestSteady:
    def test_steady_traffic_has_no_barriers_and_its_rate(self):
        """Independent calls at 3 a second for 100 s: about 300 of them, spread over time, all answered."""
        simulation = Simulation([Engine(LEFT), Engine(RIGHT)], None)
        list(run_steady(simulation, Caller(roster(32, 2, 1), DEMO, 5), 3.0, 100.0))
        assert 250 < len(simulation.truths) < 350
        assert {None} == {truth.call.barrier for truth in simulation.truths}
        assert [] == simulation.barriers
        assert 130 < sum(truth.submitted < 50 for truth in simulation.truths) < 170
