"""One backend between polls: its gauges, its facts and the process they belong to."""

import gc
import tracemalloc
from math import inf

import attrs
import pytest

from tests.builders import config, histogram, key, lifetime, merged, page, requests
from tidegauge import vllm
from tidegauge.model import EngineFacts, Page, Pinned, Remembered, StartupFacts
from tidegauge.state.backend import Backend, BackendState

OLD = StartupFacts(
    run=1,
    version="0.9.2",
    engines=(EngineFacts("EngineCore_0", 524_288, "printed"),),
    max_model_len=8192,
    max_num_seqs=8,
    max_num_batched_tokens=2048,
)
NEW = attrs.evolve(OLD, run=2, engines=(EngineFacts("EngineCore_0", 32_768, "printed"),), max_num_seqs=16)


def state(**more):
    return BackendState(Backend("a:8000", **more), 900.0, 3600.0, 0.0)


def up(*, start=1000.0, running=3.0, waiting=2.0, kv=0.25, **more):
    values = {vllm.RUNNING: running, vllm.WAITING: waiting, vllm.KV_USAGE: kv}
    return page(requests((0.1, 0.2, 0.3, 0.0)), start=start, values=values, **more)


class TestPolls:
    def test_nothing_is_known_before_the_first_poll(self):
        """Up is unknown, not down; gauges and facts are absent."""
        history = state().history(2000.0)

        assert None is history.up
        assert (None, None, None) == attrs.astuple(history.gauges)
        assert (None, None, (), 0) == (history.identity, history.startup, history.models, history.engines)

    def test_failed_poll_makes_it_down_and_counts_its_reason(self):
        """The gauges of the last page say nothing of now; the window's figures and the facts stay."""
        one = state()
        one.page(up(configs=[config(kv_cache_size_tokens=777)]), 2000.0, 0.02)
        one.failed("timeout", 5.0)
        one.failed("timeout", 5.0)
        one.failed("refused", 0.001)
        history = one.history(2003.0)

        assert False is history.up
        assert 0.001 == history.scrape_seconds
        assert {"timeout": 2, "refused": 1} == history.counts.failures
        assert None is history.gauges.running
        assert None is history.identity
        assert "777" == history.cache_configs[0].labels["kv_cache_size_tokens"]

    def test_gauges_are_summed_over_engines_and_kv_usage_is_the_fullest(self):
        """Percentages are never added up."""
        one = state()
        values = [{vllm.RUNNING: 3.0, vllm.WAITING: 2.0, vllm.KV_USAGE: 0.7}, {vllm.RUNNING: 4.0, vllm.KV_USAGE: 0.2}]
        one.page(
            merged(*(page({}, engine=str(number), values=each) for number, each in enumerate(values))), 2000.0, 0.1
        )
        history = one.history(2000.0)

        assert (7.0, 2.0, 0.7) == attrs.astuple(history.gauges)
        assert 2 == history.engines

    def test_problems_of_used_pages_are_counted(self):
        """By reason, over all pages."""
        one = state()
        one.page(up(problems={"line": 2}), 2000.0, 0.1)
        one.page(up(problems={"line": 1, "duplicate": 5}), 2001.0, 0.1)

        assert {"line": 3, "duplicate": 5} == one.history(2001.0).counts.problems

    def test_fleet_is_the_configured_one_else_the_model(self):
        """The first model on the page names the fleet of a backend that is in none."""
        named, unnamed = state(fleet="blue"), state()
        for one in (named, unnamed):
            one.page(up(model="llama"), 2000.0, 0.1)

        assert "blue" == named.history(2000.0).fleet
        assert "llama" == unnamed.history(2000.0).fleet
        assert "" == state().history(2000.0).fleet

    def test_page_without_model_names_has_one_model_without_a_name(self):
        """Releases before 0.3.3 label nothing."""
        one = state()
        one.page(up(model=""), 2000.0, 0.1)

        assert ("",) == one.history(2000.0).models

    def test_first_page_and_a_new_process_are_fresh(self):
        """Then the server's own endpoints are worth asking."""
        one = state()
        pages = [up(start=start) for start in (1000.0, 1000.0, 2100.0, 2100.0)]
        steps = [one.page(each, 2000.0 + number * 60, 0.1) for number, each in enumerate(pages)]

        assert [True, False, True, False] == [step.fresh for step in steps]
        # What is compared with the page before must be of the same process.
        assert [None, pages[0], None, pages[2]] == [step.before for step in steps]
        assert 1 == one.history(2200.0).counts.restarts
        assert 2120.0 == one.history(2200.0).restarted_at

    def test_log_counts_and_state_are_kept(self):
        """Lines by what became of them; readable or not; None without a log."""
        one = state()
        assert None is one.history(0.0).counts.log_up
        one.log({"parsed": 3, "dropped": 1}, up=True)
        one.log({"parsed": 2}, up=False)

        assert {"parsed": 5, "dropped": 1} == one.history(0.0).counts.log_lines
        assert False is one.history(0.0).counts.log_up


class TestFactsAndTheirProcess:
    def test_log_before_the_first_page_is_used(self):
        """The usual start: the log is read before the first poll."""
        one = state()
        one.startup(OLD)

        assert OLD == one.history(0.0).startup
        one.page(up(), 2000.0, 0.1)
        assert OLD == one.history(2000.0).startup

    def test_restarted_server_does_not_inherit_the_facts_of_its_predecessor(self):
        """The log has not moved on (it is written elsewhere now): unknown, not old."""
        one = state()
        one.startup(OLD)
        one.page(up(), 2000.0, 0.1)
        one.page(up(start=2010.0), 2060.0, 0.1)

        assert None is one.history(2060.0).startup
        assert None is one.history(2060.0).version

    def test_log_that_moves_on_after_the_page_is_used(self):
        """The page of the new process comes first, its log lines are read a moment later."""
        one = state()
        one.startup(OLD)
        one.page(up(), 2000.0, 0.1)
        one.page(up(start=2010.0), 2060.0, 0.1)
        one.startup(NEW)

        assert NEW == one.history(2061.0).startup

    def test_log_that_moved_on_before_the_page_is_used(self):
        """The usual restart: it logs its facts half a minute before it answers."""
        one = state()
        one.startup(OLD)
        one.page(up(), 2000.0, 0.1)
        one.failed("refused", 0.001)
        one.startup(NEW)
        one.page(up(start=2010.0), 2060.0, 0.1)

        assert NEW == one.history(2061.0).startup

    def test_second_restart_makes_the_second_runs_facts_stale(self):
        """Each run's facts hold for one process."""
        one = state()
        for number, facts in enumerate((OLD, NEW)):
            one.startup(facts)
            one.page(up(start=1000.0 + number * 1000), 2000.0 + number * 60, 0.1)
        one.page(up(start=2100.0), 2130.0, 0.1)

        assert None is one.history(2130.0).startup

    def test_facts_survive_a_server_that_is_down(self):
        """It may come back as the same process (a network fault)."""
        one = state()
        one.startup(OLD)
        one.page(up(), 2000.0, 0.1)
        one.failed("timeout", 5.0)

        assert OLD == one.history(2060.0).startup

    def test_served_facts_hold_until_the_process_changes(self):
        """What its endpoints said of a dead process says nothing of the living one."""
        one = state()
        one.page(up(), 2000.0, 0.1)
        one.served(Pinned(max_num_seqs=64), "0.11.0")
        assert (64, "0.11.0") == (one.history(2000.0).served.max_num_seqs, one.history(2000.0).version)
        one.page(up(start=2010.0), 2060.0, 0.1)

        assert (None, None) == (one.history(2060.0).served.max_num_seqs, one.history(2060.0).version)

    def test_a_replica_that_began_anew_costs_no_facts(self):
        """The process is the same: its counts fell, its settings did not change."""
        one = state()
        one.startup(OLD)
        one.page(up(), 2000.0, 0.1)
        one.served(Pinned(max_model_len=4096), "0.11.0")
        one.page(page({}, values={vllm.RUNNING: 0.0, vllm.PROMPT_TOKENS: 9.0}), 2001.0, 0.1)
        one.page(page({}, values={vllm.RUNNING: 0.0, vllm.PROMPT_TOKENS: 3.0}), 2002.0, 0.1)
        history = one.history(2002.0)

        assert {"reset": 1} == history.counts.dropped
        assert 0 == history.counts.restarts
        assert (OLD, 4096) == (history.startup, history.served.max_model_len)

    def test_page_of_another_server_gives_no_facts(self):
        """Behind the same URL an older server answers once: its capacity, gauges and identity are not this one's."""
        one = state()
        one.page(up(start=1500.0, running=3.0, configs=[config(kv_cache_size_tokens=100)]), 2000.0, 0.1)
        one.page(up(start=400.0, running=55.0, configs=[config(kv_cache_size_tokens=999)]), 2001.0, 0.1)
        history = one.history(2001.0)

        assert history.up is True
        assert (3.0, "100") == (history.gauges.running, history.cache_configs[0].labels["kv_cache_size_tokens"])
        assert 1500.0 == history.identity.process_start
        assert {"other_server": 1} == history.counts.dropped

    def test_page_of_another_server_is_not_remembered_with_these_facts(self):
        """Else the other process would inherit them at the exporter's next start."""
        one = state()
        one.startup(OLD)
        one.page(up(start=1500.0), 2000.0, 0.1)
        one.page(up(start=400.0), 2001.0, 0.1)

        assert Remembered(1500.0, OLD) == one.remembered()


class TestRememberedFacts:
    def test_facts_are_remembered_with_their_process(self):
        """Nothing before both are known."""
        one = state()
        assert None is one.remembered()
        one.startup(OLD)
        assert None is one.remembered()
        one.page(up(), 2000.0, 0.1)

        assert Remembered(1000.0, OLD) == one.remembered()

    def test_remembered_facts_are_used_while_the_same_process_answers(self):
        """The log was rotated away meanwhile."""
        one = state()
        one.restore(Remembered(1000.0, OLD))
        assert None is one.history(0.0).startup
        one.page(up(), 2000.0, 0.1)

        assert OLD == one.history(2000.0).startup
        assert "0.9.2" == one.history(2000.0).version
        assert Remembered(1000.0, OLD) == one.remembered()

    @pytest.mark.parametrize("start", [1000.5, None])
    def test_remembered_facts_of_another_process_are_not_inherited(self, start):
        """The server was restarted with other settings while the exporter was down, or cannot be told."""
        one = state()
        one.restore(Remembered(1000.0, OLD))
        one.page(up(start=start), 2000.0, 0.1)

        assert None is one.history(2000.0).startup

    def test_remembered_facts_end_with_their_process(self):
        """A restart while the exporter runs."""
        one = state()
        one.restore(Remembered(1000.0, OLD))
        one.page(up(), 2000.0, 0.1)
        one.page(up(start=2010.0), 2060.0, 0.1)

        assert None is one.history(2060.0).startup
        assert None is one.remembered()

    def test_log_completes_from_memory_what_it_lost(self):
        """After rotation the log has only the last lines of the start; what it has wins."""
        one = state()
        one.restore(Remembered(1000.0, OLD))
        one.startup(StartupFacts(run=1, max_num_batched_tokens=4096))
        one.page(up(), 2000.0, 0.1)
        found = one.history(2000.0).startup

        assert (4096, 8, 8192, "0.9.2") == (
            found.max_num_batched_tokens,
            found.max_num_seqs,
            found.max_model_len,
            found.version,
        )
        assert OLD.engines == found.engines

    def test_complete_log_needs_no_memory(self):
        """The log's own KV size wins over the remembered one."""
        one = state()
        one.restore(Remembered(1000.0, OLD))
        one.startup(NEW)
        one.page(up(), 2000.0, 0.1)

        assert NEW == one.history(2000.0).startup


class TestIdentity:
    def test_identity_is_the_start_and_the_counters_of_the_last_page(self):
        """Gauges are left out: they differ between two polls of one server."""
        one = state()
        one.page(page({}, values={vllm.RUNNING: 3.0, vllm.PROMPT_TOKENS: 70.0}), 2000.0, 0.1)
        identity = one.history(2005.0).identity

        assert ("a:8000", 2000.0, 1000.0) == (identity.backend, identity.at, identity.process_start)
        assert {key(vllm.PROMPT_TOKENS): 70.0} == identity.counters


class TestMemory:
    def test_a_day_of_restarts_and_new_models_stays_bounded(self):
        """24 simulated hours, a restart every hour: nothing of a dead process is kept beyond the windows."""
        one = state()
        gc.collect()
        tracemalloc.start()
        sizes = []
        for minute in range(24 * 60):
            start = 1000.0 + minute // 60 * 3600
            rows = [(0.1, 0.2, 0.3, 0.1)] * (minute % 60)
            one.page(page(requests(*rows), start=start), 4600.0 + minute * 60, 0.1)
            if minute in (180, 24 * 60 - 1):
                one.history(4600.0 + minute * 60)
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()

        # Thirty more restarts that were kept would be ten times as much.
        assert sizes[1] <= sizes[0] * 4

    def test_lifetime_of_one_page_is_its_whole_count(self):
        """As the report uses it."""
        one = lifetime("a", page({"queue": histogram([0.1, 9.0])}))

        assert 2.0 == one.history(2000.0).totals.histogram(vllm.QUEUE, "m").count
        assert inf == one._window.span

    def test_blind_page_is_up_and_says_nothing(self):
        """Statistics are off: there are families and no series."""
        one = state()
        one.page(Page({}, {}, (), 1000.0, blind=True), 2000.0, 0.1)

        assert one.history(2000.0).up is True
        assert () == one.history(2000.0).models
