"""Every threshold decides as it is configured: on either side of each, in the JSON and in the text, on every path."""

import asyncio
import json
import re

import pytest
from aiohttp import web

from tests.builders import exposition, requests
from tests.recordings import report as replayed
from tests.recordings import shown, write
from tests.unit.little_servers import ManualClock, serving
from tidegauge import cli, config, vllm
from tidegauge.app import Exporter
from tidegauge.catalogue import THRESHOLDS
from tidegauge.catalogue.thresholds import DEFAULTS
from tidegauge.derive.settings import Settings
from tidegauge.parsing.events import Batch, Wait
from tidegauge.report import live
from tidegauge.report.document import document
from tidegauge.sources.scrape import Fetched

OWN = {
    "min_requests": 7.0,
    "bimodal_late_low": 0.11,
    "bimodal_late_high": 0.83,
    "bimodal_split": 6.0,
    "page_impact": 0.13,
    "skew": 1.9,
    "kv_full": 0.65,
    "sources_disagree": 0.02,
    "caller_edge_seconds": 0.5,
}
SPLIT = (
    "The queue of slow is split: 35% wait at least 5.54 s in the mean, the others at most 0.3 s. Waiting is 20.6% of"
)
CHEAP = "The queue of slow is split but costs little: .* Waiting is 20.6% of end-to-end time, under 21%: not the first"
CALLER = "The caller's wait for a slot is split: 40% wait at least 3.55 s in the mean, the others at most 0.5 s."
EVEN = r"No backend is the odd one out: .* factor of 2.24 at most \(slow over quick\), under 2.3\."
DISAGREE = "The sources of the KV capacity of slow disagree"
OTHER_SIDE = [
    # key, a value on the other side of what was measured, what the text says with OWN and then with that value
    ("min_requests", 38.0, SPLIT, "server slow - - - - - - too few requests"),
    ("bimodal_late_low", 0.37, SPLIT, "server slow .* no queue"),
    ("bimodal_late_high", 0.34, SPLIT, "The queue of slow is saturated: 35% of the requests wait."),
    ("bimodal_split", 19.0, SPLIT, "The queue of slow is 21% of end-to-end time: 35% .* too short against that edge"),
    ("page_impact", 0.21, SPLIT, CHEAP),
    ("skew", 2.3, "slow is the odd one out: 2.24 times quick", EVEN),
    ("kv_full", 0.75, "On slow .* 3 s of it for KV-cache space", "On slow .* 3 s of it for a sequence slot"),
    ("sources_disagree", 0.08, DISAGREE, ""),
    ("caller_edge_seconds", 0.25, CALLER, "The caller's limiter is saturated: 100% of the requests wait for a slot"),
]


def slow(*, finished=True, info=True):
    rows = [(0.05, 1.0, 7.0, 0.25)] * 24 + [(6.0, 1.0, 7.0, 0.25)] * 13
    values = {vllm.RUNNING: 8.0, vllm.WAITING: 3.0, vllm.KV_USAGE: 0.7}
    sizes = {"kv_cache_size_tokens": 1000} if info else None
    return exposition(requests(*(rows if finished else [])), start=2001.0, values=values, info=sizes)


def quick(finished=29):
    return exposition(requests(*[(0.02, 0.5, 4.0, 0.125)] * finished), start=2002.0, values={vllm.RUNNING: 2.0})


def exported(thresholds):
    """The report of an exporter with those thresholds in its file; one of its two servers is slow and full."""
    own = "".join(f"\n  {key}: {value}" for key, value in thresholds.items())
    pinned = {"kv_cache_capacity_tokens": 1050, "max_num_seqs": 8}
    file = f"""
backends:
  - {{url: 'http://127.0.0.1:9001', name: slow, fleet: agents, {str(pinned)[1:-1].replace("'", "")}}}
  - {{url: 'http://127.0.0.1:9002', name: quick, fleet: agents}}
thresholds:{own}
"""
    clock = ManualClock(2000.0)
    exporter = Exporter(config.load(file, "tidegauge.yml", {}), clock)
    clock.time = 2012.0
    exporter.book("slow", Fetched(2010.0, 0.1, slow(finished=False)))
    exporter.book("slow", Fetched(2011.0, 0.1, slow()))
    exporter.book("quick", Fetched(2011.5, 0.1, quick()))
    waits = (0.4,) * 27 + (3.7,) * 18
    assert None is exporter.take(Batch("simulation", "agents", (Wait(2011.0, waits),)))
    return document(exporter.figures())


def told(report):
    """The text, each row of its tables with one blank between the cells."""
    return re.sub(r"[ │┃]+", " ", shown(report, width=300))


def judged(report):
    """What each threshold decides, as the JSON has it."""
    (fleet,) = report["fleets"]
    (one,) = (backend for backend in report["backends"] if backend["name"] == "slow")
    queue = one["models"][0]["queue"] or {}
    return {
        "queue": tuple(queue.get(key) for key in ("bimodal", "saturated", "pages")),
        "causes": set(one["waiting_seconds"]),
        "disagree": one["kv_cache_sources_disagree"],
        "caller": tuple(fleet["caller_queue"][key] for key in ("edge_seconds", "bimodal", "saturated")),
        "odd": fleet["skew"] and fleet["skew"]["ratio"] >= report["thresholds"]["skew"],
    }


BASE = {
    "queue": (True, False, True),
    "causes": {"kv_cache"},
    "disagree": True,
    "caller": (0.5, True, False),
    "odd": True,
}
CHANGED = {
    "min_requests": {"queue": (None, None, None), "odd": None},
    "bimodal_late_low": {"queue": (False, False, False)},
    "bimodal_late_high": {"queue": (False, True, False), "caller": (0.5, False, True)},
    "bimodal_split": {"queue": (False, False, False), "caller": (0.5, False, False)},
    "page_impact": {"queue": (True, False, False)},
    "skew": {"odd": False},
    "kv_full": {"causes": {"sequence_slots"}},
    "sources_disagree": {"disagree": False},
    "caller_edge_seconds": {"caller": (0.25, False, True)},
}


def test_every_threshold_of_the_catalogue_is_tried():
    """On both sides, neither of them the default: a threshold that decides nothing cannot be added unnoticed."""
    keys = {one.key for one in THRESHOLDS}

    assert keys == OWN.keys() == CHANGED.keys() == {key for key, *_ in OTHER_SIDE}
    assert not {(key, OWN[key]) for key in keys} & DEFAULTS.items()
    assert not {(key, value) for key, value, *_ in OTHER_SIDE} & DEFAULTS.items()


def test_configured_thresholds_are_in_the_report():
    """All of them, by the keys of the configuration."""
    assert OWN == exported(OWN)["thresholds"]


@pytest.mark.parametrize(("key", "value", "own", "other"), OTHER_SIDE, ids=[key for key, *_ in OTHER_SIDE])
def test_configured_value_decides_on_either_side(key, value, own, other):
    """What the JSON says and what the text says turn with the one threshold, and with no other."""
    before, after = exported(OWN), exported(OWN | {key: value})

    assert BASE == judged(before)
    assert BASE | CHANGED[key] == judged(after)
    assert re.search(own, told(before))
    assert re.search(other, told(after))
    assert not re.search(own, told(after))


def by_capture(folder, settings):
    paths = {
        "slow": write(folder, "slow", slow(finished=False, info=False), *[slow(info=False)] * 3),
        "quick": write(folder, "quick", quick(finished=0), quick()),
    }
    return replayed(paths, settings)


def by_servers(settings):
    """Of their whole life, from one page each."""

    async def answer(request):
        return web.Response(text=slow(info=False)) if request.path == "/metrics" else web.Response(status=404)

    async def other(request):
        return web.Response(text=quick()) if request.path == "/metrics" else web.Response(status=404)

    async def run():
        async with serving(answer) as first, serving(other) as second:
            return await live.from_backends([first, second], 0.0, {}, settings)

    return document(asyncio.run(run()))


FILE = "thresholds: {skew: 2.3}\ncallers: {roster: {agents: 40}, ceilings: {agents: 28}}\nmetric_prefix: 'own:'\n"


class TestConfigFile:
    """`tidegauge report --config FILE`: judged by what an exporter with that file would judge by."""

    def report(self, capsys, *argv):
        code = cli.main(["report", "--json", *map(str, argv)])
        printed = capsys.readouterr()
        assert (0, "") == (code, printed.err)
        return json.loads(printed.out)

    def captured(self, folder):
        """Barriers of two servers, one of which has metrics of its own prefix."""
        paths = {
            "slow": write(folder, "slow", slow(finished=False, info=False), *[slow(info=False)] * 3),
            "quick": write(folder, "quick", *(page.replace("vllm:", "own:") for page in (quick(finished=0), quick()))),
        }
        return ["--fleet", "agents=slow,quick", *(f"--capture={name}={path}" for name, path in paths.items())]

    def test_captures_are_judged_by_the_file(self, tmp_path, capsys):
        """Its thresholds, ceilings and prefix; what it does not name has its default; no backend need be in it."""
        (tmp_path / "own.yml").write_text(FILE)
        found = self.report(capsys, *self.captured(tmp_path), "--config", tmp_path / "own.yml")
        (fleet,) = found["fleets"]

        assert DEFAULTS | {"skew": 2.3} == found["thresholds"]
        assert 2.24 == pytest.approx(fleet["skew"]["ratio"], abs=0.01)
        assert re.search(EVEN, told(found))
        assert {"ceiling": "client", "value": 28.0, "source": "config", "state": "unmeasured"} in fleet["ceilings"]
        assert {"value": 40.0, "source": "config"} == fleet["natural_bound"]

    def test_servers_are_judged_by_the_file(self, tmp_path, capsys):
        """Of an exporter's whole file, which names other servers, how they are polled and what is kept of them."""
        (tmp_path / "own.yml").write_text(FILE + "backends: [{url: 'http://127.0.0.1:1'}]\nwindow: 2s\n")

        async def answer(request):
            body = slow(info=False).replace("vllm:", "own:")
            return web.Response(text=body) if request.path == "/metrics" else web.Response(status=404)

        async def run():
            async with serving(answer) as url:
                arguments = ("--backend", f"a={url}", "--config", tmp_path / "own.yml")
                return await asyncio.to_thread(self.report, capsys, *arguments)

        found = asyncio.run(run())

        assert (DEFAULTS | {"skew": 2.3}, ["a"]) == (found["thresholds"], [one["name"] for one in found["backends"]])
        assert 37 == found["fleets"][0]["stages"]["requests"]

    def test_a_wrong_file_is_refused_as_by_the_exporter(self, tmp_path, capsys):
        """One validation: the same message, the same exit code, and no report."""
        file = tmp_path / "own.yml"
        file.write_text("backends: [{url: 'http://127.0.0.1:1'}]\nthresholds: {skw: 2}\n")
        expected = f"tidegauge: {file}:2: thresholds.skw: unknown key; did you mean `skew`?\n"
        for command in (["check"], ["serve"], ["report", *self.captured(tmp_path)]):
            assert 2 == cli.main([*command, "--config", str(file)])
            assert ("", expected) == capsys.readouterr()

    def test_an_exporter_needs_backends_still(self, tmp_path, capsys):
        """Only a report is told of what it is by the command line."""
        (tmp_path / "own.yml").write_text(FILE)

        assert 2 == cli.main(["check", "--config", str(tmp_path / "own.yml")])
        assert "backends: missing" in capsys.readouterr().err


class TestEveryPath:
    @pytest.mark.parametrize(("least", "said"), [(1.9, "is the odd one out: 2.24 times"), (2.3, r"under 2\.3\.")])
    def test_captures_and_servers_are_judged_by_what_is_set(self, tmp_path, least, said):
        """As the exporter is."""
        settings = Settings(thresholds=OWN | {"skew": least})
        for report in (by_capture(tmp_path, settings), by_servers(settings)):
            assert OWN | {"skew": least} == report["thresholds"]
            assert re.search(said, told(report))

    @pytest.mark.parametrize(("kv_full", "slots"), [(0.65, None), (0.75, {"value": 8.0, "source": "observed"})])
    def test_slots_seen_in_a_capture_follow_the_set_usage(self, tmp_path, kv_full, slots):
        """Requests that wait at a usage of 0.7 wait for a slot only if that is not full."""
        report = by_capture(tmp_path, Settings(thresholds=OWN | {"kv_full": kv_full}))

        assert slots == report["backends"][0]["max_num_seqs"]
