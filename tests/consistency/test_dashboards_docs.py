"""docs/dashboards.md knows every variable of the boards, every option of the commands, and leads somewhere."""

import re
from pathlib import Path

import pytest

from tests import typescript
from tests.boards import GENERATED, panels_of
from tests.promql import names
from tidegauge.arguments import parser
from tidegauge.catalogue import places
from tidegauge.grafana import boards

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/dashboards.md").read_text(encoding="utf-8")
VARIABLES = {
    variable["name"]: variable.get("label", "hidden")
    for board in boards.read(ROOT / boards.FOLDER)
    for variable in board.content["templating"]["list"]
}


def options(*command):
    """The long options of a command, from its help."""
    found = parser()
    for word in command:
        (found,) = [
            action.choices[word]
            for action in found._actions
            if isinstance(action.choices, dict) and word in action.choices
        ]
    return {option for action in found._actions for option in action.option_strings if option.startswith("--")}


@pytest.mark.parametrize("name", sorted(VARIABLES))
def test_a_variable_is_explained(name):
    """By its name and its label, as a user sees it; several that belong together in one line."""
    lines = [line.split(" | ")[:2] for line in PAGE.splitlines() if line.startswith("| `")]

    assert [VARIABLES[name]] == [label for names, label in lines if f"`{name}`" in names]


def test_the_grafanas_are_those_that_boards_are_held_to():
    """The oldest, the newest, and which release of each."""
    oldest, newest = (name.removeprefix("grafana-") for name in typescript.GRAFANAS)

    assert f"Grafana {oldest} to {newest} " in PAGE
    assert " and ".join(f"those of {version}" for version in typescript.GRAFANAS.values()) in PAGE


@pytest.mark.parametrize("command", ["push", "render"])
def test_options_are_explained(command):
    """Every one of them is on the page."""
    asked = options("dashboards", command) - {"--help"}

    assert len(asked) > 3
    assert set() == {option for option in asked - {"--out"} if f"`{option}" not in PAGE and f" {option} " not in PAGE}


def test_panels_of_vllms_own_series_are_listed():
    """Every panel that no setting of the rules reaches, by its board, and none else."""
    (section,) = re.findall(r"^### Panels of vLLM's own series\n(.*?)(?=^##)", PAGE, flags=re.MULTILINE | re.DOTALL)
    listed = dict(re.findall(r"^\| ([A-Z][^|]*) \| ([^|]*) \|$", section, re.MULTILINE))
    found = {
        board.title: [
            panel["title"]
            for panel in panels_of(GENERATED[board.key])
            if any(name.startswith("vllm:") for one in panel.get("targets", ()) for name in names(one["expr"]))
        ]
        for board in places.BOARDS
    }

    assert {title: "; ".join(panels) for title, panels in found.items() if panels} == listed


def test_links_lead_somewhere():
    """To a file of the repository, and to a heading of it."""
    links = re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", PAGE)
    assert len(links) > 5
    for path, heading in links:
        target = (ROOT / "docs" / path).resolve()
        assert target.exists(), path
        titles = re.findall("^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE) if heading else []
        assert not heading or heading in {re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles}


@pytest.mark.parametrize("board", places.BOARDS, ids=lambda board: board.key)
def test_a_board_is_shown(board):
    """Under its title, with what it answers, a picture that is there, and what the picture shows."""
    (section,) = re.findall(rf"^### {re.escape(board.title)}\n(.*?)(?=^### |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)

    assert re.search(rf"!\[{re.escape(board.title)}\]\(pictures/{board.key}\.png\)\n\n\*.+\*$", section, re.MULTILINE)
    assert (ROOT / f"docs/pictures/{board.key}.png").read_bytes().startswith(b"\x89PNG")


def test_no_picture_of_a_board_that_is_gone():
    """The folder holds the boards' pictures and nothing else."""
    assert {f"{board.key}.png" for board in places.BOARDS} == {path.name for path in (ROOT / "docs/pictures").iterdir()}
