"""Runbook pages say the numbers that the configuration has, and only those; they lead from alert to query."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from mixin import generate
from tests.rules.opened import BOARD_OF
from tests.rules.promtool import ROOT, committed

RUNBOOKS = ROOT / "docs" / "runbooks"
CATALOGUE = generate.rendered()[generate.CATALOGUE]
CONFIG = generate.render_jsonnet("_config", CATALOGUE)
ALERTS = [rule for group in committed()["groups"] for rule in group["rules"] if "alert" in rule]
NAMES = sorted({rule["alert"] for rule in ALERTS})
SETTING = re.compile(r"`([a-zA-Z0-9_]+(?:\.[A-Za-z0-9_]+|\[\d\])+|[a-z]+[A-Z][A-Za-z]+)` ([^,`]+?)(?=, `|\.\n)")
# Texts and lists, of which a page says more than one number.
OTHER = {"burnRates", "cuts", "metricPrefixes", "dashboards", "slo", "sloByModel", "kubernetes"}


def leaves(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and duration of the configuration with its key."""
    for key, value in node.items():
        where = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from leaves(value, where)
        elif key not in OTHER and (isinstance(value, float | int) or re.fullmatch(r"\d+[smhd]", str(value))):
            yield where, value


SETTINGS = {key: f"{value:g}" if isinstance(value, float | int) else value for key, value in leaves(CONFIG)}
BURNS = {
    f"burnRates[{number}]": f"{rate['factor']:g} over {rate['long']} and {rate['short']} for {rate['hold']}"
    for number, rate in enumerate(CONFIG["burnRates"])
}


def marked() -> tuple[dict[str, str], str]:
    """A value of its own for every setting, and the configuration that has them."""
    numbers = (number for number in range(7101, 9999) if number % 10)  # a 0 at the end would not be printed
    marks = {key: f"{number}{value[-1]}" if value[-1].isalpha() else f"0.{number}"
             for number, (key, value) in zip(numbers, SETTINGS.items(), strict=False)}  # fmt: skip
    tree: dict[str, Any] = {}
    for key, mark in marks.items():
        *path, last = key.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = mark if mark[-1].isalpha() else float(mark)
    return marks, as_jsonnet(tree)


def said(text: str, mark: str) -> bool:
    """Whether a text has the value, as it is or as a percentage."""
    forms = {mark} if mark[-1].isalpha() else {mark, f"{100 * float(mark):g}"}
    return any(re.search(rf"(?<![\d.]){re.escape(form)}(?!\d)", text) for form in forms)


def as_jsonnet(node: Any) -> str:
    if not isinstance(node, dict):
        return repr(node)
    return (
        "{"
        + ", ".join(f"{key}+: {as_jsonnet(v)}" if isinstance(v, dict) else f"{key}: {v!r}" for key, v in node.items())
        + "}"
    )


@pytest.fixture(scope="module")
def used():
    """The settings that each alert's own rules say, found by giving each a value of its own."""
    marks, config = marked()
    found: dict[str, set[str]] = {name: set() for name in NAMES}
    for group in generate.render_jsonnet("prometheusAlerts", CATALOGUE, config)["groups"]:
        for rule in group["rules"]:
            text = " ".join((rule["expr"], rule["for"], *rule["annotations"].values()))
            found[rule["alert"]] |= {key for key, mark in marks.items() if said(text, mark)}
    return found


def page(name: str) -> str:
    return (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")


def stated(name: str) -> dict[str, str]:
    """The settings that a page lists."""
    (line,) = re.findall(r"^Settings: .*\n", page(name), flags=re.MULTILINE)
    return dict(SETTING.findall(line))


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_those_of_the_configuration(name):
    """Every number of the settings line is the default of its key."""
    known = SETTINGS | BURNS
    assert {key: known.get(key, "no such key") for key in stated(name)} == stated(name)


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_complete(name, used):
    """Every setting that the alert's rules say stands in the settings line."""
    rates = set(BURNS) if "BudgetBurn" in name else set()
    assert used[name] | rates <= set(stated(name))


def test_marks_are_found(used):
    """The search for settings finds the ones that are known to be there."""
    assert {"thresholds.kv_full", "holds.VllmKVCacheSaturated"} <= used["VllmKVCacheSaturated"]
    assert {"thresholds.bimodal_split", "thresholds.page_impact"} <= used["VllmQueueTimeBimodal"]
    assert "exporterMemory" in used["TidegaugeDown"]
    assert all(used[name] for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_percentages_are_those_of_the_settings(name):
    """A percentage in the meaning is that of a setting which the page lists."""
    meaning = page(name).split("## Meaning")[1].split("## Impact")[0]
    numbers = {float(value) for value in re.findall(r"(\d+(?:\.\d+)?) ?%", meaning)}
    known = {round(100 * float(value), 6) for value in stated(name).values() if re.fullmatch(r"[\d.]+", value)}
    assert numbers <= known


@pytest.mark.parametrize("name", NAMES)
def test_diagnosis_is_a_numbered_way(name):
    """The diagnosis is a list in order, and begins with something to query or a panel to open."""
    steps = re.findall(
        r"^(\d+)\. (.+)$", page(name).split("## Diagnosis")[1].split("## Mitigation")[0], flags=re.MULTILINE
    )

    assert len(steps) >= 3
    assert [str(number) for number in range(1, len(steps) + 1)] == [number for number, _ in steps]
    assert any("`" in text for _, text in steps)


@pytest.mark.parametrize("name", NAMES)
def test_other_pages_are_linked_by_name(name):
    """A page that speaks of another alert links to its page."""
    text = page(name)
    for other in set(NAMES) - {name}:
        assert len(re.findall(rf"\b{other}\b", text)) == 2 * len(re.findall(rf"\[{other}\]\({other}\.md\)", text)), (
            other
        )


@pytest.mark.parametrize("name", NAMES)
def test_page_names_the_board_that_the_alert_opens(name):
    """The first line leads to the alert's own board, by its title, and to a row that the board has."""
    (title, key, row) = re.search(
        r'Board: \[([^]]+)\]\(../../dashboards/json/(\w+).json\), row "([^"]+)"', page(name)
    ).groups()
    board = json.loads((ROOT / f"dashboards/json/{key}.json").read_text(encoding="utf-8"))

    assert BOARD_OF[name] == key
    assert f"tidegauge / {title}" == board["title"]
    assert row in {panel["title"] for panel in board["panels"] if panel["type"] == "row"}
