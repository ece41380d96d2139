"""The knee: what a backend gives at each number of requests in flight, as rows of the board "Load".

There is no scatter plot: Grafana's reads other options in 10 than from 11 on. A table of doubling bins says the same.
"""

from typing import Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.fields import BAD, GOOD, Column, Panel, Query, state
from dashboards.queries import by, reads, select
from tidegauge.catalogue import Recorded
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

BIN: Final = "at_least"
MOMENTS: Final = 200
"""Means over five minutes gain nothing from being read more often."""
LASTING: Final = 0.05
"""Of the time: bins that were visited for less have no say in the verdict."""
MOST: Final = 0.95
"""Of the largest throughput: a bin that gives as much gives all that there is."""
MORE: Final = 1.01
"""Two sums of the same numbers differ in their last digits: this much more is more."""
NO_LOAD: Final = "never a whole request in flight"
_SUBJECT: Final = f"{lb.BACKEND}, {lb.MODEL_NAME}"
_IN_FLIGHT: Final = select(rc.IN_FLIGHT_5M)
_BINS: Final = f'count_values by ({_SUBJECT}) ("{BIN}", 2 ^ floor(log2({_IN_FLIGHT} >= 1)))'
"""1 for each backend, whose requests in flight are now the label: 1, 2, 4, 8 ..."""


def row(first: int) -> p.Row:
    """Throughput and latency by requests in flight, folded: for planning, and dear to ask; ids from *first* on."""
    panels = (
        (p.sampled(_table(first), MOMENTS), 15),
        (p.sampled(_verdict(first + 1), MOMENTS), 4),
        (_per_request(first + 2), 5),
    )
    return p.Row("The knee: how much more in flight still gives more", 9, panels, folded=True)


def _over_range(function: str, value: str) -> str:
    """Over the chosen time, the values of each backend by the bin it was in, one model apart from another."""
    values = f"({_BINS} * on ({_SUBJECT}) group_left () {value})[$__range:$__interval]"
    return by("sum", f"{function}({values})", lb.MODEL_NAME, BIN)


def _mean(value: str) -> str:
    """Mean over the time that backends spent in each bin."""
    return f"{_over_range('sum_over_time', value)} / {_over_range('count_over_time', value)}"


def _time() -> str:
    spent = _over_range("count_over_time", _IN_FLIGHT)
    return f"{spent} / on ({lb.MODEL_NAME}) group_left () {by('sum', spent, lb.MODEL_NAME)}"


def _table(id_: int) -> Panel:
    def quantile(series: Recorded) -> str:
        return _mean(select(series, quantile="0.9"))

    return c.table(
        id_,
        "One backend, by its requests in flight",
        "Over the chosen time, while that many requests or up to twice as many were in one backend: their mean, the "
        "share of the time, generated tokens per second, and the mean of the 5-minute p90s of the time to the first "
        "token and per token. The knee is the row after which tokens per second stop rising while latency still does. "
        "Where a model's last row is the highest, the chosen time never reached it. Backends that differ: choose one. "
        f"{reads(rc.IN_FLIGHT_5M, rc.OUTPUT_RATE, rc.TTFT_5M, rc.TPOT_5M)}",
        (lb.MODEL_NAME, BIN),
        [
            Column("in flight", _mean(_IN_FLIGHT), "none"),
            Column("time", _time(), "percentunit", decimals=0),
            Column("tok/s", _mean(select(rc.OUTPUT_RATE)), "none", bar=True),
            Column("TTFT p90", quantile(rc.TTFT_5M), "s"),
            Column("TPOT p90", quantile(rc.TPOT_5M), "s"),
        ],
        sort=("in flight", False),
        widths={c.HEADINGS[lb.MODEL_NAME]: 90, BIN.replace("_", " "): 75, "in flight": 85, "time": 70},
        no_value=NO_LOAD,
    )


def _verdict(id_: int) -> Panel:
    row = f"on ({lb.MODEL_NAME}, {BIN})"
    held, lasting = f"({_mean(_IN_FLIGHT)})", f"({_time()} >= {LASTING:g})"
    given = f"(({_mean(select(rc.OUTPUT_RATE))}) and {row} {lasting})"
    most = f"({given} >= on ({lb.MODEL_NAME}) group_left () ({MOST:g} * {by('max', given, lb.MODEL_NAME)}))"
    fullest = by("max", f"{held} and {row} {lasting}", lb.MODEL_NAME)
    enough = by("min", f"{held} and {row} {most}", lb.MODEL_NAME)
    return c.stat(
        id_,
        "Knee",
        f"Reached: with fewer in flight than at most they gave {MOST:.0%} of the most, or more. Not reached: they gave "
        f"most where they held most, so more may give more. Rows of less than {LASTING:.0%} of the time do not count. "
        f"{reads(rc.IN_FLIGHT_5M, rc.OUTPUT_RATE)}",
        "none",
        Query(f"{fullest} > bool {MORE:g} * {enough}", "{{model_name}}", instant=True),
        mappings=[state(0, "not reached", GOOD), state(1, "reached", BAD)],
        named=True,
        no_value=NO_LOAD,
    )


def _per_request(id_: int) -> Panel:
    return c.graph(
        id_,
        "Output per request",
        "Generated tokens per second for each request in flight, by model. Level: more requests give more. "
        f"Falling while requests in flight rise: past the knee. {reads(rc.OUTPUT_RATE, rc.IN_FLIGHT_5M)}",
        "short",
        [
            Query(
                f"{by('sum', select(rc.OUTPUT_RATE), lb.MODEL_NAME)} / ({by('sum', _IN_FLIGHT, lb.MODEL_NAME)} >= 1)",
                "{{model_name}}",
            )
        ],
        no_value=NO_LOAD,
    )
