"""What a page says of the moment: requests in the server, its KV cache, its engines."""

import attrs

from tidegauge import vllm
from tidegauge.model import Page


@attrs.frozen
class Gauges:
    """The last page's gauges: requests over all engines, the fullest engine's KV usage; None where not exported."""

    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None


def gauges_of(page: Page | None) -> Gauges:
    """The page's gauges; without a page nothing is known."""
    if page is None:
        return Gauges()
    usage = [value for key, value in page.values.items() if key.family == vllm.KV_USAGE]
    return Gauges(_sum(page, vllm.RUNNING), _sum(page, vllm.WAITING), max(usage, default=None))


def engines_of(page: Page | None) -> set[str]:
    """The data-parallel ranks that the page names, none before the first page."""
    if page is None:
        return set()
    return {key.engine for key in page.values if key.family == vllm.RUNNING}


def _sum(page: Page, family: str) -> float | None:
    values = [value for key, value in page.values.items() if key.family == family]
    return sum(values) if values else None
