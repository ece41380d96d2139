"""Board "Load: what arrives": arrivals, tokens, lengths, what a request feels, what is lost, the knee.

One function per panel, in the order of the board.
"""

from typing import Final, Literal

from dashboards import charts as c
from dashboards import frame
from dashboards import panels as p
from dashboards.absent import FEW, FEW_5M, NO_EXPORTER, NO_SERVER
from dashboards.boards import knee
from dashboards.fields import (
    BLUE,
    DASHES,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    STAGE_COLOURS,
    VERMILION,
    YELLOW,
    Column,
    Json,
    Panel,
    Query,
    coloured,
    override,
)
from dashboards.queries import SUBJECT, by, native, per_subject, reads, select
from tidegauge import vllm
from tidegauge.catalogue import Recorded, places
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

REASONS: Final = {"stop": BLUE, "length": SKY, "abort": ORANGE, "error": VERMILION, "repetition": YELLOW}
LENGTHS: Final = {"0.5": "p50", "0.95": "p95", "0.99": "p99"}
LATENCIES: Final = {"0.5": "p50", "0.9": "p90", "0.99": "p99"}


def board() -> Json:
    """The board as Grafana's JSON."""
    return frame.board(
        places.LOAD,
        "What is asked of the servers, what they give, and what a request feels of it. Quantiles are each backend's "
        "own and never merged: lines are the median backend and the worst one, tables have all of them.",
        (_arrivals(), _in_flight(), _lengths(), _latencies(), _ends(), knee.row(7), _each()),
    )


def _arrivals() -> p.Row:
    return p.Row("What arrives, and how it ends", 9, ((_rates(), 8), (_burstiness(), 8), (_finished(), 8)))


def _rates() -> Panel:
    return c.graph(
        1,
        "Arrivals and finishes",
        "Requests per second of each fleet. Where arrivals stay above finishes a queue grows. "
        f"{reads(rc.FLEET_ARRIVAL_RATE, rc.FLEET_FINISHED_RATE)}",
        "reqps",
        [
            Query(select(rc.FLEET_ARRIVAL_RATE), "{{fleet}}, arrive"),
            Query(by("sum", select(rc.FLEET_FINISHED_RATE), lb.FLEET), "{{fleet}}, finish"),
        ],
        no_value=NO_SERVER,
    )


def _burstiness() -> Panel:
    return c.graph(
        2,
        "Burstiness",
        "P99 of the arrivals in a second over their mean. About 1 to 3 is steady traffic; 10 and more are bursts or "
        f"barriers, which queue at a load that would not if it came evenly. {reads(rc.BURSTINESS)}",
        "suffix:x",
        [Query(select(rc.BURSTINESS), "{{fleet}}")],
        decimals=1,
        no_value=f"{NO_EXPORTER}: it counts arrivals poll by poll",
    )


def _finished() -> Panel:
    return c.graph(
        3,
        "Requests that finish, by reason",
        "In vLLM's reasons: `length` reached its limit of tokens, `error` failed in the server. What a client aborted "
        f"is mostly in none of them. {reads(rc.FLEET_FINISHED_RATE)}",
        "reqps",
        [Query(by("sum", select(rc.FLEET_FINISHED_RATE), lb.FINISHED_REASON), "{{finished_reason}}")],
        stack="normal",
        overrides=coloured(REASONS),
        legend="list",
        no_value=NO_SERVER,
    )


def _in_flight() -> p.Row:
    return p.Row("What the servers hold and give", 9, ((_held(), 8), (_prompt(), 8), (_output(), 8)))


def _held() -> Panel:
    return c.graph(
        4,
        "Requests in flight",
        "Running and waiting, over the chosen backends. A wait in front of the servers is in neither. "
        f"{reads(rc.RUNNING, rc.WAITING)}",
        "none",
        [Query(f"sum({select(rc.RUNNING)})", "running"), Query(f"sum({select(rc.WAITING)})", "waiting")],
        stack="normal",
        overrides=coloured({"running": BLUE, "waiting": STAGE_COLOURS["queue"]}),
        no_value=NO_SERVER,
    )


def _prompt() -> Panel:
    return _tokens(5, "Prompt tokens per second", "Those that the prefix cache held count too.", rc.PROMPT_RATE)


def _output() -> Panel:
    return _tokens(6, "Output tokens per second", "What the servers give.", rc.OUTPUT_RATE)


def _tokens(id_: int, title: str, description: str, series: Recorded) -> Panel:
    return c.graph(
        id_,
        title,
        f"{description} Over the chosen backends, by model. {reads(series)}",
        "short",
        [Query(by("sum", select(series), lb.MODEL_NAME), "{{model_name}}")],
        stack="normal",
        no_value=NO_SERVER,
    )


def _quantiles(  # noqa: PLR0913  # what tells one of these panels from another
    id_: int,
    title: str,
    description: str,
    unit: str,
    series: Recorded,
    *,
    names: dict[str, str],
    most: str,
    legend: Literal["side", "list"],
    no_value: str,
) -> Panel:
    last = max(names)
    worst = f"{names[last]}, {most}"
    lines = [Query(f"quantile(0.5, {select(series, quantile=quantile)})", name) for quantile, name in names.items()]
    colours = [*zip([line.legend for line in lines], (SKY, BLUE, PURPLE), strict=True), (worst, VERMILION)]
    return c.graph(
        id_,
        title,
        f"{description} Of the median backend; dashed, of the {most} one. {reads(series)}",
        unit,
        [*lines, Query(f"max({select(series, quantile=last)})", worst)],
        overrides=[
            *coloured(dict(colours)),
            override(worst, custom__lineStyle=DASHES, custom__fillOpacity=0),
        ],
        legend=legend,
        no_value=no_value,
    )


def _lengths() -> p.Row:
    edge = "Between two of the server's bucket edges a quantile is interpolated."
    panels = (
        _quantiles(
            id_,
            title,
            f"Of requests that finished in the window. {meaning} {edge}",
            "short",
            series,
            names=LENGTHS,
            most="longest",
            legend="side",
            no_value=FEW,
        )
        for id_, title, meaning, series in (
            (10, "Prompt length, in tokens", "Prefill and the KV cache grow with it.", rc.PROMPT_LENGTH),
            (11, "Output length, in tokens", "Decode grows with it.", rc.OUTPUT_LENGTH),
        )
    )
    return p.Row("How long requests are", 8, tuple((panel, 12) for panel in panels))


def _latencies() -> p.Row:
    panels = (
        _quantiles(
            id_,
            title,
            f"{meaning} Over 5 minutes.",
            "s",
            series,
            names=LATENCIES,
            most="slowest",
            legend="list",
            no_value=FEW_5M,
        )
        for id_, title, meaning, series in (
            (12, "Time to first token", "From arrival to the first token: queue and prefill.", rc.TTFT_5M),
            (13, "Time per output token", "A request's mean after its first token: decode.", rc.TPOT_5M),
            (14, "Between two outputs", "What a reader sees as stutter.", rc.ITL_5M),
            (15, "End to end", "From arrival to the last token; grows with the output's length.", rc.E2E_5M),
        )
    )
    return p.Row("What a request feels", 9, tuple((panel, 6) for panel in panels))


def _ends() -> p.Row:
    return p.Row("What is lost", 8, ((_aborted(), 12), (_rejected(), 12)))


def _aborted() -> Panel:
    chosen = select(rc.ABORTED)
    return c.graph(
        16,
        "Left unfinished in the window",
        "Requests that their clients gave up: work done for nothing, in no latency figure. All, and the backends with "
        f"the most of them. {reads(rc.ABORTED)}",
        "short",
        [Query(f"sum({chosen})", "all"), Query(f"topk(5, {chosen} > 0)", "{{backend}}")],
        legend="list",
        no_value=NO_SERVER,
    )


def _rejected() -> Panel:
    turned = select(rc.REJECTION_RATE)
    counted = native(f"vllm:{vllm.REJECTIONS}%s")
    return c.graph(
        17,
        "Turned away, by reason",
        "Requests per second that a queue limit of the server refused; `none` where servers count them and refused "
        f"nobody. {reads(rc.REJECTION_RATE)} And `vllm:{vllm.REJECTIONS}`.",
        "reqps",
        [
            Query(by("sum", turned, lb.REASON), "{{reason}}"),
            Query(f"0 * group({counted}) unless on () {turned}", "none"),
        ],
        stack="normal",
        overrides=coloured({"none": GREY}),
        no_value="servers of this version do not count them",
    )


def _each() -> p.Row:
    return p.Row("Each backend", 10, ((_each_load(), 24), (_each_latency(), 24)), folded=True)


def _each_load() -> Panel:
    lengths = [
        Column(f"{kind} {name}", per_subject(series, quantile=quantile), "short")
        for kind, series in (("prompt", rc.PROMPT_LENGTH), ("output", rc.OUTPUT_LENGTH))
        for quantile, name in LENGTHS.items()
    ]
    return c.table(
        18,
        "Load of each backend",
        "What each backend is asked for and gives. A dash: too few requests for a quantile. "
        f"{reads(rc.REQUEST_RATE, rc.IN_FLIGHT, rc.PROMPT_RATE, rc.OUTPUT_RATE, rc.PROMPT_LENGTH, rc.OUTPUT_LENGTH)}",
        SUBJECT,
        [
            Column("finish", per_subject(rc.REQUEST_RATE), "reqps"),
            Column("in flight", per_subject(rc.IN_FLIGHT), "none"),
            Column("prompt tok/s", per_subject(rc.PROMPT_RATE), "short"),
            Column("output tok/s", per_subject(rc.OUTPUT_RATE), "short"),
            *lengths,
        ],
        sort=("output tok/s", True),
        widths={"prompt tok/s": 110, "output tok/s": 125, **dict.fromkeys((one.title for one in lengths), 95)},
        no_value=NO_SERVER,
    )


def _each_latency() -> Panel:
    kinds = (("TTFT", rc.TTFT_5M), ("TPOT", rc.TPOT_5M), ("ITL", rc.ITL_5M), ("E2E", rc.E2E_5M))
    return c.table(
        19,
        "Latency of each backend",
        "Time to first token, per output token, between two outputs, and end to end. "
        f"{reads(*(series for _, series in kinds))}",
        SUBJECT,
        [
            Column(f"{kind} {name}", per_subject(series, quantile=quantile), "s")
            for kind, series in kinds
            for quantile, name in LATENCIES.items()
        ],
        sort=("E2E p90", True),
        no_value=FEW_5M,
    )
