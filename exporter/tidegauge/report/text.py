"""The report for a terminal, drawn from the document: stages with both shares, gain ceilings, waves, capacity."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tidegauge.catalogue.labels import SERVER_STAGES
from tidegauge.derive.stages import ENGINE_STAGES
from tidegauge.report.document import Document
from tidegauge.report.verdicts import (
    best_barriers,
    covered,
    grounds_of,
    of_no_fleet,
    some_wait,
    verdicts,
    without_fleet,
)

_UNKNOWN: Final = "unknown"


def show(report: Document, console: Console) -> None:
    """Print the report to *console*; names come from outside and are neither markup nor terminal commands."""
    # All before the first line: a document that lacks a key is an error, not half a report.
    fleets = [_fleet(report, fleet) for fleet in report["fleets"]]
    lonely = without_fleet(report)
    unplaced = [_backends(lonely), *_meaning(of_no_fleet(report))] if lonely or not fleets else []
    console.print(Text("tidegauge report", style="bold"), f"over {_span(report)}")
    for part in (*unplaced, *fleets):
        console.print(part)


def _span(report: Document) -> str:
    window, known = report["window_seconds"], covered(report)
    if not window:
        return "the life of the servers"
    return (
        _time(window)
        if known == window
        else f"{_time(known)} of a window of {_time(window)}: as long as it was watched"
    )


def _fleet(report: Document, fleet: Document) -> RenderableType:
    backends = [one for one in report["backends"] if one["name"] in fleet["backends"]]
    parts: list[RenderableType] = [Text(f"\nfleet {_printable(fleet['name'])}", style="bold cyan")]
    if fleet["stages"] is not None:
        parts += [_stages(fleet), _per_backend(backends)]
    parts += [_queues(fleet, backends, report["thresholds"]), _backends(backends), _barriers(fleet)]
    return Group(*parts, *_meaning(verdicts(report, fleet)))


def _meaning(findings: list[str]) -> list[RenderableType]:
    lines = [Padding(Text(_printable(line)), (0, 0, 0, 2), expand=False) for line in findings]
    return [Text("what it means", style="bold"), *lines] if lines else []


def _stages(fleet: Document) -> Table:
    stages = fleet["stages"]
    title = f"where the latency goes ({stages['requests']:.0f} requests finished)"
    table = _table(title, ("stage", "mean", "share of e2e", "share of the three", "halving it wins at most"), {"stage"})
    if fleet["client_seconds"] is not None:
        table.add_row("client (before vLLM)", _time(fleet["client_seconds"]), "", "", "")
    for stage in SERVER_STAGES:
        engine = stages["engine_share"][stage] if stage in ENGINE_STAGES else None
        table.add_row(
            stage,
            _time(stages["seconds"][stage]),
            _percent(stages["share"][stage]),
            _percent(engine) if stage in ENGINE_STAGES else "",
            _percent(stages["gain_ceiling"][stage]["0.5"]),
        )
    table.add_row("end-to-end", _time(stages["e2e_seconds"]), "100 %" if stages["e2e_seconds"] else "", "", "")
    return table


def _per_backend(backends: list[Document]) -> Table:
    rows = [(one, model) for one in backends for model in one["models"]]
    names = {model["model_name"] for _, model in rows}
    several = len(names) > 1
    title = "per backend" if several else f"per backend, all serving {_printable(next(iter(names), ''))}"
    headings = ("backend", *(["model"] if several else []), "requests", "e2e", *SERVER_STAGES, "hit", "preempted")
    table = _table(title, headings, {"backend", "model"})
    for one, model in rows:
        stages = model["stages"] or {"requests": 0, "e2e_seconds": None, "seconds": dict.fromkeys(SERVER_STAGES)}
        times = (stages["e2e_seconds"], *stages["seconds"].values())
        table.add_row(
            _name(one["name"]),
            *([_name(model["model_name"])] if several else []),
            f"{stages['requests']:.0f}",
            *("-" if value is None else _time(value) for value in times),
            _percent(one["prefix_hit"]) if one["prefix_hit"] is not None else "-",
            f"{one['preemptions']:.0f}",
        )
    return table


def _queues(fleet: Document, backends: list[Document], thresholds: Document) -> Table:
    headings = ("where", "p50", "p90", "p90/p50", "late", "late mean", "effective waves", "verdict")
    table = _table("who waits in a queue", headings, {"where", "verdict"})
    rows = [(f"caller of {fleet['name']}", fleet["caller_queue"])]
    rows += [(f"server {one['name']}", model["queue"]) for one in backends for model in one["models"]]
    for where, queue in rows:
        if queue is None:
            table.add_row(
                _name(where), *["-"] * 6, "not measured" if where.startswith("caller") else "too few requests"
            )
            continue
        table.add_row(
            _name(where),
            _bounded(queue, "0.5"),
            _bounded(queue, "0.9"),
            f"{queue['p90_p50_ratio']:.1f}" if queue["quantiles"]["0.9"] > queue["edge_seconds"] else "-",
            _percent(queue["late_ratio"]),
            f">= {_time(queue['late_seconds'])}" if queue["late_seconds"] is not None else "-",
            f"{queue['effective_waves']:.2f}" if queue["effective_waves"] else "infinite",
            _judged(queue, thresholds),
        )
    return table


def _judged(queue: Document, thresholds: Document) -> str:
    if queue["pages"]:
        return "bimodal"
    if queue["bimodal"]:
        return "bimodal, cost unknown" if queue["impact_ratio"] is None else "bimodal, costs little"
    if queue["saturated"]:
        return "saturated"
    return "some wait, no split" if some_wait(queue, thresholds) else "no queue"


def _backends(backends: list[Document]) -> Table:
    headings = ("backend", "state", "KV tokens", "slots", "p90 prompt", "requests at p90", "at full context")
    table = _table("capacity", headings, {"backend", "state"})
    for one in backends:
        state = "not polled" if one["up"] is None else "up" if one["up"] else "down"
        table.add_row(
            _name(one["name"]),
            _name(f"same server as {one['twin_of']}" if one["twin_of"] else state),
            _fact(one["kv_cache_capacity_tokens"]),
            _fact(one["max_num_seqs"]),
            _number(one["p90_prompt_tokens"]),
            _held(one, "p90_prompt", 0),
            _held(one, "context_window", 2),
        )
    return table


def _barriers(fleet: Document) -> Table:
    barriers = best_barriers(fleet)
    title = "barriers and ceilings"
    if barriers is not None:
        order, grounds = barriers["fan_out"], grounds_of(fleet) or {}
        source = barriers["source"] + (", few" if grounds.get("few") else "")
        title += (
            f": {barriers['count']} barriers ({source}), fan-out median {order['median']:g}, max {order['max']:.0f}"
        )
        title += " (may be several barriers)" if grounds.get("largest_maybe_merged") else ""
    headings = ("ceiling", "value", "from", "natural bound", "state", "waves median", "waves max", "clipped")
    table = _table(title, headings, {"ceiling", "from", "state"})
    for one in fleet["ceilings"]:
        waves = barriers["waves"].get(one["ceiling"]) if barriers else None
        table.add_row(
            one["ceiling"],
            _number(one["value"]),
            one["source"],
            _fact(fleet["natural_bound"]),
            one["state"],
            f"{waves['median']:g}" if waves else _UNKNOWN,
            _number(waves["max"] if waves else None),
            _percent(barriers["clipped_ratio"].get(one["ceiling"]) if barriers else None),
        )
    if not fleet["ceilings"]:
        table.add_row("none known", *[""] * 7)
    return table


def _table(title: str, headings: Iterable[str], words: AbstractSet[str]) -> Table:
    """A table whose columns of *words* fold where the terminal is narrow, while figures stay whole."""
    table = Table(title=Text(title, style="table.title"), title_justify="left")
    for heading in headings:
        if heading in words:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", overflow="fold")
    return table


def _held(one: Document, basis: str, digits: int) -> str:
    """Requests that fit; an upper bound where the sequence slots are not known for certain."""
    value = one["request_capacity"].get(basis)
    certain = one["max_num_seqs"] is not None and one["max_num_seqs"]["source"] != "observed"
    return _number(value, digits) if certain or value is None else f"<= {_number(value, digits)}"


def _printable(text: str) -> str:
    """The text without control characters."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _name(text: str) -> Text:
    return Text(_printable(text))


def _bounded(queue: Document, quantile: str) -> str:
    value = queue["quantiles"][quantile]
    return f"<= {_time(value)}" if value <= queue["edge_seconds"] else _time(value)


def _time(seconds: float | None) -> str:
    return _UNKNOWN if seconds is None else f"{seconds:.2f} s" if seconds < 1000 else f"{seconds:.0f} s"


def _percent(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{share * 100:.1f} %"


def _number(value: float | None, digits: int = 0) -> str:
    return _UNKNOWN if value is None else f"{value:,.{digits}f}"


def _fact(fact: Document | None) -> str:
    return _UNKNOWN if fact is None else f"{fact['value']:,.0f} ({fact['source']})"
