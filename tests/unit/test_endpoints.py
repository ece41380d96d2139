"""What a server's own endpoints say of its limits, on real little servers and on any shape of answer."""

import asyncio
import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tidegauge.clock import SystemClock
from tidegauge.model import Pinned
from tidegauge.sources.endpoints import Served, ask, read
from tidegauge.sources.session import open_session
from tidegauge.sources.target import Target

VERSION = {"version": "0.32.0"}
MODELS = {"data": [{"id": "lora", "max_model_len": 4096}, {"id": "base", "max_model_len": 8192}, {"id": "x"}]}
INFO = {"vllm_config": {"scheduler_config": {"max_num_seqs": 160, "max_num_batched_tokens": 8192}}}


def app(answers, prefix="", token=None):
    """A server that answers paths with a text each, and 404 to anything else."""

    async def handle(request):
        if token is not None and request.headers.get("Authorization") != f"Bearer {token}":
            return web.Response(status=401)
        text = answers.get(request.path_qs.removeprefix(prefix))
        return web.Response(status=404) if text is None else web.Response(text=text)

    server = web.Application()
    server.router.add_get("/{path:.*}", handle)
    return TestServer(server)


async def asked(server, path="/metrics", **more):
    async with server, open_session(1) as session:
        target = Target("a", f"http://{server.host}:{server.port}{path}", **more)
        return await ask(session, target, SystemClock())


ALL = {
    "/version": json.dumps(VERSION),
    "/v1/models": json.dumps(MODELS),
    "/server_info?config_format=json": json.dumps(INFO),
}


class TestAsking:
    @pytest.mark.parametrize(
        ("path", "prefix"), [("/metrics", ""), ("/metrics/", ""), ("/vllm/a/metrics", "/vllm/a"), ("/metrics?x=1", "")]
    )
    def test_siblings_of_the_page_are_asked(self, path, prefix):
        """Also below a proxy's prefix."""
        found = asyncio.run(asked(app(ALL, prefix), path))

        assert Served(Pinned(max_num_seqs=160, max_num_batched_tokens=8192, max_model_len=8192), "0.32.0") == found

    def test_the_backends_credentials_are_used(self, tmp_path):
        """`/v1/models` wants the key."""
        secret = tmp_path / "token"
        secret.write_text("hush\n", encoding="utf-8")

        assert "0.32.0" == asyncio.run(asked(app(ALL, token="hush"), bearer_token_file=str(secret))).version
        assert Served() == asyncio.run(asked(app(ALL, token="hush")))

    @pytest.mark.parametrize("missing", list(ALL))
    def test_each_endpoint_is_optional(self, missing):
        """`/server_info` exists in development mode only."""
        found = asyncio.run(asked(app({path: text for path, text in ALL.items() if path != missing})))

        known = {
            "/version": found.version,
            "/v1/models": found.limits.max_model_len,
            "/server_info?config_format=json": found.limits.max_num_seqs,
        }
        assert [missing] == [path for path, value in known.items() if value is None]

    @pytest.mark.parametrize("text", ["", "<html>", "{", "[" * 100_000, "nul"])
    def test_answer_that_is_no_json_is_unknown(self, text):
        """A proxy's page, half an answer, an attack."""
        assert Served() == asyncio.run(asked(app(dict.fromkeys(ALL, text))))

    def test_server_that_is_gone_tells_nothing(self):
        """And raises nothing."""

        async def gone():
            async with open_session(1) as session:
                return await ask(session, Target("a", "http://127.0.0.1:9/metrics", timeout=1), SystemClock())

        assert Served() == asyncio.run(gone())


class TestReading:
    @pytest.mark.parametrize(
        "shape", [None, [], {}, 5, "text", {"data": 5}, {"data": [5, None, []]}, {"vllm_config": "a string"}]
    )
    def test_any_shape_of_answer_is_read(self, shape):
        """`/server_info` of 0.8.5 is one long string."""
        assert Served() == read(shape, shape, shape)

    @pytest.mark.parametrize("value", [0, -5, True, "160", None, float("nan"), float("inf"), 10**400, [160]])
    def test_what_can_be_no_limit_is_unknown(self, value):
        """Unknown is absent, never a default."""
        info = {"vllm_config": {"scheduler_config": {"max_num_seqs": value}}}

        assert Served() == read(None, {"data": [{"max_model_len": value}]}, info)

    def test_version_is_cut_to_the_length_of_a_label(self):
        """Label values from outside are bounded."""
        assert "v" * 64 == read({"version": "v" * 100}, None, None).version
        assert None is read({"version": 5}, None, None).version
