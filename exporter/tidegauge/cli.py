"""The `tidegauge` command: argv in, exit code out."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from tidegauge import app, config, exporter, rules, signals
from tidegauge.arguments import BOARDS, CHECK, PUSH, RECORD, RENDER, REPORT, SERVE, parser
from tidegauge.derive.figures import Figures
from tidegauge.derive.settings import Settings
from tidegauge.grafana import boards, client, configmaps
from tidegauge.grafana.push import Voices, push
from tidegauge.report import live, replay, text
from tidegauge.report.document import Document, document
from tidegauge.sources import folder, regular
from tidegauge.sources.captures import ENDING, BadCaptureError
from tidegauge.sources.credentials import CredentialError, read_token

_EXIT_USAGE: Final = 2
_EXIT_PIPE: Final = 128 + signal.SIGPIPE


class UsageError(Exception):
    """What was asked for cannot be done; the message says why."""


_USAGE: Final = (
    UsageError,
    config.ConfigError,
    BadCaptureError,
    CredentialError,
    regular.UnreadableError,
    folder.NoFolderError,
    rules.RulesError,
    boards.BoardsError,
    client.AddressError,
    configmaps.TooLargeError,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 on success, 1 if what it asked could not be had, 2 for a wrong call or configuration."""
    arguments = parser().parse_args(argv)
    if sys.stdout is None and arguments.command != SERVE:
        print("tidegauge: expected an open standard output, found it closed", file=sys.stderr)
        return 1
    logging.basicConfig(level=arguments.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    try:
        code = _RUN[arguments.command](arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read has enough (`| head`); what is still buffered must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _EXIT_PIPE
    except _USAGE as error:
        print(f"tidegauge: {error}", file=sys.stderr)
        return _EXIT_USAGE
    except OSError as error:
        print(f"tidegauge: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _serve(arguments: argparse.Namespace) -> int:
    loaded = _config(arguments)

    def started(at: app.Served) -> None:
        logging.getLogger(__name__).info("listening on %s:%s, %s backends", at.host, at.port, len(loaded.backends))

    async def run() -> None:
        task = asyncio.ensure_future(app.serve(loaded, started, read=partial(_config, arguments)))
        signals.on_end(task.cancel)
        await task

    asyncio.run(run())
    return 0


def _check(arguments: argparse.Namespace) -> int:
    loaded = _config(arguments)
    for one in loaded.backends:
        print(f"{one.name}: {one.url}, fleet {one.fleet or 'by model name'}")
    return 0


def _config(arguments: argparse.Namespace) -> config.Config:
    return config.load_file(arguments.config, os.environ)


def _report(arguments: argparse.Namespace) -> int:
    _refuse_unasked(arguments)
    if arguments.capture:
        answer = document(_replayed(arguments))
        _complain_of_empty(answer, arguments.capture)
    elif arguments.backend:
        fleets = _fleets(arguments)
        names = [one.name for one in config.for_urls(arguments.backend, named=True).backends]
        if unknown := fleets.keys() - set(names):
            raise UsageError(f"--fleet: no backend is named {min(unknown)} ({', '.join(names)})")
        settings, prefixes = _judging(arguments)
        figures = live.from_backends(arguments.backend, arguments.seconds, fleets, settings, prefixes)
        answer = document(asyncio.run(figures))
    else:
        return _from_exporter(arguments)
    _print(answer, as_json=arguments.json)
    return 0 if _anything(answer) else 1


def _from_exporter(arguments: argparse.Namespace) -> int:
    answer = asyncio.run(live.from_exporter(arguments.exporter))
    try:
        _print(answer, as_json=arguments.json)
        return 0 if _anything(answer) else 1
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        # Whoever answered calls it a report; the keys tell otherwise.
        found = f"something else ({type(error).__name__} {error})"[:100]
        if isinstance(error, KeyError) and not arguments.json:
            # Keys are added within a format, and no default stands in for what an older exporter does not tell.
            found = f"one without the key {str(error)[:60]}: is the exporter older? --json prints what it tells"
        raise OSError(f"{arguments.exporter}: expected a tidegauge's report, found {found}") from error


def _complain_of_empty(answer: Document, given: Sequence[str]) -> None:
    """Say which captures gave no page at all, and why."""
    for one, path in zip(answer["backends"], map(_after, given), strict=True):
        if not _anything({"backends": [one]}):
            why = ", ".join(f"{reason} {count} times" for reason, count in one["failed_polls"].items()) or "no poll"
            print(f"tidegauge: {path}: expected pages of vLLM's metrics, found none ({why})", file=sys.stderr)


def _refuse_unasked(arguments: argparse.Namespace) -> None:
    """Raises UsageError for an option that would be passed over in silence."""
    for option, given, source, fits in (
        ("--log", arguments.log, "--capture", arguments.capture),
        ("--for", arguments.seconds, "--backend", arguments.backend),
        ("--fleet", arguments.fleet, "--capture or --backend", not arguments.exporter),
        ("--config", arguments.config, "--capture or --backend", not arguments.exporter),
    ):
        if given and not fits:
            msg = f"{option} goes with {source} only"
            raise UsageError(msg)


def _replayed(arguments: argparse.Namespace) -> Figures:
    for given in arguments.capture:
        if not _name(given) or not _after(given):
            raise UsageError(f"--capture {given}: expected FILE or NAME=FILE")
    paths = {_name(given): Path(_after(given)) for given in arguments.capture}
    if len(paths) < len(arguments.capture):
        msg = "two captures have the same name; give them names: --capture NAME=FILE"
        raise UsageError(msg)
    logs = {}
    for given in arguments.log:
        if "=" not in given or _name(given) not in paths:
            msg = f"--log {given}: expected NAME=FILE with the name of a capture ({', '.join(paths)})"
            raise UsageError(msg)
        logs[_name(given)] = Path(_after(given))
    fleets = _fleets(arguments)
    unknown = fleets.keys() - paths.keys()
    if unknown:
        msg = f"--fleet: no capture is named {min(unknown)} ({', '.join(paths)})"
        raise UsageError(msg)
    settings, prefixes = _judging(arguments)
    return replay.replay(replay.load(paths, logs, fleets, "captures"), settings, prefixes)


def _judging(arguments: argparse.Namespace) -> tuple[Settings, tuple[str, ...]]:
    """What figures are judged by and how vLLM's names may begin, by the file of `--config`, else by default.

    The command line says what is reported and how long, so what the file says of that is left out.
    """
    empty = config.Config(backends=())
    loaded = config.load_file(arguments.config, {}, bare=True) if arguments.config else empty
    return exporter.settings(loaded), exporter.prefixes(loaded)


def _print(answer: Document, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer, indent=2))
    else:
        # A report that is piped to a file must not be cut to a terminal's width.
        text.show(answer, Console(width=None if sys.stdout.isatty() else 400, highlight=False))


def _anything(answer: Document) -> bool:
    """Whether any backend answered: now, or at any time of the window."""
    return any(one["up"] or one["models"] for one in answer["backends"])


def _fleets(arguments: argparse.Namespace) -> dict[str, str]:
    """Fleet by backend name."""
    found: dict[str, str] = {}
    for given in arguments.fleet:
        members = _after(given).split(",")
        if "=" not in given or not _name(given) or not all(members):
            msg = f"--fleet {given}: expected NAME=BACKEND,BACKEND"
            raise UsageError(msg)
        if twice := found.keys() & members:
            msg = f"--fleet {given}: expected each backend in one fleet, found {min(twice)} in {found[min(twice)]} too"
            raise UsageError(msg)
        found.update(dict.fromkeys(members, _name(given)))
    return found


def _name(given: str) -> str:
    """The name before `=`, else the file's: without what `record` appends, which may have dots before it."""
    if "=" in given:
        return given.partition("=")[0]
    name = Path(given).name
    return name.removesuffix(ENDING) if name.endswith(ENDING) else name.partition(".")[0]


def _after(given: str) -> str:
    return given.partition("=")[2] if "=" in given else given


def _record(arguments: argparse.Namespace) -> int:
    seconds, interval, out = arguments.seconds, arguments.interval, folder.expected(arguments.out)
    written = asyncio.run(live.record(arguments.backend, seconds, interval, out, force=arguments.force))
    for path, pages in written.items():
        print(f"{path}: {pages} pages")
    return 0 if any(written.values()) else 1


def _render(arguments: argparse.Namespace) -> int:
    chosen = rules.settings(arguments.set, arguments.values)
    files = rules.render(rules.sources(arguments.mixin), chosen, arguments.format)
    _write(files, arguments.out)
    return 0


def _render_boards(arguments: argparse.Namespace) -> int:
    found = _boards(arguments)
    if arguments.format == "kubernetes":
        made = configmaps.configmaps(found, arguments.folder or configmaps.DEFAULT_FOLDER)
        files = {"dashboards.yaml": rules.as_yaml("tidegauge dashboards render", *made)}
    elif arguments.folder is not None:
        raise UsageError("--folder goes with --format kubernetes only")
    else:
        files = {board.file: boards.as_json(board) for board in found}
    _write(files, arguments.out)
    return 0


def _boards(arguments: argparse.Namespace) -> tuple[boards.Board, ...]:
    found, runbooks = boards.read(boards.folder(arguments.boards)), arguments.runbooks
    return found if runbooks is None else tuple(boards.with_runbooks(one, runbooks) for one in found)


def _write(files: Mapping[str, str], out: str) -> None:
    place = folder.expected(out)
    folder.make(place)
    for name, content in files.items():
        try:
            (place / name).write_text(content, encoding="utf-8")
        except OSError as error:
            raise OSError(f"{place / name}: cannot be written: {error.strerror}") from error
        print(place / name)


def _push(arguments: argparse.Namespace) -> int:
    found = _boards(arguments)
    at, token = client.address(arguments.grafana), read_token(arguments.token_file)
    voices = Voices(print, lambda line: print(f"tidegauge: {line}", file=sys.stderr))

    async def run() -> bool:
        async with client.opened(at, token, arguments.ca_file) as grafana:
            return await push(grafana, found, arguments.folder, voices, dry=arguments.dry_run)

    return 0 if asyncio.run(run()) else 1


_RUN: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {
    SERVE: _serve,
    CHECK: _check,
    REPORT: _report,
    RECORD: _record,
    RENDER: _render,
    BOARDS: _render_boards,
    PUSH: _push,
}


if __name__ == "__main__":
    sys.exit(main())
