"""A limiter's log: what a pattern finds in it, whatever the pattern, the lines and the file do."""

import asyncio
import logging
from functools import partial

import attrs
import pytest

from tests.unit.little_servers import ManualClock, until
from tidegauge import app, config, following
from tidegauge.catalogue import exported as ex
from tidegauge.collectors import FiguresCollector
from tidegauge.parsing.events import Batch, Healthy
from tidegauge.parsing.limiterlog import CeilingChange, fault, read_change
from tidegauge.sources import logfile
from tidegauge.sources.limiterlog import ChangeReader
from tidegauge.sources.logfile import LogFollower
from tidegauge.sources.matcher import Matcher
from tidegauge.sources.scrape import Failed
from tidegauge.state.limiter import MOST_REASONS, LimiterState

PATTERN = r"limiter (?P<from>\d+) -> (?P<to>[\w,.]+), (?P<reason>.*)"
CATASTROPHE = r"(?P<to>(?:x+)+)$"
HARD = "x" * 60 + "!"


class Log:
    """A limiter's log and whoever follows it."""

    def __init__(self, path, pattern=PATTERN, tail=None):
        self.path = path
        self.reader = ChangeReader(pattern, seconds=0.05)
        self.follower = LogFollower(path, self.reader, tail)

    def append(self, *lines):
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def poll(self):
        progress = self.follower.poll()
        return progress.lines, [change.to for change in self.reader.take()]

    def close(self):
        self.reader.close()
        self.follower.close()


@pytest.fixture(name="make")
def _make(tmp_path):
    logs = []

    def make(**options):
        logs.append(Log(tmp_path / "limiter.log", **options))
        return logs[-1]

    yield make
    for log in logs:
        log.close()


def counted(parsed=0, ignored=0, dropped=0):
    return {"parsed": parsed, "ignored": ignored, "dropped": dropped}


class TestChange:
    @pytest.mark.parametrize(
        ("groups", "change"),
        [
            ({"from": "32", "to": "28", "reason": "clamp: fleet ceiling"}, (28, 32, "clamp: fleet ceiling")),
            ({"ceiling": "1,024"}, (1024, None, "")),
            ({"to": " 16 ", "from": None, "reason": None}, (16, None, "")),
            ({"to": "0", "from": "many"}, (0, None, "")),
            ({"to": "100000"}, (100_000, None, "")),
        ],
    )
    def test_groups_become_a_change(self, groups, change):
        """The new ceiling, the one before where it is a number, the reason where there is one."""
        assert CeilingChange(*change) == read_change(groups)

    @pytest.mark.parametrize("text", [None, "", "-4", "1e9", "100001", "28.5", "٢٨", "9" * 5000])
    def test_what_is_no_ceiling_is_none(self, text):
        """Negative, too large, broken and foreign numbers."""
        assert None is read_change({"to": text})

    def test_reason_is_cleaned_and_short(self):
        """One line that prints, of 64 characters at most."""
        found = read_change({"to": "1", "reason": "  clamp:\t\x1b\x00fleet  ceiling " + "y" * 5000})

        assert "clamp: fleet ceiling " + "y" * 43 == found.reason
        assert 64 == len(found.reason)

    @pytest.mark.parametrize("pattern", [PATTERN, CATASTROPHE, r"(?P<ceiling>\d+)"])
    def test_good_pattern_has_no_fault(self, pattern):
        """One group for the ceiling is all it takes."""
        assert None is fault(pattern)


class TestReading:
    def test_lines_by_what_became_of_them(self, make):
        """Matched, not matched, matched without a number, too long, binary; blank lines count nowhere."""
        log = make()
        log.append("12:00 limiter 32 -> 28, clamp: fleet ceiling", "12:01 started", "limiter 28 -> ten, typo", "")
        log.append("limiter 28 -> 16, " + "z" * 1000, "limiter 28 -> 16, \0binary")

        assert (counted(1, 1, 3), [28]) == log.poll()

    def test_colours_are_no_obstacle(self, make):
        """A log that was meant for a terminal."""
        log = make()
        log.append("\x1b[32mlimiter\x1b[0m 32 -> \x1b[1m28\x1b[0m, clamp")

        assert (counted(1), [28]) == log.poll()

    def test_order_survives_many_lines(self, make):
        """More lines than the matcher takes at once."""
        log = make()
        log.append(*(f"limiter 1 -> {number}, step" for number in range(450)))

        assert (counted(450), list(range(450))) == log.poll()

    def test_half_a_line_waits_for_its_end(self, make):
        """`-> 2` is not read while the 8 is still to come."""
        log = make(pattern=r"-> (?P<to>\d+)")
        log.path.write_text("32 -> 2", encoding="utf-8")
        first = log.poll()
        log.append("8")

        assert (counted(), []) == first
        assert (counted(1), [28]) == log.poll()

    def test_rotation_and_truncation(self, make):
        """Each line once: the rest of the old file, the new file, the same file from its start."""
        log = make()
        log.append("limiter 40 -> 32, start")
        found = [log.poll()]
        log.append("limiter 32 -> 28, clamp")
        log.path.rename(log.path.with_suffix(".1"))
        log.append("limiter 28 -> 24, clamp")
        found.append(log.poll())
        log.path.write_text("limiter 24 -> 48, raised\n", encoding="utf-8")
        found.append(log.poll())

        assert [[32], [28, 24], [48]] == [changes for _, changes in found]

    def test_long_history_is_read_from_near_its_end(self, make):
        """What stands before the tail is passed over, with the line that the tail begins in."""
        log = make(tail=60)
        log.append("limiter 50 -> 40, old", "limiter 40 -> 32, " + "w" * 50, "limiter 32 -> 28, clamp")
        found = log.poll()
        log.append("limiter 28 -> 16, clamp")

        assert (counted(1), [28]) == found
        assert [16] == log.poll()[1]

    def test_log_that_appears_later_is_read_from_its_start(self, make):
        """The tail is for history only."""
        log = make(tail=5)
        log.poll()
        log.append("limiter 50 -> 40, first", "limiter 40 -> 32, second")

        assert [40, 32] == log.poll()[1]

    def test_pattern_that_never_matches_shows(self, make):
        """Everything is ignored, nothing is parsed."""
        log = make(pattern=r"throttle (?P<to>\d+)")
        log.append(*["limiter 32 -> 28, clamp"] * 5)

        assert (counted(ignored=5), []) == log.poll()


class TestCatastrophe:
    def test_hard_line_is_dropped_and_the_next_one_read(self, make):
        """The process that matches dies of it; another takes over after that line."""
        log = make(pattern=CATASTROPHE)
        log.append("plain", HARD, "12 x", HARD, "plain")

        assert (counted(0, 2, 3), []) == log.poll()
        assert "" == log.reader.fault

    def test_pattern_is_given_up_after_three_in_a_row(self, make):
        """Whoever writes such lines gets no processor time for ever; the reason is kept."""
        log = make(pattern=CATASTROPHE)
        log.append(*[HARD] * 5, "plain")
        first = log.poll()
        log.append("plain")

        assert (counted(dropped=6), []) == first
        assert "the pattern takes too long" in log.reader.fault
        assert (counted(dropped=1), []) == log.poll()

    def test_closing_ends_a_search_in_another_thread(self):
        """The exporter ends although a line is being matched, and starts no further process."""
        matcher = Matcher(CATASTROPHE, seconds=1000.0)

        async def run():
            search = asyncio.create_task(asyncio.to_thread(lambda: list(matcher.search([HARD, HARD]))))
            await until(lambda: matcher._worker is not None)
            matcher.kill()
            return await search

        assert [None, None] == asyncio.run(run())
        matcher.close()


class TestState:
    def test_smallest_of_several_logs_is_the_fleets(self):
        """Each log keeps its own ceiling."""
        state = LimiterState()
        for file, to in (("a", 32), ("b", 28), ("b", 40)):
            state.change(file, CeilingChange(to), live=True)

        assert 32 == state.ceiling
        assert {"": 3} == state.snapshot().changes

    def test_history_and_restatements_are_no_changes(self):
        """The ceiling in force is known from them all the same."""
        state = LimiterState()
        state.change("a", CeilingChange(32, 40, "old"), live=False)
        state.change("a", CeilingChange(32, None, "heartbeat"), live=True)
        state.change("a", CeilingChange(32, 32, "same"), live=True)
        state.change("a", CeilingChange(28, 32, "clamp"), live=True)

        assert (28, {"clamp": 1}) == (state.ceiling, state.snapshot().changes)

    def test_reasons_are_bounded(self):
        """A log that gives a reason of its own each time."""
        state = LimiterState()
        for number in range(100):
            state.change("a", CeilingChange(number + 1, None, f"run {number}"), live=True)
        state.change("a", CeilingChange(7, None, "run 3"), live=True)
        found = state.snapshot().changes

        assert MOST_REASONS + 1 == len(found)
        assert (2, 80) == (found["run 3"], found["other"])

    def test_up_needs_every_log(self):
        """One that cannot be read is enough."""
        state = LimiterState()
        assert None is state.snapshot().up
        state.read("a", counted(1), up=True)
        state.read("b", counted(0, 2), up=False)

        assert (False, counted(1, 2)) == (state.snapshot().up, state.snapshot().lines)


class TestLive:
    def watched(self, path, clock, pattern=PATTERN, more=""):
        text = f"""
callers:
  {more}limiter_logs: [{{fleet: agents, file: {path}, pattern: '{pattern}'}}]
backends: [{{url: "http://127.0.0.1:9", fleet: agents}}]
"""
        return app.Exporter(config.load(text, "t.yml", {}), clock)

    def fleet(self, exporter):
        (found,) = exporter.figures().fleets
        return found

    async def follow(self, exporter, steps, log=None):
        """Run the log's follower; between its polls each step in turn."""
        log = log or exporter._config.callers.limiter_logs[0]
        state = exporter._callers.limiter(log.fleet)
        task = asyncio.create_task(exporter._following.limiter_log(log, state))
        clock = exporter._clock
        for step in steps:
            await until(lambda: clock.sleepers or task.done())
            step()
            clock.advance(1.0)
        await until(lambda: clock.sleepers or task.done())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def test_ceiling_of_the_log_is_the_fleets(self, tmp_path):
        """History gives the ceiling, later lines count with their reasons; then the log goes away."""
        path = tmp_path / "limiter.log"
        path.write_text("limiter 40 -> 32, warm-up\n", encoding="utf-8")
        exporter = self.watched(path, ManualClock(2000.0))
        found = []

        def look():
            fleet = self.fleet(exporter)
            found.append((fleet.ceilings[0].value, fleet.ceilings[0].source, fleet.callers.limiter.changes))

        def change():
            look()
            with path.open("a", encoding="utf-8") as file:
                file.write("limiter 32 -> 28, clamp: fleet ceiling\n")

        asyncio.run(self.follow(exporter, [change, path.unlink]))
        look()

        assert [(32, "log", {}), (28, "log", {"clamp: fleet ceiling": 1})] == found
        assert not self.fleet(exporter).callers.limiter.up

    def test_history_that_takes_several_polls_is_history(self, tmp_path, monkeypatch):
        """Only what is written after the end was reached is a change."""
        monkeypatch.setattr(logfile, "BLOCK", 64)
        monkeypatch.setattr(logfile, "_MOST_LINES", 1)
        path = tmp_path / "limiter.log"
        path.write_text("".join(f"limiter {n + 1} -> {n}, step\n" for n in range(50, 20, -1)), encoding="utf-8")
        exporter = self.watched(path, ManualClock(2000.0))

        def change():
            with path.open("a", encoding="utf-8") as file:
                file.write("limiter 21 -> 16, clamp\n")

        asyncio.run(self.follow(exporter, [change]))
        limiter = self.fleet(exporter).callers.limiter

        assert (16, {"clamp": 1}, 31) == (limiter.ceiling, limiter.changes, limiter.lines["parsed"])

    def test_configured_ceiling_stands_in_for_both(self):
        """Where neither a caller nor the log tells."""
        text = "callers: {ceilings: {agents: 28}}\nbackends: [{url: 'http://127.0.0.1:9', fleet: agents}]"
        exporter = app.Exporter(config.load(text, "t.yml", {}), ManualClock(2000.0))
        exporter.book("127.0.0.1:9", Failed(2000.0, 0.1, "refused", "nobody there"))
        configured = self.fleet(exporter).ceilings[0]
        exporter._callers.limiter("agents").change("limiter.log", CeilingChange(24), live=True)
        logged = self.fleet(exporter).ceilings[0]

        assert [("client", 28, "config"), ("client", 24, "log")] == [
            (one.kind, one.value, one.source) for one in (configured, logged)
        ]

    def test_fleet_without_callers_has_no_waits(self, tmp_path):
        """Nobody told of any: they are unknown, not none; the log's own figures are there."""
        exporter = self.watched(tmp_path / "limiter.log", ManualClock(2000.0))
        exporter._callers.limiter("agents").change("limiter.log", CeilingChange(28, 32, "clamp"), live=True)
        exporter._callers.limiter("agents").read("limiter.log", counted(1, 4), up=True)
        page = {family.name: family.samples for family in FiguresCollector(exporter.figures).collect()}

        for series in (ex.CALLER_WAIT, ex.CALLER_HEALTHY, ex.CALLER_EVENTS, ex.CALLER_CONFLICTS, ex.WAITING_SECONDS):
            assert [] == page[series.name.removesuffix("_total")]
        assert [({"fleet": "agents", "ceiling": "client", "source": "log"}, 28)] == [
            (sample.labels, sample.value) for sample in page[ex.CEILING.name]
        ]
        assert [({"fleet": "agents", "reason": "clamp"}, 1)] == [
            (sample.labels, sample.value) for sample in page["tidegauge_ceiling_changes"]
        ]
        assert [1] == [sample.value for sample in page[ex.LIMITER_LOG_UP.name]]

    def test_given_up_pattern_is_complained_of(self, tmp_path, caplog, monkeypatch):
        """Once, with the file's name, and the log is not up."""
        monkeypatch.setattr(following, "ChangeReader", partial(ChangeReader, seconds=0.05))
        path = tmp_path / "limiter.log"
        path.write_text(f"{HARD}\n" * 4, encoding="utf-8")
        exporter = self.watched(path, ManualClock(2000.0), CATASTROPHE)
        asyncio.run(self.follow(exporter, [lambda: None]))

        assert 1 == caplog.text.count("limiter.log: the pattern takes too long")
        assert not self.fleet(exporter).callers.limiter.up

    @pytest.mark.parametrize(("told", "fleets"), [((), ["others"]), ((Healthy(2000.0, 2),), ["agents"])])
    def test_fleet_that_only_its_log_told_of_leaves_with_it(self, tmp_path, told, fleets):
        """Its place is free for another one, and no report names it; one whose callers tell something stays."""
        exporter = self.watched(tmp_path / "limiter.log", ManualClock(2000.0), more="max_fleets: 1\n  ")
        exporter._callers.limiter("agents").read(str(tmp_path / "limiter.log"), counted(1), up=True)
        exporter.take(Batch("sim", "agents", told))
        changed = config.load("callers: {max_fleets: 1}\nbackends: [{url: 'http://h'}]", "t.yml", {})
        asyncio.run(exporter.become(changed))
        exporter.take(Batch("sim", "others", ()))

        assert fleets == [one.name for one in exporter.figures().fleets]

    def test_each_log_of_a_fleet_is_complained_of_by_itself(self, tmp_path, caplog):
        """The one that is well does not end the complaint about the other, poll after poll."""
        caplog.set_level(logging.INFO)
        exporter = self.watched(tmp_path / "one.log", ManualClock(2000.0))
        (tmp_path / "two.log").write_text("limiter 32 -> 28, clamp\n", encoding="utf-8")
        one = exporter._config.callers.limiter_logs[0]
        for log in (one, attrs.evolve(one, file=str(tmp_path / "two.log"))) * 3:
            asyncio.run(self.follow(exporter, [lambda: None], log))

        assert [f"agents limiter log {tmp_path}/one.log: No such file or directory"] == [
            record.getMessage() for record in caplog.records if "log" in record.getMessage()
        ]
