"""Another configuration for an exporter that runs: what it does not change goes on, what it changes begins anew."""

import json
import logging

import pytest

from tests.unit.answered import body
from tests.unit.running import BEGIN, A, B, C, Running, counted, with_history
from tidegauge.model import EngineFacts, StartupFacts
from tidegauge.parsing.events import BarrierClosed, BarrierOpened, Ceiling, Wait
from tidegauge.parsing.limiterlog import CeilingChange
from tidegauge.sources.scrape import Failed, Fetched

FACTS = StartupFacts(1, "0.12.0", (EngineFacts("EngineCore", 52_288, "printed"),), 4096, 12, 2048, started=True)


class TestBackends:
    def test_unchanged_one_goes_on_among_others_that_come_and_go(self):
        """Its counters and its window stand where they stood; the series of the one that left are gone."""
        running = with_history()
        before = counted(running)
        running.become(C, A)

        assert [1.0, 50.0, 50.0, 1.0] == before == counted(running)
        assert ["c", "a"] == list(running.exporter.watch.states)
        assert not [key for key in running.samples() if "b" in key]
        assert ["c"] == running.new()

        running.poll(a=(60, 60, 60, 61, 64, 64), c=(5, 5, 5, 8, 8, 8))
        assert [1.0, 54.0, 54.0, 1.0] == counted(running)
        assert [None, 3.0, 3.0, 1.0] == counted(running, "c")

    @pytest.mark.parametrize(
        "more",
        ["timeout: 9s", "poll_interval: 5s", "bearer_token_file: /run/token", "max_page_size: 1MiB"],
    )
    def test_another_way_to_ask_loses_nothing(self, more):
        """How the server is polled is no part of what is known of it, be it said for one or for all."""
        running = with_history()
        before = counted(running)
        if "token" in more:
            running.become(f"{A}, {more}", B)
        else:
            running.become(A, B, more=more)

        assert before == counted(running)

    @pytest.mark.parametrize(
        "changed",
        [
            A.replace("9001", "9011"),
            A.replace("agents", "others"),
            f"{A}, log: {{file: /var/log/a.log}}",
            f"{A}, max_num_seqs: 12",
            f"{A}, p90_prompt_tokens: 900",
        ],
    )
    def test_changed_one_begins_anew_beside_the_others(self, changed):
        """Another server, or another way to count: nothing of before is said to be its."""
        running = with_history()
        before = counted(running, "b")
        running.become(changed, B)

        assert [None, None, None, None] == counted(running)
        assert ["a"] == running.new()
        assert before == counted(running, "b")

    @pytest.mark.parametrize(
        "more", ["window: 5m", "length_window: 2h", "thresholds: {kv_full: 0.5}", "metric_prefix: 'mine:'"]
    )
    def test_another_measure_begins_all_anew(self, more):
        """A window of other length holds other requests: none is made of the old one's."""
        running = with_history()
        running.become(A, B, more=more)

        assert ["a", "b"] == running.new()
        assert (None, None) == (counted(running)[2], counted(running, "b")[2])

    def test_other_names_are_read_at_once(self):
        """Of pages that come after."""
        running = Running(A)
        mine = body(9, BEGIN + 1.5).replace("vllm:", "mine:")
        for more in ("", "metric_prefix: 'mine:'"):
            running.become(A, more=more)
            running.clock.time += 1
            running.exporter.book("a", Fetched(running.clock.time, 0.1, mine))

        assert (1.0, 9.0) == (running.samples()["backend_up", "a"], running.samples()["window_requests", "a", "m"])

    def test_thresholds_of_derivation_hold_at_once(self):
        """They judge the same window."""
        running = with_history()
        running.become(A, B, more="thresholds: {min_requests: 51}")
        assert not [key for key in running.samples() if key[0] == "queue_late_ratio"]
        running.become(A, B, more="thresholds: {min_requests: 50}")

        assert [key for key in running.samples() if key[:2] == ("queue_late_ratio", "a")]

    def test_process_that_still_answers_keeps_its_startup_facts(self):
        """As over a restart of the exporter: the log that told them may have been rotated since."""
        running = with_history()
        running.exporter.watch.states["a"].startup(FACTS)
        running.become(f"{A}, p90_prompt_tokens: 900", B)
        running.poll(a=(60,))

        assert 52_288.0 == running.samples()["kv_cache_capacity_tokens", "a", "log"]

    def test_what_is_wrong_is_told_again_of_one_that_returns(self, caplog):
        """It was gone in between; of one that stayed it is not."""
        running = Running(A, B)
        down = {name: Failed(BEGIN, 0.1, "refused", f"{name}: nobody there") for name in ("a", "b")}
        for backends in ((A, B), (A,), (A, B)):
            running.become(*backends)
            for name in running.exporter.watch.states:
                running.exporter.book(name, down[name])
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]

        assert ["a: a: nobody there", "b: b: nobody there", "b: b: nobody there"] == told


class TestReadiness:
    def test_ready_exporter_stays_ready(self):
        """A backend that is new or begins anew takes nobody's scrapes and events away from those that go on."""
        running = with_history()
        running.become(A, B.replace("9002", "9012"), C)

        assert ["b", "c"] == running.new()
        assert [] == running.exporter.waiting_for()

    def test_start_is_over_when_all_that_there_are_then_were_polled(self):
        """A change before that may add to them, and take some away."""
        running = Running(A, B)
        running.poll(a=(10,))
        running.become(A, C)
        assert ["c"] == running.exporter.waiting_for()
        running.poll(c=(10,))
        running.become(B)

        assert [] == running.exporter.waiting_for()


class TestFleets:
    def test_inferred_counts_stand_while_members_poll_slower_or_leave(self):
        """Other times between polls begin another search for barriers, and no counter anew."""
        running = Running("url: http://127.0.0.1:9001, name: a")
        running.poll(a=(10, 30, 60))
        inference = running.exporter.watch._inferences["m"]
        slower = "url: http://127.0.0.1:9003, name: c, poll_interval: 7s"
        running.become("url: http://127.0.0.1:9001, name: a", slower)
        assert 1.0 == inference.interval  # what it serves is not known yet
        running.poll(c=(1,))
        assert 7.0 == inference.interval
        running.become("url: http://127.0.0.1:9001, name: a")
        assert (1.0, 50.0) == (inference.interval, running.samples()["arrivals_total", "a"])
        running.poll(a=(61, 70))

        assert 59.0 == running.samples()["arrivals_total", "a"]

    def test_another_window_begins_the_search_anew_with_the_largest_fan_out_known(self):
        """Its barriers would be those of another span."""
        running = with_history()
        running.exporter.watch._inferences["agents"].largest = 31
        running.become(A, B, more="window: 5m")
        running.poll(a=(60, 60), b=(40, 40))

        assert {"agents": 31} == running.exporter.watch.largest_inferred()
        assert 0.0 == running.samples()["arrivals_total", "a"]

    @pytest.mark.parametrize("between", [(A,), (A, B.replace("agents", "others"))])
    def test_backend_that_returns_counts_from_nothing(self, between):
        """What it had counted left with it: also where it was in another fleet meanwhile."""
        running = with_history()
        running.become(*between)
        running.become(A, B)
        running.poll(a=(60,) * 6, b=(60, 60, 60, 62, 62, 62))

        assert 2.0 == running.samples()["arrivals_total", "b"]


class TestCallers:
    def told(self):
        running = Running(A)
        at = running.clock.time
        running.tell(BarrierOpened(at, "1", 29), Ceiling(at, 16), Wait(at, (0.0, 4.0)))
        return running

    def test_open_barriers_ceilings_and_waits_survive(self):
        """A barrier that opened before is closed after, and counted once."""
        running = self.told()
        running.become(A, B, more="callers: {roster: {agents: 32}}")
        running.clock.time += 20
        assert None is running.tell(BarrierClosed(running.clock.time, "1"))
        found = running.samples()

        assert 1.0 == found["barriers_total", "agents", "reported"]
        assert 20.0 == found["barrier_duration_seconds", "agents", "max", "reported"]
        assert 16.0 == found["ceiling", "agents", "client", "reported"]
        assert 2.0 == found["caller_wait_seconds_count", "agents"]
        assert 32.0 == found["natural_bound", "agents", "config"]

    @pytest.mark.parametrize("more", ["thresholds: {caller_edge_seconds: 0.2}", "window: 5m"])
    def test_another_measure_begins_anew_with_the_largest_fan_out_known(self, more):
        """As over a restart of the exporter."""
        running = self.told()
        running.become(A, more=more)

        assert ("barriers_total", "agents", "reported") not in running.samples()
        assert {"agents": 29} == running.exporter.watch.largest()

    def test_other_bounds_hold_at_once(self):
        """Fewer fleets, fewer callers and fewer events a second than before, and more again."""
        running = self.told()
        at = running.clock.time
        running.become(A, more="callers: {max_fleets: 1, max_callers: 1, max_rate: 1}")
        many = [Ceiling(at + number / 10_000, 3) for number in range(5000)]
        refused = [
            running.tell(fleet="others").reason,
            running.tell(Ceiling(at, 3), caller="second").reason,
            running.tell(*many).reason,
        ]
        running.become(A)

        assert ["fleets", "callers", "rate"] == refused
        assert None is running.tell(fleet="others")
        assert None is running.tell(Ceiling(at, 3), caller="second")

    def test_too_many_callers_for_the_new_bound_leave(self):
        """Those not heard of for longest, as soon as one speaks."""
        running = Running(A)
        for number, value in enumerate((3, 4, 5, 6, 7)):
            running.tell(Ceiling(BEGIN + number, value), caller=str(number))
        running.become(A, more="callers: {max_callers: 1}")
        running.tell(Ceiling(BEGIN + 5, 8), caller="4")

        assert 8.0 == running.samples()["ceiling", "agents", "client", "reported"]


class TestLimiterLogs:
    LOGS = (
        "{fleet: agents, file: /x/one, pattern: 'to (?P<to>.*)'}",
        "{fleet: agents, file: /x/two, pattern: 'to (?P<to>.*)'}",
    )

    def becoming(self, *logs):
        running = Running(A, more=f"callers: {{limiter_logs: [{', '.join(self.LOGS)}]}}")
        state = running.exporter._callers.limiter("agents")
        for file, ceiling in (("/x/one", 8), ("/x/two", 24)):
            state.read(file, {"parsed": 1}, up=file == "/x/two")
            state.change(file, CeilingChange(ceiling), live=False)
        running.become(A, more=f"callers: {{limiter_logs: [{', '.join(logs)}]}}")
        return running.samples()

    def test_one_that_is_followed_no_more_holds_nothing(self):
        """The other one's ceiling is in force, and it alone decides whether all is well."""
        found = self.becoming(self.LOGS[1])

        assert (24.0, 1.0) == (found["ceiling", "agents", "client", "log"], found["limiter_log_up", "agents"])
        assert 2.0 == found["limiter_log_lines_total", "agents", "parsed"]

    def test_without_any_the_series_are_gone(self):
        """No log, no news of it."""
        assert not [key for key in self.becoming() if "log" in key or key[0].startswith("limiter")]

    def test_unchanged_ones_stand(self):
        """Both."""
        found = self.becoming(*self.LOGS)

        assert (8.0, 0.0) == (found["ceiling", "agents", "client", "log"], found["limiter_log_up", "agents"])


class TestStateFile:
    def test_another_file_gets_all_and_gives_what_only_it_knows(self, tmp_path):
        """What is known now is newer."""
        running = Running(A, more=f"state_file: {tmp_path}/other.json")
        running.tell(BarrierOpened(BEGIN, "1", 40), BarrierOpened(BEGIN, "2", 9))
        running.tell(BarrierOpened(BEGIN, "1", 7), fleet="old")
        running.tell(BarrierOpened(BEGIN, "1", 8), fleet="both")
        running.exporter.save()
        running = Running(A, more=f"state_file: {tmp_path}/state.json")
        running.tell(BarrierOpened(BEGIN, "1", 5), fleet="both")
        running.exporter.save()

        running = Running(A, more=f"state_file: {tmp_path}/state.json")
        running.tell(BarrierOpened(BEGIN, "1", 12))
        running.become(A, more=f"state_file: {tmp_path}/other.json")
        running.exporter.save()
        kept = json.loads((tmp_path / "other.json").read_text(encoding="utf-8"))

        assert {"agents": 12, "old": 7, "both": 5} == kept["largest_fan_out"]

    def test_foreign_file_is_set_aside(self, tmp_path, caplog):
        """As at the start."""
        (tmp_path / "other.json").write_text("a diary", encoding="utf-8")
        running = Running(A)
        running.become(A, more=f"state_file: {tmp_path}/other.json")

        assert "a diary" == (tmp_path / "other.json.unreadable").read_text(encoding="utf-8")
        assert "state_file: " in caplog.text


class TestWhatIsSaid:
    def test_address_stays_and_is_said_to_at_each_time(self, caplog):
        """Until it is asked for again."""
        running = Running(A)
        for more in ("listen: 127.0.0.1:1", "listen: 127.0.0.1:1", ""):
            running.become(A, more=more)
        told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]

        assert ["listen: stays 127.0.0.1:10010 until a restart, found 127.0.0.1:1"] * 2 == told

    def test_summary_counts_the_backends(self, caplog):
        """One goes on, one changed, one is new, one is gone."""
        caplog.set_level(logging.INFO)
        running = Running(A, B, C)
        running.become(A, B.replace("9002", "9012"), A.replace("name: a", "name: d"))

        assert "configuration reloaded; backends: 1 go on, 1 changed, 1 new, 1 gone" in caplog.text

    def test_last_reading_is_on_the_page(self):
        """The start is the first; one that could not be used leaves the time of the one in force."""
        running = Running(A)
        names = ("config_last_reload_successful", "config_last_reload_success_timestamp_seconds")
        found = []
        for step in (lambda: None, running.exporter.refuse, lambda: running.become(A, B), running.exporter.refuse):
            running.clock.time += 10
            step()
            found.append(tuple(running.samples()[name,] for name in names))

        assert [(1.0, BEGIN), (0.0, BEGIN), (1.0, BEGIN + 30), (0.0, BEGIN + 30)] == found
