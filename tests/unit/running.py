"""An exporter under a clock moved by hand, that becomes what it is told; what its page says of it."""

import asyncio

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.answered import body
from tests.unit.little_servers import ManualClock
from tidegauge import config
from tidegauge.collectors import FiguresCollector
from tidegauge.exporter import Exporter
from tidegauge.parsing.events import Batch
from tidegauge.sources.scrape import Failed, Fetched

BEGIN = 2000.0
A = "url: http://127.0.0.1:9001, name: a, fleet: agents"
B = "url: http://127.0.0.1:9002, name: b, fleet: agents"
C = "url: http://127.0.0.1:9003, name: c, fleet: agents"


def written(*backends, more=""):
    """A configuration of *backends*, and of whatever else."""
    listed = "".join(f"  - {{{one}}}\n" for one in backends)
    return config.load(f"{more}\nbackends:\n{listed}", "tidegauge.yml", {})


class Running:
    """An exporter under a clock moved by hand, with what its page says."""

    def __init__(self, *backends, more=""):
        self.clock = ManualClock(BEGIN)
        self.exporter = Exporter(written(*backends, more=more), self.clock)

    def become(self, *backends, more=""):
        asyncio.run(self.exporter.become(written(*backends, more=more)))

    def poll(self, **finished):
        """Pages of each backend by the requests that it has finished, a second apart."""
        for counts in zip(*finished.values(), strict=True):
            self.clock.time += 1.0
            for name, count in zip(finished, counts, strict=True):
                self.exporter.book(name, Fetched(self.clock.time, 0.1, body(count, BEGIN - 100 - ord(name))))

    def new(self):
        """Backends that were not polled since they began, or began anew."""
        return [name for name, state in self.exporter.watch.states.items() if state.up is None]

    def tell(self, *events, caller="sim", fleet="agents"):
        return self.exporter.take(Batch(caller, fleet, events))

    def samples(self):
        """{(name, label values in order): value} of the page."""
        registry = CollectorRegistry()
        registry.register(FiguresCollector(self.exporter.figures))
        return {
            (sample.name.removeprefix("tidegauge_"), *sorted(sample.labels.values())): sample.value
            for family in text_string_to_metric_families(generate_latest(registry).decode())
            for sample in family.samples
        }


def counted(running, name="a"):
    """What only time can give a backend: its counters and windows."""
    found = running.samples()
    return [
        found.get((series, name, *more))
        for series, *more in (
            ("scrape_failures_total", "refused"),
            ("arrivals_total",),
            ("window_requests", "m"),
            ("backend_up",),
        )
    ]


def with_history():
    running = Running(A, B)
    running.exporter.book("a", Failed(BEGIN, 0.1, "refused", "a: nobody there"))
    running.poll(a=(10, 30, 60), b=(10, 20, 40))
    return running
