"""The exporter put together: polls, logs and callers in, one page out; what it keeps over a restart."""

import asyncio
import json
import logging

import pytest
from aiohttp import ClientSession, web

from tests.builders import exposition, requests
from tests.unit.little_servers import ManualClock, serving, until
from tidegauge import app, config, vllm
from tidegauge.app import Exporter
from tidegauge.parsing.events import BarrierOpened, Batch
from tidegauge.parsing.logs import StartupReader
from tidegauge.sources.scrape import Failed, Fetched

LOG = """\
INFO 11-29 23:50:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='m', max_seq_len=4096
INFO 11-29 23:50:02 [utils.py:253] non-default args: {'model': 'm', 'max_num_seqs': 12}
INFO 11-29 23:50:05 [kv_cache_utils.py:1229] GPU KV cache size: 52,288 tokens
INFO 11-29 23:50:09 [api_server.py:1100] Application startup complete.
"""


def body(finished=30, start=1000.0, **more):
    rows = requests(*[(0.1, 0.2, 0.3, 0.1)] * finished)
    return exposition(rows, start=start, values={vllm.RUNNING: 1.0, vllm.PROMPT_TOKENS: float(finished)}, **more)


def exporter(folder, clock, *, more=""):
    text = f"""
state_file: {folder}/state.json
backends:
  - url: http://127.0.0.1:9001
    name: a
    fleet: agents
  - url: http://127.0.0.1:9002
    name: b
{more}
"""
    return Exporter(config.load(text, "tidegauge.yml", {}), clock)


def named(found):
    return {one.name: one for one in found.backends}


class TestBooking:
    def test_page_becomes_figures(self, tmp_path):
        """A server that began while it was watched counts from zero."""
        clock = ManualClock(2000.0)
        one = exporter(tmp_path, clock)

        assert one.book("a", Fetched(2010.0, 0.1, body(start=2001.0)))
        assert not one.book("a", Fetched(2011.0, 0.1, body(33, start=2001.0)))
        clock.time = 2012.0
        found = one.figures()
        assert 33.0 == named(found)["a"].stages.requests
        assert ["agents"] == [fleet.name for fleet in found.fleets]

    def test_time_that_was_covered_is_less_than_the_window_at_first(self, tmp_path):
        """And not a poll that failed, until the next page tells what happened since."""
        one = exporter(tmp_path, ManualClock(2000.0))
        one.book("a", Fetched(2010.0, 0.1, body(start=1500.0)))
        one.book("a", Fetched(2013.5, 0.1, body(33, start=1500.0)))
        one.book("b", Fetched(2010.0, 0.1, body(start=1400.0)))
        one.book("b", Failed(2012.0, 0.1, "refused", "message"))

        assert [3.5, 0.0] == [backend.history.covered for backend in one.figures().backends]

    def test_failures_are_counted_and_complained_of_once(self, tmp_path, caplog):
        """A backend that is down for a night fills no log."""
        caplog.set_level(logging.INFO)
        one = exporter(tmp_path, ManualClock(2000.0))
        for at in range(5):
            one.book("a", Failed(2000.0 + at, 0.1, "refused", "http://127.0.0.1:9001/metrics: nobody there"))
        one.book("a", Fetched(2006.0, 0.1, "<html><title>Login</title></html>"))
        one.book("a", Fetched(2007.0, 0.1, body()))
        messages = [record.getMessage() for record in caplog.records if record.name == "tidegauge.exporter"]

        assert {"refused": 5, "not_metrics": 1} == named(one.figures())["a"].history.counts.failures
        assert 3 == len(messages)
        assert "nobody there" in messages[0]
        assert "Login" in messages[1]
        assert "http://127.0.0.1:9001/metrics" in messages[1]
        assert messages[2] == "a: well again"

    def test_waits_for_each_backend_once(self, tmp_path):
        """A failed poll is a poll."""
        one = exporter(tmp_path, ManualClock(2000.0))
        assert ["a", "b"] == one.waiting_for()
        one.book("a", Failed(2000.0, 0.1, "refused", "message"))
        assert ["b"] == one.waiting_for()
        one.book("b", Fetched(2000.0, 0.1, body()))

        assert [] == one.waiting_for()

    def test_configured_prefix_is_read_beside_the_known_ones(self, tmp_path):
        """A scrape pipeline that renames."""
        one = exporter(tmp_path, ManualClock(2000.0), more="metric_prefix: 'kserve_vllm:'")
        one.book("a", Fetched(2010.0, 0.1, body().replace("vllm:", "kserve_vllm:")))
        one.book("b", Fetched(2010.0, 0.1, body()))

        assert [1.0, 1.0] == [backend.history.gauges.running for backend in one.figures().backends]

    def test_thresholds_of_the_configuration_decide(self, tmp_path):
        """Not the defaults."""
        one = exporter(tmp_path, ManualClock(2000.0), more="thresholds:\n  min_requests: 31")
        one.book("a", Fetched(2010.0, 0.1, body(30, start=2001.0)))
        assert None is named(one.figures())["a"].models[0].queue
        one.book("a", Fetched(2011.0, 0.1, body(31, start=2001.0)))

        assert 31 == named(one.figures())["a"].models[0].queue.requests

    @pytest.mark.parametrize(("kv_full", "slots"), [(0.6, None), (0.8, 8.0)])
    def test_full_cache_is_what_the_configuration_says(self, tmp_path, kv_full, slots):
        """Requests that wait at a usage of 0.7 wait for a slot only if that is not full."""
        one = exporter(tmp_path, ManualClock(2000.0), more=f"thresholds:\n  kv_full: {kv_full}")
        values = {vllm.RUNNING: 8.0, vllm.WAITING: 2.0, vllm.KV_USAGE: 0.7}
        for second in range(5):
            one.book("a", Fetched(2010.0 + second, 0.1, exposition({}, start=2001.0, values=values)))

        assert slots == named(one.figures())["a"].history.observed_slots


class TestOverARestart:
    def test_facts_and_fan_outs_are_kept(self, tmp_path):
        """The log was rotated while the exporter was down; the same process still answers."""
        first = exporter(tmp_path, ManualClock(2000.0))
        first.watch.states["a"].startup(StartupReader().facts())
        reader = StartupReader()
        for line in LOG.splitlines():
            reader.feed(line)
        first.watch.states["a"].startup(reader.facts())
        first.book("a", Fetched(2001.0, 0.1, body()))
        first.take(Batch("sim", "agents", (BarrierOpened(2001.0, "1", 29),)))
        first.save()

        second = exporter(tmp_path, ManualClock(3000.0))
        second.book("a", Fetched(3001.0, 0.1, body()))
        facts = named(second.figures())["a"].facts
        assert (52_288, 12) == (facts.kv_tokens.value, facts.max_num_seqs.value)
        assert {"agents": 29} == second.watch.largest()

        third = exporter(tmp_path, ManualClock(3000.0))
        third.book("a", Fetched(3001.0, 0.1, body(start=2900.0)))
        assert None is named(third.figures())["a"].facts.kv_tokens

    def test_foreign_state_file_is_named_and_kept(self, tmp_path, caplog):
        """The exporter starts all the same, and overwrites nothing of somebody's."""
        (tmp_path / "state.json").write_text("a diary", encoding="utf-8")
        one = exporter(tmp_path, ManualClock(2000.0))
        one.save()

        assert "state.json: expected tidegauge's state" in caplog.text
        assert "a diary" == (tmp_path / "state.json.unreadable").read_text(encoding="utf-8")
        assert 1 == json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))["format"]

    def test_state_that_cannot_be_saved_is_complained_of(self, tmp_path, caplog):
        """And nothing else happens."""
        one = exporter(tmp_path / "gone", ManualClock(2000.0))
        (tmp_path / "gone").touch()
        one.save()

        assert "cannot be written" in caplog.text


def test_serving_from_poll_to_page_and_back(tmp_path):
    """Real sockets: two backends, one of which is down, a log, a caller; ready, a page, a report, a kept state."""
    log = tmp_path / "a.log"
    log.write_text(LOG, encoding="utf-8")

    async def answer(request):
        if request.path == "/metrics":
            return web.Response(text=body(start=9e9))
        return web.json_response({"version": "0.12.0"}) if request.path == "/version" else web.Response(status=404)

    async def run():
        async with serving(answer) as url:
            text = f"""
listen: 127.0.0.1:0
state_file: {tmp_path}/state.json
poll_interval: 50ms
backends:
  - {{url: {url}, name: a, log: {{file: {log}}}}}
  - {{url: "http://127.0.0.1:9", name: down}}
"""
            started = []
            task = asyncio.ensure_future(app.serve(config.load(text, "t.yml", {}), started.append))
            await until(lambda: started or task.done())
            base = f"http://{started[0].host}:{started[0].port}"
            async with ClientSession() as session:
                found = await settled(session, base)
                batch = {"caller": "c", "fleet": "m", "events": []}
                async with session.post(f"{base}/api/v1/events", json=batch) as taken:
                    status = taken.status
                async with session.get(f"{base}/metrics") as answered:
                    page = await answered.text()
            task.cancel()
            await task
        return found, status, page

    async def settled(session, base):
        """The report once everything has arrived."""
        async with asyncio.timeout(20):
            while True:
                async with session.get(f"{base}/-/ready") as ready, session.get(f"{base}/api/v1/report") as report:
                    found = await report.json()
                    one = found["backends"][0]
                    if ready.status == 200 and one["models"] and one["max_num_seqs"] and one["version"]:
                        return found
                await asyncio.sleep(0.02)

    found, status, page = asyncio.run(run())
    good, down = found["backends"]

    assert ("a", True, "0.12.0") == (good["name"], good["up"], good["version"])
    assert {"value": 52_288, "source": "log"} == good["kv_cache_capacity_tokens"]
    assert (False, {"refused"}) == (down["up"], set(down["failed_polls"]))
    assert 204 == status
    assert 'tidegauge_backend_up{backend="a"} 1.0' in page
    kept = json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))
    assert 12 == kept["backends"]["a"]["startup"]["max_num_seqs"]


def test_address_that_is_taken_is_an_error_of_the_address():
    """OSError, which the command shows in one line."""

    async def answer(_):
        return web.Response()

    async def run():
        async with serving(answer) as url:
            port = url.rpartition(":")[2].rstrip("/")
            text = f"listen: 127.0.0.1:{port}\nbackends: [{{url: 'http://127.0.0.1:9'}}]\n"
            await app.serve(config.load(text, "t.yml", {}), lambda _: None)

    with pytest.raises(OSError, match=r"^listen: expected an address to be had, found 127\.0\.0\.1:\d+: .*in use"):
        asyncio.run(run())
