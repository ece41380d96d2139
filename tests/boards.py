"""The boards as Grafana takes them: their panels and queries, and what a query is once its variables have values."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dashboards.generate import BOARDS
from tests.tsdb import Prometheus

GENERATED = {name: make() for name, make in BOARDS.items()}
VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::\w+)?\}|(?P<bare>\w+))")
LOOK_UP = re.compile(r"label_values\((?P<match>.+), *(?P<label>\w+)\)", re.DOTALL)
EVERYTHING = ".*"
MOST_POINTS = 1000


def panels_of(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every panel of a board, those of folded rows too."""
    folded = [panel for row in board["panels"] if row["type"] == "row" for panel in row["panels"]]
    return [panel for panel in board["panels"] if panel["type"] != "row"] + folded


def variables_of(board: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variables in their order, but for the data source and the reader's own filters, which no query names."""
    return [one for one in board["templating"]["list"] if one["type"] not in {"datasource", "adhoc"}]


def is_resolved(variable: Mapping[str, Any]) -> bool:
    """Whether a variable stands for each value of its query, whatever that gives, and is nobody's to choose."""
    return variable["type"] == "query" and variable["hide"] != 0


def defaults(board: Mapping[str, Any]) -> dict[str, str]:
    """What each variable stands for when the board is opened: All where that is a choice, and all that leaves."""
    found = {}
    for one in variables_of(board):
        current = one["current"].get("value", one["query"])
        found[one["name"]] = EVERYTHING if one.get("includeAll") else str(current)
    return found


def choices(board: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The variables as opened, and with each other value of those that have fixed ones."""
    opened = defaults(board)
    yield opened
    for one in variables_of(board):
        for option in one.get("options", []):
            if one["type"] == "custom" and str(option["value"]) != opened[one["name"]]:
                yield {**opened, one["name"]: str(option["value"])}


def chosen(board: Mapping[str, Any], server: Prometheus, begin: float, end: float) -> dict[str, str]:
    """One value of every variable that is looked up, each narrowed by those before it: the last one of each."""
    values = defaults(board)
    for one in variables_of(board):
        if one["type"] == "query" and not is_resolved(one):
            found = looked_up(one, values, server, begin, end)
            assert found, f"{one['name']} has no value: {substituted(one['query'], values)}"
            values[one["name"]] = escaped(found[-1])
    return resolved(board, server, begin, end, values)


def resolved(
    board: Mapping[str, Any], server: Prometheus, begin: float, end: float, values: Mapping[str, str]
) -> dict[str, str]:
    """The values with those of the variables that stand for what these leave, as Grafana joins several."""
    found = dict(values)
    for one in variables_of(board):
        if is_resolved(one):
            left = [escaped(value) for value in looked_up(one, found, server, begin, end)]
            found[one["name"]] = left[0] if len(left) == 1 else f"({'|'.join(left)})"
    return found


def looked_up(
    variable: Mapping[str, Any], values: Mapping[str, str], server: Prometheus, begin: float, end: float
) -> list[str]:
    """The values that Grafana offers for a variable, given those before it."""
    query = LOOK_UP.fullmatch(substituted(variable["query"], values))
    assert query, f"{variable['name']}: expected label_values(series, label), found {variable['query']}"
    return server.values(query["label"], query["match"], begin, end)


def escaped(value: str) -> str:
    """A value of a variable that may have several, as Grafana puts it into a regular expression in PromQL."""
    return re.sub(r"[\\^$*+?.()|\[\]{}]", r"\\\\\g<0>", value)


def substituted(expr: str, values: Mapping[str, str], *, step: int = 15, span: int = 300) -> str:
    """The query as Grafana sends it for points a *step* apart over *span* seconds; KeyError for an unknown variable."""
    own = {
        "__interval": f"{step}s",
        "__interval_ms": f"{step * 1000}",
        "__rate_interval": f"{max(step + 15, 4 * 15)}s",
        "__range": f"{span}s",
        "__range_s": f"{span}",
        "__range_ms": f"{span * 1000}",
    }
    known = {**own, **values}
    return VARIABLE.sub(lambda found: known[found["braced"] or found["bare"]], expr)


def asked(
    server: Prometheus, target: Mapping[str, Any], values: Mapping[str, str], begin: int, end: int
) -> list[dict[str, Any]]:
    """The series that one query of a panel gets: `values` has its points, of an instant query the one point."""
    span = end - begin
    step = max(15, -(-span // MOST_POINTS))
    expr = substituted(target["expr"], values, step=step, span=span)
    if target["instant"]:
        return [{"metric": row["metric"], "values": [row["value"]]} for row in server.at(expr, end)]
    return server.over(expr, begin, end, step)
