"""The answers to the operator's six questions, on constant series: what is unknown never looks like what is good."""

from types import MappingProxyType

import pytest

from dashboards.boards import latency
from dashboards.fields import BAD, GOOD, NEUTRAL, WARN
from dashboards.queries import FILTERS
from tests.unit.board_queries import evaluated, panel_of, plain, shown
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

BOARD = latency.board()


def of(series, **labels):
    """A series of the catalogue with its labels, as promtool reads it."""
    pairs = (f'{name}="{value}"' for name, value in labels.items())
    return f"{series.name}{{{', '.join(pairs)}}}"


def model(backend):
    return {"backend": backend, "model_name": "m"}


def member(backend, fleet="f"):
    return of(rc.FLEET_MEMBER, fleet=fleet, **model(backend))


def answer(tmp_path, series, id_, target=0, name=None, *, at="1m"):
    """What the panel shows: text and colour of its target's one value, by labels where it is a table."""
    panel = panel_of(BOARD, id_)
    query = panel["targets"][target]
    name = name or (None if panel["type"] == "table" else query["legendFormat"])
    values = evaluated(tmp_path, series, plain(query["expr"]), at)
    return {labels: shown(panel, value, name) for labels, value in values.items()}


STAGES = {
    of(rc.WINDOW_REQUESTS, **model("a")): 10,
    of(rc.WINDOW_REQUESTS, **model("b")): 30,
    of(rc.E2E_MEAN, **model("a")): 20,
    of(rc.E2E_MEAN, **model("b")): 10,
    of(rc.STAGE_MEAN, **model("a"), stage="queue"): 16,
    of(rc.STAGE_MEAN, **model("b"), stage="queue"): 2,
    of(rc.STAGE_MEAN, **model("a"), stage="decode"): 4,
    of(rc.STAGE_MEAN, **model("b"), stage="decode"): 8,
}


class TestLargestStage:
    def asked(self, tmp_path, series):
        return [evaluated(tmp_path, series, plain(one["expr"])) for one in panel_of(BOARD, 2)["targets"]]

    def test_is_that_of_all_requests(self, tmp_path):
        """Of 500 s, 280 s are decode, though queue is 80 % of the time on the slower backend; halving it gains half."""
        expected = [{"": 12.5}, {"stage=decode": 0.56}, {"stage=decode": 0.28}]
        assert expected == self.asked(tmp_path, STAGES)

    def test_is_absent_without_requests(self, tmp_path):
        """When nothing finished there is no answer, and none is painted."""
        assert [{}, {}, {}] == self.asked(tmp_path, {member("a"): 1})
        assert NEUTRAL == panel_of(BOARD, 2)["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"]


CALLER = {of(rc.LATE_RATIO, where="caller", fleet="f"): 0.45, of(rc.SPLIT, where="caller", fleet="f"): 12}
UNSPLIT = {**CALLER, of(rc.SPLIT, where="caller", fleet="f"): 9}
COSTS = {of(rc.IMPACT, where="caller", fleet="f"): 0.1}
CHEAP = {of(rc.IMPACT, where="caller", fleet="f"): 0.09}
SERVER = {of(rc.LATE_RATIO, where="server", **model("a")): 0.0}
SATURATED = {of(rc.LATE_RATIO, where="server", **model("b")): 0.97, of(rc.SPLIT, where="server", **model("b")): 30}
UNKNOWN = ("unknown", NEUTRAL)


class TestSplit:
    @pytest.mark.parametrize(
        ("series", "server", "caller"),
        [
            ({}, UNKNOWN, UNKNOWN),
            (SERVER, ("no split", GOOD), UNKNOWN),
            ({**SERVER, of(rc.IMPACT, where="server", **model("a")): 0.5}, ("no split", GOOD), UNKNOWN),
            (UNSPLIT, UNKNOWN, ("no split", GOOD)),
            ({**UNSPLIT, **COSTS}, UNKNOWN, ("waits", WARN)),
            ({**SERVER, **SATURATED, **CALLER, **COSTS}, ("saturated", WARN), ("two modes", BAD)),
        ],
    )
    def test_says_on_which_side(self, tmp_path, series, server, caller):
        """Each side has its own answer, the worst of it, and "unknown" is grey."""
        series = {**series, member("a"): 1}
        assert [{"": server}, {"": caller}] == [answer(tmp_path, series, 3, target) for target in (0, 1)]

    @pytest.mark.parametrize(("impact", "colour"), [({}, WARN), (CHEAP, WARN), (COSTS, BAD)])
    def test_what_costs_little_is_a_warning(self, tmp_path, impact, colour):
        """As with the alert, a split is bad from that share of the time on; less, or a share not known, is orange."""
        late = of(rc.LATE_RATIO, where="caller", fleet="f")
        for share, words in ((0.05, "two modes"), (0.95, "two modes"), (0.96, "saturated")):
            assert {"": (words, colour)} == answer(tmp_path, {**CALLER, **impact, late: share}, 3, 1)

    def test_one_that_costs_is_worse_than_a_fuller_one_that_does_not(self, tmp_path):
        """Of two servers, one is saturated at little cost, and the other's two modes page."""
        costs = {of(one, where="server", **model("a")): value for one, value in self.PAGES.items()}
        assert {"": ("two modes", BAD)} == answer(tmp_path, {**SATURATED, **costs}, 3)

    PAGES = MappingProxyType({rc.LATE_RATIO: 0.5, rc.SPLIT: 10, rc.IMPACT: 0.2})


class TestCapacity:
    """Where a fact is from: of several servers the one of which the least is known."""

    def known(self, sources, fact=ex.KV_CAPACITY):
        series = {member(backend): 1 for backend in "ab"}
        return {**series, **{of(fact, backend=name, source=source): 7 for name, source in sources.items()}}

    @pytest.mark.parametrize(
        ("sources", "expected"),
        [
            ({"a": "metrics", "b": "metrics"}, ("metrics", GOOD)),
            ({"a": "metrics", "b": "log"}, ("log", GOOD)),
            ({"a": "server_info", "b": "log"}, ("server", GOOD)),
            ({"a": "log", "b": "config"}, ("configured", WARN)),
            ({"a": "observed", "b": "config"}, ("at least", WARN)),
            ({"a": "metrics"}, ("unknown", NEUTRAL)),
            ({}, ("unknown", NEUTRAL)),
        ],
    )
    @pytest.mark.parametrize(("target", "fact"), [(0, ex.KV_CAPACITY), (1, ex.MAX_NUM_SEQS)])
    def test_source_in_words(self, tmp_path, sources, expected, target, fact):
        """KV tokens and max_num_seqs each tell their source; one server without makes it unknown."""
        title = ("KV from", "slots from")[target]
        assert {"fleet=f": expected} == answer(tmp_path, self.known(sources, fact), 20, target, title)

    def test_each_fleet_has_its_own(self, tmp_path):
        """A fleet of which nothing is known does not hide behind another."""
        series = {member("a"): 1, member("b", "g"): 1, of(ex.KV_CAPACITY, backend="a", source="log"): 7}
        expected = {"fleet=f": ("log", GOOD), "fleet=g": ("unknown", NEUTRAL)}
        assert expected == answer(tmp_path, series, 20, 0, "KV from")

    def test_every_source_has_words(self):
        """A source added to the catalogue needs words."""
        codes = {one for mapping in self.mappings() for one in mapping["options"]}
        assert len(lb.FACT_SOURCES) + 1 == len(codes)

    def mappings(self):
        overrides = panel_of(BOARD, 20)["fieldConfig"]["overrides"]
        return next(prop["value"] for field in overrides for prop in field["properties"] if prop["id"] == "mappings")


class TestCeiling:
    def states(self, *fleets, ceiling="client"):
        return {
            of(rc.CEILING_VERDICT, fleet=f"f{number}", ceiling=ceiling, state=state): int(state == current)
            for number, current in enumerate(fleets)
            for state in lb.STATES
        }

    @pytest.mark.parametrize(
        ("fleets", "expected"),
        [
            (("clips",), ("clips", BAD)),
            (("inert",), ("inert", GOOD)),
            (("unmeasured",), ("unmeasured", NEUTRAL)),
            (("inert", "unmeasured"), ("unmeasured", NEUTRAL)),
            (("unmeasured", "clips", "inert"), ("clips", BAD)),
        ],
    )
    @pytest.mark.parametrize(("target", "ceiling"), [(0, "client"), (1, "server")])
    def test_state_in_words(self, tmp_path, fleets, expected, target, ceiling):
        """Each kind of ceiling has its state; of several fleets the one to look at. The other kind is unknown."""
        series = self.states(*fleets, ceiling=ceiling)
        assert {"": expected} == answer(tmp_path, series, 21, target)
        assert {"": ("unknown", NEUTRAL)} == answer(tmp_path, series, 21, 1 - target)

    @pytest.mark.parametrize(
        ("cause", "state", "expected"),
        [
            ({"sequence_slots": 0.5}, "inert", ("one short", WARN)),
            ({"sequence_slots": 0.5}, "clips", ("clips", BAD)),
            ({"sequence_slots": 0}, "inert", ("inert", GOOD)),
            ({"prefill_budget": 0.5}, "inert", ("inert", GOOD)),
        ],
    )
    def test_slots_of_one_server_may_be_short(self, tmp_path, cause, state, expected):
        """All slots together are enough and b lets its requests wait: no word for that is a good one."""
        waits = {of(rc.WAITING_CAUSE, backend="b", cause=name): value for name, value in cause.items()}
        series = {member("a", "f0"): 1, member("b", "f0"): 1, **self.states(state, ceiling="server"), **waits}
        assert {"": expected} == answer(tmp_path, series, 21, 1)
        assert {"": ("unknown", NEUTRAL)} == answer(tmp_path, series, 21, 0)


IDLE = {
    member("a"): 1,
    of(rc.KV_USAGE, **model("a")): 0.0,
    of(rc.PREEMPTION_RATE, **model("a")): 0.0,
    of(rc.LATE_RATIO, where="server", **model("a")): 0.95,
    of(rc.IMPACT, where="server", **model("a")): 0.09,
    **{of(rc.WAITING_CAUSE, backend="a", cause=cause): 0 for cause in lb.CAUSES if cause != lb.CALLER},
}
COSTLY = {of(rc.IMPACT, where="server", **model("a")): 0.1}
NATIVE = {name: value for name, value in IDLE.items() if not name.startswith(rc.WAITING_CAUSE.name)}
NO = ("no", GOOD)
CAUSELESS = ("waits", WARN)


def waits(backend="a", **causes):
    """So many requests wait in the backend for each cause."""
    return {of(rc.WAITING_CAUSE, backend=backend, cause=cause): number for cause, number in causes.items()}


class TestSaturation:
    @pytest.mark.parametrize(
        ("signs", "expected"),
        [
            ({}, NO),
            ({of(rc.KV_USAGE, **model("a")): 0.9}, ("KV nearly full", WARN)),
            ({of(rc.KV_USAGE, **model("a")): 0.89}, NO),
            ({of(rc.PREEMPTION_RATE, **model("a")): 0.01}, ("preempts", BAD)),
            ({of(rc.LATE_RATIO, where="server", **model("a")): 0.96, **COSTLY}, ("saturated", BAD)),
            ({of(rc.LATE_RATIO, where="server", **model("a")): 0.96}, NO),
            ({member("b"): 1}, UNKNOWN),
            ({member("b"): 1, of(rc.KV_USAGE, **model("b")): 0.1}, UNKNOWN),
            ({member("b"): 1, of(rc.PREEMPTION_RATE, **model("b")): 0}, UNKNOWN),
            ({member("b"): 1, of(rc.PREEMPTION_RATE, **model("a")): 2}, ("preempts", BAD)),
            (
                {of(rc.KV_USAGE, **model("a")): 1, of(rc.PREEMPTION_RATE, **model("a")): 2},
                ("preempts", BAD),
            ),
        ],
    )
    def test_gravest_sign(self, tmp_path, signs, expected):
        """Any sign of any server counts, the gravest is shown; a server that says nothing makes a "no" unknown."""
        assert {"": expected} == answer(tmp_path, {**IDLE, **signs}, 22)

    @pytest.mark.parametrize(
        ("series", "expected"),
        [
            (waits(prefill_budget=1), ("step budget", WARN)),
            (waits(sequence_slots=1), ("slots", WARN)),
            (waits(kv_cache=1), ("KV cache", BAD)),
            (waits(unknown=1), CAUSELESS),
            (waits(deferred=9), NO),
            (waits(prefill_budget=0.4, sequence_slots=0.3, unknown=0.2), NO),
            (waits(prefill_budget=0.3, sequence_slots=0.4, unknown=0.3), ("slots", WARN)),
            (waits(prefill_budget=6, kv_cache=0.1), ("step budget", WARN)),
            (waits(prefill_budget=1, deferred=2), ("step budget", WARN)),
            ({**waits(prefill_budget=0.2, deferred=0.1), **COSTLY}, ("step budget", WARN)),
            ({**waits(prefill_budget=0.1, deferred=0.2), **COSTLY}, NO),
            (COSTLY, NO),
            ({**waits(prefill_budget=2), **waits("b", kv_cache=2), member("b"): 1}, ("KV cache", BAD)),
            ({**waits(prefill_budget=0.6), **waits("b", prefill_budget=0.6), member("b"): 1}, UNKNOWN),
        ],
    )
    def test_waiting_to_speak_of_is_one_with_its_cause(self, tmp_path, series, expected):
        """One request on average, or a tenth of a request's time; the cause is that of most in that server."""
        assert {"": expected} == answer(tmp_path, {**IDLE, **series}, 22)

    def test_nothing_seen_is_unknown(self, tmp_path):
        """Without any server there is no "no"."""
        assert {"": UNKNOWN} == answer(tmp_path, {of(rc.BACKEND_UP, backend="a"): 0}, 22)

    @pytest.mark.parametrize(
        ("series", "expected"),
        [
            ({}, NO),
            ({of(rc.WAITING, **model("a")): "2 0x3"}, NO),
            ({of(rc.WAITING, **model("a")): "2 2 0x3"}, CAUSELESS),
            (COSTLY, CAUSELESS),
        ],
    )
    def test_native_servers_suffice(self, tmp_path, series, expected):
        """Without an exporter nothing is known of causes: what waits when it is scraped, and who came late, answer."""
        assert {"": expected} == answer(tmp_path, {**NATIVE, **series}, 22, at="3m")

    def test_counts_servers_that_are_down(self, tmp_path):
        """Two of three are down; where none is known there is no count."""
        down = plain(panel_of(BOARD, 22)["targets"][1]["expr"])
        series = {of(rc.BACKEND_UP, backend=name): up for name, up in {"a": 0, "b": 1, "c": 0}.items()}
        assert {"": 2} == evaluated(tmp_path, series, down)
        assert {} == evaluated(tmp_path, {member("a"): 1}, down)


class TestOddOneOut:
    def test_names_the_slowest_of_the_most_uneven_fleet(self, tmp_path):
        """Not the slowest of all: b takes 9 s in an even fleet, a takes 4 s in one where another takes 2 s."""
        series = {
            member("a", "f"): 1,
            member("b", "g"): 1,
            of(rc.FLEET_SLOWEST, fleet="f", **model("a")): 4,
            of(rc.FLEET_SLOWEST, fleet="g", **model("b")): 9,
            of(rc.FLEET_SKEW, fleet="f"): 2,
            of(rc.FLEET_SKEW, fleet="g"): 1.1,
        }
        expr = plain(panel_of(BOARD, 5)["targets"][0]["expr"])
        assert {"backend=a, fleet=f, model_name=m": 2} == evaluated(tmp_path, series, expr)

    @pytest.mark.parametrize("chosen", ["a", "b"])
    def test_is_the_slowest_whichever_backend_is_chosen(self, tmp_path, chosen):
        """With the other one chosen it still is a, of its fleet; that of another fleet is none of either's."""
        series = {
            **{member(name, fleet): 1 for name, fleet in {"a": "f", "b": "f", "c": "g"}.items()},
            of(rc.FLEET_SLOWEST, fleet="f", **model("a")): 4,
            of(rc.FLEET_SLOWEST, fleet="g", **model("c")): 9,
            of(rc.FLEET_SKEW, fleet="f"): 2,
            of(rc.FLEET_SKEW, fleet="g"): 3,
        }
        expr = panel_of(BOARD, 5)["targets"][0]["expr"].replace(FILTERS[lb.BACKEND], chosen)
        assert {"backend=a, fleet=f, model_name=m": 2} == evaluated(tmp_path, series, plain(expr))

    def test_unknown_is_grey(self, tmp_path):
        """One busy backend has no skew; what is shown then has no colour that means good."""
        panel = panel_of(BOARD, 5)
        series = {of(rc.FLEET_SLOWEST, fleet="f", **model("a")): 4}
        assert {} == evaluated(tmp_path, series, plain(panel["targets"][0]["expr"]))
        defaults = panel["fieldConfig"]["defaults"]
        assert (NEUTRAL, "unknown") == (defaults["thresholds"]["steps"][0]["color"], defaults["noValue"][:7])


def test_answers_are_of_the_end_of_the_range():
    """A verdict is no memory: it is asked for once, at the end of the range."""
    asked = [target for id_ in (2, 3, 5, 21, 22) for target in panel_of(BOARD, id_)["targets"]]
    assert [True] * 10 == [target["instant"] for target in asked]


def test_cuts_are_offered():
    """The gain ceiling can be had for every tenth of a stage, and for its quarters."""
    (cut,) = [one for one in BOARD["templating"]["list"] if one["name"] == "cut"]
    offered = [option["value"] for option in cut["options"]]
    assert ["0.1", "0.2", "0.25", "0.3", "0.4", "0.5", "0.6", "0.7", "0.75", "0.8", "0.9"] == offered
    assert cut["query"].startswith("10 % : 0.1, 20 % : 0.2, 25 % : 0.25")
