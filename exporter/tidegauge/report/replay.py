"""The figures of a capture, derived as the live exporter derives them, with no server at hand."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from math import inf
from pathlib import Path
from typing import Final

import attrs

from tidegauge.derive.figures import Figures, Settings, derive
from tidegauge.model import StartupFacts
from tidegauge.parsing.exposition import NotMetrics, PageReader
from tidegauge.parsing.logs import StartupReader, read_log
from tidegauge.sources import captures
from tidegauge.sources.captures import Taken
from tidegauge.sources.logfile import LogFollower
from tidegauge.state.backend import Backend, BackendState

_SHORT_LOG: Final = 16 * 1024 * 1024


@attrs.frozen
class Recording:
    """One backend's capture: polls in order, read once, and what its log says."""

    backend: Backend
    polls: Iterable[Taken]
    startup: StartupFacts | None = None


def load(paths: Mapping[str, Path], logs: Mapping[str, Path], fleets: Mapping[str, str], fleet: str) -> list[Recording]:
    """Captures by backend name, read as they are replayed; backends that *fleets* does not name belong to *fleet*."""
    return [
        Recording(
            Backend(name, fleets.get(name, fleet)),
            captures.read(path),
            _startup(logs[name]) if name in logs else None,
        )
        for name, path in paths.items()
    ]


def _startup(path: Path) -> StartupFacts:
    """The facts of a log; a long one is scanned, a short one may be a terminal's text. Raises OSError."""
    if path.stat().st_size <= _SHORT_LOG:
        return read_log(path.read_text(encoding="utf-8", errors="replace"))
    reader = StartupReader()
    follower = LogFollower(path, reader)
    progress = follower.poll()
    while not (progress.caught_up or progress.error):
        progress = follower.poll()
    if progress.error:
        raise OSError(progress.error)
    follower.finish()
    follower.close()
    return reader.facts()


def replay(recordings: Iterable[Recording], settings: Settings) -> Figures:
    """The figures over the whole of the recordings.

    The window is everything between a capture's first and last poll. A capture of one page has no interval: its
    window is the life of the server, from zero. Raises what reading the captures raises.
    """
    states = [_state(recording) for recording in recordings]
    end = max((at for _, at, _ in states), default=0.0)
    start = min((at for _, _, at in states), default=0.0)
    evolved = attrs.evolve(settings, window=end - start)
    return derive([state.history(end) for state, _, _ in states], (), evolved, end)


def _state(recording: Recording) -> tuple[BackendState, float, float]:
    """The state after the last poll, and the times of the last and the first poll."""
    polls = iter(recording.polls)
    begun = list(_until_second_page(polls))
    first = begun[0].at if begun else 0.0
    single = sum(poll.body is not None for poll in begun) < 2
    # A server that began while it was watched is known from its first count on, as it is live.
    state = BackendState(recording.backend, inf, inf, -inf if single else first)
    reader = PageReader()
    last = first
    for poll in chain(begun, polls):
        _book(state, reader, poll)
        first, last = min(first, poll.at), max(last, poll.at)
    if recording.startup is not None:
        # The log tells of its last start, which is that of the process at the end of the capture.
        state.startup(recording.startup)
    return state, last, first


def _until_second_page(polls: Iterator[Taken]) -> Iterator[Taken]:
    pages = 0
    while pages < 2 and (poll := next(polls, None)) is not None:
        pages += poll.body is not None
        yield poll


def _book(state: BackendState, reader: PageReader, poll: Taken) -> None:
    if poll.body is None:
        state.failed(poll.reason, poll.seconds)
        return
    try:
        page = reader.read(poll.body)
    except NotMetrics:
        state.failed("not_metrics", poll.seconds)
        return
    state.page(page, poll.at, poll.seconds)
