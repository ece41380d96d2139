"""Where alerts and boards lead: the boards by key, in the order of the operator's questions, and default addresses."""

from typing import Final

import attrs


@attrs.frozen
class Board:
    """A dashboard: its key (also the name of its file), its uid, which links go by, and the question it answers."""

    key: str
    uid: str
    title: str


def _board(key: str, title: str) -> Board:
    return Board(key, f"tidegauge-{key}", title)


LATENCY: Final = _board("latency", "Where does the latency go")
WAVES: Final = _board("waves", "Waves: what cuts a barrier")
SKEW: Final = _board("skew", "Skew: which backend is the odd one out")
CAPACITY: Final = _board("capacity", "Capacity: how much fits")
LOAD: Final = _board("load", "Load: what arrives")
BOTTLENECK: Final = _board("bottleneck", "Bottleneck: what holds a backend back")
SLO: Final = _board("slo", "SLO: is it good enough")
COMPARISON: Final = _board("comparison", "Before and after: did it help")
EXPORTER: Final = _board("exporter", "Exporter: can the figures be trusted")

BOARDS: Final = (LATENCY, WAVES, SKEW, CAPACITY, LOAD, BOTTLENECK, SLO, COMPARISON, EXPORTER)

GRAFANA: Final = "http://127.0.0.1:3000"
"""Grafana, as docker compose publishes it."""
HOST, PORT = "127.0.0.1", 10010
"""Where the exporter listens unless its configuration says otherwise."""
EXPORTER_ADDRESS: Final = f"{HOST}:{PORT}"
RUNBOOKS: Final = f"http://{EXPORTER_ADDRESS}/runbooks"
"""The runbooks, as the exporter serves them."""

BEGINNINGS: Final = ("http://", "https://", "/")
"""How an address begins that links are made of: one of any server, or a path of Grafana's own."""
EXPECTED: Final = f"an address that begins with {', '.join(BEGINNINGS[:-1])} or {BEGINNINGS[-1]}"
"""What a message says was expected in place of one that is none."""
