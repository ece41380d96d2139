"""The figures of a capture, derived as the live exporter derives them, with no server at hand."""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from pathlib import Path
from typing import Final

import attrs

from tidegauge import vllm
from tidegauge.derive.barriers import usual_interval
from tidegauge.derive.figures import Figures
from tidegauge.derive.settings import Settings
from tidegauge.model import StartupFacts
from tidegauge.parsing.logs import StartupReader, read_log
from tidegauge.sources import captures, regular
from tidegauge.sources.captures import Taken
from tidegauge.sources.logfile import LogFollower
from tidegauge.sources.logscan import BlockScanner
from tidegauge.state.backend import Backend, BackendState
from tidegauge.watch import Watch

_HEAD: Final = 10
"""Pages at the head of a capture that tell its poll interval."""
_SHORT_LOG: Final = 16 * 1024 * 1024
_LOG_HEAD: Final = 1024


@attrs.frozen
class Capture:
    """The polls of a capture file, read anew at each iteration; one page is held at a time."""

    path: Path

    def __iter__(self) -> Iterator[Taken]:
        return captures.read(self.path)


@attrs.frozen
class Recording:
    """One backend's capture: polls in order, and what its log says; `polls` may be read more than once."""

    backend: Backend
    polls: Iterable[Taken]
    startup: StartupFacts | None = None


def load(paths: Mapping[str, Path], logs: Mapping[str, Path], fleets: Mapping[str, str], fleet: str) -> list[Recording]:
    """Captures by backend name, read as they are replayed; backends that *fleets* does not name belong to *fleet*."""
    return [
        Recording(
            Backend(name, fleets.get(name, fleet)),
            Capture(path),
            _startup(logs[name]) if name in logs else None,
        )
        for name, path in paths.items()
    ]


def _startup(path: Path) -> StartupFacts:
    """The facts of a log; a long one is scanned, a short one may be a terminal's text. Raises UnreadableError."""
    content = regular.head(path, _SHORT_LOG + 1)
    if b"\0" in content[:_LOG_HEAD].lstrip(b"\0"):
        raise regular.UnreadableError(f"{path}: cannot be read: expected a log, found compressed or binary data")
    if len(content) <= _SHORT_LOG:
        return read_log(content.decode(errors="replace"))
    reader = StartupReader()
    follower = LogFollower(path, BlockScanner(reader))
    progress = follower.poll()
    while not (progress.caught_up or progress.error):
        progress = follower.poll()
    if progress.error:
        raise regular.UnreadableError(progress.error)
    follower.finish()
    follower.close()
    return reader.facts()


def replay(recordings: Sequence[Recording], settings: Settings, prefixes: tuple[str, ...] = vllm.PREFIXES) -> Figures:
    """The figures over the whole of the recordings, in which vLLM's names begin with one of *prefixes*.

    The window is everything between a capture's first and last poll. A capture of one page has no interval: its
    window is the life of the server, from zero. Raises what reading the captures raises.
    """
    # A log tells of its last start, which is that of the process at the end of the capture: where the capture holds a
    # restart, nothing is known of the limits before it.
    names = {one.backend.name for one in recordings}
    watch, begun = _play(recordings, settings, prefixes, names)
    restarted = {name for name, state in watch.states.items() if state.restarts}
    if any(one.startup is not None and one.backend.name in restarted for one in recordings):
        watch, begun = _play(recordings, settings, prefixes, names - restarted)
    for one in recordings:
        if one.startup is not None and one.backend.name in restarted:
            watch.states[one.backend.name].startup(one.startup)
    first, last = begun
    return attrs.evolve(watch.figures(max(last, 0.0)), window=max(last - first, 0.0))


def _play(
    recordings: Sequence[Recording], settings: Settings, prefixes: tuple[str, ...], told: set[str]
) -> tuple[Watch, tuple[float, float]]:
    """All polls in order of time, and the times of the first and the last; *told* know their log from the start."""
    begun = [_begin(recording, settings.kv_full) for recording in recordings]
    times = {one.state.backend.name: one.times for one in begun}
    interval = usual_interval(times) if any(len(polls) > 1 for polls in times.values()) else 1.0
    watch = Watch([one.state for one in begun], attrs.evolve(settings, window=inf), interval, prefixes=prefixes)
    for recording in recordings:
        if recording.startup is not None and recording.backend.name in told:
            watch.states[recording.backend.name].startup(recording.startup)
    first, last = inf, -inf
    for poll, name in heapq.merge(*(one.polls for one in begun), key=lambda pair: pair[0].at):
        if poll.body is None:
            watch.failed(name, poll.at, poll.seconds, poll.reason)
        else:
            watch.page(name, poll.at, poll.seconds, poll.body)
        first, last = min(first, poll.at), max(last, poll.at)
    watch.finish()
    return watch, (first, last)


@attrs.frozen
class _Begun:
    """A capture whose first polls are known: their times, and all polls with the backend's name."""

    state: BackendState
    times: list[float]
    polls: Iterator[tuple[Taken, str]]


def _begin(recording: Recording, kv_full: float) -> _Begun:
    polls = iter(recording.polls)
    head = list(_until_pages(polls, _HEAD))
    first = head[0].at if head else 0.0
    single = sum(poll.body is not None for poll in head) < 2
    # A server that began while it was watched is known from its first count on, as it is live.
    state = BackendState(recording.backend, inf, inf, -inf if single else first, kv_full)
    name = recording.backend.name
    named = ((poll, name) for poll in chain(head, polls))
    return _Begun(state, [poll.at for poll in head], named)


def _until_pages(polls: Iterator[Taken], wanted: int) -> Iterator[Taken]:
    pages = 0
    while pages < wanted and (poll := next(polls, None)) is not None:
        pages += poll.body is not None
        yield poll
