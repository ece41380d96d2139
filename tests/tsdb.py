"""A real Prometheus over a history that was never lived through: blocks made of text, rules evaluated in passes.

Recording rules read other recorded series, so they are evaluated level by level: what a level gave is made a block and
loaded before the next one is asked. Alerts come last; how long each held is told from its own values.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from tests.history import History
from tests.rules.promtool import committed
from tidegauge.demo.exposition import labels
from tidegauge.demo.processes import free_ports

DEADLINE = 20
NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class QueryError(Exception):
    """What Prometheus says is wrong with a query."""


@attrs.frozen
class Prometheus:
    """The HTTP API of a running server."""

    address: str

    def get(self, path: str, **query: Any) -> Any:
        """The data of one request; QueryError with the server's own words."""
        body = urllib.parse.urlencode(query, doseq=True).encode()
        url = f"http://{self.address}/api/v1/{path}"
        request = url + "?" + body.decode() if path.startswith("label/") else urllib.request.Request(url, body)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE * 3) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise QueryError(json.load(error)["error"]) from error

    def cost(self, expr: str, end: float, begin: float | None = None, step: float = 0) -> dict[str, Any]:
        """What a query costs in samples and seconds: over a range if there is a *begin*, else at the *end*."""
        if begin is None:
            return self.get("query", query=expr, time=end, stats="all")["stats"]
        return self.get("query_range", query=expr, start=begin, end=end, step=step, stats="all")["stats"]

    def at(self, expr: str, moment: float) -> list[dict[str, Any]]:
        """An instant query's series."""
        found = self.get("query", query=expr, time=moment)
        return found["result"] if found["resultType"] == "vector" else [{"metric": {}, "value": found["result"]}]

    def over(self, expr: str, begin: float, end: float, step: float) -> list[dict[str, Any]]:
        """A range query's series."""
        return self.get("query_range", query=expr, start=begin, end=end, step=step)["result"]

    def values(self, label: str, match: str, begin: float, end: float) -> list[str]:
        """What `label_values(match, label)` gives over a range."""
        return self.get(f"label/{label}/values", **{"match[]": match}, start=begin, end=end)


@contextlib.contextmanager
def running(binary: str, data: Path, *flags: str, lookback: int = 35) -> Iterator[Prometheus]:
    """Prometheus on a folder of blocks.

    *lookback* stands for the end of a series that no longer is scraped: text has no marks of staleness.
    """
    (port,) = free_ports([0])
    settings, log = data.parent / "prometheus.yml", data.parent / "prometheus.log"
    settings.write_text("{}")
    command = [binary, f"--config.file={settings}", f"--storage.tsdb.path={data}", "--storage.tsdb.retention.time=50y"]
    command += [
        f"--web.listen-address=127.0.0.1:{port}",
        f"--query.lookback-delta={lookback}s",
        "--log.level=warn",
        *flags,
    ]
    with log.open("a") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            found = Prometheus(f"127.0.0.1:{port}")
            _until_ready(found, process, log)
            yield found
        finally:
            process.terminate()


def _until_ready(server: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{server.address}/-/ready", timeout=1):
            return
        time.sleep(0.03)
    raise AssertionError(f"Prometheus does not get ready: {log.read_text()[-2000:]}")


def blocks(promtool: str, lines: Iterable[str], data: Path) -> None:
    """Add the samples to a folder of blocks."""
    with tempfile.NamedTemporaryFile("w", dir=data.parent, encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
        file.write("# EOF\n")
        file.flush()
        command = [promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", file.name, str(data)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def build(prometheus: str, promtool: str, history: History, data: Path) -> None:
    """The history with everything that the committed rules and alerts make of it, as blocks in *data*."""
    blocks(promtool, history.lines, data)
    rules = [rule for group in committed()["groups"] for rule in group["rules"]]
    passes = levels([rule for rule in rules if "record" in rule])
    for level in [*passes, [rule for rule in rules if "alert" in rule]]:
        with running(prometheus, data) as server:
            rows = [row for rule in level for row in evaluated(server, rule, history)]
        if rows:
            blocks(promtool, rows, data)


def levels(rules: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The recording rules in passes: each reads only what earlier passes recorded.

    A rule that reads the name it records reads what the rules before it recorded under that name.
    """
    waiting, found = list(rules), []
    while waiting:
        free = [rule for place, rule in enumerate(waiting) if not _awaited(rule, waiting, place)]
        assert free, f"rules that wait for each other: {sorted(rule['record'] for rule in waiting)}"
        found.append(free)
        waiting = [rule for rule in waiting if rule not in free]
    return found


def _awaited(rule: Mapping[str, Any], waiting: Sequence[Mapping[str, Any]], place: int) -> set[str]:
    """The series that a rule at its *place* in the list reads and that rules of the list have still to record."""
    own = rule["record"]
    others = {one["record"] for one in waiting} - {own}
    before = {one["record"] for one in waiting[:place]} & {own}
    return set(NAME.findall(rule["expr"])) & (others | before)


def evaluated(server: Prometheus, rule: Mapping[str, Any], history: History) -> Iterator[str]:
    """The samples that a rule writes over the history, evaluated at every scrape."""
    found: dict[str, dict[float, str]] = {}
    for row in server.over(rule["expr"], history.begin, history.end, history.step):
        # Rows that differ in their name alone are one series of the rule: it is theirs at different times.
        own = {key: value for key, value in row["metric"].items() if key != "__name__"}
        points = found.setdefault(json.dumps({**own, **rule.get("labels", {})}, sort_keys=True), {})
        assert not points.keys() & {at for at, _ in row["values"]}, f"two values for one series: {rule['expr']}"
        points.update(row["values"])
    for text, points in found.items():
        own, times = json.loads(text), sorted(points)
        if "record" in rule:
            head = rule["record"] + labels(own)
            yield from (f"{head} {points[at]} {at:.0f}" for at in times)
        else:
            yield from _held(rule, own, times, history.step)


def _held(rule: Mapping[str, Any], own: Mapping[str, str], times: list[float], step: int) -> Iterator[str]:
    """ALERTS of one set of labels: pending until the condition has held for long enough, then firing."""
    hold = sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+)([smhd])", str(rule.get("for", "0s"))))
    since = before = 0.0
    for at in times:
        since = at if at - before > step else since
        before = at
        state = "firing" if at - since >= hold else "pending"
        yield f"ALERTS{labels({**own, 'alertname': rule['alert'], 'alertstate': state})} 1 {at:.0f}"


def copied(data: Path, folder: Path) -> Path:
    """The blocks under a folder of their own, for a server of one's own; the files are shared."""
    target = folder / "data"
    shutil.copytree(
        data,
        target,
        copy_function=os.link,
        ignore=shutil.ignore_patterns("wal", "chunks_head", "lock", "queries.active"),
    )
    return target
