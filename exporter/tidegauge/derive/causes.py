"""Why requests wait in a server: waiting-seconds booked to exactly one cause per engine and poll.

The first evidence that matches wins. vLLM's own `reason="capacity"` does not tell slots, KV
cache and the token budget of a step apart.
"""

from collections.abc import Mapping
from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.catalogue import thresholds as th
from tidegauge.model import Page

LONGEST_STEP: Final = 10.0
"""Seconds that one reading of the waiting gauge may stand for, at the usual poll; before that, nobody looked."""


@attrs.frozen
class Pressure:
    """What is known beside the page.

    `slots` is max_num_seqs of one engine, None unless known for certain; `kv_full` the usage that counts as full.
    """

    slots: float | None = None
    kv_full: float = th.KV_FULL.value


def waiting_seconds(
    before: Page, page: Page, seconds: float, pressure: Pressure, longest: float = LONGEST_STEP
) -> dict[str, float]:
    """Waiting-seconds by cause between two polls of one process, *seconds* apart.

    The waiting requests of *page* are taken to have waited since *before*, for at most *longest* seconds.
    """
    step = min(max(seconds, 0.0), longest)
    booked: dict[str, float] = {}
    for engine, waiting in _by_engine(page, vllm.WAITING).items():
        if waiting <= 0:
            continue
        deferred = min(_by_engine(page, vllm.WAITING_BY_REASON, vllm.DEFERRED).get(engine, 0.0), waiting)
        cause = _cause(before, page, engine, pressure)
        for name, requests in (("deferred", deferred), (cause, waiting - deferred)):
            if requests > 0:
                booked[name] = booked.get(name, 0.0) + requests * step
    return booked


def _cause(before: Page, page: Page, engine: str, pressure: Pressure) -> str:
    now = _by_engine(page, vllm.PREEMPTIONS).get(engine, 0.0)
    # A damaged page that lacked the counter is no sign that it rose.
    then = _by_engine(before, vllm.PREEMPTIONS).get(engine, now)
    usage = max(
        (value for key, value in page.values.items() if key.family == vllm.KV_USAGE and key.engine == engine),
        default=0.0,
    )
    if now > then or usage >= pressure.kv_full:
        return "kv_cache"
    if pressure.slots is None:
        return "unknown"
    running = _by_engine(page, vllm.RUNNING).get(engine, 0.0)
    return "sequence_slots" if running >= pressure.slots else "prefill_budget"


def _by_engine(page: Page, family: str, extra: str | None = None) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for key, value in page.values.items():
        if key.family == family and extra in (None, key.extra):
            found[key.engine] = found.get(key.engine, 0.0) + value
    return found
