"""Write every board to `dashboards/json`, and take away what no board writes: `python -m dashboards.generate`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from dashboards.boards import bottleneck, capacity, comparison, exporter, latency, load, skew, slo, waves
from dashboards.fields import Json
from tidegauge.catalogue import places

BOARDS: Final[dict[str, Callable[[], Json]]] = {
    places.LATENCY.key: latency.board,
    places.WAVES.key: waves.board,
    places.SKEW.key: skew.board,
    places.CAPACITY.key: capacity.board,
    places.LOAD.key: load.board,
    places.BOTTLENECK.key: bottleneck.board,
    places.SLO.key: slo.board,
    places.COMPARISON.key: comparison.board,
    places.EXPORTER.key: exporter.board,
}
FOLDER: Final = Path(__file__).parent / "json"


def files() -> dict[str, str]:
    """The text of each generated file, by its name."""
    return {f"{name}.json": json.dumps(make(), indent=2, ensure_ascii=False) + "\n" for name, make in BOARDS.items()}


def main() -> None:
    """Make the folder hold the boards and nothing else."""
    FOLDER.mkdir(exist_ok=True)
    boards = files()
    for name, text in boards.items():
        (FOLDER / name).write_text(text)
    for orphan in FOLDER.glob("*.json"):
        if orphan.name not in boards:
            orphan.unlink()


if __name__ == "__main__":
    main()
