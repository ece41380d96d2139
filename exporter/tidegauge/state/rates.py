"""How much each caller may tell: a token bucket per name."""

from collections import OrderedDict
from math import ceil
from typing import Final

import attrs

from tidegauge.parsing.events import MAX_EVENTS, Batch, Refusal, Wait

BURST_SECONDS: Final = 10
WAITS_PER_EVENT: Final = 100
_LEAST_BURST: Final = 2 * MAX_EVENTS


@attrs.define
class _Bucket:
    tokens: float
    at: float


class Rates:
    """Lets each caller of each fleet tell *rate* events per second, after a silence ten seconds' worth at once.

    A hundred waits of one list count as one event. At most *names* buckets are kept; the one that was not asked for
    longest is forgotten first, and begins full.
    """

    def __init__(self, rate: float, names: int) -> None:
        self._rate = rate
        self._burst = max(BURST_SECONDS * rate, _LEAST_BURST)
        self._names = names
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()

    def ask(self, batch: Batch, now: float) -> Refusal | None:
        """Take the batch's cost from its caller's bucket at unix time *now*, or tell when it will be there."""
        bucket = self._bucket((batch.fleet, batch.caller), now)
        cost = sum(1 + len(one.seconds) // WAITS_PER_EVENT if isinstance(one, Wait) else 1 for one in batch.events)
        missing = cost - bucket.tokens
        if missing > 0:
            most = f"at most {self._rate:g} a second, {self._burst:g} at once"
            message = f"events: {batch.caller} sends too many; expected {most}"
            return Refusal("rate", message, max(1, ceil(missing / self._rate)))
        bucket.tokens -= cost
        return None

    def _bucket(self, key: tuple[str, str], now: float) -> _Bucket:
        bucket = self._buckets.pop(key, None) or _Bucket(self._burst, now)
        self._buckets[key] = bucket
        if len(self._buckets) > self._names:
            self._buckets.popitem(last=False)
        # A clock set back gives nothing, and takes nothing.
        bucket.tokens = min(self._burst, bucket.tokens + max(0.0, now - bucket.at) * self._rate)
        bucket.at = now
        return bucket
