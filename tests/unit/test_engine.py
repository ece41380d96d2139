"""The simulated scheduler: what it conserves, when it stamps, and what its histograms therefore say."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegauge import vllm
from tidegauge.demo.engine import Engine
from tidegauge.demo.requests import Request
from tidegauge.demo.settings import CASE, CostModel, EngineSettings

ONE_SECOND_STEPS = CostModel(1.0, 0, 0, 0, frontend=0, frontend_per_token=0, output=0)
SMALL = EngineSettings(
    max_num_seqs=3,
    max_num_batched_tokens=24,
    max_model_len=64,
    block_size=4,
    num_blocks=22,
    cost=CostModel(0.02, 1e-3, 2e-3, 1e-5, frontend=4e-3, frontend_per_token=1e-5, output=1e-3),
)


def engine(**changes):
    """An engine whose steps last one second each and whose API server takes no time."""
    return Engine(attrs.evolve(SMALL, cost=ONE_SECOND_STEPS, **changes))


def ask(name, prompt, output, session=None, shared=0):
    return Request(name, session or name, prompt, output, shared)


def by_name(done):
    return {finished.request.request_id: finished for finished in done}


def run(sim, *requests, at=0.0, until=10_000.0):
    for request in requests:
        sim.submit(request, at)
    return by_name(sim.advance(until))


def held(sim):
    """Blocks that running requests hold, a shared prefix counted once."""
    holdings = [sequence.holding for sequence in sim._running]
    prefixes = {h.session: max(o.shared for o in holdings if o.session == h.session) for h in holdings}
    return sum(prefixes.values()) + sum(h.own for h in holdings)


LOADS = st.lists(
    st.tuples(
        st.floats(0, 3),  # arrival
        st.integers(1, 40),  # prompt
        st.integers(1, 20),  # output
        st.integers(0, 4),  # session
        st.integers(0, 40),  # shared
    ),
    min_size=1,
    max_size=25,
)


def submit_all(sim, load):
    for number, (at, prompt, output, session, shared) in enumerate(sorted(load)):
        sim.advance(at)
        sim.submit(ask(f"r{number}", prompt, output, f"s{session}", min(shared, prompt)), max(at, sim.now))


class TestConservation:
    @given(LOADS, st.booleans())
    @settings(deadline=None, max_examples=60)
    def test_every_request_finishes_once_and_every_sum_adds_up(self, load, caching):
        """All that is submitted finishes once, all blocks come back, and the page's sums are those of the requests."""
        sim = Engine(attrs.evolve(SMALL, prefix_caching=caching))
        done = []
        for number, (at, prompt, output, session, shared) in enumerate(sorted(load)):
            done += sim.advance(at)
            sim.submit(ask(f"r{number}", prompt, output, f"s{session}", min(shared, prompt)), at)
        done += sim.advance(1e6)
        tally = sim.tally
        assert {f"r{number}" for number in range(len(load))} == {f.request.request_id for f in done}
        assert len(load) == len(done) == tally.finished_by_reason["length"]
        assert (0, 0, 0) == (sim.unfinished, sim.running, sim.waiting)
        assert sim.pool.usable == sim.pool.free
        assert sum(f.output_tokens for f in done) == tally.counters[vllm.OUTPUT_TOKENS]
        assert sum(f.request.prompt_tokens for f in done) == tally.counters[vllm.PROMPT_TOKENS]
        assert sum(f.preemptions for f in done) == tally.counters[vllm.PREEMPTIONS]
        assert sum(f.output_tokens - 1 for f in done) == tally.histograms[vllm.ITL].count
        for family, stage in ((vllm.QUEUE, "queue"), (vllm.PREFILL, "prefill"), (vllm.DECODE, "decode")):
            assert sum(getattr(f, stage) for f in done) == pytest.approx(tally.histograms[family].sum)
            assert len(done) == tally.histograms[family].count

    @given(LOADS)
    @settings(deadline=None, max_examples=60)
    def test_stages_add_up_for_each_request(self, load):
        """inference = prefill + decode, and end-to-end time exceeds all three by the API server's part."""
        sim = Engine(SMALL)
        submit_all(sim, load)
        for finished in sim.advance(1e6):
            assert finished.inference == pytest.approx(finished.prefill + finished.decode)
            assert finished.queue >= 0
            assert finished.prefill > 0
            assert finished.decode >= 0
            assert finished.other > SMALL.cost.frontend * 0.99

    @given(LOADS)
    @settings(deadline=None, max_examples=60)
    def test_slots_budget_and_blocks_are_never_exceeded(self, load):
        """In no step do running requests, scheduled tokens or blocks exceed what the server has."""
        sim = Engine(SMALL)
        submit_all(sim, load)
        while (event := sim.next_event()) is not None:
            sim.advance(event)
            assert sim.running <= SMALL.max_num_seqs
            assert sim.pool.usable == sim.pool.free + held(sim)
            assert sim.pool.free >= 0
            if sim._step is not None:
                assert 1 <= sum(tokens for _, tokens in sim._step.parts) <= SMALL.max_num_batched_tokens

    @given(LOADS)
    @settings(deadline=None, max_examples=25)
    def test_the_same_load_gives_the_same_history(self, load):
        """Two engines with the same requests agree to the last stamp, however finely they are advanced."""
        coarse, fine = Engine(SMALL), Engine(SMALL)
        for sim in (coarse, fine):
            for number, (at, prompt, output, session, shared) in enumerate(load):
                sim.submit(ask(f"r{number}", prompt, output, f"s{session}", min(shared, prompt)), at)
        finely = [done for tick in range(3000) for done in fine.advance(tick * 0.01)]
        assert coarse.advance(29.99) == finely


class TestStamps:
    def test_a_request_that_arrives_during_a_step_is_queued_when_the_step_ends(self):
        """What arrives at 0.25 s of a one-second step is stamped at 1 s: 0.75 s are in no stage but `other`."""
        sim = engine()
        sim.submit(ask("first", 4, 2), 0.0)
        sim.submit(ask("late", 4, 3), 0.25)
        late = by_name(sim.advance(100))["late"]
        assert (0.25, 1.0, 1.0, 2.0, 4.0) == (
            late.arrived,
            late.queued,
            late.scheduled,
            late.first_token,
            late.last_token,
        )
        assert 0.75 == late.other

    def test_the_api_server_takes_one_request_after_the_other(self):
        """Three requests at once reach an idle engine one tokenising time apart."""
        cost = CostModel(0.0005, 0, 0, 0, frontend=0.01, frontend_per_token=0.001, output=0)
        sim = Engine(attrs.evolve(SMALL, cost=cost))
        done = run(sim, ask("a", 10, 1), ask("b", 20, 1), ask("c", 5, 1))
        assert [0.02, 0.05, 0.065] == pytest.approx([done[name].queued for name in "abc"])

    def test_with_one_slot_each_request_waits_for_all_before_it(self):
        """One slot, answers of 2, 3 and 4 tokens: the queue times are 0, 1 and 4 s after the first step's end."""
        done = run(engine(max_num_seqs=1), ask("a", 4, 2), ask("b", 4, 3), ask("c", 4, 4))
        assert [0.0, 2.0, 5.0] == [done[name].queue for name in "abc"]
        assert [1.0, 1.0, 1.0] == [done[name].prefill for name in "abc"]
        assert [1.0, 2.0, 3.0] == [done[name].decode for name in "abc"]

    def test_a_long_prompt_is_prefilled_in_chunks_and_takes_the_budget_from_others(self):
        """30 tokens at 12 a step take three steps; a short prompt behind gets what the third leaves."""
        sim = engine(max_num_batched_tokens=12)
        done = run(sim, ask("long", 30, 1), ask("short", 5, 1))
        assert (0.0, 3.0) == (done["long"].queue, done["long"].prefill)
        assert (2.0, 1.0) == (done["short"].queue, done["short"].prefill)

    def test_requests_that_decode_come_before_new_prompts(self):
        """A decoding request gets its token in each step although a long prompt wants the whole budget."""
        sim = engine(max_num_batched_tokens=10)
        sim.submit(ask("decoding", 4, 6), 0.0)
        sim.submit(ask("long", 36, 1), 0.5)
        done = by_name(sim.advance(100))
        assert 5.0 == done["decoding"].decode
        assert 4.0 == done["long"].prefill  # four chunks of 9: one token of each step is the decoding one's

    def test_gauges_move_only_when_a_step_ends(self):
        """A request that came during a step shows in no gauge until the step is over."""
        sim = engine(max_num_seqs=1)
        sim.submit(ask("a", 4, 5), 0.0)
        sim.submit(ask("b", 4, 5), 0.5)
        sim.advance(0.9)
        assert (0, 0) == (sim.tally.gauges.running, sim.tally.gauges.waiting)
        sim.advance(1.5)
        assert (1, 0) == (sim.tally.gauges.running, sim.tally.gauges.waiting)
        sim.advance(2.5)
        assert (1, 1) == (sim.tally.gauges.running, sim.tally.gauges.waiting)
        assert 1 - 19 / 21 == pytest.approx(sim.tally.gauges.kv_usage)

    def test_time_per_output_token_of_a_single_token_is_zero(self):
        """One token has no gap; five tokens at one second each have a mean of one second."""
        done = run(engine(), ask("one", 4, 1), ask("five", 4, 5))
        assert (0.0, 1.0) == (done["one"].time_per_output_token, done["five"].time_per_output_token)

    def test_an_answer_below_its_limit_stops(self):
        """The finish reason is `stop` where the model ended the answer, `length` where the limit did."""
        done = run(engine(), Request("stops", "s", 4, 9, output_tokens=3), ask("cut", 4, 3))
        assert ("stop", "length") == (done["stops"].reason, done["cut"].reason)


class TestPreemption:
    def test_a_preempted_requests_second_wait_is_decode(self):
        """Two requests outgrow the cache: the later one starts again, its queue time stays 0, decode has it."""
        sim = engine(num_blocks=18, max_num_seqs=2, max_num_batched_tokens=40)
        done = run(sim, ask("older", 30, 30), ask("newer", 2, 40))
        assert (0, 1) == (done["older"].preemptions, done["newer"].preemptions)
        assert 1 == sim.tally.counters[vllm.PREEMPTIONS]
        assert 0.0 == done["newer"].queue
        assert done["newer"].decode > 39.0  # 39 tokens after the first would take 39 s undisturbed
        assert 29.0 == done["older"].decode

    def test_the_preempted_request_is_first_in_the_queue_and_nobody_is_admitted_in_that_step(self):
        """Whoever waits behind a preemption is scheduled after the preempted request, not in its place."""
        sim = engine(num_blocks=18, max_num_seqs=2, max_num_batched_tokens=40)
        for request in (ask("older", 30, 31), ask("newer", 2, 40), ask("third", 1, 1)):
            sim.submit(request, 0.0)
        while not sim.tally.counters[vllm.PREEMPTIONS]:
            sim.advance(sim.next_event())
        assert ["newer", "third"] == [sequence.request.request_id for sequence in sim._waiting]
        assert (1, 1) == (sim.running, len(sim._step.parts))

    def test_recomputed_tokens_are_in_no_counter(self):
        """After a preemption the prompt tokens are still those of the clients, and first tokens are counted once."""
        sim = engine(num_blocks=18, max_num_seqs=2)
        run(sim, ask("older", 30, 30), ask("newer", 2, 40))
        assert 32 == sim.tally.counters[vllm.PROMPT_TOKENS]
        assert 2 == sim.tally.histograms[vllm.TTFT].count

    def test_a_prompt_is_admitted_only_if_all_of_it_fits(self):
        """A prompt whose first chunk would fit waits, with slots free, until its whole sequence fits."""
        sim = engine(num_blocks=18, max_num_batched_tokens=16)
        sim.submit(ask("holder", 15, 20), 0.0)
        sim.submit(ask("large", 60, 1), 0.1)
        sim.advance(5.5)
        assert (1, 1) == (sim.running, sim.waiting)
        assert 19.0 == by_name(sim.advance(100))["large"].queue


class TestPrefixCache:
    def test_a_second_prompt_of_a_session_finds_its_full_shared_blocks(self):
        """18 shared tokens are four full blocks of 4: 16 tokens are found, by that session only."""
        sim = engine()
        done = run(sim, ask("first", 20, 1, "s", 18))
        done |= run(sim, ask("again", 23, 1, "s", 18), ask("stranger", 23, 1, "t", 18), at=10_000.0, until=20_000.0)
        assert (0, 16, 0) == tuple(done[name].cached_tokens for name in ("first", "again", "stranger"))
        assert 66 == sim.tally.counters[vllm.PREFIX_QUERIES]
        assert 16 == sim.tally.counters[vllm.PREFIX_HITS]

    def test_the_last_token_is_always_computed(self):
        """A prompt that is wholly cached is computed from its last block on, to have a token to continue from."""
        sim = engine()
        run(sim, ask("first", 16, 1, "s", 16))
        assert 12 == run(sim, ask("same", 16, 1, "s", 16), at=10_000.0, until=20_000.0)["same"].cached_tokens

    def test_a_hit_shortens_the_prefill(self):
        """24 tokens at 8 a step take three steps, and one step when 20 of them are cached."""
        sim = engine(max_num_batched_tokens=8)
        cold = run(sim, ask("cold", 24, 1, "s", 20))["cold"]
        warm = run(sim, ask("warm", 24, 1, "s", 20), at=10_000.0, until=20_000.0)["warm"]
        assert (3.0, 1.0) == (cold.prefill, warm.prefill)

    def test_with_caching_off_queries_stay_zero(self):
        """A server without a prefix cache counts neither queries nor hits."""
        sim = engine(prefix_caching=False)
        run(sim, ask("first", 16, 1, "s", 16))
        run(sim, ask("again", 16, 1, "s", 16), at=10_000.0, until=20_000.0)
        assert (0, 0) == (sim.tally.counters[vllm.PREFIX_QUERIES], sim.tally.counters[vllm.PREFIX_HITS])


class TestAborts:
    def abort_at(self, moment):
        sim = engine(max_num_seqs=1)
        for request in (ask("stays", 4, 6), ask("leaves", 4, 30), ask("later", 4, 2)):
            sim.submit(request, 0.0)
        done = sim.advance(moment)
        assert sim.abort("leaves")
        return sim, by_name(done + sim.advance(10_000))

    def test_an_abort_in_the_queue_leaves_no_trace(self):
        """A request aborted while it waits is in no histogram, no finish counter and no token counter."""
        sim, done = self.abort_at(2.5)
        assert {"stays", "later"} == set(done)
        assert 2 == sim.tally.histograms[vllm.TTFT].count == sim.tally.histograms[vllm.QUEUE].count
        assert {"length": 2} == dict(sim.tally.finished_by_reason)
        assert 8 == sim.tally.counters[vllm.PROMPT_TOKENS]

    def test_an_abort_after_the_first_token_shows_only_in_ttft_and_token_counters(self):
        """TTFT exceeds end-to-end by the aborted request, and its prompt is counted in tokens but not in lengths."""
        sim, done = self.abort_at(9.5)
        assert {"stays", "later"} == set(done)
        assert 3 == sim.tally.histograms[vllm.TTFT].count
        assert 2 == sim.tally.histograms[vllm.E2E].count
        assert 12 == sim.tally.counters[vllm.PROMPT_TOKENS]
        assert 6 + 3 + 2 == sim.tally.counters[vllm.OUTPUT_TOKENS]  # the step in which it left gave it none
        assert 8 == sim.tally.histograms[vllm.PROMPT_LENGTH].sum
        assert sim.pool.usable == sim.pool.free

    def test_an_abort_frees_the_slot_at_the_end_of_the_step(self):
        """The next request is scheduled at the end of the step in which the abort came."""
        assert 10.0 == self.abort_at(9.5)[1]["later"].scheduled

    def test_an_abort_before_the_engine_saw_the_request_counts_nothing(self):
        """A request that was still at the API server disappears."""
        sim = engine()
        sim.submit(ask("gone", 4, 3), 5.0)
        assert sim.abort("gone")
        assert [] == sim.advance(100)
        assert 0 == sim.unfinished

    def test_an_abort_of_what_is_not_there_says_so(self):
        """An unknown or finished request cannot be aborted."""
        sim = engine()
        run(sim, ask("done", 4, 1))
        assert not sim.abort("done")


class TestRefusals:
    def test_a_request_longer_than_the_window_is_refused(self):
        """Prompt and answer together must fit max_model_len."""
        with pytest.raises(ValueError, match="maximum context length is 64 tokens"):
            engine().submit(ask("long", 60, 5), 0.0)

    def test_a_request_in_the_past_is_refused(self):
        """Time does not run backwards."""
        sim = engine()
        sim.advance(7)
        with pytest.raises(ValueError, match="the engine is at 7"):
            sim.submit(ask("early", 4, 1), 6.0)

    def test_a_request_id_is_taken_once(self):
        """Two requests of one name at a time are refused."""
        sim = engine()
        sim.submit(ask("twin", 4, 1), 0.0)
        with pytest.raises(ValueError, match="twin is already here"):
            sim.submit(ask("twin", 5, 1), 0.0)

    def test_a_cache_smaller_than_the_window_does_not_start(self):
        """vLLM refuses a max_model_len that no request could fill; the null block does not count."""
        with pytest.raises(ValueError, match="15 blocks of 4 tokens"):
            EngineSettings(max_model_len=64, block_size=4, num_blocks=16)
        assert 1.0625 == EngineSettings(max_model_len=64, block_size=4, num_blocks=17).max_concurrency


class TestSettings:
    def test_a_step_costs_what_the_model_says(self):
        """Base, 5 prompt tokens, 6 decoding sequences and 7 tokens of context, each at its own price."""
        assert 1 + 5 * 20 + 6 * 300 + 7 * 4000 == CostModel(1, 20, 300, 4000).step(5, 6, 7)

    def test_decoding_sequences_pay_for_their_context(self):
        """A lone request of 10 prompt tokens: the prompt's step, then steps over 10 and 11 tokens of context."""
        cost = CostModel(1.0, 0.5, 0.25, 0.125, frontend=0, frontend_per_token=0, output=0)
        done = run(Engine(attrs.evolve(SMALL, cost=cost)), ask("a", 10, 3))["a"]
        assert (6.0, 2 * 1.25 + 21 * 0.125) == (done.prefill, done.decode)

    def test_the_case_reports_its_capacity(self):
        """The true-size server reports 1,490,818 tokens, and 11.37 requests of its window."""
        assert 1_490_818 == CASE.kv_cache_size_tokens
        assert 11.37 == round(CASE.max_concurrency, 2)

    def test_a_window_that_is_no_multiple_of_the_block_lowers_the_reported_size(self):
        """48 blocks of 128 with a window of 4000 report 6,000 tokens, not 6,144."""
        odd = EngineSettings(max_model_len=4000, block_size=128, num_blocks=48)
        assert (6000, 1.5) == (odd.kv_cache_size_tokens, odd.max_concurrency)
