"""Burstiness: the 99th percentile of arrivals per second over their mean."""

from collections import deque
from math import ceil, floor

import attrs


def burstiness(per_second: list[float]) -> float | None:
    """P99 (nearest rank) of *per_second* arrivals over their mean: 1 for an even stream; None if nothing arrived."""
    total = sum(per_second)
    if total <= 0:
        return None
    ranked = sorted(per_second)
    return ranked[max(ceil(0.99 * len(ranked)), 1) - 1] * len(ranked) / total


@attrs.define
class _Second:
    index: int
    calls: float = 0.0


class ArrivalRates:
    """A fleet's arrivals per second over the last *span* seconds.

    What arrived between two polls is spread evenly over the time between them. So at polls further apart than a second
    the figure is a lower bound: the spikes within an interval are not seen. Memory is one number a second of the span.
    """

    def __init__(self, span: float) -> None:
        self.span = span
        self._seconds: deque[_Second] = deque()

    def add(self, since: float, at: float, calls: float) -> None:
        """So many calls arrived at one backend between two times (unix seconds); the second of *since* is partial."""
        since = max(since, at - self.span)
        first, last = floor(since), ceil(at) - 1
        self._cover(first, last)
        if not self._seconds or calls <= 0 or at <= since:
            return
        start = self._seconds[0].index
        for index in range(max(first, start), last + 1):
            overlap = min(at, index + 1) - max(since, index)
            self._seconds[index - start].calls += calls * overlap / (at - since)

    def value(self, now: float) -> float | None:
        """Burstiness over the span before *now*, of seconds that are over; None if nothing arrived in them."""
        oldest = now - self.span
        return burstiness([second.calls for second in self._seconds if oldest <= second.index <= now - 1])

    def _cover(self, first: int, last: int) -> None:
        """Have every second up to the last, without holes, and none older than the span."""
        index = self._seconds[-1].index + 1 if self._seconds else first
        for missing in range(max(index, last - floor(self.span)), last + 1):
            self._seconds.append(_Second(missing))
        while self._seconds and self._seconds[0].index < last - self.span:
            self._seconds.popleft()
