"""`make demo`: the case on a simulated fleet, from real pages to a delivered page, and the report."""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from tidegauge import signals
from tidegauge.catalogue import places
from tidegauge.demo.layout import Ports, lay_out, repository
from tidegauge.demo.processes import DemoError, answers, free_ports
from tidegauge.demo.scenarios import SCENARIOS
from tidegauge.demo.stack import Stack
from tidegauge.grafana import client
from tidegauge.report import live, text


def main(argv: Sequence[str] | None = None) -> int:
    """0 if every step of the scenario happened, 1 with what is missing otherwise, 130 after Ctrl-C."""
    arguments = _parser().parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    try:
        asyncio.run(_cancellable(_demo(arguments, console)))
    except DemoError as error:
        console.print(f"[bold red]The demo is incomplete:[/] {error}")
        return 1
    except (asyncio.CancelledError, KeyboardInterrupt):
        console.print("stopped")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="python -m tidegauge.demo", description=__doc__)
    flags.add_argument("--scenario", choices=sorted(SCENARIOS), default="caller")
    flags.add_argument("--stay", action="store_true", help="keep everything running until Ctrl-C")
    flags.add_argument(
        "--grafana",
        type=_address,
        default=places.GRAFANA,
        metavar="URL",
        help="a Grafana of yours, for the links to boards in alerts; nothing is sent to it (default: %(default)s)",
    )
    for name in ("exporter", "prometheus", "alertmanager", "inbox"):
        flags.add_argument(f"--{name}-port", type=int, default=0, metavar="PORT", help="default: a free one")
    return flags


def _address(given: str) -> str:
    try:
        return str(client.address(given)).rstrip("/")
    except client.AddressError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


async def _cancellable(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(work)
    signals.on_end(task.cancel)
    # A closed terminal hangs up; the programs have sessions of their own and would live on.
    signals.on_hangup(task.cancel)
    await task


async def _demo(arguments: argparse.Namespace, console: Console) -> None:
    scenario = SCENARIOS[arguments.scenario]
    root = repository()
    wanted = [arguments.exporter_port, arguments.prometheus_port, arguments.alertmanager_port, arguments.inbox_port]
    exporter, prometheus, alertmanager, inbox, *servers = free_ports([*wanted, *[0] * len(scenario.servers)])
    ports = Ports(exporter, prometheus, alertmanager, inbox, tuple(servers))
    with tempfile.TemporaryDirectory(prefix="tidegauge-demo-") as name:
        folder = Path(name)
        lay_out(root, folder, ports, arguments.grafana)
        async with Stack(folder, ports, console) as stack:
            await stack.start(scenario.servers)
            if arguments.stay:
                # Whoever stays may want to see the page come, too.
                await _where(stack, ports, console, "where to look")
            async with stack.traffic(scenario.ceiling) as traffic:
                await scenario.play(stack, traffic)
                await _finish(stack, ports, console, stay=arguments.stay)
                if arguments.stay:
                    console.print("\nStaying up; Ctrl-C ends it.")
                    with suppress(asyncio.CancelledError):
                        await asyncio.Event().wait()


async def _finish(stack: Stack, ports: Ports, console: Console, *, stay: bool) -> None:
    """The report from the running exporter, and where to look."""
    console.rule("the report")
    text.show(await live.from_exporter(stack.exporter), console)
    await _where(stack, ports, console, "where to look" if stay else "where to look with make up, which stays")


async def _where(stack: Stack, ports: Ports, console: Console, title: str) -> None:
    """The addresses, those of Prometheus as this one has them."""
    console.rule(title)
    for what, port, paths in (
        ("exporter", ports.exporter, ("/",)),
        ("exporter's series", ports.exporter, ("/metrics",)),
        ("runbooks", ports.exporter, ("/runbooks/",)),
        # Debian's older Prometheus has the classic pages only, and its Alertmanager no pages at all.
        ("Prometheus alerts", ports.prometheus, ("/alerts", "/classic/alerts")),
        ("alerts as JSON", ports.alertmanager, ("/api/v2/alerts",)),
        *(("simulated vLLM", port, ("/metrics",)) for port in ports.servers),
    ):
        addresses = [f"http://127.0.0.1:{port}{path}" for path in paths]
        found = [address for address in addresses if await answers(stack.session, address)]
        console.print(f"  {what:18} {found[0] if found else f'{addresses[0]} does not answer'}")
    console.print(f"  {'boards':18} dashboards/json, in a Grafana of yours with this Prometheus (docs/dashboards.md)")


if __name__ == "__main__":
    sys.exit(main())
