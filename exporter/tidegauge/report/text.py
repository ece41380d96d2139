"""The report for a terminal, drawn from the document: stages with both shares, gain ceilings, waves, capacity."""

from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidegauge.catalogue.labels import SERVER_STAGES
from tidegauge.derive.stages import ENGINE_STAGES
from tidegauge.report.document import Document
from tidegauge.report.verdicts import best_barriers, verdicts

_UNKNOWN: Final = "unknown"


def show(report: Document, console: Console) -> None:
    """Print the report to *console*; names come from outside and are neither markup nor terminal commands."""
    span = report["window_seconds"]
    console.print(Text("tidegauge report", style="bold"), f"over {_time(span) if span else 'the life of the servers'}")
    for fleet in report["fleets"]:
        console.print(_fleet(report, fleet))
    lonely = [one for one in report["backends"] if not one["fleet"]]
    if lonely or not report["fleets"]:
        console.print(_backends(lonely))


def _fleet(report: Document, fleet: Document) -> RenderableType:
    backends = [one for one in report["backends"] if one["name"] in fleet["backends"]]
    parts: list[RenderableType] = [Text(f"\nfleet {_printable(fleet['name'])}", style="bold cyan")]
    if fleet["stages"] is not None:
        parts += [_stages(fleet), _per_backend(backends)]
    parts += [_queues(fleet, backends), _backends(backends), _barriers(fleet)]
    parts += [Text("what it means", style="bold"), *(Text(f"  {_printable(line)}") for line in verdicts(report, fleet))]
    return Group(*parts)


def _stages(fleet: Document) -> Table:
    stages = fleet["stages"]
    table = Table(title=f"where the latency goes ({stages['requests']:.0f} requests finished)", title_justify="left")
    for heading in ("stage", "mean", "share of e2e", "share of the three", "halving it wins at most"):
        table.add_column(heading, justify="left" if heading == "stage" else "right")
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
    table = Table(title="per backend", title_justify="left")
    for heading in ("backend", "model", "requests", "e2e", *SERVER_STAGES, "prefix hit", "preemptions"):
        table.add_column(heading, justify="left" if heading in {"backend", "model"} else "right")
    for one in backends:
        for model in one["models"]:
            stages = model["stages"]
            if stages is None:
                table.add_row(
                    _name(one["name"]), _name(model["model_name"]), "0", *[""] * 5, _percent(one["prefix_hit"]), ""
                )
                continue
            table.add_row(
                _name(one["name"]),
                _name(model["model_name"]),
                f"{stages['requests']:.0f}",
                _time(stages["e2e_seconds"]),
                *(_time(stages["seconds"][stage]) for stage in SERVER_STAGES),
                _percent(one["prefix_hit"]),
                f"{one['preemptions']:.0f}",
            )
    return table


def _queues(fleet: Document, backends: list[Document]) -> Table:
    table = Table(title="queue: split, not spread", title_justify="left")
    for heading in ("where", "p50", "p90", "p90/p50", "late", "late mean", "effective waves", "verdict"):
        table.add_column(heading, justify="left" if heading in {"where", "verdict"} else "right")
    rows = [(f"caller of {fleet['name']}", fleet["caller_queue"])]
    rows += [(f"server {one['name']}", model["queue"]) for one in backends for model in one["models"]]
    for where, queue in rows:
        if queue is None:
            table.add_row(
                _name(where), *["-"] * 6, "not measured" if where.startswith("caller") else "too few requests"
            )
            continue
        verdict = "bimodal" if queue["bimodal"] else "saturated" if queue["saturated"] else "one mode"
        table.add_row(
            _name(where),
            _bounded(queue, "0.5"),
            _bounded(queue, "0.9"),
            f"{queue['p90_p50_ratio']:.1f}",
            _percent(queue["late_ratio"]),
            _time(queue["late_seconds"]) if queue["late_seconds"] is not None else "-",
            f"{queue['effective_waves']:.2f}" if queue["effective_waves"] else "infinite",
            verdict,
        )
    return table


def _backends(backends: list[Document]) -> Table:
    table = Table(title="capacity", title_justify="left")
    for heading in ("backend", "state", "KV tokens", "slots", "p90 prompt", "requests at p90", "at full context"):
        table.add_column(heading, justify="left" if heading in {"backend", "state"} else "right")
    for one in backends:
        state = "not polled" if one["up"] is None else "up" if one["up"] else "down"
        table.add_row(
            _name(one["name"]),
            _name(f"same server as {one['twin_of']}" if one["twin_of"] else state),
            _fact(one["kv_cache_capacity_tokens"]),
            _fact(one["max_num_seqs"]),
            _number(one["p90_prompt_tokens"]),
            _number(one["request_capacity"].get("p90_prompt")),
            _number(one["request_capacity"].get("context_window"), 2),
        )
    return table


def _barriers(fleet: Document) -> Table:
    barriers = best_barriers(fleet)
    title = "barriers and ceilings"
    if barriers is not None:
        order = barriers["fan_out"]
        title += (
            f": {barriers['count']} barriers ({barriers['source']}), fan-out median {order['median']:.0f},"
            f" max {order['max']:.0f}"
        )
    table = Table(title=title, title_justify="left")
    for heading in ("ceiling", "value", "from", "natural bound", "state", "waves median", "waves max", "clipped"):
        table.add_column(heading, justify="left" if heading in {"ceiling", "from", "state"} else "right")
    for one in fleet["ceilings"]:
        waves = barriers["waves"].get(one["ceiling"]) if barriers else None
        table.add_row(
            one["ceiling"],
            _number(one["value"]),
            one["source"],
            _fact(fleet["natural_bound"]),
            one["state"],
            _number(waves["median"] if waves else None),
            _number(waves["max"] if waves else None),
            _percent(barriers["clipped_ratio"].get(one["ceiling"]) if barriers else None),
        )
    if not fleet["ceilings"]:
        table.add_row("none known", *[""] * 7)
    return table


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
