"""What TypeScript says of boards that are written down as values of Grafana's own types."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import typescript
from tests.boards import panels_of

COMPLAINT = re.compile(r"^(?P<file>[\w-]+)\.ts\((?P<line>\d+),\d+\): error \w+: (?P<text>.*)$")


def complaints(boards: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """What is wrong with each board: a line per fault, which names the panel. Skips without the compiler."""
    compiler = typescript.compiler()
    with tempfile.TemporaryDirectory(dir=typescript.INSTALLED) as name:
        folder = Path(name)
        for source in ("grafana.ts", "tsconfig.json"):
            shutil.copy(typescript.SOURCES / source, folder)
        for key, board in boards.items():
            (folder / f"{key}.ts").write_text("\n".join(_lines(board)) + "\n", encoding="utf-8")
        done = subprocess.run(
            [compiler, "-p", "."], cwd=folder, capture_output=True, text=True, check=False, timeout=200
        )
        return _told(done, folder, boards)


def _lines(board: Mapping[str, Any]) -> Iterator[str]:
    """The board without its panels, and each panel, a line each: TypeScript names the line of a fault."""
    yield "import type { Board, Panels } from './grafana';"
    rest = {key: value for key, value in board.items() if key != "panels"}
    yield f"export const board: Board = {json.dumps(rest)};"
    rows = [{**row, "panels": []} for row in board["panels"] if row["type"] == "row"]
    for number, panel in enumerate([*rows, *panels_of(board)]):
        kind = json.dumps(panel["type"])
        yield f"export const p{number}: Panels[{kind}] = {json.dumps(panel)}; // {json.dumps(panel['title'])}"


def _told(done: Any, folder: Path, boards: Mapping[str, Any]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {key: [] for key in boards}
    for line in done.stdout.splitlines():
        told = COMPLAINT.match(line)
        if told is None:
            # The rest of a complaint is set in.
            assert line.startswith(" "), done.stdout[:2000]
            continue
        assert told["file"] in found, line
        at = (folder / f"{told['file']}.ts").read_text().splitlines()[int(told["line"]) - 1]
        title = at.rpartition(" // ")[2] if " // " in at else "the board"
        found[told["file"]].append(f"{title}: {told['text']}")
    assert (done.returncode == 0) == (not any(found.values())), done.stdout + done.stderr
    return found
