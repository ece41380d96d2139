"""What a board's query gives on made-up series, as Prometheus computes it."""

import subprocess

import yaml

from dashboards.queries import FILTERS
from tests.generations import program

_PROBE = "{nothing='like this'}"


def plain(expr: str) -> str:
    """The expression with every variable at All."""
    for variable in FILTERS.values():
        expr = expr.replace(variable, ".*")
    return expr


def evaluated(tmp_path, series: dict[str, float | str], expr: str, at: str = "1m") -> dict[str, float]:
    """The expression's values by their labels. A series is a constant, or values a minute apart in promtool's way."""
    probe = {"expr": expr, "eval_time": at, "exp_samples": [{"labels": _PROBE, "value": 0}]}
    inputs = [
        {"series": name, "values": value if isinstance(value, str) else f"{value:g}x3"}
        for name, value in series.items()
    ]
    file = tmp_path / "probe.yml"
    test = {"interval": "1m", "input_series": inputs, "promql_expr_test": [probe]}
    file.write_text(yaml.safe_dump({"tests": [test]}))
    done = subprocess.run(
        [program("promtool"), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    said = done.stdout + done.stderr
    (got,) = [line.split("got:", 1)[1] for line in said.splitlines() if "got:" in line]
    pairs = [pair.rsplit(" ", 1) for pair in got.replace('"', "").strip().split(", {") if pair != "nil"]
    return {labels.strip().strip("{}"): float(value.replace("E+", "e")) for labels, value in pairs}


def panel_of(board, id_: int):
    """The board's panel of that id, in a folded row too."""
    rows = [panel for row in board["panels"] if row["type"] == "row" for panel in row["panels"]]
    (found,) = [panel for panel in (*board["panels"], *rows) if panel["id"] == id_ and panel["type"] != "row"]
    return found


def column_of(panel, title: str) -> str:
    """The query that fills the table's column of that heading."""
    headings = panel["transformations"][-1]["options"]["renameByName"]
    (found,) = [target["expr"] for target in panel["targets"] if headings.get(f"Value #{target['refId']}") == title]
    return found


def steps_of(panel, title: str) -> list[tuple[float | None, str]]:
    """The bounds and colours of a column's thresholds."""
    (found,) = [
        prop["value"]["steps"]
        for field in panel["fieldConfig"]["overrides"]
        for prop in field["properties"]
        if (field["matcher"]["options"], prop["id"]) == (title, "thresholds")
    ]
    return [(step["value"], step["color"]) for step in found]


def shown(panel, value: float, name: str | None = None) -> tuple[str, str]:
    """The text and the colour that the panel has for a value of its series or column of that name."""
    config = panel["fieldConfig"]
    mappings = [
        mapping
        for field in config["overrides"]
        if field["matcher"]["options"] == name
        for prop in field["properties"]
        if prop["id"] == "mappings"
        for mapping in prop["value"]
    ] or config["defaults"]["mappings"]
    (found,) = [mapping["options"][f"{value:g}"] for mapping in mappings if f"{value:g}" in mapping["options"]]
    return found["text"], found["color"]
