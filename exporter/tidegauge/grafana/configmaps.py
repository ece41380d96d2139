"""Boards as ConfigMaps for the sidecar that Grafana's Helm chart runs: pure."""

import json
import re
from collections.abc import Iterable
from typing import Final

from tidegauge.grafana.boards import Board, BoardsError, Json

LABEL: Final = "grafana_dashboard"
FOLDER: Final = "grafana_folder"
DEFAULT_FOLDER: Final = "tidegauge"
LARGEST: Final = 240 * 1024
"""Bytes that one object may have: `kubectl apply` keeps a copy of it in an annotation, and those end at 256 KiB."""

_NOT_IN_A_NAME: Final = re.compile(r"[^a-z0-9]+")


class TooLargeError(Exception):
    """A board that `kubectl apply` would not take; the message names it and its size."""


def configmaps(boards: Iterable[Board], folder: str = DEFAULT_FOLDER) -> list[Json]:
    """A ConfigMap for each board, to be shown in *folder*.

    Raises TooLargeError, and BoardsError for two boards whose uids make one name.
    """
    made: dict[str, tuple[Board, Json]] = {}
    for board in boards:
        name = f"dashboard-{_NOT_IN_A_NAME.sub('-', board.uid.lower())}".rstrip("-")
        if name in made:
            raise BoardsError(f"{made[name][0].file} and {board.file} would be one ConfigMap, {name}")
        made[name] = board, _configmap(board, name, folder)
    return [one for _, one in made.values()]


def _configmap(board: Board, name: str, folder: str) -> Json:
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "annotations": {FOLDER: folder},
            "labels": {
                "app.kubernetes.io/component": "dashboards",
                "app.kubernetes.io/name": "tidegauge",
                LABEL: "1",
            },
            "name": name,
        },
        # The sidecar writes the keys of all ConfigMaps into one folder: the uid is a file name nobody else has.
        "data": {f"{board.uid}.json": json.dumps(board.content, ensure_ascii=False, separators=(",", ":"))},
    }
    size = len(json.dumps(made).encode())
    if size > LARGEST:
        raise TooLargeError(f"{board.file}: {size} bytes as a ConfigMap, expected at most {LARGEST}")
    return made
