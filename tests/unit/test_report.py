"""The report as data and as text, and the document that describes its keys."""

import io
import json
import re
from pathlib import Path

import attrs
import pytest
from rich.console import Console

from tests.builders import clipped, config, figures, lifetime, page, requests
from tests.golden.everything import everything
from tidegauge.derive.capacity import Fact
from tidegauge.derive.inference import FleetInference
from tidegauge.model import Pinned
from tidegauge.report import text
from tidegauge.report.document import FORMAT, document
from tidegauge.report.verdicts import verdicts
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.callers import FleetCallersState

DOC = (Path(__file__).parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
NAMES = {  # keys below which names depend on the data, and how deep
    "request_capacity": 1,
    "narrowest_request_capacity": 1,
    "failed_polls": 1,
    "dropped_intervals": 1,
    "waiting_seconds": 1,
    "prompt_tokens": 1,
    "output_tokens": 1,
    "clipped_ratio": 1,
    "counts": 1,
    "waves": 1,
    "seconds": 1,
    "share": 1,
    "engine_share": 1,
    "gain_ceiling": 2,
    "quantiles": 1,
}
SHAPES = {  # values that have a section of their own
    "stages": "Stages",
    "queue": "Queue",
    "caller_queue": "Queue",
    "fan_out": "Order statistics and facts",
    "duration_seconds": "Order statistics and facts",
    "waves": "Order statistics and facts",
    "kv_cache_capacity_tokens": "Order statistics and facts",
    "max_num_seqs": "Order statistics and facts",
    "max_num_batched_tokens": "Order statistics and facts",
    "max_model_len": "Order statistics and facts",
}


def documented():
    """The keys of each section of the document."""
    sections = re.split(r"^##+ (.+)$", DOC, flags=re.MULTILINE)[1:]
    return {
        title: re.findall(r"^\| `([^`]+)` \|", body, re.MULTILINE)
        for title, body in zip(sections[::2], sections[1::2], strict=True)
        if "| key |" in body
    }


def paths(value, prefix=""):
    """(section, path) of every key in a report."""
    if isinstance(value, list):
        yield "Keys", f"{prefix}[]"
        for each in value:
            yield from paths(each, f"{prefix}[]")
    elif isinstance(value, dict):
        for name, each in value.items():
            path = f"{prefix}.{name}" if prefix else name
            if name in NAMES and isinstance(each, dict):
                assert each, f"{path} is empty: the test would not see it"
                yield "Keys", path + ".*" * NAMES[name]
                if name in SHAPES:
                    yield from ((SHAPES[name], one) for inner in each.values() for _, one in paths(inner))
            elif name in SHAPES and isinstance(each, dict):
                yield "Keys", path
                yield from ((SHAPES[name], one) for _, one in paths(each))
            elif not isinstance(each, list):
                yield "Keys", path
                yield from paths(each, path)
            else:
                yield from paths(each, path)


def shown(report, **more):
    console = Console(file=io.StringIO(), width=140, **more)
    text.show(report, console)
    return console.file.getvalue()


class TestDocument:
    @pytest.fixture
    def report(self):
        moment = everything()
        failed = attrs.evolve(moment.backends[0].history.counts, failures={"refused": 1}, dropped={"gap": 1})
        history = attrs.evolve(moment.backends[0].history, counts=failed)
        return document(
            attrs.evolve(moment, backends=(attrs.evolve(moment.backends[0], history=history), moment.backends[1]))
        )

    def test_every_key_is_documented_and_every_documented_key_exists(self, report):
        """Both ways, section by section."""
        found = {}
        for section, path in paths(report):
            found.setdefault(section, set()).add(path)
        listed = documented()
        assert {"Keys", "Stages", "Queue", "Order statistics and facts"} == set(listed) == set(found)
        for section, keys in listed.items():
            assert len(keys) == len(set(keys))
            assert found[section] == set(keys), section

    def test_document_is_plain_json(self, report):
        """Without NaN or infinity, in every state."""
        empty = document(figures(BackendState(Backend("a"), 900.0, 3600.0, 0.0)))
        for one in (report, empty):
            assert one == json.loads(json.dumps(one, allow_nan=False))

    def test_format_is_what_the_doc_says(self, report):
        """A reader can tell documents apart."""
        assert FORMAT == report["format"]
        assert f"version of this document, {FORMAT}" in DOC

    def test_unknown_is_null(self):
        """A backend that was never polled has every key and no figure."""
        full, empty = (
            document(everything())["backends"][0],
            document(figures(BackendState(Backend("a"), 9.0, 9.0, 0.0))),
        )
        (bare,) = empty["backends"]

        assert full.keys() == bare.keys()
        for key in ("up", "version", "running", "kv_cache_capacity_tokens", "max_num_seqs", "p90_prompt_tokens"):
            assert None is bare[key], key


class TestText:
    def test_tables_say_what_the_document_says(self):
        """Means, both shares, gain ceiling, split, capacity, barriers, verdict."""
        found = shown(document(everything()))

        assert "fleet agents" in found
        for piece in ("client (before vLLM)", "queue", "prefill", "decode", "other", "end-to-end"):
            assert piece in found
        assert "10.0.0.1:8000" in found
        assert "1,400,000 (metrics)" in found
        assert "bimodal" in found
        assert "clips" in found

    def test_bound_is_shown_as_a_bound(self):
        """p50 in the lowest bucket is at most its edge."""
        assert "<= 0.30 s" in shown(document(everything()))

    def test_nothing_finished_is_said(self):
        """An idle fleet has no table of stages."""
        found = shown(document(figures(lifetime("a", page({}, values={"num_requests_running": 0.0})))))

        assert "No request finished in the window" in found
        assert "where the latency goes" not in found

    def test_backend_without_a_fleet_is_shown(self):
        """It was never reached: its model is not known."""
        found = shown(document(figures(BackendState(Backend("10.9.9.9:1"), 900.0, 3600.0, 0.0))))

        assert "10.9.9.9:1" in found
        assert "not polled" in found

    @pytest.mark.parametrize("name", ["[red]x[/red]", "[/]", "[fe80::1]:8000", "a:100:b", "[bold"])
    def test_names_are_no_markup(self, name):
        """A model name or an address in brackets is shown as it is."""
        rows = requests(*[(0.1, 0.2, 0.3, 0.1)] * 30)
        found = shown(document(figures(lifetime(Backend(name, name), page(rows, model=name)))))

        assert found.count(name) >= 4

    def test_names_are_no_terminal_commands(self):
        """A hostile server's model name cannot clear the screen or set a title."""
        rows = requests(*[(0.1, 0.2, 0.3, 0.1)] * 30)
        found = shown(document(figures(lifetime("a", page(rows, model="\x1b[2Jm\x07\u202e")))), force_terminal=False)

        assert "\x1b" not in found
        assert "?[2Jm??" in found


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
        said, table = "\n".join(self.sentences(moment)), shown(document(moment))

        assert "The caller's ceiling, observed as a plateau, of 8 clips: fan-out, as inferred, reaches 21" in said
        assert "the median barrier takes 3 waves" in said
        assert "No caller reports its waits: waiting before vLLM is unmeasured, not zero." in said
        assert "6 barriers (inferred), fan-out median 21, max 21" in table
        assert "observed" in table

    def test_fleet_of_which_nobody_answers_is_said(self):
        """Its capacity is not unknown, it is gone."""
        one = lifetime("a", page({}, values={"num_requests_running": 0.0}))
        one.failed("refused", 0.1)
        said = "\n".join(self.sentences(figures(one)))

        assert "no backend of the fleet answers" in said
        assert "a does not answer" in said

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

    def said(self, fleet, *backends):
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
        return "\n".join(verdicts({"backends": list(backends)}, {**empty, **fleet}))

    def backend(self, **changes):
        calm = {
            "name": "a",
            "up": True,
            "twin_of": None,
            "models": [],
            "waiting_seconds": {},
            "hidden_wait_seconds": None,
            "max_num_seqs": {"value": 8, "source": "log"},
            "request_capacity": {"p90_prompt": 5},
            "kv_cache_sources_disagree": False,
            "failed_polls": {},
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

    def test_small_skew_names_nobody_as_the_odd_one_out(self):
        """Of many like servers one is always the slowest."""
        near = self.said({"skew": {"ratio": 1.17, "highest": "b", "lowest": "a"}}, self.backend())
        far = self.said({"skew": {"ratio": 2.7, "highest": "b", "lowest": "a"}}, self.backend())

        assert "No backend is the odd one out: mean end-to-end differs by a factor of 1.17 at most (b over a)" in near
        assert "b is the odd one out: 2.70 times a" in far

    def test_fleet_that_no_backend_has_is_a_wrong_name(self):
        """Not a fleet at rest."""
        assert "no backend has it as its fleet or model" in self.said({})

    def test_capacity_says_whose_figure_is_missing(self):
        """One quiet server of twelve leaves the fleet's sum unknown."""
        said = self.said({"request_capacity": {}}, self.backend(), self.backend(name="quiet", request_capacity={}))

        assert "Request capacity of the fleet is unknown: of quiet the KV capacity" in said
