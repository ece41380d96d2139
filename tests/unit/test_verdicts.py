"""What the report says its figures mean: every finding, and none that the figures do not carry."""

import attrs
import pytest

from tests.builders import clipped, config, figures, lifetime, page, requests
from tests.golden.everything import everything
from tests.recordings import shown
from tidegauge import vllm
from tidegauge.catalogue.thresholds import DEFAULTS, SKEW
from tidegauge.derive.capacity import Fact
from tidegauge.derive.inference import FleetInference
from tidegauge.model import Pinned
from tidegauge.report.document import document
from tidegauge.report.verdicts import verdicts
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.callers import FleetCallersState

NOT_ABORTED = {"aborted_after_first_token": 0.0}


class TestVerdicts:
    def sentences(self, moment):
        report = document(moment)
        return [line for fleet in report["fleets"] for line in verdicts(report, fleet)]

    def test_everything_that_is_wrong_is_said(self):
        """Of the fleet that has it all."""
        said = "\n".join(self.sentences(everything()))

        for piece in (
            "decode is the largest stage",
            "The caller's wait for a slot is split: 40% wait at least 9.35 s in the mean, the others at most 0.1 s.",
            "The queue of 10.0.0.1:8000 is split: 40% wait at least",
            "The caller's ceiling of 16 clips",
            "10.0.0.1:8000 is the odd one out: 3.14 times 10.0.0.2:8000",
            "The sources of the KV capacity of 10.0.0.1:8000 disagree",
            "sum_fell 1",
            "On 10.0.0.1:8000 requests waited about 524 s in all by its waiting gauge, 250 s of it for KV-cache space.",
            "Preempted requests of 10.0.0.1:8000 waited again, about 41 s that vLLM books as decode (an estimate).",
        ):
            assert piece in said

    def test_nothing_is_said_that_was_not_measured(self):
        """No caller, no capacity, no second backend: it says so, and claims nothing."""
        rows = requests(*[(0.1, 0.2, 0.3, 0.1)] * 30)
        said = "\n".join(self.sentences(figures(lifetime("a", page(rows)))))

        assert "unmeasured, not zero" in said
        assert "Request capacity of the fleet is unknown: of a" in said
        assert "slowest" not in said
        assert "split" not in said

    def test_capacity_without_known_slots_is_called_an_upper_bound(self):
        """KV alone says how many fit, not how many run."""
        one = lifetime(
            Backend("a", p90_prompt=10.0),
            page({}, configs=[config(kv_cache_size_tokens=1000)], values={"num_requests_running": 0.0}),
        )
        said = "\n".join(self.sentences(figures(one)))

        assert "holds 100 requests at once" in said
        assert "An upper bound: the sequence slots of a are not known." in said

    def test_observed_slots_are_no_bound_either(self):
        """Ten were seen running while others waited: there may be more slots; only what is known limits."""
        values = {"num_requests_running": 10.0, "num_requests_waiting": 4.0, "kv_cache_usage_perc": 0.2}
        configs = [config(kv_cache_size_tokens=1000)]
        pages = [page({}, values=values, configs=configs)] * 3
        observed = lifetime(Backend("a", "m", p90_prompt=10.0), *pages)
        known = lifetime(Backend("b", "m", Pinned(max_num_seqs=20.0), 10.0), page({}, start=2.0, configs=configs))
        moment = figures(observed, known)
        said = "\n".join(self.sentences(moment))

        assert Fact(10.0, "observed") == moment.backends[0].facts.max_num_seqs
        assert "the fleet holds 120 requests at once" in said
        assert "An upper bound: the sequence slots of a are not known." in said

    def test_barriers_that_only_the_servers_show_are_told_with_their_source(self):
        """A plateau is the caller's ceiling, whose wait nobody measured."""
        inferred = FleetInference("m", 900.0, 1.0)
        for reading in clipped(barriers=6, fan_out=21, ceiling=8, backend="a"):
            inferred.feed(reading)
        inferred.finish()
        idle = lifetime("a", page({}, values={"num_requests_running": 0.0}))
        moment = figures(idle, inferred=[inferred.snapshot(2000.0)])
        said, table = "\n".join(self.sentences(moment)), " ".join(shown(document(moment)).split())

        assert "The caller's ceiling, observed as a plateau, of 8 clips: fan-out, as inferred, reaches 21" in said
        assert "the median barrier takes 3 waves" in said
        assert "No caller reports its waits: waiting before vLLM is unmeasured, not zero." in said
        assert "6 barriers (inferred, few), fan-out median 21, max 21 (may be several barriers)" in table
        assert "observed" in table

    def test_fleet_of_which_nobody_answers_is_said(self):
        """Its capacity is not unknown, it is gone."""
        one = lifetime("a", page({}, values={"num_requests_running": 0.0}))
        for reason in ("timeout", "timeout", "refused"):
            one.failed(reason, 0.1)
        said = self.sentences(figures(one))

        assert "a is down: its last poll failed with refused (failed polls: timeout 2, refused 1)." == said[0]
        assert "no backend of the fleet answers" in "\n".join(said)

    def test_server_that_was_never_reached_is_said_first(self):
        """In a fleet of its name, and where its model and so its fleet are not known: then before all fleets."""
        gone, named, fine = (BackendState(Backend(*names), 9.0, 9.0, 0.0) for names in ("a", ("b", "m"), ("c", "m")))
        gone.failed("timeout", 5.0)
        for reason in ("timeout", "refused"):
            named.failed(reason, 0.1)
        fine.page(page({}, values={vllm.RUNNING: 0.0}), 2000.0, 0.1)
        found = document(figures(gone, named, fine))
        said = [line.strip() for line in shown(found).splitlines() if line.startswith("  ")]
        (fleet,) = found["fleets"]

        assert ["a is down: no page of vLLM's metrics in 1 poll; the last one failed with timeout."] == said[:1]
        assert ["b is down: no page of vLLM's metrics in 2 polls; the last one failed with refused."] == said[1:2]
        assert said[1:] == verdicts(found, fleet)

    def test_saturation_is_said_of_either_side(self):
        """Nearly everyone waits."""
        callers = FleetCallersState("m", 900.0, 0.1)
        callers.waited(1999.0, (20.0,) * 40)
        rows = requests(*[(20.0, 1.0, 1.0, 0.0)] * 30)
        said = "\n".join(self.sentences(figures(lifetime("a", page(rows)), callers=[callers.snapshot(2000.0)])))

        assert "The queue of a is saturated: 100% of the requests wait." in said
        assert "The caller's limiter is saturated: 100%" in said

    def test_twin_is_named(self):
        """Two names of one server."""
        one = page(requests(*[(0.1, 0.2, 0.3, 0.1)] * 30), values={"prompt_tokens_total": 9.0})
        said = "\n".join(self.sentences(figures(lifetime("a", one), lifetime("again", one))))

        assert "again and a are one server" in said


class TestHonestVerdicts:
    """A sentence an on-call engineer would act on must not claim more than its figures."""

    def said(self, fleet, *backends, **thresholds):
        names = [one["name"] for one in backends]
        empty = {
            "backends": names,
            "stages": None,
            "caller_queue": None,
            "client_seconds": None,
            "barriers": [],
            "ceilings": [],
            "natural_bound": None,
            "skew": None,
            "request_capacity": {},
            "narrowest_request_capacity": {},
            "up": len(names),
        }
        report = {"backends": list(backends), "window_seconds": 900.0, "thresholds": DEFAULTS | thresholds}
        return "\n".join(verdicts(report, {**empty, **fleet}))

    def backend(self, **changes):
        calm = {
            "name": "a",
            "up": True,
            "covered_seconds": 900.0,
            "twin_of": None,
            "models": [],
            "waiting_seconds": {},
            "hidden_wait_seconds": None,
            "max_num_seqs": {"value": 8, "source": "log"},
            "request_capacity": {"p90_prompt": 5},
            "kv_cache_sources_disagree": False,
            "failed_polls": {},
            "last_failure": None,
            "restarts": 0,
            "dropped_intervals": {},
        }
        return {**calm, **changes}

    def slots(self, value, state):
        return {"ceiling": "server", "value": value, "source": "log", "state": state}

    def test_slots_that_add_up_may_still_be_short_on_one_server(self):
        """8 and 16 are 24 in all; calls that all go to the first one wait for its 8."""
        fleet = {"ceilings": [self.slots(24, "inert")], "natural_bound": {"value": 24, "source": "inferred"}}
        said = self.said(fleet, self.backend(waiting_seconds={"sequence_slots": 20.0}), self.backend(name="b"))

        assert "24 sequence slots in all would do, yet requests waited for a slot on a" in said
        assert "inert" not in said

    def test_slots_above_the_callers_ceiling_clip_nothing(self):
        """What the caller holds back never meets them."""
        client = {"ceiling": "client", "value": 8, "source": "observed", "state": "clips"}
        fleet = {"ceilings": [client, self.slots(24, "clips")], "natural_bound": {"value": 53, "source": "inferred"}}
        said = self.said(fleet, self.backend())

        assert "24 sequence slots in all is not reached: the caller's ceiling of 8 is lower." in said
        assert "observed as a plateau, of 8 clips: fan-out, as inferred, reaches 53." in said

    def test_outage_and_restart_are_told(self):
        """A server that was away for a third of the window is not simply up."""
        said = self.said({}, self.backend(failed_polls={"connection": 51}, restarts=1))

        assert "a did not answer every poll (connection 51)" in said
        assert "a restarted 1 time." in said

    def inferred(self, **grounds):
        order = {"median": 29.0, "p90": 57, "max": 57}
        barriers = {"source": "inferred", "count": 4, "fan_out": order, "waves": {}, "clipped_ratio": {}}
        calm = {"few": False, "maybe_merged": 0, "largest_maybe_merged": False, "largest_in_flight": 57}
        return {"barriers": [barriers], "inference": {"grounds": {**calm, **grounds}}}

    def test_fan_out_of_few_barriers_is_told(self):
        """And nothing is said of one that rests on enough."""
        few = "Fan-out rests on 4 inferred barriers only: watch longer before acting on it."

        assert few in self.said(self.inferred(few=True), self.backend())
        assert "inferred" not in self.said(self.inferred(), self.backend())

    @pytest.mark.parametrize(
        ("largest", "told"),
        [
            (True, "The largest, 57, is one of them: at most 16 of its calls were seen in flight at once."),
            (False, "The largest, 57, is none of them."),
        ],
    )
    def test_fan_out_that_may_be_of_several_barriers_is_told(self, largest, told):
        """Before a ceiling is held against it."""
        doubt = {"maybe_merged": 3, "largest_maybe_merged": largest, "largest_in_flight": 16}
        ceiling = {"ceiling": "client", "value": 48, "source": "config", "state": "clips"}
        bound = {"value": 57, "source": "inferred"}
        fleet = {**self.inferred(**doubt), "ceilings": [ceiling], "natural_bound": bound}
        said = self.said(fleet, self.backend())

        assert (
            "3 of 4 inferred barriers may each be several seen as one: calls came in place of finished ones, though"
            f" under a caller's ceiling they do so too (docs/barriers.md). {told}\nThe caller's ceiling of 48 clips"
        ) in said

    def test_reported_fan_out_is_not_doubted(self):
        """What the servers show beside it does not matter then."""
        fleet = self.inferred(few=True, maybe_merged=3, largest_maybe_merged=True)
        exact = fleet["barriers"][0] | {"source": "reported"}

        assert "inferred" not in self.said(fleet | {"barriers": [exact, *fleet["barriers"]]}, self.backend())

    def test_small_skew_names_nobody_as_the_odd_one_out(self):
        """Of many like servers one is always the slowest."""
        near = self.said({"skew": {"ratio": 1.17, "highest": "b", "lowest": "a"}}, self.backend())
        far = self.said({"skew": {"ratio": 2.7, "highest": "b", "lowest": "a"}}, self.backend())

        assert "No backend is the odd one out: mean end-to-end differs by a factor of 1.17 at most (b over a)" in near
        assert "b is the odd one out: 2.70 times a" in far

    @pytest.mark.parametrize(("least", "found"), [(3.25, "b is the odd one out: 3.25 times a"), (3.26, "under 3.26.")])
    def test_skew_counts_from_the_threshold_on(self, least, found):
        """A ratio of exactly as much is one."""
        skew = {"ratio": 3.25, "highest": "b", "lowest": "a"}

        assert found in self.said({"skew": skew}, self.backend(), **{SKEW.key: least})

    def queue(self, **changes):
        calm = {
            "edge_seconds": 0.3,
            "late_ratio": 0.4,
            "late_seconds": 7.0,
            "impact_ratio": 0.2,
            "bimodal": True,
            "saturated": False,
            "pages": True,
        }
        return {**calm, **changes}

    def test_split_of_which_the_cost_is_unknown_is_not_called_cheap(self):
        """Callers may report their waits for a fleet of which no request finished."""
        queue = self.queue(impact_ratio=None, pages=False)
        said = self.said({"caller_queue": queue}, self.backend(models=[{"queue": queue, **NOT_ABORTED}]))

        assert 2 == said.count("the others at most 0.3 s. What that costs is not known.")
        assert "costs little" not in said

    def test_queue_of_nobody_late_is_no_finding_whatever_the_thresholds(self):
        """Thresholds of 0 are allowed: neither a lack of figures nor of waiting reaches them."""
        none = {"bimodal_late_low": 0.0, "page_impact": 0.0}
        for calm in ({"late_ratio": 0.0, "late_seconds": None}, {"impact_ratio": None}):
            queue = self.queue(bimodal=False, pages=False, **calm)
            said = self.said({}, self.backend(models=[{"queue": queue, **NOT_ABORTED}]), **none)
            assert "queue of a" not in said

    @pytest.mark.parametrize(("least", "told"), [(0.19, True), (0.21, False)])
    def test_queue_without_a_split_is_told_where_it_costs(self, least, told):
        """A fifth of end-to-end time, waited evenly."""
        queue = self.queue(bimodal=False, pages=False)
        said = self.said({}, self.backend(models=[{"queue": queue, **NOT_ABORTED}]), page_impact=least)

        assert told is ("The queue of a is 20% of end-to-end time" in said)

    def test_ratio_of_quantiles_decides_nothing(self):
        """The fingerprint may be a hundred or one; the sentences stay."""
        said = [
            self.said(
                {},
                self.backend(
                    models=[{"queue": self.queue(p90_p50_ratio=high / 0.3, quantiles={"0.9": high}), **NOT_ABORTED}]
                ),
            )
            for high in (0.3, 30.0)
        ]

        assert said[0] == said[1]
        assert "The queue of a is split: 40% wait at least 7.00 s" in said[0]

    def test_fleet_that_no_backend_has_is_a_wrong_name(self):
        """Not a fleet at rest."""
        assert "no backend has it as its fleet or model" in self.said({})

    def test_capacity_says_whose_figure_is_missing(self):
        """One quiet server of twelve leaves the fleet's sum unknown."""
        said = self.said({"request_capacity": {}}, self.backend(), self.backend(name="quiet", request_capacity={}))

        assert "Request capacity of the fleet is unknown: of quiet the KV capacity" in said


class TestWhatIsCovered:
    """The time that the figures are of, not the time that was asked for."""

    def over(self, *seconds, window=900.0):
        """The first line of the text, and the sentences on backends a, b, ... that were watched so long."""
        moment = figures(*(lifetime(name, page({}, values={vllm.RUNNING: 0.0})) for name in "abc"[: len(seconds)]))
        report = document(attrs.evolve(moment, window=window))
        for one, covered in zip(report["backends"], seconds, strict=True):
            one["covered_seconds"] = covered
        lines = shown(report).splitlines()
        return lines[0].removeprefix("tidegauge report over "), [line.strip() for line in lines if "figures of" in line]

    def test_a_window_that_is_full_is_all_there_is_to_say(self):
        """A slot that left and a poll that is due are no shortage; 0.95 of it is enough."""
        assert ("900.00 s", []) == self.over(885.0, 855.0)

    def test_an_exporter_that_has_just_begun_says_how_long_it_watched(self):
        """854 s of 900 are told, 855 are not."""
        assert ("37.50 s of a window of 900.00 s: as long as it was watched", []) == self.over(37.5, 36.0)
        assert ("854.00 s of a window of 900.00 s: as long as it was watched", []) == self.over(854.0)

    def test_a_backend_that_was_watched_for_less_is_named(self):
        """It was down, or its capture is shorter; nothing is known of one that never answered."""
        assert ("900.00 s", ["The figures of b cover 312 s of those 900 s."]) == self.over(890.0, 312.0, 0.0)

    def test_life_of_a_server_is_no_window(self):
        """A capture of one page beside one of many; alone, it needs no sentence."""
        told = "The figures of b are of the server's whole life: its capture holds one page."
        assert ("60.00 s", [told]) == self.over(59.0, None, window=60.0)
        assert ("the life of the servers", []) == self.over(None, None, window=0.0)
