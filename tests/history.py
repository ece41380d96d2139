"""What a Prometheus would have stored of vLLM servers and of an exporter beside them, as text made in no time.

Pages of servers go through the exporter's own heart as they do live. Every *step* seconds the last page of each server
and the exporter's families are written down with that moment's time stamp, as if both had been scraped then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs
from prometheus_client.utils import floatToGoString

from tidegauge import process
from tidegauge.catalogue import exported as ex
from tidegauge.collectors import FiguresCollector
from tidegauge.demo.exposition import labels
from tidegauge.watch import Watch

BEGIN = 1_795_996_800
"""Whole hours of the clock, and the start of one of Prometheus's blocks: the same in every run."""
STEP = 15
EXPORTER = {"instance": "10.0.0.9:10011", "job": "tidegauge"}


@attrs.frozen
class Poll:
    """What one poll of a server gave: a page, or none for the given reason."""

    at: float
    instance: str
    body: str | None
    reason: str = "connection"


@attrs.frozen
class History:
    """Lines of samples from `begin` to `end`, a scrape every `step` seconds; `moments` are worth a look at a board."""

    lines: tuple[str, ...] = attrs.field(repr=False)
    begin: int
    end: int
    moments: tuple[int, ...]
    step: int = STEP


def sample(name: str, label_values: Mapping[str, str], value: float, at: float) -> str:
    """One sample as OpenMetrics has it."""
    return f"{name}{labels(label_values)} {floatToGoString(value)} {at:.0f}"


def native(body: str, instance: str, at: float, heads: dict[str, str], job: str = "vllm") -> Iterator[str]:
    """The samples of a page under the labels of a scrape; *heads* keeps what was made of each line's head."""
    target = f'instance="{instance}",job="{job}"'
    for line in body.splitlines():
        if not line or line[0] == "#":
            continue
        head, _, value = line.rpartition(" ")
        key = instance + head
        if key not in heads:
            heads[key] = f"{head[:-1]},{target}}}" if head[-1] == "}" else f"{head}{{{target}}}"
        yield f"{heads[key]} {value} {at:.0f}"


def of_exporter(watch: Watch, at: float) -> Iterator[str]:
    """The families of the exporter as of a moment, scraped then."""
    figures = watch.figures(at)
    for family in FiguresCollector(lambda: figures).collect():
        for one in family.samples:
            yield sample(one.name, {**one.labels, **EXPORTER}, one.value, at)
    # What no figure holds: that the configuration was read, once, before all of this.
    yield sample(ex.CONFIG_LOADED.name, EXPORTER, 1, at)
    yield sample(ex.CONFIG_LOADED_AT.name, EXPORTER, BEGIN, at)
    yield sample("up", EXPORTER, 1, at)
    for name, value in of_process(at - BEGIN).items():
        yield sample(name, EXPORTER, value, at)


def of_process(age: float) -> dict[str, float]:
    """What an exporter's own process takes of its machine, *age* seconds after BEGIN: made up, and steady."""
    return {
        process.VIRTUAL_MEMORY.name: 1.5e9,
        process.RESIDENT_MEMORY.name: 60e6 + 1e4 * min(age, 900),
        process.START_TIME.name: BEGIN - 60,
        process.CPU.name: 1 + 0.05 * age,
        process.OPEN_FILES.name: 24,
        process.MOST_FILES.name: 1024,
    }


def scraped(
    polls: Iterable[Poll],
    watch: Watch | None,
    begin: int,
    *,
    step: int = STEP,
    more: Callable[[int], Iterable[str]] = lambda _: (),
) -> Iterator[str]:
    """All samples of polls in order of time, from *begin* on; without *watch*, as if there were no exporter.

    `more` gives further lines for the moment of each scrape.
    """
    last: dict[str, Poll] = {}
    heads: dict[str, str] = {}
    due = begin

    def scrape(at: int) -> Iterator[str]:
        for name, poll in last.items():
            yield sample("up", {"instance": name, "job": "vllm"}, poll.body is not None, at)
            yield from native(poll.body or "", name, at, heads)
        if watch is not None:
            yield from of_exporter(watch, at)
        yield from more(at)

    for poll in polls:
        while poll.at > due:
            yield from scrape(due)
            due += step
        last[poll.instance] = poll
        if watch is None:
            continue
        if poll.body is None:
            watch.failed(poll.instance, poll.at, 0.01, poll.reason)
        else:
            watch.page(poll.instance, poll.at, 0.01, poll.body)
    yield from scrape(due)
