"""All figures of a moment, from backends' histories and callers' reports."""

import pytest

from tests.builders import LENGTH_EDGES, clipped, config, figures, histogram, lifetime, merged, page, requests, spread
from tidegauge import vllm
from tidegauge.derive.capacity import Fact
from tidegauge.derive.inference import FleetInference
from tidegauge.derive.queueing import Limits
from tidegauge.derive.settings import Settings
from tidegauge.model import Pinned, StartupFacts
from tidegauge.state.backend import Backend, BackendState
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


class TestFleets:
    def test_fleet_is_named_by_configuration_else_by_model(self):
        """One fleet may serve one model under two names."""
        found = figures(
            backend("a", model="x", fleet="agents", start=1.0),
            backend("b", model="y", fleet="agents", start=2.0),
            backend("c", model="y", start=3.0),
        )

        assert {"agents": ["a", "b"], "y": ["c"]} == {
            one.name: [each.name for each in one.backends] for one in found.fleets
        }

    def test_fleet_that_only_callers_name_is_shown(self):
        """Their ceiling and waits are facts, whoever serves them."""
        found = figures(backend("a"), callers=callers("elsewhere", waits=[1.0]))

        assert ["m", "elsewhere"] == [one.name for one in found.fleets]
        assert () == found.fleets[1].backends

    def test_backend_that_was_never_seen_is_in_no_fleet(self):
        """Its model is not known."""
        found = figures(BackendState(Backend("a"), 900.0, 3600.0, 0.0))

        assert () == found.fleets
        assert ["a"] == [one.name for one in found.backends]


class TestFleetCapacity:
    def test_is_the_sum_of_each_backends_own(self):
        """10 + 25 + 4, not 3 x 4: test data in which backends are identical cannot tell the two apart."""
        found = fleet_of(
            backend("a", kv=1000, start=1.0),
            backend("b", kv=5000, p90=200.0, start=2.0),
            backend("c", kv=400, start=3.0),
        )

        assert 39.0 == found.capacity["p90_prompt"]
        assert 4.0 == found.narrowest["p90_prompt"]

    def test_the_case(self):
        """28 for two backends, 22.7 in the window basis."""
        pinned = Pinned(max_num_seqs=160.0, max_model_len=131_072.0, kv_cache_capacity_tokens=1_490_818.0)
        states = [
            lifetime(Backend(name, None, pinned, 100_000.0), page(requests(), start=at))
            for at, name in ((1.0, "a"), (2.0, "b"))
        ]
        found = fleet_of(*states)

        assert 28.0 == found.capacity["p90_prompt"]
        assert "22.7" == f"{found.capacity['context_window']:.1f}"

    def test_backend_that_is_down_adds_none(self):
        """Healthy backends only; its own capacity is still known."""
        down = backend("b", kv=5000, start=2.0)
        down.failed("refused", 0.1)
        found = fleet_of(backend("a", kv=1000, start=1.0), down)

        assert ({"p90_prompt": 10.0}, {"p90_prompt": 10.0}) == (found.capacity, found.narrowest)
        assert 50.0 == found.backends[1].capacity["p90_prompt"]

    def test_second_name_of_one_server_adds_none(self):
        """Two targets, one process: distinct backends only."""
        found = fleet_of(backend("a", kv=1000), backend("again", kv=1000), backend("b", kv=300, start=2.0))

        assert [None, "a", None] == [one.twin_of for one in found.backends]
        assert 13.0 == found.capacity["p90_prompt"]

    def test_is_unknown_where_a_healthy_backends_is(self):
        """A sum without a part is not the fleet's."""
        found = fleet_of(backend("a", start=1.0), backend("b", kv=None, start=2.0))

        assert {} == found.capacity

    def test_nobody_healthy_has_no_capacity(self):
        """Absent, not 0: what a limiter does then is its own rule."""
        down = backend("a")
        down.failed("refused", 0.1)

        assert ({}, {}) == (fleet_of(down).capacity, fleet_of(down).narrowest)


class TestSkew:
    def test_slowest_over_fastest_with_enough_requests(self):
        """The idle backend's three requests say nothing."""
        found = fleet_of(
            backend("a", e2e=12.18, start=1.0),
            backend("b", e2e=32.91, start=2.0),
            backend("c", e2e=99.0, start=3.0, count=3),
        )

        assert ("2.70", "b", "a") == (f"{found.skew.ratio:.2f}", found.skew.highest, found.skew.lowest)

    def test_second_name_of_one_server_is_no_rival(self):
        """A server is not held against itself."""
        assert None is fleet_of(backend("a"), backend("again")).skew

    def test_fleet_stages_are_weighted_by_requests_and_count_a_server_once(self):
        """30 of 10 s, 90 of 20 s."""
        found = fleet_of(
            backend("a", e2e=10.0, start=1.0),
            backend("b", e2e=20.0, count=90, start=2.0),
            backend("again", e2e=10.0, start=1.0),
        )

        assert (120.0, 17.5) == (found.stages.requests, pytest.approx(found.stages.e2e))


class TestModels:
    def test_models_of_one_backend_are_kept_apart_and_added_up(self):
        """Each has its stages, the backend has both."""
        one = lifetime(
            "a",
            merged(
                page(requests(*[(1.0, 1.0, 1.0, 1.0)] * 30), model="small"),
                page(requests(*[(2.0, 2.0, 2.0, 2.0)] * 10), model="large"),
            ),
        )
        (found,) = figures(one).backends

        assert {"small": 4.0, "large": 8.0} == {model.model_name: model.stages.e2e for model in found.models}
        assert 5.0 == found.stages.e2e

    def test_prefix_hit_is_hits_over_queries(self):
        """Of all engines; absent without a query."""
        values = [
            {vllm.PREFIX_QUERIES: 700.0, vllm.PREFIX_HITS: 100.0},
            {vllm.PREFIX_QUERIES: 300.0, vllm.PREFIX_HITS: 441.0},
        ]
        one = lifetime("a", merged(*(page({}, engine=str(rank), values=each) for rank, each in enumerate(values))))

        assert 0.541 == figures(one).backends[0].prefix_hit
        assert None is figures(backend("b")).backends[0].prefix_hit

    @pytest.mark.parametrize(("running", "expected"), [(0.0, 4.0), (1.0, None)])
    def test_aborted_after_first_token_is_told_at_rest(self, running, expected):
        """TTFT count - end-to-end count; while requests run they look the same."""
        rows = requests(*[(1.0, 1.0, 1.0, 1.0)] * 30) | {vllm.TTFT: spread(34, 34.0)}
        one = lifetime("a", page(rows, values={vllm.RUNNING: running, vllm.WAITING: 0.0}))

        assert expected == figures(one).backends[0].models[0].aborted

    def test_aborted_is_not_told_of_a_window_with_a_restart(self):
        """What was in flight when the server died has a first token and no end."""
        values = {vllm.RUNNING: 0.0, vllm.WAITING: 0.0}
        state = BackendState(Backend("a"), 900.0, 3600.0, 0.0)
        for at, start, counted in ((2000.0, 1000.0, 9), (2060.0, 2010.0, 2)):
            rows = requests(*[(1.0, 1.0, 1.0, 1.0)] * counted) | {vllm.TTFT: spread(counted + 3, 9.0)}
            state.page(page(rows, start=start, values=values), at, 0.1)

        assert None is figures(state, now=2061.0).backends[0].models[0].aborted
        assert None is not figures(state, now=2961.0).backends[0].models[0].aborted


class TestLengths:
    def lengths(self, count, tokens=90_000.0, family=vllm.PROMPT_LENGTH):
        return {family: histogram([tokens] * count, LENGTH_EDGES)}

    def test_p90_prompt_is_measured_where_it_is_not_pinned(self):
        """By interpolation in (50,000, 100,000]; never below the minimum number of requests."""
        one = lifetime("a", page(self.lengths(100)))
        few = lifetime("b", page(self.lengths(19), start=2.0))
        found = figures(one, few).backends

        assert (95_000.0, None) == (found[0].p90_prompt, found[1].p90_prompt)

    def test_pinned_p90_prompt_wins(self):
        """The operator's own figure."""
        one = lifetime(Backend("a", p90_prompt=77.0), page(self.lengths(100)))

        assert 77.0 == figures(one).backends[0].p90_prompt

    def test_of_several_models_the_longest_prompts_count(self):
        """One KV cache serves all."""
        one = lifetime("a", merged(page(self.lengths(50, 900.0), model="x"), page(self.lengths(50, 9000.0), model="y")))

        assert 9500.0 == figures(one).backends[0].p90_prompt

    def test_p90_output_is_what_a_request_holds_besides(self):
        """1,000,000 / (95,000 + 190)."""
        both = self.lengths(100) | self.lengths(100, 190.0, vllm.OUTPUT_LENGTH)
        one = lifetime("a", page(both, configs=[config(kv_cache_size_tokens=1_000_000)]))

        assert {"p90_prompt": 10.0, "p90_prompt_and_output": 10.0} == figures(one).backends[0].capacity

    def test_length_window_outlives_the_stage_window(self):
        """An hour for lengths, a quarter for latencies."""
        state = BackendState(Backend("a"), 900.0, 3600.0, 0.0)
        rows = requests(*[(1.0, 1.0, 1.0, 1.0)] * 30) | self.lengths(30)
        state.page(page(rows, start=1999.0), 2000.0, 0.1)
        state.page(page(rows, start=1999.0), 3200.0, 0.1)
        (found,) = figures(state, now=3200.0).backends

        assert None is found.models[0].stages
        assert 95_000.0 == found.p90_prompt


class TestFacts:
    def test_ranks_multiply_slots_and_sum_capacities(self):
        """Two engines on one page, each telling its own."""
        ranks = [
            page(
                {}, engine=str(rank), values={vllm.RUNNING: 0.0}, configs=[config(str(rank), kv_cache_size_tokens=size)]
            )
            for rank, size in enumerate((1000, 700))
        ]
        one = lifetime("a", merged(*ranks), startup=StartupFacts(run=1, max_num_seqs=16, data_parallel_size=2))
        facts = figures(one).backends[0].facts

        assert (1700.0, 32.0) == (facts.kv_tokens.value, facts.max_num_seqs.value)

    def test_disagreement_threshold_is_configurable(self):
        """5 % apart, 10 % allowed."""
        one = lifetime(
            Backend("a", None, Pinned(kv_cache_capacity_tokens=1050.0)),
            page({}, configs=[config(kv_cache_size_tokens=1000)]),
        )

        assert True is figures(one).backends[0].facts.kv_disagree
        assert False is figures(one, settings=Settings(disagree=0.1)).backends[0].facts.kv_disagree


class TestCallers:
    def test_client_stage_and_split_are_the_fleets(self):
        """60 % got a slot at once, 40 % after 12 s: on vLLM's side nothing shows."""
        found = fleet_of(backend("a"), callers=callers(waits=[0.0] * 60 + [12.0] * 40))

        assert 4.8 == pytest.approx(found.client_seconds)
        assert (True, 0.1) == (found.caller_queue.bimodal, found.caller_queue.edge)
        assert 0.4 == pytest.approx(found.caller_queue.late_share)
        # The wait's share of what the caller sees: wait plus end-to-end.
        assert 4.8 / 14.8 == pytest.approx(found.caller_queue.impact)
        assert found.caller_queue.pages(Limits())
        assert not found.backends[0].models[0].queue.bimodal

    def test_without_latencies_the_impact_is_unknown(self):
        """And then nothing pages."""
        found = fleet_of(callers=callers(waits=[0.0] * 60 + [12.0] * 40))

        assert None is found.caller_queue.impact
        assert not found.caller_queue.pages(Limits())

    def test_edge_of_the_callers_wait_is_its_lowest_bucket(self):
        """Waits of 50 ms are none, although there are buckets below."""
        found = fleet_of(backend("a"), callers=callers(waits=[0.05] * 60 + [12.0] * 40))

        assert 0.1 == found.caller_queue.quantiles[0.5]

    @pytest.mark.parametrize(("ceiling", "waves", "state"), [(16, 2, "clips"), (28, 2, "clips"), (48, 1, "inert")])
    def test_the_case_29_calls_through_a_ceiling(self, ceiling, waves, state):
        """16, 28, 48 against a roster of 32: 2, 2 and 1 waves; and 1 through two servers of 160 slots."""
        states = [backend(name, seqs=160.0, start=at) for at, name in ((1.0, "a"), (2.0, "b"))]
        settings = Settings(rosters={"m": 32})
        found = fleet_of(*states, callers=callers(fan_outs=[29] * 5, ceiling=ceiling), settings=settings)
        (barriers,) = found.barriers

        assert ({"client": waves, "server": 1}) == {kind: order.median for kind, order in barriers.waves.items()}
        assert {"client": state, "server": "inert"} == found.states
        assert [("client", ceiling, "reported"), ("server", 320.0, "config")] == [
            (one.kind, one.value, one.source) for one in found.ceilings
        ]
        assert (32.0, "config") == found.natural_bound

    def test_order_statistics_of_barriers_are_exact(self):
        """Median 29 and largest 32 print as 29 and 32; durations likewise."""
        found = fleet_of(backend("a"), callers=callers(fan_outs=[12, 29, 29, 29, 32]))
        (barriers,) = found.barriers

        assert ("reported", 5, 5) == (barriers.source, barriers.total, barriers.count)
        assert (29, 32, 32) == (barriers.fan_out.median, barriers.fan_out.p90, barriers.fan_out.max)
        assert 0.5 == barriers.duration.median
        assert (32.0, "reported") == found.natural_bound

    def test_ceiling_without_a_barrier_is_unmeasured(self):
        """A configured roster alone measures nothing."""
        found = fleet_of(backend("a"), callers=callers(ceiling=16), settings=Settings(rosters={"m": 32}))

        assert {"client": "unmeasured"} == found.states

    @pytest.mark.parametrize(
        ("fan_out", "state", "bound"), [(32, "clips", (32.0, "reported")), (27, "inert", (28.0, "config"))]
    )
    def test_roster_that_a_barrier_exceeds_is_no_bound(self, fan_out, state, bound):
        """A ceiling of 30 over a typed roster of 28 binds all the same where 32 came."""
        told = callers(fan_outs=[fan_out], ceiling=30)
        found = fleet_of(backend("a"), callers=told, settings=Settings(rosters={"m": 28}))

        assert ({"client": state}, bound) == (found.states, found.natural_bound)

    def test_ceiling_of_the_servers_is_that_of_distinct_backends(self):
        """Two machines counted as three: 16 + 100 slots, not 132."""
        states = [backend("a", seqs=16.0), backend("again", seqs=16.0), backend("b", seqs=100.0, start=2.0)]
        found = fleet_of(*states, callers=callers(fan_outs=[29, 120]))

        assert [("server", 116.0)] == [(one.kind, one.value) for one in found.ceilings]
        assert ((1, 2), 0.5) == (
            (found.barriers[0].waves["server"].median, found.barriers[0].waves["server"].max),
            found.barriers[0].clipped["server"],
        )

    def test_slots_of_a_backend_that_is_down_are_no_ceiling(self):
        """The server side is what is healthy; unknown slots make it unknown."""
        down = backend("b", seqs=100.0, start=2.0)
        down.failed("refused", 0.1)
        found = fleet_of(backend("a", seqs=16.0, start=1.0), down, callers=callers(fan_outs=[29]))

        assert [("server", 16.0)] == [(one.kind, one.value) for one in found.ceilings]
        unknown = fleet_of(backend("a", seqs=16.0, start=1.0), backend("b", start=2.0))
        assert () == unknown.ceilings

    def test_observed_slots_are_no_ceiling(self):
        """Ten ran while others waited: a lower bound, which would clip what the server takes."""
        values = {vllm.RUNNING: 10.0, vllm.WAITING: 4.0, vllm.KV_USAGE: 0.2}
        found = fleet_of(lifetime("a", *[page({}, values=values)] * 3), callers=callers(fan_outs=[29]))

        assert Fact(10.0, "observed") == found.backends[0].facts.max_num_seqs
        assert ((), {}) == (found.ceilings, found.states)

    @pytest.mark.parametrize(
        ("told", "configured", "plateau", "expected"),
        [
            (16, 24, 8, ("reported", 16.0)),
            (None, 24, 8, ("config", 24.0)),
            (None, None, 8, ("observed", 8.0)),
            (None, None, None, None),
        ],
    )
    def test_ceiling_of_the_caller_is_from_the_surest_source(self, told, configured, plateau, expected):
        """Reported, else configured, else the plateau that barriers run into."""
        seen = FleetInference("m", 900.0, 1.0)
        for reading in clipped(barriers=6, fan_out=21, ceiling=plateau or 99):
            seen.feed(reading)
        found = fleet_of(
            backend("a"),
            callers=callers(ceiling=told),
            inferred=[seen.snapshot(2000.0)],
            settings=Settings(ceilings={"m": configured} if configured else {}),
        )

        assert ([expected] if expected else []) == [(one.source, one.value) for one in found.ceilings]
        assert {"inferred"} == {one.source for one in found.barriers}

    def test_exact_barriers_come_first(self):
        """Both sources are shown; the natural bound is the exact one's."""
        seen = FleetInference("m", 900.0, 1.0)
        for reading in clipped(barriers=6, fan_out=58, ceiling=99):
            seen.feed(reading)
        found = fleet_of(backend("a"), callers=callers(fan_outs=[29, 31]), inferred=[seen.snapshot(2000.0)])

        assert [("reported", 31), ("inferred", 58)] == [(one.source, one.fan_out.max) for one in found.barriers]
        assert (31.0, "reported") == found.natural_bound

    def test_without_callers_nothing_is_made_up(self):
        """The wait before vLLM is unmeasured, not 0."""
        found = fleet_of(backend("a"))

        assert (None, None, None, None) == (
            found.client_seconds,
            found.caller_queue,
            found.callers,
            found.natural_bound,
        )
        assert () == found.barriers
