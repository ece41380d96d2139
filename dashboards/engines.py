"""Data-parallel ranks: vLLM's own gauges per engine, with the variables that vLLM's own boards have for them.

Nothing is recorded per engine, since everything else is about whole backends. The native label of a backend is
`instance`, on Kubernetes `pod`: both are tried.
"""

from typing import Any, Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.fields import Query
from dashboards.outliers import DRAWN
from dashboards.queries import FILTERS
from tidegauge import vllm
from tidegauge.catalogue import labels as lb

JOB: Final = "job"
_NATIVE: Final = ("instance", "pod")
_RANK: Final = (JOB, *_NATIVE, vllm.ENGINE)
_SHARED: Final = ", ".join(
    f'{label}=~"{variable}"'
    for label, variable in ((JOB, "$job"), (vllm.MODEL_NAME, FILTERS[lb.MODEL_NAME]), (vllm.ENGINE, "$engine"))
)


def variables() -> list[Any]:
    """`job` and `engine`, each narrowed by what was chosen before it."""
    running, model = f"vllm:{vllm.RUNNING}", f'{vllm.MODEL_NAME}=~"{FILTERS[lb.MODEL_NAME]}"'
    return [
        p.label_variable(JOB, "Job", f"label_values({running}{{{model}}}, {JOB})"),
        p.label_variable("engine", "Engine", f'label_values({running}{{{model}, {JOB}=~"$job"}}, {vllm.ENGINE})'),
    ]


def row(first: int) -> p.Row:
    """The folded row; its panels have ids from *first* on."""
    panels = (
        _graph(first, "Requests running, by engine", "short", vllm.RUNNING),
        _graph(first + 1, "Requests waiting, by engine", "short", vllm.WAITING),
        _graph(first + 2, "KV-cache usage, by engine", "percentunit", vllm.KV_USAGE),
    )
    return p.Row(
        "Engines: the data-parallel ranks inside the backends", 9, tuple((one, 8) for one in panels), folded=True
    )


def _native(family: str, suffix: str = "") -> str:
    """The family's series of the chosen backends, engine by engine; `or` keeps once what both labels select."""
    label = {name: f'vllm:{family}{{{_SHARED}, {name}=~"{FILTERS[lb.BACKEND]}"}}{suffix}' for name in _NATIVE}
    return " or ".join(f"avg_over_time({one})" if suffix else one for one in label.values())


def _graph(id_: int, title: str, unit: str, family: str) -> Any:
    top = f"topk({DRAWN}, {_native(family, '[$__range] @ end()')})"
    return c.graph(
        id_,
        title,
        f"The {DRAWN} engines with most of it over the chosen time. One engine far above the others of its server: the "
        "load balancer between the ranks is the cause, not the router between the servers. Reads "
        f"`vllm:{family}`, vLLM's own series.",
        unit,
        [Query(f"({_native(family)}) and on ({', '.join(_RANK)}) {top}", "{{instance}} {{pod}} rank {{engine}}")],
        limits=(0, 1 if unit == "percentunit" else None),
        legend="list",
        no_value="no server reports",
    )
