"""The command line of `tidegauge`: its commands and options, and the readers of their values; pure."""

import argparse
import math
from collections.abc import Callable
from typing import Final, TypeAlias

import tidegauge
from tidegauge.catalogue import places

SERVE: Final = "serve"
CHECK: Final = "check"
REPORT: Final = "report"
RECORD: Final = "record"
RENDER: Final = "rules render"
BOARDS: Final = "dashboards render"
PUSH: Final = "dashboards push"

_SHORTEST_INTERVAL: Final = 0.05
_CONFIGURATION: Final = "configuration, YAML"
_SERVER: Final = "a vLLM server; may be repeated"
_FOLDER: Final = "folder for what is written; made if missing"
_Add: TypeAlias = Callable[..., argparse.ArgumentParser]


def parser() -> argparse.ArgumentParser:
    """The whole of `tidegauge`: every parse yields `command`, the name of a command, beside that command's options."""
    whole = argparse.ArgumentParser(prog="tidegauge", description=tidegauge.__doc__)
    whole.add_argument("--version", action="version", version=f"tidegauge {tidegauge.__version__}")
    levels = ["debug", "info", "warning", "error"]
    whole.add_argument("--log-level", default="info", choices=levels, help="how much the log tells (default: info)")
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for command in (_serve, _check, _report, _record, _rules, _dashboards):
        command(commands.add_parser)
    return whole


def _serve(add: _Add) -> None:
    serve = add(SERVE, help="run the exporter")
    serve.add_argument("--config", required=True, metavar="FILE", help=_CONFIGURATION)
    serve.set_defaults(command=SERVE)


def _check(add: _Add) -> None:
    check = add(CHECK, help="check a configuration and say what it asks for")
    check.add_argument("--config", required=True, metavar="FILE", help=_CONFIGURATION)
    check.set_defaults(command=CHECK)


def _report(add: _Add) -> None:
    report = add(REPORT, help="print the report: from captures, servers or a running exporter")
    source = report.add_mutually_exclusive_group(required=True)
    source.add_argument("--capture", action="append", metavar="[NAME=]FILE", help="a capture; may be repeated")
    source.add_argument("--backend", action="append", metavar="[NAME=]URL", help=_SERVER)
    source.add_argument("--exporter", metavar="URL", help="a running tidegauge")
    report.add_argument("--log", action="append", default=[], metavar="NAME=FILE", help="startup log of a backend")
    report.add_argument("--fleet", action="append", default=[], metavar="NAME=A,B", help="backends that are one fleet")
    report.add_argument(
        "--for", dest="seconds", type=_seconds, default=0.0, metavar="SECONDS", help="watch servers so long"
    )
    report.add_argument("--config", metavar="FILE", help="thresholds and the like of one's own, YAML (docs/report.md)")
    report.add_argument("--json", action="store_true", help="the report as JSON")
    report.set_defaults(command=REPORT)


def _record(add: _Add) -> None:
    record = add(RECORD, help="write the raw pages of servers to captures")
    record.add_argument("--backend", action="append", required=True, metavar="[NAME=]URL", help=_SERVER)
    record.add_argument(
        "--for", dest="seconds", type=_seconds, default=60.0, metavar="SECONDS", help="record so long (default: 60)"
    )
    record.add_argument(
        "--interval", type=_interval, default=1.0, metavar="SECONDS", help="from one page to the next (default: 1)"
    )
    record.add_argument("--out", default=".", metavar="DIR", help="folder for NAME.scrapes.gz (default: this one)")
    record.add_argument("--force", action="store_true", help="write over captures that are there already")
    record.set_defaults(command=RECORD)


def _rules(add: _Add) -> None:
    for_rules = add("rules", help="the recording rules and alerts")
    render = for_rules.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "render", help="write them with settings of one's own (docs/rules.md)"
    )
    render.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting; may be repeated")
    render.add_argument("--values", metavar="FILE", help="settings, YAML; --set wins")
    render.add_argument(
        "--format",
        choices=["prometheus", "kubernetes"],
        default="prometheus",
        help="files for rule_files (default), or a PrometheusRule",
    )
    render.add_argument("--mixin", metavar="DIR", help="checkout that holds mixin/, where it is not found by itself")
    render.add_argument("-o", "--out", required=True, metavar="DIR", help=_FOLDER)
    render.set_defaults(command=RENDER)


def _dashboards(add: _Add) -> None:
    commands = add("dashboards", help="the boards for Grafana").add_subparsers(required=True, metavar="COMMAND")
    render = commands.add_parser("render", help="write them as files (docs/dashboards.md)")
    render.add_argument(
        "--format", choices=["json", "kubernetes"], default="json", help="a file a board (default), or ConfigMaps"
    )
    render.add_argument(
        "--folder", type=_name, metavar="NAME", help="Grafana's folder, for ConfigMaps (default: tidegauge)"
    )
    render.add_argument("-o", "--out", required=True, metavar="DIR", help=_FOLDER)
    render.set_defaults(command=BOARDS)
    push = commands.add_parser("push", help="create or update them in a Grafana (docs/dashboards.md)")
    push.add_argument("--grafana", required=True, metavar="URL", help="its address, with the path it lives under")
    push.add_argument("--token-file", required=True, metavar="FILE", help="a file with a service account's token")
    push.add_argument(
        "--folder", type=_name, metavar="NAME", help="put all of them there; without it each stays where it is"
    )
    push.add_argument("--dry-run", action="store_true", help="say what would be done, write nothing")
    push.add_argument("--ca-file", metavar="FILE", help="authorities that may sign Grafana's certificate, PEM")
    push.set_defaults(command=PUSH)
    for command in (render, push):
        command.add_argument(
            "--runbooks", type=_address, metavar="URL", help="where the runbooks are, if not at the default address"
        )
        command.add_argument(
            "--boards", metavar="DIR", help="the boards' files, where they are not found by themselves"
        )


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected a name, found {text!r}")
    return text


def _seconds(text: str) -> float:
    """A time that passes: neither negative nor endless, which `float` would take."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds of at least 0, found {text!r}")
    return value


def _interval(text: str) -> float:
    value = _seconds(text)
    if value < _SHORTEST_INTERVAL:
        raise argparse.ArgumentTypeError(f"expected at least {_SHORTEST_INTERVAL} seconds, found {text!r}")
    return value


def _address(text: str) -> str:
    """An address that links are made of, by the same rule as in the settings of the rules."""
    if not text.startswith(places.BEGINNINGS):
        raise argparse.ArgumentTypeError(f"expected {places.EXPECTED}, found {text!r}")
    return text.rstrip("/")
