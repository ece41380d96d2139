"""All figures of a moment, from backends' histories and callers' reports."""

import pytest

from tests.builders import LENGTH_EDGES, config, figures, histogram, lifetime, merged, page, requests, spread
from tests.fleets import backend, callers, fleet_of
from tidegauge import vllm
from tidegauge.catalogue.thresholds import DEFAULTS, SOURCES_DISAGREE
from tidegauge.derive.capacity import Fact
from tidegauge.derive.settings import Settings
from tidegauge.model import Pinned, StartupFacts
from tidegauge.state.backend import Backend, BackendState


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

        assert (Fact(95_000.0, "metrics"), None) == (found[0].p90_prompt, found[1].p90_prompt)

    def test_pinned_p90_prompt_wins(self):
        """The operator's own figure."""
        one = lifetime(Backend("a", p90_prompt=77.0), page(self.lengths(100)))

        assert Fact(77.0, "config") == figures(one).backends[0].p90_prompt

    def test_of_several_models_the_longest_prompts_count(self):
        """One KV cache serves all."""
        one = lifetime("a", merged(page(self.lengths(50, 900.0), model="x"), page(self.lengths(50, 9000.0), model="y")))

        assert Fact(9500.0, "metrics") == figures(one).backends[0].p90_prompt

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
        assert Fact(95_000.0, "metrics") == found.p90_prompt


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

        assert figures(one).backends[0].facts.kv_disagree is True
        allowed = Settings(thresholds=DEFAULTS | {SOURCES_DISAGREE.key: 0.1})
        assert False is figures(one, settings=allowed).backends[0].facts.kv_disagree
