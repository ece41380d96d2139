"""What every board has: its variables, its marks, its links to the next question and to the runbooks."""

from collections.abc import Sequence
from typing import Any, Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.fields import BLUE, VERMILION, Column, Json, Panel, data_link
from dashboards.queries import FILTERS, select
from dashboards.queries import by as aggregated
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import places
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue.places import Board

_FIRING: Final = 'alertstate="firing"'
OURS: Final = 'alertname=~"(Vllm|Tidegauge).+"'
_SUBJECT: Final = "subject"
"""What an alert is about: the values of its labels in one."""
_SEVERITIES: Final = tuple(f'severity="{one}"' for one in ("critical", "warning", "info"))
"""The gravest first."""
_RESTARTED: Final = (
    f"sum by ({lb.BACKEND}) (increase({select(ex.RESTARTS)}[2m])) > 0"
    f" or (sum by (instance) (resets(vllm:{vllm.FINISHED}[2m])) > 0 unless on () {ex.BACKEND_UP.name})"
)
"""From the exporter; where there is none, from counters that fall."""


def board(
    which: Board,
    description: str,
    rows: Sequence[p.Row],
    *,
    by: Sequence[str] = tuple(FILTERS),
    extra: Sequence[Any] = (),
) -> Json:
    """The board as Grafana's JSON: *rows* under the variables of the labels *by*, and *extra* ones of its own."""
    return p.dashboard(
        uid=which.uid,
        title=f"tidegauge / {which.title}",
        description=description,
        variables=[p.datasource(), *_chosen(by), *extra, p.constant("runbooks", places.RUNBOOKS)],
        rows=rows,
        annotations=[
            p.annotation("Alerts", _fired(by), VERMILION, "{{alertname}}", "{{backend}} {{fleet}} {{where}}"),
            p.annotation("Restarts", _RESTARTED, BLUE, "restart", "{{backend}} {{instance}}"),
        ],
        links=_links(which),
    )


def _fired(by: Sequence[str]) -> str:
    """The first minute of alerts: one that fires for hours would lie over the whole graph."""
    firing = _alerts(by, OURS)
    return f"{firing} unless {firing} offset 1m"


def _chosen(by: Sequence[str]) -> list[Any]:
    """Variables chained from model to backend to fleet, over a series that is there as long as a server is."""
    model, backend = (f'{label}=~"{FILTERS[label]}"' for label in (lb.MODEL_NAME, lb.BACKEND))
    member = rc.FLEET_MEMBER.name
    chain = {lb.MODEL_NAME: member, lb.BACKEND: f"{member}{{{model}}}", lb.FLEET: f"{member}{{{model}, {backend}}}"}
    return [
        p.label_variable(FILTERS[label].removeprefix("$"), c.HEADINGS[label], f"label_values({seen}, {label})")
        for label, seen in chain.items()
        if label in by
    ]


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


def alerts(id_: int, *names: str, by: Sequence[str] = tuple(FILTERS)) -> Panel:
    """The firing alerts of these names (all of ours without any), each with its runbook, the gravest first.

    They follow the variables of the labels *by*; an alert without such a label, as one about a fleet has no backend, is
    shown whatever is chosen.
    """
    chosen = f'alertname=~"{"|".join(names)}"' if names else OURS
    subject = (lb.BACKEND, lb.FLEET, lb.MODEL_NAME, "where")
    joined = ", ".join(f'"{label}"' for label in subject)

    def firing(*matchers: str) -> str:
        found = aggregated("max", _alerts(by, chosen, *matchers), "alertname", "severity", *subject)
        return f'max by (alertname, severity, {_SUBJECT}) (label_join({found}, "{_SUBJECT}", " ", {joined}))'

    ranks = (f"{firing(matcher)} * {rank}" for rank, matcher in enumerate(_SEVERITIES))
    return c.table(
        id_,
        "Firing alerts",
        "What is firing now on what is chosen, with the runbook behind each name. Reads `ALERTS`, which Prometheus "
        "writes.",
        ("alertname", "severity", _SUBJECT),
        [Column("", firing(), "none")],
        order=" or ".join(ranks),
        links={"alertname": data_link("Runbook", "${runbooks}/${__value.text}.md")},
        widths={"alertname": 215, "severity": 75},
        no_value="no alert fires",
    )


def _alerts(by: Sequence[str], *matchers: str) -> str:
    """Alerts that fire, on what is chosen or on what has no such label."""
    filters = (f'{label}=~"{variable}|"' for label, variable in FILTERS.items() if label in by)
    return f"ALERTS{{{', '.join((_FIRING, *matchers, *filters))}}}"
