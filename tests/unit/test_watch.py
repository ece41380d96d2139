"""The heart that live runs and captures share: the same polls give the same figures."""

import json

import pytest

from tests.builders import LENGTH_EDGES, exposition, histogram
from tests.unit.little_servers import ManualClock
from tests.watching import FIXTURES, RUNS, feed, page, watching
from tidegauge import config, vllm
from tidegauge.app import Exporter
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.collectors import FiguresCollector
from tidegauge.derive.ceiling import Order
from tidegauge.derive.settings import Settings
from tidegauge.parsing.events import BarrierOpened, Batch
from tidegauge.report import replay
from tidegauge.report.document import document
from tidegauge.sources import captures
from tidegauge.sources.scrape import Failed, Fetched
from tidegauge.state.backend import Backend
from tidegauge.state.fleets import CallersState
from tidegauge.watch import MOST_FLEETS

CAPTURES = FIXTURES / "captures"


PARTS = ("fleets", "backends")


SIZES = (29, 31, 12, 29, 30, 29, 32, 29)


class TestSameHeart:
    def both(self, paths, interval="1s"):
        """Fleets and backends by replay, and by the live exporter given the same polls; to two digits."""
        polls = [(poll, name) for name, path in paths.items() for poll in captures.read(path)]
        polls.sort(key=lambda pair: pair[0].at)
        text = f"window: 24h\nlength_window: 24h\npoll_interval: {interval}\nbackends:\n" + "".join(
            f"  - {{url: 'http://127.0.0.1:{9000 + number}', name: {name}, fleet: f}}\n"
            for number, name in enumerate(paths)
        )
        clock = ManualClock(polls[0][0].at)
        live = Exporter(config.load(text, "t.yml", {}), clock)
        for poll, name in polls:
            clock.time = poll.at
            if poll.body is None:
                live.book(name, Failed(poll.at, poll.seconds, poll.reason, "no page"))
            else:
                live.book(name, Fetched(poll.at, poll.seconds, poll.body))
        live.watch.finish()
        replayed = replay.replay(replay.load(paths, {}, {}, "f"), Settings())
        return [
            {part: json.loads(json.dumps(document(one)[part]), parse_float=self.two_digits) for part in PARTS}
            for one in (replayed, live.figures())
        ]

    @staticmethod
    def two_digits(text):
        return f"{float(text):.2f}"

    @pytest.mark.parametrize("capture", ["uncapped", "capped", "restart", "aborts", "idle", "tinykv"])
    def test_captures_and_live_runs_agree(self, capture):
        """On every figure: barriers, plateau, waiting and burstiness included."""
        replayed, live = self.both({path.name[0]: path for path in sorted((CAPTURES / capture).glob("*.scrapes.gz"))})

        assert replayed == live

    @pytest.mark.parametrize("run", ["run08_tinykv", "run05_restart"])
    def test_whole_pages_agree(self, run):
        """Latencies, lengths, KV cache and preemptions too, polled every ten seconds."""
        replayed, live = self.both({name: RUNS / f"{run}.{name}.scrapes.gz" for name in "ab"}, "10s")

        assert replayed == live


class TestLengths:
    def lengths(self, prompts, outputs, model="m", start=1000.0):
        rows = {
            vllm.PROMPT_LENGTH: histogram(prompts, LENGTH_EDGES),
            vllm.OUTPUT_LENGTH: histogram(outputs, LENGTH_EDGES),
        }
        return exposition(rows, model=model, start=start, values={vllm.RUNNING: 0.0})

    def test_quantiles_per_model(self):
        """P50, P95, P99 by interpolation between vLLM's edges; the models of a server are not mixed."""
        watch = watching()
        short = self.lengths([150.0] * 90 + [900.0] * 10, [15.0] * 100, "small")
        long = self.lengths([90_000.0] * 50, [450.0] * 50, "large", start=None)
        feed(watch, self.lengths([], [], "small") + self.lengths([], [], "large", None), short + long)
        small, large = watch.figures(2002.0).backends[0].models

        assert {0.5: 155.56, 0.95: 750.0, 0.99: 950.0} == pytest.approx(small.prompt_tokens, abs=0.01)
        assert {0.5: 15.0, 0.95: 19.5, 0.99: 19.9} == pytest.approx(small.output_tokens)
        assert {0.5: 75_000.0, 0.95: 97_500.0, 0.99: 99_500.0} == pytest.approx(large.prompt_tokens)
        assert ("small", "large") == (small.model_name, large.model_name)

    def test_few_requests_have_no_quantiles(self):
        """Nineteen say nothing, twenty do."""
        few, enough = watching(), watching()
        feed(few, self.lengths([], []), self.lengths([150.0] * 19, [15.0] * 19))
        feed(enough, self.lengths([], []), self.lengths([150.0] * 20, [15.0] * 20))

        assert ({}, {}) == tuple(
            getattr(few.figures(2002.0).backends[0].models[0], name) for name in ("prompt_tokens", "output_tokens")
        )
        assert {0.5, 0.95, 0.99} == set(enough.figures(2002.0).backends[0].models[0].prompt_tokens)


class TestFleets:
    def barriers(self, watch, sizes):
        """Barriers of so many calls, a third of which goes to backend b: four polls each, drained at the last."""
        finished = {"a": 0, "b": 0}
        for number, size in enumerate(sizes):
            for step in range(4):
                for name, calls in (("a", size - size // 3), ("b", size // 3)):
                    finished[name] += calls if step == 3 else 0
                    running = float(calls) if step in {1, 2} else 0.0
                    body = page(running=running, finished=float(finished[name]), start=1000.0 + ord(name))
                    watch.page(name, 2000.0 + number * 4 + step, 0.01, body)
        watch.finish()

    def test_fan_out_counts_calls_over_all_backends(self):
        """Not polls, not backends, not activities."""
        watch = watching(Backend("a", "f"), Backend("b", "f"))
        self.barriers(watch, SIZES)
        (fleet,) = watch.figures(2040.0).fleets

        assert ("inferred", 8, Order(29, 32, 32)) == (
            fleet.barriers[0].source,
            fleet.barriers[0].count,
            fleet.barriers[0].fan_out,
        )
        assert (32.0, "inferred") == fleet.natural_bound

    def test_server_under_two_names_is_counted_once(self):
        """The second target gives the same pages a moment later; when the first one fails, the second stands in."""
        watch, done = watching(Backend("a", "f"), Backend("again", "f")), 0
        for number, size in enumerate(SIZES * 2):
            for step in range(4):
                at = 2000.0 + number * 4 + step
                done += size if step == 3 else 0
                body = page(running=float(size) if step in {1, 2} else 0.0, finished=float(done))
                if number < len(SIZES):
                    watch.page("a", at, 0.01, body)
                else:
                    watch.failed("a", at, 0.01, "refused")
                watch.page("again", at + 0.3, 0.01, body)
        (fleet,) = watch.figures(2070.0).fleets

        assert 32 == fleet.barriers[0].fan_out.max
        assert sum(SIZES) == fleet.inferred.arrivals["a"]
        assert sum(SIZES[2:]) <= fleet.inferred.arrivals["again"] <= sum(SIZES)

    def test_fleets_are_kept_apart(self):
        """Each backend a fleet of its own: nobody saw 29 at once."""
        watch = watching(Backend("a", "f"), Backend("b", "g"))
        self.barriers(watch, SIZES)

        assert {"f": 22, "g": 10} == {
            fleet.name: fleet.barriers[0].fan_out.max for fleet in watch.figures(2040.0).fleets
        }
        assert {"f": 22, "g": 10} == watch.largest_inferred()

    def test_largest_fan_out_is_remembered_by_source(self):
        """What was inferred may be two barriers that merged; what callers report is exact, and stays apart."""
        first = watching(Backend("a", "f"), Backend("b", "f"), callers=CallersState(900.0, 0.1, 5))
        self.barriers(first, (58, *SIZES[1:]))
        assert None is first.take(Batch("sim", "f", (BarrierOpened(2031.0, "1", 29),)))
        assert ({"f": 29}, {"f": 58}) == (first.largest(), first.largest_inferred())

        second = watching(Backend("a", "f"), Backend("b", "f"), callers=CallersState(900.0, 0.1, 5))
        second.restore(first.largest(), first.largest_inferred() | {"gone": 7})
        feed(second, page(), begin=3000.0)
        assert (58.0, "inferred") == second.figures(3001.0).fleets[0].natural_bound
        assert ({"f": 29}, {"f": 58, "gone": 7}) == (second.largest(), second.largest_inferred())
        assert None is second.take(Batch("sim", "f", (BarrierOpened(3001.0, "1", 14),)))
        assert (29.0, "reported") == second.figures(3002.0).fleets[0].natural_bound

    def test_exporter_keeps_both_over_its_restart(self, tmp_path):
        """In the state file, by fleet."""
        text = f"state_file: {tmp_path}/s.json\nbackends:\n" + "".join(
            f"  - {{url: 'http://127.0.0.1:900{at}', name: {name}, fleet: f}}\n" for at, name in enumerate("ab")
        )
        first = Exporter(config.load(text, "t.yml", {}), ManualClock(2000.0))
        self.barriers(first.watch, SIZES)
        first.save()
        second = Exporter(config.load(text, "t.yml", {}), ManualClock(3000.0))
        second.book("a", Fetched(3000.0, 0.1, page()))

        assert ({}, {"f": 32}) == (second.watch.largest(), second.watch.largest_inferred())
        assert (32.0, "inferred") == second.figures().fleets[0].natural_bound

    def test_slow_fleet_does_not_blur_a_fast_one(self):
        """Polled every second and every quarter of a minute: barriers four seconds apart stay apart."""
        fast = {"a": 1.0, "b": 1.0, "slow": 15.0}
        watch = watching(Backend("a", "f"), Backend("b", "f"), Backend("slow", "g"), interval=fast)
        feed(watch, page(start=9.0), name="slow", begin=1999.0)
        self.barriers(watch, SIZES)

        assert [8, 0] == [sum(one.count for one in fleet.barriers) for fleet in watch.figures(2040.0).fleets]

    def test_models_that_come_and_go_are_let_go(self):
        """A server that calls its model something else on every page costs no memory."""
        watch = watching()
        watch.restore({}, {f"old-{number}": 5 for number in range(MOST_FLEETS)})
        for number in range(50):
            feed(watch, page(model=f"m{number}"), begin=2000.0 + number)

        assert ["m49"] == list(watch._inferences)
        assert MOST_FLEETS == len(watch.largest_inferred())

    def test_backend_that_serves_another_model_is_counted_in_one_fleet(self):
        """Its counters are exported once, and start anew: to Prometheus that is a restart."""
        watch = watching("a", "b")
        for number in range(4):
            feed(watch, page(finished=3.0 * number, start=1.0), name="a", begin=2000.0 + number)
            feed(watch, page(finished=5.0 * number, start=2.0), name="b", begin=2000.5 + number)
        for number in range(4):
            feed(watch, page(finished=15.0 + number, start=2.0, model="n"), name="b", begin=2004.5 + number)
            feed(watch, page(finished=9.0, start=1.0), name="a", begin=2005.0 + number)
        page_of = {one.name: one.samples for one in FiguresCollector(lambda: watch.figures(2010.0)).collect()}
        rows = page_of[ex.ARRIVALS.name.removesuffix("_total")]

        assert {"a": 9.0, "b": 3.0} == {row.labels[lb.BACKEND]: row.value for row in rows}
        assert 2 == len(rows)

    @pytest.mark.parametrize("starts", [(2.0, 2.0, 2.0, 2.0), (2.0, 2003.0, 2007.0, 2011.0)])
    def test_backend_that_returns_to_a_model_counts_from_nothing(self, starts):
        """In whichever fleet it was before, as one process or as one after another: no counter takes up an old value.

        What it counts falls to what was seen since, which Prometheus takes for a restart, and never leaps.
        """
        watch = watching("a", "b")
        shown, finished = [], {"m": 0.0, "n": 0.0}
        for turn, (model, calls) in enumerate((("m", 50.0), ("n", 7.0), ("m", 3.0), ("n", 2.0))):
            finished[model] = finished[model] if starts[turn] == 2.0 else 0.0
            for step in range(4):
                at = 2000.0 + 4 * turn + step
                finished[model] += calls if step == 2 else 0.0
                feed(watch, page(finished=finished[model], start=starts[turn], model=model), name="b", begin=at)
                feed(watch, page(finished=9.0 * at, start=1.0), name="a", begin=at + 0.5)
            (arrived,) = (one.inferred.arrivals for one in watch.figures(at).fleets if one.name == model)
            shown.append(arrived["b"])

        assert [50.0, 7.0, 3.0, 2.0] == shown

    def test_what_is_told_late_of_a_fleet_that_was_left_is_not_counted_on(self):
        """A burst that waited for another member's poll when the backend went to another model."""
        watch = watching("a", "b")
        polls = [*((at, "m", 0.0) for at in (0, 1)), (2, "m", 50.0), (3, "n", 0.0), *((at, "m", 50.0) for at in (5, 6))]
        for at, model, finished in [*polls, (7, "m", 53.0), (8, "m", 53.0)]:
            feed(watch, page(finished=finished, start=2.0, model=model), name="b", begin=2000.0 + at)
            if at != 2:
                feed(watch, page(start=1.0), name="a", begin=2000.5 + at)
        (fleet,) = watch.figures(2009.0).fleets

        assert 3.0 == fleet.inferred.arrivals["b"]

    def test_page_that_is_none_is_a_failed_poll(self):
        """With the reason in words for the log."""
        watch = watching(Backend("a", "f"))
        (booked,) = feed(watch, "<html></html>")

        assert (False, True) == (booked.fresh, bool(booked.complaint))
        assert {"not_metrics": 1} == watch.figures(2001.0).backends[0].history.counts.failures

    def test_each_backend_has_a_poll_interval(self):
        """One for all, or its own; it is on the page whether the backend answers or not."""
        for interval, expected in ((2.0, {"a": 2.0, "b": 2.0}), ({"a": 1.0, "b": 15.0}, {"a": 1.0, "b": 15.0})):
            watch = watching("a", "b", interval=interval)
            families = FiguresCollector(lambda watch=watch: watch.figures(2001.0)).collect()
            (rows,) = [family.samples for family in families if family.name == ex.POLL_INTERVAL.name]
            assert expected == {row.labels[lb.BACKEND]: row.value for row in rows}

    def test_nobody_listens_to_callers_in_a_capture(self):
        """A batch is refused, not lost."""
        assert "not listened to" in str(watching().take(Batch("sim", "f", ())))
