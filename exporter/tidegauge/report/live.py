"""Figures straight from servers or from a running exporter, and captures of raw pages."""

import asyncio
import gzip
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import IO, Final, Literal

import aiohttp
import attrs

from tidegauge import config as cf
from tidegauge import vllm
from tidegauge.clock import Clock, SystemClock
from tidegauge.complaints import Complaints
from tidegauge.derive.figures import Figures
from tidegauge.derive.settings import Settings
from tidegauge.report.document import FORMAT, Document
from tidegauge.sources import captures, endpoints
from tidegauge.sources import folder as folders
from tidegauge.sources.scrape import Failed, Fetched, fetch, shown
from tidegauge.sources.session import open_session
from tidegauge.sources.target import Target
from tidegauge.state.backend import Backend, BackendState
from tidegauge.watch import Watch

_TIMEOUT: Final = 10
_EXPECTED: Final = f"expected a tidegauge's report of format {FORMAT}"
_DEFAULTS: Final = Settings()
_LOG: Final = logging.getLogger(__name__)


async def from_exporter(url: str) -> Document:
    """The report of a running exporter. Raises OSError where there is none, ConfigError for what is no URL."""
    cf.for_urls([url])
    where = url.rstrip("/") + "/api/v1/report"
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT)) as session,
            session.get(where) as answer,
        ):
            report = await answer.json(content_type=None)
    except (ValueError, RecursionError) as error:
        msg = f"{where}: {_EXPECTED}, found: {error or type(error).__name__}"
        raise OSError(msg) from error
    except (aiohttp.ClientError, TimeoutError) as error:
        msg = f"{where}: no report to be had: {error or type(error).__name__}"
        raise OSError(msg) from error
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        found = f"format {str(report.get('format'))[:20]!r}" if isinstance(report, dict) else "other JSON"
        msg = f"{where}: {_EXPECTED}, found {found}"
        raise OSError(msg)
    return report


async def from_backends(
    urls: Sequence[str],
    seconds: float,
    fleets: Mapping[str, str],
    settings: Settings = _DEFAULTS,
    prefixes: tuple[str, ...] = vllm.PREFIXES,
) -> Figures:
    """The figures of servers, each URL or NAME=URL, watched for *seconds*; for 0, of their life from one page each.

    The window is what was watched, whatever *settings* say of it; vLLM's names begin with one of *prefixes*.
    """
    clock = SystemClock()
    backends = cf.for_urls(urls, named=True).backends
    if seconds > 0:
        _LOG.info("watching %s for %g s", ", ".join(one.name for one in backends), seconds)
    start = clock.now()
    since = -inf if seconds <= 0 else start
    states = [
        BackendState(Backend(one.name, fleets.get(one.name, one.fleet)), inf, inf, since, settings.kv_full)
        for one in backends
    ]
    watch = Watch(states, attrs.evolve(settings, window=inf), prefixes=prefixes)
    complaints = Complaints(clock, _LOG)
    async with open_session(len(backends)) as session:

        async def follow(one: cf.Backend) -> None:
            while True:
                begun = clock.now()
                outcome = await fetch(session, one.target, clock)
                if isinstance(outcome, Failed):
                    watch.failed(one.name, outcome.at, outcome.seconds, outcome.reason)
                    complaints.tell(one.name, outcome.message)
                else:
                    found = watch.page(one.name, outcome.at, outcome.seconds, outcome.body).complaint
                    told = f"{shown(one.url)}: expected a page of vLLM's metrics, found {found}"
                    complaints.tell(one.name, told if found else "")
                if clock.now() - start >= seconds:
                    return
                await clock.sleep(max(begun + 1.0 - clock.now(), 0.0))

        # Each by itself: a server that hangs must not thin out what is known of the others.
        await asyncio.gather(*(follow(one) for one in backends))
        end = clock.now()
        await asyncio.gather(
            *(_ask(session, one.target, state, clock) for one, state in zip(backends, states, strict=True))
        )
    watch.finish()
    return attrs.evolve(watch.figures(end), window=seconds and end - start)


async def record(
    urls: Sequence[str], seconds: float, interval: float, folder: Path, *, force: bool = False
) -> dict[Path, int]:
    """Write the raw pages of servers, each URL or NAME=URL, to `NAME.scrapes.gz` in *folder*; pages written by file.

    A server without a name has `host_port`. Raises ConfigError for names that cannot be a file's, OSError for a file
    that is there already, unless *force* is to write over it.
    """
    clock = SystemClock()
    backends = _for_files(cf.for_urls(urls, named=True).backends)
    paths = {one.name: folder / f"{one.name}{captures.ENDING}" for one in backends}
    pages = dict.fromkeys(paths.values(), 0)
    end = clock.now() + seconds
    complaints = Complaints(clock, _LOG)
    with ExitStack() as closed, ExitStack() as files:
        streams = _opened(files, paths, force=force)
        for one in backends:
            _LOG.info("writing %s for %g s: pages of %s", paths[one.name], seconds, shown(one.url))
            # Also where it is interrupted.
            closed.callback(lambda path: _LOG.info("done with %s: %s pages", path, pages[path]), paths[one.name])
        async with open_session(len(backends)) as session:

            async def follow(one: cf.Backend) -> None:
                while (begun := clock.now()) < end:
                    outcome = await fetch(session, one.target, clock)
                    captures.write(streams[one.name], outcome)
                    streams[one.name].flush()  # whatever ends this process, what was written until then is a capture
                    complaints.tell(one.name, outcome.message if isinstance(outcome, Failed) else "")
                    pages[paths[one.name]] += isinstance(outcome, Fetched)
                    await clock.sleep(max(begun + interval - clock.now(), 0.0))

            # Each by itself: a server that hangs must not thin out the captures of the others.
            await asyncio.gather(*(follow(one) for one in backends))
    return pages


def _opened(files: ExitStack, paths: Mapping[str, Path], *, force: bool) -> dict[str, IO[str]]:
    """The files by name, open for writing: none is touched if any is there already and must not be written over."""
    for path in paths.values():
        if os.path.lexists(path) and not force:
            raise FileExistsError(f"{path}: expected no such file, found one: --force writes over it")
        if path.exists() and not path.is_file():
            # A pipe would be waited for, a device written to.
            raise FileExistsError(f"{path}: expected a capture to write over, found no regular file")
    for path in paths.values():
        folders.make(path.parent)
    how: Literal["wt", "xt"] = "wt" if force else "xt"
    return {name: files.enter_context(gzip.open(path, how, encoding="utf-8")) for name, path in paths.items()}


def _for_files(backends: Sequence[cf.Backend]) -> list[cf.Backend]:
    """The backends by names that are a file's, each its own."""
    found: dict[str, cf.Backend] = {}
    for one in backends:
        name = one.name.replace(":", "_") if one.name == cf.Backend(one.url).name else one.name
        if "/" in name or "\0" in name or name in {".", ".."}:
            raise cf.ConfigError(f"backend {name}: expected a name that can be a file's, found {name!r}")
        if name in found:
            raise cf.ConfigError(f"backend {name}: expected a name of its own, found another server's file")
        found[name] = attrs.evolve(one, name=name)
    return list(found.values())


async def _ask(session: aiohttp.ClientSession, target: Target, state: BackendState, clock: Clock) -> None:
    if not state.up:
        return
    served = await endpoints.ask(session, target, clock)
    state.served(served.limits, served.version)
