"""What every board has: its variables, its marks, its links to the next question and to the runbooks."""

from collections.abc import Sequence
from typing import Any, Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.fields import BLUE, VERMILION, Column, Json, Panel, data_link
from dashboards.queries import FILTERS, NATIVE, STEP, by, native, select
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import places
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue.places import Board

_FIRING: Final = 'alertstate="firing"'
OURS: Final = 'alertname=~"(Vllm|Tidegauge).+"'
_NAME: Final = "alertname"
_SUBJECT: Final = "subject"
"""What an alert is about: the values of its labels in one."""
_ABOUT: Final = (lb.BACKEND, lb.FLEET, lb.MODEL_NAME, lb.WHERE)
_SEVERITIES: Final = tuple(f'severity="{one}"' for one in ("critical", "warning", "info"))
"""The gravest first."""
_OFFERED: Final = {lb.MODEL_NAME: "model_name", lb.BACKEND: "instance", lb.FLEET: "fleet"}
"""Variables that a reader chooses from. vLLM's own boards call a backend an instance: with their names, links work."""
_TOLD_BY: Final = (rc.FLEET_MEMBER, rc.BACKEND_UP, ex.BACKEND_INFO, ex.CEILING, ex.CALLER_EVENTS)
"""Series that name all models, backends and fleets together, those too that are down or only callers speak of."""


def board(which: Board, description: str, rows: Sequence[p.Row], *, extra: Sequence[Any] = ()) -> Json:
    """The board as Grafana's JSON: *rows* under the variables that all boards have, and *extra* ones of its own."""
    return p.dashboard(
        uid=which.uid,
        title=f"tidegauge / {which.title}",
        description=description,
        variables=[
            p.datasource(),
            *_choices(),
            *extra,
            p.filters("filters", "Filters"),
            p.constant("runbooks", places.RUNBOOKS),
        ],
        rows=rows,
        annotations=[
            p.annotation("Alerts", _about(_fired(), *_ABOUT), VERMILION, "{{alertname}}", f"{{{{{_SUBJECT}}}}}"),
            p.annotation("Restarts", _about(_restarted(), lb.BACKEND, *NATIVE), BLUE, "restart", f"{{{{{_SUBJECT}}}}}"),
        ],
        links=_links(which),
    )


def _fired() -> str:
    """Where alerts begin: one that fires for hours would lie over the whole graph.

    A point stands for the step before it, which grows with the time range; in short steps there may be no sample.
    """
    firing = _alerts(OURS)

    def seen(moment: str = "") -> str:
        return f"({firing}{moment} or present_over_time({firing}[$__interval]{moment}))"

    return f"{seen()} unless {seen(' offset $__interval')}"


def _restarted() -> str:
    """From the exporter; where there is none, from counters that fall."""
    told = by("sum", f"increase({select(ex.RESTARTS)}{STEP})", lb.BACKEND)
    seen = by("sum", native(f"resets(vllm:{vllm.FINISHED}%s{STEP})"), *NATIVE)
    return f"{told} > 0 or ({seen} > 0 unless on () {ex.BACKEND_UP.name})"


def _choices() -> list[Any]:
    """What is offered, chained from model to backend to fleet; and what the choices leave, which queries filter by.

    All of what is offered matches series without the label, too. That would let a choice of one label leave everything
    of another: what is left is asked for itself.
    """
    offered = [f'{label}=~"${name}"' for label, name in _OFFERED.items()]
    return [
        *(
            p.label_variable(name, c.HEADINGS[label], _values(label, offered[:before]))
            for before, (label, name) in enumerate(_OFFERED.items())
        ),
        *(p.resolved(variable.removeprefix("$"), _values(label, offered)) for label, variable in FILTERS.items()),
    ]


def _values(label: str, matchers: Sequence[str]) -> str:
    told_by = f'__name__=~"{"|".join(series.name for series in _TOLD_BY)}"'
    return f"label_values({{{', '.join((told_by, *matchers))}}}, {label})"


def _links(which: Board) -> list[Any]:
    following = places.BOARDS[(places.BOARDS.index(which) + 1) % len(places.BOARDS)]
    return [
        p.siblings("tidegauge"),
        p.link(f"Next: {following.title}", address(following), "The next question, on the same subject", keep=True),
        p.link("Runbooks", "${runbooks}", "What each alert means and what to do", keep=False),
    ]


def address(which: Board) -> str:
    """The board's path in any Grafana."""
    return f"/d/{which.uid}"


def on_backend(which: Board, title: str) -> Json:
    """A link from a cell to the board, on the cell's backend and the same time."""
    chosen = "var-instance=${__value.text}&${__url_time_range}&${datasource:queryparam}"
    return data_link(title, f"{address(which)}?{chosen}")


def alerts(id_: int, *names: str) -> Panel:
    """The firing alerts of these names (all of ours without any), each with its runbook, the gravest first.

    They follow what is chosen; an alert without such a label, as one about a fleet has no backend, is shown anyway.
    """
    chosen = f'alertname=~"{"|".join(names)}"' if names else OURS

    def firing(*matchers: str) -> str:
        found = by("max", _alerts(chosen, *matchers), _NAME, "severity", *_ABOUT)
        return by("max", _about(found, *_ABOUT), _NAME, "severity", _SUBJECT)

    ranks = (f"{firing(matcher)} * {rank}" for rank, matcher in enumerate(_SEVERITIES))
    return c.table(
        id_,
        "Firing alerts",
        "What is firing now on what is chosen, with the runbook behind each name. Reads `ALERTS`, which Prometheus "
        "writes.",
        (_NAME, "severity", _SUBJECT),
        [Column("", firing(), "none")],
        order=" or ".join(ranks),
        links={c.HEADINGS[_NAME]: data_link("Runbook", "${runbooks}/${__value.text}.md")},
        widths={"severity": 70},  # what is left is shared by name and subject: neither hides the other
        no_value="no alert fires",
    )


def _about(expr: str, *labels: str) -> str:
    """The expression with its subject, of those of the labels that are there: a mark's text names any that is not."""
    joined = ", ".join(f'"{label}"' for label in labels)
    return f'label_join({expr}, "{_SUBJECT}", " ", {joined})'


def _alerts(*matchers: str) -> str:
    """Alerts that fire, on what is chosen or on what has no such label."""
    filters = (f'{label}=~"{variable}|"' for label, variable in FILTERS.items())
    return f"ALERTS{{{', '.join((_FIRING, *matchers, *filters))}}}"
