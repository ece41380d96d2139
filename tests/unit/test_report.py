"""The report as data and as text, and the document that describes its keys."""

import json
import re
from pathlib import Path

import attrs
import pytest

from tests.builders import figures, lifetime, page, requests
from tests.golden.everything import everything
from tests.recordings import shown
from tidegauge.report.document import FORMAT, document
from tidegauge.state.backend import Backend, BackendState

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
    "thresholds": 1,
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
