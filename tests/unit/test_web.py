"""The exporter's HTTP side, on a real server: metrics, health, events, report, landing page."""

import asyncio
import gzip
import json
import re
import resource
from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import ProcessCollector
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.builders import figures, lifetime, page, requests
from tests.golden.everything import everything
from tests.golden.test_metrics_page import GOLDEN
from tidegauge import process
from tidegauge.report.document import document
from tidegauge.state.backend import Backend, BackendState
from tidegauge.state.fleets import CallersState
from tidegauge.web import pages, runbooks
from tidegauge.web.events import EventsHandler
from tidegauge.web.pages import build

NOW = 10_000.0
TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"
EVENT = {"type": "barrier_opened", "at": NOW, "id": "1", "fan_out": 29}
RUNBOOKS = {
    "VllmOne": "# VllmOne\n\nRule: [alerts/x](../../alerts/x.libsonnet). <b>See</b> [VllmTwo](VllmTwo.md).\n",
    "VllmTwo": "# VllmTwo\n",
}
BATCH = {"caller": "simulation", "fleet": "agents", "events": [EVENT]}


class StoppedClock:
    def now(self):
        return NOW

    async def sleep(self, seconds):
        raise AssertionError(seconds)


class Fake:
    """An exporter whose figures are given."""

    def __init__(self, moment=everything, missing=()):
        self._moment = moment
        self.missing = list(missing)

    def figures(self):
        return self._moment()

    def waiting_for(self):
        return self.missing


def visit(*calls, exporter=None, take=None, token_file=None, max_body=1 << 20):
    """The answers to *calls*, each (method, path, options), as (status, headers, body)."""
    exporter = exporter or Fake()
    handler = EventsHandler(take or (lambda _: None), StoppedClock(), token_file, max_body)

    async def run():
        found = []
        async with TestClient(TestServer(build(exporter, handler, RUNBOOKS)), auto_decompress=False) as client:
            for method, path, options in calls:
                headers = {"Accept-Encoding": "identity"} | options.pop("headers", {})
                async with client.request(method, path, headers=headers, **options) as answer:
                    found.append((answer.status, answer.headers, await answer.read()))
        return found

    return asyncio.run(run())


def get(path, exporter=None, **options):
    (answer,) = visit(("GET", path, options), exporter=exporter)
    return answer


def post(batch, *, take=None, token_file=None, max_body=1 << 20, headers=None):
    body = batch if isinstance(batch, bytes) else json.dumps(batch).encode()
    call = ("POST", "/api/v1/events", {"data": body, "headers": headers or {}})
    ((status, _, answer),) = visit(call, take=take, token_file=token_file, max_body=max_body)
    return status, json.loads(answer)["error"] if answer else None


def split(body):
    """The figures of a text page, and whether the rest of it is about the process."""
    own, mark, rest = body.partition(f"# HELP {process.SERIES[0].name} ".encode())
    families = parse_text((mark + rest).decode())
    names = [sample.name for one in families for sample in one.samples]
    return own, [series.name for series in process.SERIES] == names


class TestMetrics:
    def test_text_is_the_golden_page(self):
        """What Prometheus asks for without OpenMetrics."""
        status, headers, body = get("/metrics", headers={"Accept": TEXT})

        assert 200 == status
        assert headers["Content-Type"].startswith("text/plain; version=")
        assert (GOLDEN.read_bytes(), True) == split(body)

    def test_openmetrics_says_the_same(self):
        """What Prometheus asks for by default."""
        _, headers, body = get("/metrics", headers={"Accept": OPENMETRICS})
        families = list(parse_openmetrics(body.decode()))

        assert headers["Content-Type"].startswith("application/openmetrics-text")
        plain = list(parse_text(GOLDEN.read_text(encoding="utf-8")))
        own, others = families[: len(plain)], families[len(plain) :]
        assert [one.name for one in plain] == [one.name for one in own]
        assert sum(len(one.samples) for one in plain) == sum(len(one.samples) for one in own)
        assert [series.name for series in process.SERIES] == [sample.name for one in others for sample in one.samples]

    def test_page_is_compressed_on_request(self):
        """A fleet of a hundred backends is a large page."""
        _, headers, body = get("/metrics", headers={"Accept": TEXT, "Accept-Encoding": "gzip"})

        assert "gzip" == headers["Content-Encoding"]
        assert (GOLDEN.read_bytes(), True) == split(gzip.decompress(body))

    def test_process_is_this_one(self):
        """Its time and what it has in use, as the system books them."""
        _, _, body = get("/metrics")
        samples = [sample for one in parse_text(body.decode()) for sample in one.samples]
        found = {series: one.value for series in process.SERIES for one in samples if one.name == series.name}
        used = resource.getrusage(resource.RUSAGE_SELF)

        assert found.keys() == set(process.SERIES)
        assert 0 < found[process.CPU] <= used.ru_utime + used.ru_stime + 0.02
        assert 0 < found[process.RESIDENT_MEMORY] <= 1.1 * 1024 * used.ru_maxrss
        assert 0 < found[process.OPEN_FILES] < found[process.MOST_FILES]
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == found[process.MOST_FILES]

    def test_where_the_system_does_not_tell_the_process_is_absent(self, monkeypatch, tmp_path):
        """The figures alone are the page, as on a system that is not Linux."""
        monkeypatch.setattr(pages, "ProcessCollector", partial(ProcessCollector, proc=str(tmp_path)))
        status, _, body = get("/metrics", headers={"Accept": TEXT})

        assert (200, GOLDEN.read_bytes()) == (status, body)

    def test_series_of_a_backend_that_left_disappear(self):
        """Each scrape shows the moment, not its past."""
        moments = [
            figures(lifetime("a", page({})), lifetime("b", page({}, start=2.0))),
            figures(lifetime("a", page({}))),
        ]
        exporter = Fake(lambda: moments.pop(0))
        first, second = visit(("GET", "/metrics", {}), ("GET", "/metrics", {}), exporter=exporter)

        assert b'backend="b"' in first[2]
        assert b'backend="b"' not in second[2]


class TestHealth:
    def test_healthy_whatever_the_backends_do(self):
        """The process lives."""
        assert (200, b"healthy\n") == get("/-/healthy", Fake(missing=["a"]))[::2]

    def test_ready_once_each_backend_was_polled(self):
        """503 names those that were not; a backend that failed was polled."""
        exporter = Fake(missing=["10.0.0.1:8000", "b"])
        status, _, body = get("/-/ready", exporter)

        assert (503, b"not polled yet: 10.0.0.1:8000, b\n") == (status, body)
        exporter.missing = []
        assert (200, b"ready\n") == get("/-/ready", exporter)[::2]


class TestReportAndLanding:
    def test_report_is_the_document(self):
        """The same as `tidegauge report --json`."""
        status, headers, body = get("/api/v1/report")

        assert (200, "application/json; charset=utf-8") == (status, headers["Content-Type"])
        assert document(everything()) == json.loads(body)

    def test_landing_page_links_to_everything(self):
        """And shows each backend's state."""
        _, headers, body = get("/")
        text = body.decode()

        assert headers["Content-Type"].startswith("text/html")
        for path in ("/metrics", "/-/healthy", "/-/ready", "/api/v1/report"):
            assert f'<a href="{path}">' in text
        assert "10.0.0.2:8000</td><td>agents</td><td>up<" in text

    def test_pages_for_people_stand_in_one_frame(self):
        """Head and style are the same, whatever the page: it reads as well on a phone, and in the dark."""
        found = visit(("GET", "/", {}), ("GET", "/runbooks/", {}), ("GET", "/runbooks/VllmOne.md", {}))
        heads = [re.split(rb"<title>(.*)</title>|<body>", body) for _, _, body in found]

        assert [b"tidegauge", b"Runbooks", b"VllmOne"] == [head[1] for head in heads]
        assert 1 == len({(head[0], head[2]) for head in heads})
        assert b"prefers-color-scheme:dark" in heads[0][2]

    def test_landing_page_escapes_names(self):
        """Backend names come from the configuration, fleets from servers."""
        evil = "<script>alert('x')</script>"
        rows = page(requests((0.1, 0.1, 0.1, 0.1)), model=evil)
        _, _, body = get("/", Fake(lambda: figures(lifetime(Backend(f"a{evil}"), rows))))

        assert b"<script>" not in body
        assert 2 == body.count(b"&lt;script&gt;")

    def test_landing_page_tells_down_from_not_polled(self):
        """They are different faults."""
        down, new = BackendState(Backend("down"), 9.0, 9.0, 0.0), BackendState(Backend("new"), 9.0, 9.0, 0.0)
        down.failed("refused", 0.1)
        _, _, body = get("/", Fake(lambda: figures(down, new)))

        assert b"down</td><td></td><td>down<" in body
        assert b"new</td><td></td><td>not polled yet<" in body

    def test_unknown_path_and_method_are_refused(self):
        """404 and 405."""
        found = visit(("GET", "/secret", {}), ("POST", "/metrics", {}), ("GET", "/api/v1/events", {}))

        assert [404, 405, 405] == [answer[0] for answer in found]


class TestEvents:
    def test_batch_is_taken(self):
        """204, and the state has it."""
        state = CallersState(900.0, 0.1, 5)

        assert (204, None) == post(BATCH, take=state.take)
        assert 29 == state.snapshots(NOW)[0].largest

    @pytest.mark.parametrize(
        ("change", "named"),
        [
            ({"events": [EVENT | {"fan_out": 0}]}, "events[0].fan_out"),
            ({"events": [EVENT, EVENT | {"at": "noon"}]}, "events[1].at"),
            ({"events": [EVENT | {"type": "coffee"}]}, "events[0].type"),
            ({"fleet": 'a"b'}, "fleet"),
            ({"extra": 1}, "extra"),
        ],
    )
    def test_bad_batch_names_its_field_and_changes_nothing(self, change, named):
        """400; one bad event refuses the whole batch."""
        taken = []
        status, error = post(BATCH | change, take=taken.append)

        assert 400 == status
        assert named in error
        assert [] == taken

    @pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[]", b"[" * 100_000])
    def test_body_that_is_no_batch_is_refused(self, body):
        """400, never 500."""
        assert 400 == post(body)[0]

    def test_body_over_the_limit_is_refused(self):
        """413 with the limit."""
        status, error = post(b" " * 2000, max_body=1000)

        assert 413 == status
        assert "1000 bytes" in error

    def test_fleet_beyond_the_limit_is_refused(self):
        """429 with the reason; a label set from outside must not grow without end."""
        state = CallersState(900.0, 0.1, 1)
        post(BATCH, take=state.take)
        status, error = post(BATCH | {"fleet": "another"}, take=state.take)

        assert 429 == status
        assert "another" in error

    @pytest.mark.parametrize(
        ("header", "status"),
        [
            ("Bearer hush", 204),
            ("bearer hush", 204),
            ("Bearer  hush ", 204),
            (None, 401),
            ("", 401),
            ("hush", 401),
            ("Basic hush", 401),
            ("Bearer hus", 401),
            ("Bearer husht", 401),
            ("Bearer ", 401),
            ("Bearer h\u00fcsh", 401),
        ],
    )
    def test_token_is_asked_for_where_one_is_configured(self, tmp_path, header, status):
        """401 for anything but the bearer token."""
        token = tmp_path / "token"
        token.write_text("hush\n", encoding="utf-8")
        headers = {} if header is None else {"Authorization": header}

        assert status == post(BATCH, token_file=token, headers=headers)[0]

    def test_rotated_token_needs_no_restart(self, tmp_path):
        """The file is read at every call; an empty or missing one lets nobody in."""
        token = tmp_path / "token"
        found = []
        for content in ("old", "new", "", None):
            if content is None:
                token.unlink()
            else:
                token.write_text(content, encoding="utf-8")
            found.append(post(BATCH, token_file=token, headers={"Authorization": f"Bearer {content or ''}"})[0])

        assert [204, 204, 401, 401] == found

    def test_refusal_repeats_no_text_of_the_caller_beyond_the_field(self):
        """A prompt sent by mistake must not come back, nor be logged."""
        secret = "my mother's maiden name is " + "x" * 200
        _, error = post(BATCH | {"events": [EVENT | {"id": secret}]})

        assert secret not in error


def test_application_has_no_other_routes():
    """What is served is what is tested here."""
    app = build(Fake(), EventsHandler(lambda _: None, StoppedClock(), None, 1000))
    routes = {(route.method, route.resource.canonical) for route in app.router.routes() if route.method != "HEAD"}

    assert isinstance(app, web.Application)
    assert {
        ("GET", "/"),
        ("GET", "/metrics"),
        ("GET", "/-/healthy"),
        ("GET", "/-/ready"),
        ("GET", "/api/v1/report"),
        ("GET", "/runbooks"),
        ("GET", "/runbooks/"),
        ("GET", "/runbooks/{name}.md"),
        ("POST", "/api/v1/events"),
    } == routes


class TestRunbooks:
    def test_index_lists_the_pages(self):
        """Every page is one click away; the address without a slash leads to it, below any path of a proxy."""
        (moved, listed) = visit(("GET", "/runbooks", {"allow_redirects": False}), ("GET", "/runbooks/", {}))

        assert (302, "runbooks/") == (moved[0], moved[1]["Location"])
        assert 200 == listed[0]
        assert b'<a href="VllmOne.md">' in listed[2]
        assert b'<a href="VllmTwo.md">' in listed[2]

    def test_page_is_readable_and_links_work(self):
        """A page is HTML; links to other pages stay, links into the repository do not, and text is no markup."""
        status, headers, body = get("/runbooks/VllmOne.md")

        assert (200, "text/html; charset=utf-8") == (status, headers["Content-Type"])
        assert b"<h1>VllmOne</h1>" in body
        assert b'<a href="VllmTwo.md">VllmTwo</a>' in body
        assert b"Rule: alerts/x." in body
        assert b"&lt;b&gt;See" in body

    @pytest.mark.parametrize("path", ["VllmThree.md", "..%2f..%2fREADME.md", "VllmOne"])
    def test_nothing_else_is_served(self, path):
        """A name that is no alert's gives 404, whatever file it might name."""
        status, _, _ = get(f"/runbooks/{path}")
        assert 404 == status

    def test_shipped_pages_are_those_of_the_repository(self):
        """What the exporter reads are the pages in docs/runbooks, one for every alert."""
        folder = Path(__file__).parents[2] / "docs/runbooks"
        assert {path.stem: path.read_text() for path in folder.glob("*.md")} == runbooks.read()
