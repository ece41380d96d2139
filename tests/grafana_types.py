"""What TypeScript says of boards that are written down as values of Grafana's own types, those of each Grafana."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from tests import typescript
from tests.boards import panels_of

Boards: TypeAlias = Mapping[str, Mapping[str, Any]]
COMPLAINT = re.compile(r"^(?P<grafana>[\w.-]+)/(?P<file>[\w-]+)\.ts\((?P<line>\d+),\d+\): error \w+: (?P<text>.*)$")


def complaints(boards: Mapping[str, Boards]) -> dict[str, dict[str, list[str]]]:
    """What is wrong with each board in each Grafana: a line per fault, which names the panel.

    The boards go by Grafana, one of `typescript.GRAFANAS`, and by name. Skips without the compiler.
    """
    compiler = typescript.compiler()
    with tempfile.TemporaryDirectory(dir=typescript.INSTALLED) as name:
        folder = Path(name)
        shutil.copy(typescript.SOURCES / "tsconfig.json", folder)
        for grafana, its in boards.items():
            _lay_out(folder / grafana, its)
        done = subprocess.run(
            [compiler, "-p", "."], cwd=folder, capture_output=True, text=True, check=False, timeout=200
        )
        return _told(done, folder, boards)


def _lay_out(folder: Path, boards: Boards) -> None:
    """Boards where `@grafana/schema` is what one Grafana publishes: its own types import each other by that name."""
    package = folder / "node_modules" / "@grafana" / "schema"
    package.parent.mkdir(parents=True)
    package.symlink_to(typescript.INSTALLED / "node_modules" / folder.name)
    shutil.copy(typescript.SOURCES / "grafana.ts", folder)
    for name, board in boards.items():
        (folder / f"{name}.ts").write_text("\n".join(_lines(board)) + "\n", encoding="utf-8")


def _lines(board: Mapping[str, Any]) -> Iterator[str]:
    """The board without its panels, and each panel, a line each: TypeScript names the line of a fault."""
    yield "import type { Board, Panels } from './grafana';"
    rest = {key: value for key, value in board.items() if key != "panels"}
    yield f"export const board: Board = {json.dumps(rest)};"
    rows = [{**row, "panels": []} for row in board["panels"] if row["type"] == "row"]
    for number, panel in enumerate([*rows, *panels_of(board)]):
        kind = json.dumps(panel["type"])
        yield f"export const p{number}: Panels[{kind}] = {json.dumps(panel)}; // {json.dumps(panel['title'])}"


def _told(done: Any, folder: Path, boards: Mapping[str, Boards]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {grafana: {name: [] for name in its} for grafana, its in boards.items()}
    for line in done.stdout.splitlines():
        told = COMPLAINT.match(line)
        if told is None:
            # The rest of a complaint is set in.
            assert line.startswith(" "), done.stdout[:2000]
            continue
        grafana, name = told["grafana"], told["file"]
        assert name in found[grafana], line
        at = (folder / grafana / f"{name}.ts").read_text().splitlines()[int(told["line"]) - 1]
        title = at.rpartition(" // ")[2] if " // " in at else "the board"
        found[grafana][name].append(f"{title}: {told['text']}")
    anything = any(lines for its in found.values() for lines in its.values())
    assert (done.returncode == 0) == (not anything), done.stdout + done.stderr
    return found
