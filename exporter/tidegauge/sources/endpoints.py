"""What a server's own endpoints say of its limits; each is optional and none is required.

`/version` has the version, `/v1/models` the longest context (it wants the API key), `/server_info` in development
mode the scheduler's limits (vLLM 0.11 and later). They are asked once per server process.
"""

import json
from typing import Any, Final

import aiohttp
import attrs
from yarl import URL

from tidegauge.clock import Clock
from tidegauge.model import Pinned
from tidegauge.sources.scrape import Fetched, fetch
from tidegauge.sources.target import MIB, Target

_MOST: Final = 10**12


@attrs.frozen
class Served:
    """What the endpoints told; None is unknown."""

    limits: Pinned = Pinned()
    version: str | None = None


async def ask(session: aiohttp.ClientSession, target: Target, clock: Clock) -> Served:
    """Ask all of them; a server that answers none gives an empty value."""
    version = await _json(session, target, clock, "/version")
    models = await _json(session, target, clock, "/v1/models")
    info = await _json(session, target, clock, "/server_info?config_format=json")
    return read(version, models, info)


def read(version: Any, models: Any, info: Any) -> Served:
    """The facts in the three answers, whatever shape they have."""
    scheduler = _at(info, "vllm_config", "scheduler_config")
    lengths = [_positive(_at(model, "max_model_len")) for model in _list(_at(models, "data"))]
    named = _at(version, "version")
    return Served(
        Pinned(
            max_num_seqs=_positive(_at(scheduler, "max_num_seqs")),
            max_num_batched_tokens=_positive(_at(scheduler, "max_num_batched_tokens")),
            max_model_len=max((length for length in lengths if length is not None), default=None),
        ),
        named[:64] if isinstance(named, str) else None,
    )


async def _json(session: aiohttp.ClientSession, target: Target, clock: Clock, path: str) -> Any:
    url = URL(target.url)
    # The page may sit below a proxy's prefix; the other endpoints are its siblings.
    sibling = str(url.with_path(url.path.rstrip("/").removesuffix("/metrics")).with_query(None)).rstrip("/") + path
    answer = await fetch(session, attrs.evolve(target, url=sibling, max_page_size=MIB), clock)
    if not isinstance(answer, Fetched):
        return None
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        return None


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _positive(value: Any) -> float | None:
    """A limit: a number above 0 that can be one."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 < value < _MOST else None
