"""Sequence slots as observed: the plateau of running requests while others wait with KV cache to spare."""

from collections import Counter
from typing import Final

from tidegauge.catalogue import thresholds as th

OFTEN: Final = 3
"""Polls that must show the same number running before it counts as a plateau."""
_VALUES: Final = 4096


class ObservedSlots:
    """Follows one server process. What it finds is a lower bound: the token budget of a step may hold running lower.

    From a KV usage of *kv_full* on there is no cache to spare.
    """

    def __init__(self, kv_full: float = th.KV_FULL.value) -> None:
        self._kv_full = kv_full
        self._seen: Counter[float] = Counter()

    def see(self, running: float | None, waiting: float | None, kv_usage: float | None) -> None:
        """Take one page's gauges; an unknown one says nothing."""
        if not running or not waiting or kv_usage is None or kv_usage >= self._kv_full:
            return
        if running in self._seen or len(self._seen) < _VALUES:
            self._seen[running] += 1

    @property
    def value(self) -> float | None:
        """The largest number that was running in at least three such polls, None if there is none."""
        return max((running for running, polls in self._seen.items() if polls >= OFTEN), default=None)
