"""The KV cache: blocks held by requests, prefixes kept for their session, the least recently used evicted first.

A session's prompts share a growing prefix, so its cached blocks are a run counted from the first token. Runs and the
left-overs of finished requests wait in one queue in the order in which they became idle, as vLLM's free queue does;
a run loses its tail first. Two simplifications: a run has one place in the queue, not one per block, and what a
request computed beyond its session's prefix is never found again (so a preempted request recomputes that part).
"""

from collections import OrderedDict

import attrs

_Key = tuple[str, str]
_SESSION, _LEFTOVER = "session", "leftover"


@attrs.define
class Holding:
    """The blocks of one running request: `shared` at the head of its session's run, `own` after them."""

    owner: str
    session: str
    shared: int = 0
    own: int = 0

    @property
    def blocks(self) -> int:
        return self.shared + self.own


@attrs.define
class _Run:
    """A session's cached blocks, and how many of them each running request holds."""

    resident: int = 0
    pins: dict[str, int] = attrs.field(factory=dict)

    @property
    def pinned(self) -> int:
        return max(self.pins.values(), default=0)


class BlockPool:
    """All blocks of one engine. `usable` leaves out the null block; cached blocks that nobody holds count as free."""

    def __init__(self, num_blocks: int, *, caching: bool) -> None:
        self.usable = num_blocks - 1
        self.free = self.usable
        self._caching = caching
        self._runs: dict[str, _Run] = {}
        self._idle: OrderedDict[_Key, int] = OrderedDict({(_LEFTOVER, ""): self.usable})

    @property
    def usage(self) -> float:
        """Share of the usable blocks that requests hold, 0 to 1 (`kv_cache_usage_perc`)."""
        return 1 - self.free / self.usable

    def cached(self, session: str, wanted: int) -> int:
        """How many of the first `wanted` blocks of a session are in the cache."""
        run = self._runs.get(session)
        return min(run.resident, wanted) if run and self._caching else 0

    def fits(self, session: str, shared: int, own: int) -> bool:
        """Whether a request could hold `shared` cached and `own` new blocks now."""
        run = self._runs.get(session)
        idle = max(0, shared - run.pinned) if run else 0
        return idle + own <= self.free

    def hold(self, owner: str, session: str, shared: int) -> Holding:
        """Start a holding with `shared` cached blocks, which no one can evict from now on."""
        if shared:
            self._runs[session].pins[owner] = shared
            self._settle(session)
        return Holding(owner, session, shared)

    def grow(self, holding: Holding, own: int) -> bool:
        """Add new blocks to a holding, evicting what is idle; false, and nothing changed, if too few are free."""
        if own > self.free:
            return False
        self._evict(own)
        holding.own += own
        return True

    def publish(self, holding: Holding, full: int) -> None:
        """Make the first `full` blocks of a holding part of its session's run.

        Blocks that another request of the session has published already stay duplicates of the holder.
        """
        new = full - holding.shared
        run = self._runs.get(holding.session) or _Run()
        if not self._caching or new <= 0 or run.resident != holding.shared:
            return
        self._runs[holding.session] = run
        run.resident += new
        holding.shared, holding.own = full, holding.own - new
        run.pins[holding.owner] = full

    def release(self, holding: Holding) -> None:
        """Give everything back: the private blocks go first, so that they are evicted before the prefix."""
        if holding.own:
            self._idle[(_LEFTOVER, holding.owner)] = self._idle.pop((_LEFTOVER, holding.owner), 0) + holding.own
            self.free += holding.own
        if holding.shared:
            del self._runs[holding.session].pins[holding.owner]
            self._settle(holding.session)
        holding.own = holding.shared = 0

    def _settle(self, session: str) -> None:
        """Put what nobody holds of a run at the end of the queue: it was touched just now."""
        run, key = self._runs[session], (_SESSION, session)
        evictable = run.resident - run.pinned
        self.free += evictable - self._idle.pop(key, 0)
        if evictable:
            self._idle[key] = evictable

    def _evict(self, blocks: int) -> None:
        self.free -= blocks
        while blocks:
            key, idle = next(iter(self._idle.items()))
            part = min(idle, blocks)
            blocks -= part
            if part == idle:
                del self._idle[key]
            else:
                self._idle[key] = idle - part
            if key[0] == _SESSION:
                self._shrink(key[1], part)

    def _shrink(self, session: str, blocks: int) -> None:
        run = self._runs[session]
        run.resident -= blocks
        if not run.resident:
            del self._runs[session]
