"""The running stack: simulated servers, exporter, Prometheus, Alertmanager, inbox."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final, Self

import aiohttp
from rich.console import Console

from tidegauge.demo.inbox import Inbox, Page
from tidegauge.demo.layout import Ports
from tidegauge.demo.processes import Processes, answers, program
from tidegauge.demo.traffic import Traffic
from tidegauge.report import live
from tidegauge.report.document import Document

FLEET: Final = "demo"
_START: Final = 30.0


class Stack:
    """Starts everything in *folder* (laid out before) on *ports*; all of it ends with the context."""

    def __init__(self, folder: Path, ports: Ports, console: Console) -> None:
        self._folder = folder
        self._ports = ports
        self._console = console
        self._began = time.monotonic()
        self._exit = AsyncExitStack()
        self.exporter = f"http://127.0.0.1:{ports.exporter}"

    async def __aenter__(self) -> Self:
        self.processes = await self._exit.enter_async_context(Processes(self._folder))
        self.inbox = await self._exit.enter_async_context(Inbox(self._ports.inbox))
        self.session = await self._exit.enter_async_context(
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2))
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit.aclose()

    def say(self, message: str) -> None:
        """Print a line with the seconds since the start."""
        self._console.print(f"[dim]{time.monotonic() - self._began:5.0f} s[/]  {message}", soft_wrap=True)

    async def start(self, servers: Sequence[Mapping[str, int]]) -> None:
        """Start all programs and wait until each answers."""
        for number, flags in enumerate(servers):
            await self.start_server(number, flags)
        self.say(f"started {len(servers)} simulated vLLM servers")
        await self.processes.start(
            "exporter", sys.executable, "-m", "tidegauge.cli", "serve", "--config", str(self._folder / "tidegauge.yml")
        )
        ports, folder = self._ports, self._folder
        await self.processes.start(
            "alertmanager",
            program("prometheus-alertmanager", "alertmanager"),
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{ports.alertmanager}",
            "--cluster.listen-address=",
        )
        await self.processes.start(
            "prometheus",
            program("prometheus"),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address=127.0.0.1:{ports.prometheus}",
        )
        for what, url in (
            ("exporter", f"{self.exporter}/-/ready"),
            ("Alertmanager", f"http://127.0.0.1:{ports.alertmanager}/-/ready"),
            ("Prometheus", f"http://127.0.0.1:{ports.prometheus}/-/ready"),
        ):
            await self.processes.until(f"{what} is ready", partial(answers, self.session, url), _START)
        self.say("exporter, Prometheus (with the generated rules) and Alertmanager are ready")

    async def start_server(self, number: int, flags: Mapping[str, int]) -> None:
        """Start simulated server *number* with vLLM's flags."""
        port = self._ports.servers[number]
        command = [sys.executable, "-m", "tidegauge.demo.server", "--port", str(port)]
        command += ["--log", str(self._folder / f"vllm-{port}.log")]
        command += [part for flag, value in flags.items() for part in (f"--{flag}", str(value))]
        await self.processes.start(f"vllm-{number}", *command)
        url = f"http://127.0.0.1:{port}/health"
        await self.processes.until(f"simulated server {number} answers", partial(answers, self.session, url), _START)

    async def restart_server(self, number: int, flags: Mapping[str, int]) -> None:
        """Start simulated server *number* anew with other flags."""
        await self.processes.stop(f"vllm-{number}")
        await self.start_server(number, flags)

    def traffic(self, ceiling: int) -> Traffic:
        """The instrumented caller, not yet running."""
        return Traffic(self.exporter, FLEET, [f"http://127.0.0.1:{port}" for port in self._ports.servers], ceiling)

    def backend(self, number: int) -> str:
        """The exporter's name of simulated server *number*."""
        return f"127.0.0.1:{self._ports.servers[number]}"

    async def report(self) -> tuple[Document, Document]:
        """The exporter's report, and the demo fleet's part of it."""
        report = await live.from_exporter(self.exporter)
        return report, next((one for one in report["fleets"] if one["name"] == FLEET), {})

    async def until(self, what: str, condition: Callable[[Document, Document], bool], seconds: float) -> Document:
        """Wait until the report satisfies *condition* (whole report, fleet); returns the fleet's part."""
        seen: list[Document] = []

        async def holds() -> bool:
            report, fleet = await self.report()
            seen[:] = [fleet]
            return bool(fleet) and condition(report, fleet)

        await self.processes.until(what, holds, seconds)
        return seen[0]

    async def page(self, status: str, seconds: float, **labels: str) -> Page:
        """Wait for a page to be delivered and return it."""
        found: list[Page] = []

        async def arrived() -> bool:
            page = self.inbox.find(status, **labels)
            if page is not None:
                found.append(page)
            return page is not None

        told = ", ".join(f'{name}="{value}"' for name, value in labels.items())
        await self.processes.until(f"{status} page with {told}", arrived, seconds)
        return found[0]

    def show(self, page: Page) -> None:
        """Print a delivered page with its labels and annotations."""
        colour = "red" if page.status == "firing" else "green"
        self.say(f"[bold {colour}]{page.status.upper()}[/] page delivered by Alertmanager")
        for name, value in sorted(page.labels.items()):
            self._console.print(f"           [cyan]{name}[/]={value}", soft_wrap=True)
        for name, value in sorted(page.annotations.items()):
            self._console.print(f"           [bold]{name}[/]: {value}", soft_wrap=True, markup=True)
