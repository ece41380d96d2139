"""Facts about a server, where they come from, and how many requests fit."""

import attrs
import pytest

from tests.builders import config
from tidegauge.derive.capacity import (
    Evidence,
    Fact,
    ServerFacts,
    kv_from_blocks,
    kv_from_log,
    kv_from_metrics,
    request_capacity,
    server_facts,
)
from tidegauge.model import EngineFacts, Pinned, StartupFacts


def printed(*tokens, **more):
    engines = tuple(EngineFacts(f"EngineCore_DP{rank}", size, "printed") for rank, size in enumerate(tokens))
    return StartupFacts(run=1, engines=engines, **more)


class TestKvTokens:
    def test_order_of_trust(self):
        """Configuration, the info label, the log, blocks x size: each replaced by the next when it is missing."""
        evidence = Evidence(
            pinned=Pinned(kv_cache_capacity_tokens=1000.0),
            configs=(config(kv_cache_size_tokens=1001, num_gpu_blocks=50, block_size=16),),
            startup=printed(1002),
        )
        found = [server_facts(evidence).kv_tokens]
        evidence = attrs.evolve(evidence, pinned=Pinned())
        found.append(server_facts(evidence).kv_tokens)
        evidence = attrs.evolve(evidence, configs=(config(num_gpu_blocks=50, block_size=16),))
        found.append(server_facts(evidence).kv_tokens)
        evidence = attrs.evolve(evidence, startup=None)
        found.append(server_facts(evidence).kv_tokens)
        evidence = attrs.evolve(evidence, configs=())
        found.append(server_facts(evidence).kv_tokens)

        assert [
            Fact(1000.0, "config"),
            Fact(1001.0, "metrics"),
            Fact(1002.0, "log"),
            Fact(800.0, "metrics"),
            None,
        ] == found

    @pytest.mark.parametrize(
        ("logged", "disagree"), [(1009, False), (1010, False), (1011, True), (989, True), (995, False)]
    )
    def test_sources_that_differ_by_over_one_percent_disagree(self, logged, disagree):
        """The number is still exported, from the more trusted source."""
        facts = server_facts(Evidence(configs=(config(kv_cache_size_tokens=1000),), startup=printed(logged)))

        assert disagree is facts.kv_disagree
        assert Fact(1000.0, "metrics") == facts.kv_tokens

    def test_configured_number_is_held_against_the_measured_ones(self):
        """A typed constant may be wrong; the threshold is configurable."""
        evidence = Evidence(pinned=Pinned(kv_cache_capacity_tokens=1100.0), startup=printed(1000))

        assert server_facts(evidence).kv_disagree is True
        assert False is server_facts(evidence, disagree=0.2).kv_disagree

    def test_blocks_are_no_witness_against_a_better_source(self):
        """They are known to be wrong for hybrid models."""
        configs = (config(kv_cache_size_tokens=4000, num_gpu_blocks=50, block_size=16),)

        assert False is server_facts(Evidence(configs=configs)).kv_disagree
        assert None is server_facts(Evidence(configs=(config(num_gpu_blocks=50, block_size=16),))).kv_disagree

    def test_ranks_are_summed_from_the_label(self):
        """`kv_cache_size_tokens` is per engine."""
        configs = (config("0", kv_cache_size_tokens=1000), config("1", kv_cache_size_tokens=700))

        assert 1700.0 == kv_from_metrics(configs, 2)

    @pytest.mark.parametrize("second", [(), (config("1", kv_cache_size_tokens="None"),)])
    def test_rank_that_does_not_tell_makes_the_sum_unknown(self, second):
        """Half a capacity would pass for a whole one."""
        assert None is kv_from_metrics((config("0", kv_cache_size_tokens=1000), *second), 2)

    def test_blocks_are_the_sum_over_ranks_repeated_on_each(self):
        """1,000 blocks in all, not 2,000."""
        configs = (
            config("0", num_gpu_blocks=1000, block_size=16),
            config("1", num_gpu_blocks=1000, block_size=16),
        )

        assert 16_000.0 == kv_from_blocks(configs)

    @pytest.mark.parametrize(
        "labels", [{"num_gpu_blocks": "None"}, {"num_gpu_blocks": "0"}, {"num_gpu_blocks": "nan"}, {}]
    )
    def test_blocks_that_say_nothing_are_unknown(self, labels):
        """0.8 printed None."""
        assert None is kv_from_blocks((config("0", block_size=16, **labels),))

    def test_ranks_are_summed_from_the_log(self):
        """Each engine prints its own line."""
        assert 1700.0 == kv_from_log(printed(1000, 700, data_parallel_size=2), 2)

    @pytest.mark.parametrize(("startup", "engines"), [(printed(1000), 2), (printed(1000, data_parallel_size=2), 0)])
    def test_rank_that_printed_nothing_makes_the_log_unknown(self, startup, engines):
        """Since 0.11.1 only the first rank of a node prints."""
        assert None is kv_from_log(startup, engines)

    def test_one_rank_behind_an_external_balancer_is_one_engine(self):
        """Its log names the whole deployment of 8, its page shows the one rank it serves."""
        startup = printed(1000, data_parallel_size=8, max_num_seqs=64)
        facts = server_facts(Evidence(startup=startup, engines=1))

        assert (Fact(1000.0, "log"), Fact(64.0, "log")) == (facts.kv_tokens, facts.max_num_seqs)

    def test_failed_start_says_nothing(self):
        """Its numbers never came into force."""
        startup = printed(1000, started=False, max_num_seqs=64, max_model_len=4096)

        assert ServerFacts() == server_facts(Evidence(startup=startup))


class TestLimits:
    def test_order_of_trust_of_slots(self):
        """Configuration, log, the server's own answer, the observed plateau."""
        evidence = Evidence(
            pinned=Pinned(max_num_seqs=1.0),
            startup=StartupFacts(max_num_seqs=2),
            served=Pinned(max_num_seqs=3.0),
            observed_seqs=4.0,
        )
        found = [server_facts(evidence).max_num_seqs]
        for change in ({"pinned": Pinned()}, {"startup": None}, {"served": Pinned()}, {"observed_seqs": None}):
            evidence = attrs.evolve(evidence, **change)
            found.append(server_facts(evidence).max_num_seqs)

        assert [Fact(1.0, "config"), Fact(2.0, "log"), Fact(3.0, "server_info"), Fact(4.0, "observed"), None] == found

    def test_slots_hold_per_rank(self):
        """Log and server say them per engine; configuration and observation are the backend's."""
        ranks = {"engines": 3}

        assert 48.0 == server_facts(Evidence(startup=StartupFacts(max_num_seqs=16), **ranks)).max_num_seqs.value
        assert 60.0 == server_facts(Evidence(served=Pinned(max_num_seqs=20.0), **ranks)).max_num_seqs.value
        assert 16.0 == server_facts(Evidence(pinned=Pinned(max_num_seqs=16.0), **ranks)).max_num_seqs.value
        assert 16.0 == server_facts(Evidence(observed_seqs=16.0, **ranks)).max_num_seqs.value

    def test_step_budget_and_context_are_not_multiplied(self):
        """They limit one engine, one request."""
        startup = StartupFacts(max_num_batched_tokens=8192, max_model_len=131_072)
        facts = server_facts(Evidence(startup=startup, engines=4))

        assert (Fact(8192.0, "log"), Fact(131_072.0, "log")) == (facts.max_num_batched_tokens, facts.max_model_len)

    def test_step_budget_and_context_in_order_of_trust(self):
        """Configuration, log, the server's own answers."""
        evidence = Evidence(
            pinned=Pinned(max_num_batched_tokens=1.0, max_model_len=10.0),
            startup=StartupFacts(max_num_batched_tokens=2, max_model_len=20),
            served=Pinned(max_num_batched_tokens=3.0, max_model_len=30.0),
        )
        found = []
        for change in ({}, {"pinned": Pinned()}, {"startup": None}, {"served": Pinned()}):
            evidence = attrs.evolve(evidence, **change)
            facts = server_facts(evidence)
            found.append((facts.max_num_batched_tokens, facts.max_model_len))

        assert [
            (Fact(1.0, "config"), Fact(10.0, "config")),
            (Fact(2.0, "log"), Fact(20.0, "log")),
            (Fact(3.0, "server_info"), Fact(30.0, "server_info")),
            (None, None),
        ] == found

    def test_unknown_stays_unknown(self):
        """No default is made up: it differs by version and GPU."""
        assert ServerFacts() == server_facts(Evidence())


class TestRequestCapacity:
    FACTS = ServerFacts(
        kv_tokens=Fact(1_490_818.0, "log"), max_num_seqs=Fact(160.0, "log"), max_model_len=Fact(131_072.0, "log")
    )

    def test_the_case(self):
        """14 requests of 100,000 tokens; 11.37 full windows, unrounded."""
        found = request_capacity(self.FACTS, 100_000.0, None)

        assert 14.0 == found["p90_prompt"]
        assert "11.37" == f"{found['context_window']:.2f}"
        assert {"p90_prompt", "context_window"} == found.keys()

    def test_a_request_holds_its_answer_too(self):
        """1,490,818 / (100,000 + 20,000)."""
        assert 12.0 == request_capacity(self.FACTS, 100_000.0, 20_000.0)["p90_prompt_and_output"]

    def test_slots_limit_every_basis(self):
        """Short prompts: KV would hold 1,490."""
        facts = attrs.evolve(self.FACTS, max_num_seqs=Fact(7.0, "config"))

        assert {"p90_prompt": 7.0, "p90_prompt_and_output": 7.0, "context_window": 7.0} == request_capacity(
            facts, 1000.0, 100.0
        )

    @pytest.mark.parametrize("slots", [None, Fact(7.0, "observed")])
    def test_unknown_slots_limit_nothing(self, slots):
        """An observed plateau is a lower bound, no limit."""
        assert 1490.0 == request_capacity(attrs.evolve(self.FACTS, max_num_seqs=slots), 1000.0, None)["p90_prompt"]

    def test_basis_without_its_inputs_is_absent(self):
        """Nothing is made up from half of the inputs."""
        assert {} == request_capacity(ServerFacts(max_num_seqs=Fact(160.0, "log")), 1000.0, 100.0)
        assert {"context_window"} == request_capacity(self.FACTS, None, 100.0).keys()
        assert {} == request_capacity(ServerFacts(kv_tokens=Fact(1000.0, "log")), None, None)
