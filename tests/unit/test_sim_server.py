"""The simulated server over real HTTP: what it answers, counts, logs and forgets."""

import asyncio
import io
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import aiohttp
import pytest

from tidegauge import vllm
from tidegauge.demo.drive import Capped, HttpFleet, Unlimited, drive_barriers, drive_steady
from tidegauge.demo.pages import CONTENT_TYPE
from tidegauge.demo.requests import Request
from tidegauge.demo.server import parser, settings_from
from tidegauge.demo.settings import CostModel, EngineSettings
from tidegauge.demo.simserver import SimServer
from tidegauge.demo.workload import Call, Caller, Lengths, LogNormal, roster

FAST = EngineSettings(model_name="fast", cost=CostModel(0.002, 1e-6, 1e-5, 0, frontend=1e-5))
SLOW = EngineSettings(model_name="slow", cost=CostModel(base=0.05))
SHORT = Lengths(LogNormal(50, 0.2, high=100), LogNormal(30, 0.5, high=300), LogNormal(6, 0.3, 2, 12), history_limit=200)


def served(settings, act):
    """Run `act(server, session)` against a started server; the server, its log and what `act` returned."""

    async def session():
        log = io.StringIO()
        server = SimServer(settings, log)
        await server.start()
        try:
            async with aiohttp.ClientSession() as client:
                return server, log, await act(server, client)
        finally:
            await server.stop()

    return asyncio.run(session())


async def until(condition):
    """Poll a running server, no longer than ten seconds."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the server has no event for this
            await asyncio.sleep(0.01)


async def post(client, server, body):
    async with client.post(f"{server.url}/v1/completions", json=body) as response:
        return response.status, await response.json()


class TestCompletions:
    def test_an_answer_has_usage_and_timings_and_no_text(self):
        """The answer gives lengths, cached tokens and vLLM's per-request timings; the text is empty."""

        async def act(server, client):
            await post(client, server, {"prompt_tokens": 100, "shared_tokens": 96, "user": "u", "max_tokens": 2})
            return await post(client, server, {"prompt": [1] * 120, "shared_tokens": 96, "user": "u", "max_tokens": 3})

        status, body = served(FAST, act)[2]
        assert 200 == status
        assert {
            "prompt_tokens": 120,
            "completion_tokens": 3,
            "total_tokens": 123,
            "prompt_tokens_details": {"cached_tokens": 96},
        } == body["usage"]
        assert [{"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}] == body["choices"]
        assert body["metrics"]["generation_time_ms"] > body["metrics"]["time_to_first_token_ms"] > 0

    def test_what_a_prompt_says_is_nowhere(self):
        """The text of a prompt is in no answer, log line or page."""

        async def act(server, client):
            _, body = await post(client, server, {"prompt": "the secret of the tide", "max_tokens": 2})
            async with client.get(f"{server.url}/metrics") as response:
                return str(body) + await response.text()

        _, log, seen = served(FAST, act)
        assert "secret" not in seen + log.getvalue()

    @pytest.mark.parametrize(
        ("body", "status", "message"),
        [
            ({"prompt_tokens": 9000}, 400, "maximum context length is 8192 tokens"),
            ({"prompt_tokens": 0}, 400, "prompt_tokens"),
            ({"prompt_tokens": "7"}, 400, "prompt_tokens must be a whole number"),
            ({"prompt": [1], "max_tokens": True}, 400, "max_tokens must be a whole number"),
            ({}, 400, "prompt must be a string or a list of token ids"),
            ({"prompt": [1], "stream": True}, 400, "does not stream"),
            ({"prompt": [1], "model": "other"}, 404, "The model `other` does not exist."),
            ([1], 400, "must be a JSON object"),
        ],
    )
    def test_bad_requests_are_refused_with_the_reason(self, body, status, message):
        """Each kind of bad request gets vLLM's status and a message that names what is wrong."""

        async def act(server, client):
            return await post(client, server, body)

        answered, told = served(FAST, act)[2]
        assert status == answered
        assert message in told["error"]["message"]

    def test_a_client_that_leaves_is_an_abort(self):
        """A dropped connection takes its request out of the engine, and no finished request is counted."""

        async def act(server, client):
            call = asyncio.create_task(post(client, server, {"prompt_tokens": 10, "max_tokens": 500}))
            await until(lambda: server.engine.tally.histograms[vllm.TTFT].count)
            call.cancel()
            await until(lambda: not server.engine.unfinished)
            return server.engine.tally

        tally = served(SLOW, act)[2]
        assert (1, 0) == (tally.histograms[vllm.TTFT].count, tally.histograms[vllm.E2E].count)


class TestPaths:
    def test_the_other_paths_answer_as_vllm_does(self):
        """Health, version, models with the window, metrics with vLLM's content type, and 404 for the rest."""

        async def act(server, client):
            async def get(path):
                async with client.get(server.url + path) as response:
                    return response.status, response.headers.get("Content-Type"), await response.read()

            return [await get(path) for path in ("/health", "/version", "/v1/models", "/metrics", "/nothing")]

        health, version, models, metrics, nothing = served(FAST, act)[2]
        assert (200, b"") == (health[0], health[2])
        assert b'{"version": "0.32.0"}' == version[2]
        assert b'"max_model_len": 8192' in models[2]
        assert (200, CONTENT_TYPE) == metrics[:2]
        assert b'handler="/v1/models",method="GET",status="2xx"} 1.0' in metrics[2]
        assert 404 == nothing[0]

    def test_the_log_has_the_startup_and_access_lines(self):
        """The log starts like a real one, names the port, and has a line per request."""

        async def act(server, client):
            await post(client, server, {"prompt_tokens": 10})

        server, log, _ = served(FAST, act)
        lines = log.getvalue().splitlines()
        assert any(line.endswith(f"Starting vLLM server on http://127.0.0.1:{server.port}") for line in lines)
        assert any('"POST /v1/completions HTTP/1.1" 200 OK' in line for line in lines)
        assert "INFO:     Application shutdown complete." == lines[-1]


class TestDrive:
    def drive(self, limiter, reporter):
        """Three barriers of up to 12 calls against a fast and a slower server."""

        async def run():
            servers = [SimServer(settings, io.StringIO()) for settings in (FAST, FAST)]
            for server in servers:
                await server.start()
            try:
                async with aiohttp.ClientSession() as client:
                    fleet = HttpFleet(client, [server.url for server in servers], FAST.model_name)
                    caller = Caller(roster(12, 2, seed=1), SHORT, 3)
                    barriers = (calls for calls, _ in zip(caller.barriers(), range(3), strict=False))
                    return [o async for o in drive_barriers(barriers, fleet, limiter(), reporter, pause=0.0)], servers
            finally:
                for server in servers:
                    await server.stop()

        return asyncio.run(run())

    def test_limiter_and_barrier_reporter_are_plugged_in(self):
        """Each barrier is reported with its fan-out and closed once, and each call holds a slot while in flight."""
        told, held = [], []

        class Reporter:
            def __init__(self, fan_out):
                self.fan_out = fan_out

            def __enter__(self):
                told.append(("open", self.fan_out))

            def __exit__(self, *_):
                told.append(("close", self.fan_out))

        class Counting(Capped):
            def __init__(self):
                super().__init__(4)

            def slot(self):
                held.append(1)
                return super().slot()

        outcomes, servers = self.drive(Counting, Reporter)
        fan_outs = [len(outcome) for outcome in outcomes]
        assert [(kind, n) for n in fan_outs for kind in ("open", "close")] == told
        assert sum(fan_outs) == len(held)
        assert sum(fan_outs) == sum(server.engine.tally.histograms[vllm.E2E].count for server in servers)
        calls = [one for outcome in outcomes for one in outcome]
        assert {""} == {one.error for one in calls}
        assert max(sum(other.sent <= one.sent < other.ended for other in calls) for one in calls) <= 4

    def test_steady_traffic_reports_a_backend_that_is_gone(self):
        """A call to a dead backend is an outcome with the address and the reason, not an exception."""

        async def run():
            async with aiohttp.ClientSession() as client:
                fleet = HttpFleet(client, ["http://127.0.0.1:9"], "m")
                call = Call("a", 0, Request("r", "s", 10, 2))
                return await drive_steady([(0.0, call), (0.01, call), (9.0, call)], fleet, Unlimited(), 1.0)

        outcomes = asyncio.run(run())
        assert 2 == len(outcomes)
        assert all("http://127.0.0.1:9/v1/completions" in outcome.error for outcome in outcomes)


class TestCommand:
    def test_flags_become_settings(self):
        """Each flag arrives in the settings, costs included."""
        settings = settings_from(
            parser().parse_args(
                [
                    *("--model-name", "m", "--max-num-seqs", "3", "--max-num-batched-tokens", "512"),
                    *("--max-model-len", "900", "--block-size", "32", "--kv-tokens", "5000", "--no-prefix-caching"),
                    *("--cost-base", "0.5", "--cost-per-prefill-token", "0.25"),
                ]
            )
        )
        assert ("m", 3, 512, 900, 32, 156, 5000, False) == (
            settings.model_name,
            settings.max_num_seqs,
            settings.max_num_batched_tokens,
            settings.max_model_len,
            settings.block_size,
            settings.num_blocks,
            settings.kv_cache_size_tokens,
            settings.prefix_caching,
        )
        assert (0.5, 0.25) == (settings.cost.base, settings.cost.per_prefill_token)

    def test_sigterm_stops_a_busy_server_at_once(self, tmp_path):
        """The command serves, writes its log, and is gone within a second of SIGTERM although a request is running."""
        log = tmp_path / "vllm.log"
        command = [sys.executable, "-m", "tidegauge.demo.server", "--log", str(log), "--cost-base", "5"]
        process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
        try:
            url = self.wait_for(log)
            with pytest.raises((urllib.error.URLError, ConnectionError, TimeoutError)):
                urllib.request.urlopen(f"{url}/v1/completions", data=b'{"prompt_tokens":9}', timeout=0.5)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(timeout=10)
            assert time.monotonic() - began < 1.5
        finally:
            process.kill()
            process.wait()
        assert log.read_text().endswith("INFO:     Application shutdown complete.\n")

    def wait_for(self, log):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            text = log.read_text() if log.exists() else ""
            if "Application startup complete." in text:
                return text.split("Starting vLLM server on ")[1].split()[0]
            time.sleep(0.05)
        raise AssertionError("the server did not start")

    def test_a_cache_that_is_too_small_is_a_message(self, capsys):
        """A server that could not start says why and exits with 1."""
        from tidegauge.demo.server import main  # noqa: PLC0415 - only this test runs the command in-process

        assert 1 == main(["--kv-tokens", "100", "--port", "8137"])
        assert "simulated server 127.0.0.1:8137: max_model_len 8192 is larger" in capsys.readouterr().err
