"""The `tidegauge` command: argv in, exit code out."""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

import tidegauge
from tidegauge import app, config, rules
from tidegauge.derive.figures import Figures
from tidegauge.derive.settings import Settings
from tidegauge.report import live, replay, text
from tidegauge.report.document import Document, document
from tidegauge.sources.captures import BadCaptureError

_EXIT_USAGE: Final = 2


class UsageError(Exception):
    """What was asked for cannot be done; the message says why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0 on success, 1 if what it asked could not be had, 2 for a wrong call or configuration."""
    arguments = _parser().parse_args(argv)
    logging.basicConfig(level=arguments.log_level.upper(), format="%(asctime)s %(levelname)s %(message)s")
    try:
        return int(arguments.run(arguments))
    except (UsageError, config.ConfigError, BadCaptureError, rules.RulesError) as error:
        print(f"tidegauge: {error}", file=sys.stderr)
        return _EXIT_USAGE
    except OSError as error:
        print(f"tidegauge: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tidegauge", description=tidegauge.__doc__)
    parser.add_argument("--version", action="version", version=f"tidegauge {tidegauge.__version__}")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning", "error"])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="run the exporter")
    serve.add_argument("--config", required=True, metavar="FILE", help="configuration, YAML")
    serve.set_defaults(run=_serve)

    check = commands.add_parser("check", help="check a configuration and say what it asks for")
    check.add_argument("--config", required=True, metavar="FILE")
    check.set_defaults(run=_check)

    report = commands.add_parser("report", help="print the report: from captures, servers or a running exporter")
    source = report.add_mutually_exclusive_group(required=True)
    source.add_argument("--capture", action="append", metavar="[NAME=]FILE", help="a capture; may be repeated")
    source.add_argument("--backend", action="append", metavar="URL", help="a vLLM server; may be repeated")
    source.add_argument("--exporter", metavar="URL", help="a running tidegauge")
    report.add_argument("--log", action="append", default=[], metavar="NAME=FILE", help="startup log of a backend")
    report.add_argument("--fleet", action="append", default=[], metavar="NAME=A,B", help="backends that are one fleet")
    report.add_argument(
        "--for", dest="seconds", type=float, default=0.0, metavar="SECONDS", help="watch servers so long"
    )
    report.add_argument("--json", action="store_true", help="the report as JSON")
    report.set_defaults(run=_report)

    record = commands.add_parser("record", help="write the raw pages of servers to captures")
    record.add_argument("--backend", action="append", required=True, metavar="[NAME=]URL")
    record.add_argument("--for", dest="seconds", type=float, default=60.0, metavar="SECONDS")
    record.add_argument("--interval", type=float, default=1.0, metavar="SECONDS")
    record.add_argument("--out", default=".", metavar="DIR", help="folder for NAME.scrapes.gz")
    record.set_defaults(run=_record)

    for_rules = commands.add_parser("rules", help="the recording rules and alerts")
    render = for_rules.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "render", help="write them with settings of one's own (docs/rules.md)"
    )
    render.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting; may be repeated")
    render.add_argument("--values", metavar="FILE", help="settings, YAML; --set wins")
    render.add_argument("--format", choices=["prometheus", "kubernetes"], default="prometheus")
    render.add_argument("--mixin", metavar="DIR", help="checkout that holds mixin/, where it is not found by itself")
    render.add_argument("-o", "--out", required=True, metavar="DIR")
    render.set_defaults(run=_render)
    return parser


def _serve(arguments: argparse.Namespace) -> int:
    loaded = _config(arguments.config)

    def started(at: app.Served) -> None:
        logging.getLogger(__name__).info("listening on %s:%s, %s backends", at.host, at.port, len(loaded.backends))

    async def run() -> None:
        task = asyncio.ensure_future(app.serve(loaded, started))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        await task

    asyncio.run(run())
    return 0


def _check(arguments: argparse.Namespace) -> int:
    loaded = _config(arguments.config)
    for one in loaded.backends:
        print(f"{one.name}: {one.url}, fleet {one.fleet or 'by model name'}")
    return 0


def _config(path: str) -> config.Config:
    try:
        content = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        msg = f"{path}: cannot be read: {error}"
        raise UsageError(msg) from error
    return config.load(content, path, os.environ)


def _report(arguments: argparse.Namespace) -> int:
    _refuse_unasked(arguments)
    if arguments.capture:
        answer = document(_replayed(arguments))
    elif arguments.exporter:
        answer = asyncio.run(live.from_exporter(arguments.exporter))
    else:
        answer = document(asyncio.run(live.from_backends(arguments.backend, arguments.seconds, _fleets(arguments))))
    _print(answer, as_json=arguments.json)
    return 0 if _anything(answer) else 1


def _refuse_unasked(arguments: argparse.Namespace) -> None:
    """Raises UsageError for an option that would be passed over in silence."""
    for option, given, source, fits in (
        ("--log", arguments.log, "--capture", arguments.capture),
        ("--for", arguments.seconds, "--backend", arguments.backend),
        ("--fleet", arguments.fleet, "--capture or --backend", not arguments.exporter),
    ):
        if given and not fits:
            msg = f"{option} goes with {source} only"
            raise UsageError(msg)


def _replayed(arguments: argparse.Namespace) -> Figures:
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
    return replay.replay(replay.load(paths, logs, fleets, "captures"), Settings())


def _print(answer: Document, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer, indent=2))
    else:
        # A report that is piped to a file must not be cut to a terminal's width.
        text.show(answer, Console(width=None if sys.stdout.isatty() else 140, highlight=False))


def _anything(answer: Document) -> bool:
    """Whether any backend answered: now, or at any time of the window."""
    return any(one["up"] or one["models"] for one in answer["backends"])


def _fleets(arguments: argparse.Namespace) -> dict[str, str]:
    """Fleet by backend name."""
    found: dict[str, str] = {}
    for given in arguments.fleet:
        if "=" not in given:
            msg = f"--fleet {given}: expected NAME=BACKEND,BACKEND"
            raise UsageError(msg)
        found.update(dict.fromkeys(_after(given).split(","), _name(given)))
    return found


def _name(given: str) -> str:
    """The name before `=`, else the file's name up to its first dot."""
    return given.partition("=")[0] if "=" in given else Path(given).name.partition(".")[0]


def _after(given: str) -> str:
    return given.partition("=")[2] if "=" in given else given


def _record(arguments: argparse.Namespace) -> int:
    urls = {
        _after(given) if _named(given) else given: _name(given) if _named(given) else "" for given in arguments.backend
    }
    names = [name for name in urls.values() if name]
    if len(set(names)) < len(names):
        msg = "two backends have the same name; their pages would end up in one file"
        raise UsageError(msg)
    written = asyncio.run(live.record(urls, arguments.seconds, arguments.interval, Path(arguments.out)))
    for path, pages in written.items():
        print(f"{path}: {pages} pages")
    return 0 if any(written.values()) else 1


def _render(arguments: argparse.Namespace) -> int:
    chosen = rules.settings(arguments.set, arguments.values)
    files = rules.render(rules.sources(arguments.mixin), chosen, arguments.format)
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
        print(folder / name)
    return 0


def _named(given: str) -> bool:
    """Whether *given* is NAME=URL and not a URL with a query."""
    return "=" in given and "://" not in given.partition("=")[0]


if __name__ == "__main__":
    sys.exit(main())
