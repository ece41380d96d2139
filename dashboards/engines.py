"""Data-parallel ranks: vLLM's own gauges per engine, with the variables that vLLM's own boards have for them.

Nothing is recorded per engine, since everything else is about whole backends.
"""

from typing import Any, Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.absent import NO_NATIVE
from dashboards.fields import UNFILLED, Panel, Query
from dashboards.outliers import DRAWN
from dashboards.queries import AT_END, FILTERS, NATIVE, native, reads_in
from tidegauge import vllm
from tidegauge.catalogue import labels as lb

JOB: Final = "job"
_RANK: Final = (JOB, *NATIVE, vllm.ENGINE)
_CHOSEN: Final = tuple(f'{label}=~"${label}"' for label in (JOB, vllm.ENGINE))


def variables() -> list[Any]:
    """`job` and `engine`, each narrowed by what was chosen before it."""
    running, model = f"vllm:{vllm.RUNNING}", f'{vllm.MODEL_NAME}=~"{FILTERS[lb.MODEL_NAME]}"'
    return [
        p.label_variable(JOB, "Job", f"label_values({running}{{{model}}}, {JOB})"),
        p.label_variable(vllm.ENGINE, "Engine", f"label_values({running}{{{model}, {_CHOSEN[0]}}}, {vllm.ENGINE})"),
    ]


def row(first: int) -> p.Row:
    """The folded row; its panels have ids from *first* on."""
    panels = (
        _graph(first, "Requests running, by engine", "short", vllm.RUNNING),
        _graph(first + 1, "Requests waiting, by engine", "short", vllm.WAITING),
        _graph(first + 2, "KV-cache usage, by engine", "percentunit", vllm.KV_USAGE),
    )
    title = "Engines: the data-parallel ranks inside the backends"
    return p.Row(title, 9, tuple((one, 8) for one in panels), folded=True)


def _graph(id_: int, title: str, unit: str, family: str) -> Panel:
    names = [f"vllm:{one}" for one in (family, *vllm.older(family))]
    now = native(" or ".join(f"{name}%s" for name in names), *_CHOSEN)
    mean = native(" or ".join(f"avg_over_time({name}%s{AT_END})" for name in names), *_CHOSEN)
    return c.graph(
        id_,
        title,
        f"The {DRAWN} engines with most of it over the chosen time. One engine far above the others of its server: the "
        "load balancer between the ranks is the cause, not the router between the servers. "
        f"{reads_in(now)}",
        unit,
        [Query(f"({now}) and on ({', '.join(_RANK)}) topk({DRAWN}, {mean})", "{{instance}} {{pod}} rank {{engine}}")],
        overrides=[UNFILLED],
        limits=(0, 1 if unit == "percentunit" else None),
        legend="list",
        no_value=NO_NATIVE,
    )
