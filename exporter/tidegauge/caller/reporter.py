"""The reporter: a bounded queue that a background thread empties, and the barrier that reports to it."""

import os
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, Self

from .delivery import Delivery, Event, FilePath, Verdict, packed, possible
from .limiter import Limiter

_NAME: Final = re.compile(r"[A-Za-z0-9._:/-]{1,64}", re.ASCII)
_MAX_BATCH: Final = 1000
# The exporter refuses a whole batch for one event of more than an hour ago.
_MAX_AGE: Final = 3000.0
_FIRST_BACKOFF: Final = 1.0
_LAST_BACKOFF: Final = 30.0
_STATES: Final = ("ceiling", "healthy")


class Metrics(Protocol):
    """Hears every possible event in the process itself; `tidegauge.caller.metrics` has one."""

    def told(self, fleet: str, event: Mapping[str, Any]) -> None:
        """Take one event."""


class Counts(NamedTuple):
    """Events by what became of them: `sent` were taken by the exporter, `dropped` never will be, `pending` wait.

    Each wait for a slot counts as one event, although many travel together.
    """

    sent: int
    dropped: int
    pending: int


class Reporter:
    """Sends a caller's events in the background.

    `url` is the exporter's address; None makes a reporter that sends nothing (limiters and barriers still work).
    `fleet` and `caller` are 1 to 64 characters of `A-Z a-z 0-9 . _ : / -`; `token_file` holds the bearer token and is
    read at each delivery; `ca_file` is the authority of an https exporter. Events are collected for `batch_seconds`;
    at most `queue_size` wait for delivery, beyond that the oldest are dropped. The ceiling and the healthy count are
    told again every `restate_seconds`, so that an exporter that was restarted knows them. `metrics` hears the events
    too, for a process that is scraped itself.

    An event is taken at most once: it is sent again only when the exporter certainly did not take it (no connection,
    429, 503, or 413, which halves the batch), after the pause that the exporter asks for, at most a minute; after any
    other failure it is dropped and counted.

    Raises ValueError for a URL or name that cannot be used and OSError for an unreadable `ca_file`; once the reporter
    exists, nothing is raised.
    """

    def __init__(  # noqa: PLR0913 - settings by name, all with defaults
        self,
        url: str | None,
        *,
        fleet: str,
        caller: str,
        token_file: FilePath | None = None,
        ca_file: FilePath | None = None,
        batch_seconds: float = 1.0,
        queue_size: int = 10_000,
        timeout: float = 5.0,
        restate_seconds: float = 30.0,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        for name, value in (("fleet", fleet), ("caller", caller)):
            if not _NAME.fullmatch(value):
                raise ValueError(f"{name}: expected 1 to 64 characters of A-Z a-z 0-9 . _ : / -, found {value!r}")
        self._fleet = fleet
        self._caller = caller
        self._metrics = metrics
        self._delivery = Delivery(url, token_file, ca_file, timeout) if url is not None else None
        self._batch_seconds = batch_seconds
        self._restate_seconds = restate_seconds
        self._queue_size = queue_size
        self._clock = clock
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        # Tells this process from another one that was given the same name.
        self._head = {"caller": self._caller, "fleet": self._fleet, "instance": uuid.uuid4().hex}
        self._lock = threading.RLock()  # reentrant: a signal handler may tell something while its thread does
        self._queue: deque[Event] = deque()
        self._states: dict[str, Event] = {}
        self._stated = 0.0
        self._sent = self._dropped = self._in_flight = 0
        self._some = threading.Event()
        self._closing = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def barrier(self, fan_out: int) -> "Barrier":
        """A context (`with` or `async with`) from the launch of `fan_out` requests to the return of the last one."""
        return Barrier(self, fan_out)

    def limiter(self, ceiling: int) -> Limiter:
        """A limiter that lets `ceiling` requests through at once and tells what they waited. One per reporter."""
        return Limiter(ceiling, self.tell)

    def healthy(self, backends: int) -> None:
        """Tell how many backends the caller believes to be healthy."""
        self.tell("healthy", value=backends)

    def tell(self, kind: str, **fields: Any) -> None:
        """Queue one event; never blocks and never raises. Impossible counts are dropped here, not sent."""
        event = {"type": kind, "at": self._clock(), **fields}
        if self._pid != os.getpid():
            self._begin()  # a forked child: the thread and what was queued are the parent's
        if self._metrics is not None and possible(fields) and not self._closing.is_set():
            self._metrics.told(self._fleet, event)
        with self._lock:
            if self._delivery is None or self._closing.is_set() or not possible(fields):
                self._dropped += 1
                return
            self._queue.append(event)
            if kind in _STATES:
                self._states[kind] = event
                self._stated = event["at"]
            if len(self._queue) > self._queue_size:
                self._queue.popleft()
                self._dropped += 1
            self._start()
        self._some.set()

    def counts(self) -> Counts:
        """What became of the events so far."""
        with self._lock:
            return Counts(self._sent, self._dropped, len(self._queue) + self._in_flight)

    def close(self, deadline: float = 2.0) -> Counts:
        """Deliver what is queued, for at most `deadline` seconds, and drop the rest; later events are dropped.

        What an exporter has been handed and not answered by then stays `pending` in the counts.
        """
        with self._lock:
            self._closing.set()
            self._some.set()
        if self._thread is not None and self._pid == os.getpid():
            self._thread.join(deadline)
        with self._lock:
            self._closed = True
            self._dropped += len(self._queue)
            self._queue.clear()
        return self.counts()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._deliver_forever, name="tidegauge-caller", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is going down: the next event tries again
            return
        self._thread = thread

    def _deliver_forever(self) -> None:
        backoff = _FIRST_BACKOFF
        while True:
            self._some.wait(self._restate_seconds)
            self._closing.wait(self._batch_seconds)  # let a batch gather
            last = self._closing.is_set()  # asked before the delivery, so that nothing told before close() is left
            self._restate()
            delivered = self._deliver_queued()
            if last:
                return
            if delivered:
                backoff = _FIRST_BACKOFF
            else:
                asked = self._delivery.pause if self._delivery is not None else 0.0
                self._closing.wait(max(backoff, asked))
                backoff = min(2 * backoff, _LAST_BACKOFF)

    def _restate(self) -> None:
        with self._lock:
            now = self._clock()
            if self._states and now - self._stated >= self._restate_seconds and not self._closing.is_set():
                self._stated = now
                self._queue.extend({**event, "at": now} for event in self._states.values())

    def _deliver_queued(self) -> bool:
        """Send until the queue is empty; False when the exporter cannot take events now."""
        largest = _MAX_BATCH
        while batch := self._take(largest):
            verdict = Verdict.DROPPED
            if self._delivery is not None:
                verdict = self._delivery.post({**self._head, "events": packed(batch)})
            if verdict is Verdict.TOO_LARGE:
                largest = max(1, len(batch) // 2)
            self._settle(batch, verdict)
            if verdict is Verdict.LATER:
                return False
        return True

    def _take(self, largest: int) -> list[Event]:
        """The next events, taken out of the queue; those too old to be accepted are dropped on the way."""
        with self._lock:
            oldest = self._clock() - _MAX_AGE
            batch: list[Event] = []
            while self._queue and len(batch) < largest:
                event = self._queue.popleft()
                if event["at"] < oldest:
                    self._dropped += 1
                else:
                    batch.append(event)
            self._in_flight = len(batch)
            if not batch and not self._closing.is_set():
                self._some.clear()
            return batch

    def _settle(self, batch: list[Event], verdict: Verdict) -> None:
        with self._lock:
            self._in_flight = 0
            again = verdict is Verdict.LATER or (verdict is Verdict.TOO_LARGE and len(batch) > 1)
            if verdict is Verdict.SENT:
                self._sent += len(batch)
            elif again and not self._closed:
                room = max(0, self._queue_size - len(self._queue))
                kept = batch[max(0, len(batch) - room) :] if room else []
                self._dropped += len(batch) - len(kept)
                self._queue.extendleft(reversed(kept))
            else:
                self._dropped += len(batch)


class Barrier:
    """From the launch of a set of requests to the return of the last; use once, as `with` or `async with`."""

    def __init__(self, reporter: Reporter, fan_out: int) -> None:
        self.id = uuid.uuid4().hex
        self._reporter = reporter
        self._fan_out = fan_out

    def __enter__(self) -> Self:
        self._reporter.tell("barrier_opened", id=self.id, fan_out=self._fan_out)
        return self

    def __exit__(self, *_: object) -> None:
        self._reporter.tell("barrier_closed", id=self.id)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()
