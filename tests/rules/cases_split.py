"""The split of queue time: every situation of the table, at once, on vLLM's real buckets.

Each row is a server of its own with a model of its own; service takes 4 s, so wave k waits 4k s. All of them are in one
group, so that a page expected for one row is also asserted to be missing for the others.
"""

from collections.abc import Sequence

import attrs

from tests.rules.promtool import Alert, Firing, Group, Value, labels
from tests.rules.servers import EDGES, Phase, Server
from tidegauge.catalogue import recorded as rec

BIMODAL = "VllmQueueTimeBimodal"
SATURATED = "VllmQueueSaturated"
SERVER_TEXT = (
    "The wait is in vLLM's own queue. Look first at requests running against max_num_seqs, then at KV-cache usage and "
    "preemptions, then at the per-step token budget."
)


@attrs.frozen
class Row:
    """One situation and what must come of it.

    `page`, `warning` and `saturated` hold the figures of the text where that alert is expected: late share, late mean,
    waves, impact.
    """

    model: str
    waits: Sequence[tuple[float, float]]
    late: float | None
    waves: float | None
    p50: float | None = 0.3
    p90: float | None = 0.3
    split: float | None = None
    page: tuple[str, str, str, str] | None = None
    warning: tuple[str, str, str, str] | None = None
    saturated: tuple[str, str, str, str] | None = None
    decode: float = 3.4
    edges: Sequence[float] = EDGES
    engines: Sequence[str] = ("0",)
    restart: int | None = None

    @property
    def backend(self) -> str:
        return f"{self.model}:8000"

    @property
    def key(self) -> str:
        return labels(where="server", backend=self.backend, model_name=self.model)

    def server(self, minutes: float) -> Server:
        phases = (Phase(minutes, self.waits, decode=self.decode, running=4, waiting=2),)
        return Server(self.backend, self.model, phases, self.engines, self.edges, self.restart)


def waves(number: int) -> list[tuple[float, float]]:
    """*number* full waves of ten requests."""
    return [(10, 4 * wave) for wave in range(number)]


WAVY = Row("60-40", [(60, 0), (40, 12)], 0.4, 1.667, 0.3, 13.75, 38.5, ("40%", "11.55s", "1.7", "54.55%"))
QUIET = Row("quiet", [(100, 0.002)], 0, 1)
ALL_WAIT = Row("all-wait", [(50, 20)], 1, None, 17.5, 19.5, 66.667, saturated=("100%", "20s", "", "83.33%"))
TABLE = [
    Row("idle-2ms", [(100, 0.002)], 0, 1),
    Row("idle-200ms", [(40, 0.2)], 0, 1),
    WAVY,
    Row("45-55", [(45, 0), (55, 12)], 0.55, 2.222, 10.455, 14.091, 39.182, ("55%", "11.75s", "2.2", "62.26%")),
    Row("95-5", [(95, 0), (5, 60)], 0.05, 1.053, split=181, page=("5%", "54.3s", "1.1", "42.86%")),
    Row("waves-2", waves(2), 0.5, 2, 0.3, 4.5, 12.333, ("50%", "3.7s", "2.0", "33.33%")),
    Row("waves-3", waves(3), 0.667, 3, 3.75, 8.5, 19.5, ("66.67%", "5.85s", "3.0", "50%")),
    Row("waves-4", waves(4), 0.75, 4, 5, 13, 26.333, ("75%", "7.9s", "4.0", "60%")),
    Row("waves-8", waves(8), 0.875, 8, 15, 26, 53.19, ("87.5%", "15.96s", "8.0", "77.78%")),
    Row("waves-16", waves(16), 0.938, 16, 30, 54.667, 106.6, ("93.75%", "31.98s", "16.0", "88.24%")),
    ALL_WAIT,
]
"""The table of the definitions; the quantiles are what interpolation within vLLM's buckets gives."""

EDGE_CASES = [
    # 96 % late is one mode again.
    Row("96-late", [(4, 0), (96, 20)], 0.96, 25, 17.396, 19.479, 66.625, saturated=("96%", "19.99s", "", "82.76%")),
    # Just under the band.
    Row("4-late", [(96, 0), (4, 60)], 0.04, 1.042, split=176),
    # Two modes that are too close.
    Row("short-waits", [(60, 0), (40, 2)], 0.4, 1.667, 0.3, 1.875, 5.167),
    # A split that costs a request next to nothing.
    Row("cheap", [(90, 0), (10, 5)], 0.1, 1.111, split=7.667, decode=60),
    Row("costs-little", [(90, 0), (10, 8)], 0.1, 1.111, split=17.667, decode=60, warning=("10%", "5.3s", "1.1", "")),
    # Two requests in 5 minutes say nothing, however far apart.
    Row("rare", [(0.1, 0), (0.1, 40)], None, None, None, None),
    # Buckets of its own: the edge is 0.05, and 0.3 s is late.
    attrs.evolve(WAVY, model="own-buckets", p50=0.05, split=238.5, page=("40%", "11.93s", "1.7", "54.55%"),
        edges=(0.05, 1, 10, 15, 60)),
    # Data-parallel ranks are one backend.
    attrs.evolve(WAVY, model="ranks", engines=("0", "1")),
    # A restart in the window changes nothing.
    attrs.evolve(WAVY, model="restarted", restart=4),
    Row("restarted-idle", [(80, 0.1)], 0, 1, restart=4),
    attrs.evolve(ALL_WAIT, model="restarted-all-wait", restart=4),
]  # fmt: skip


def page(row: Row, where: str = "server", severity: str = "critical") -> Firing:
    """The text of a bimodal alert on a server."""
    figures = row.page if severity == "critical" else row.warning
    assert figures is not None
    late, mean, wave, impact = figures
    subject = f"{row.model} on {row.backend}: {late} of requests wait {mean}, the rest do not wait"
    start = f"Load arrives in bursts that are served in {wave} waves"
    if severity == "critical":
        summary, description = f"{subject}.", f"{start}; waiting is {impact} of the time of a request. {SERVER_TEXT}"
    else:
        summary = f"{subject}; the wait costs little yet."
        description = (
            f"{start}. Waiting is less than 10% of the time of a request, or that share is not known. {SERVER_TEXT}"
        )
    return Firing(
        {"severity": severity, "where": where, "backend": row.backend, "model_name": row.model}, summary, description
    )


def saturated(row: Row) -> Firing:
    """The text of a saturated queue."""
    assert row.saturated is not None
    late, mean, _, impact = row.saturated
    return Firing(
        {"severity": "warning", "where": "server", "backend": row.backend, "model_name": row.model},
        f"{row.model} on {row.backend}: {late} of requests wait, {mean} on average.",
        "Practically nobody is served at once: load exceeds what is let through, in bursts or not. Waiting is "
        f"{impact} of the time of a request. {SERVER_TEXT}",
    )


def present(rows: Sequence[Row], name: str) -> dict[str, float]:
    """The rows' expected *name* by label set, without the rows for which it is absent."""
    return {row.key: getattr(row, name) for row in rows if getattr(row, name) is not None}


def native(key: str) -> str:
    """The same label set without `where`."""
    return key.replace(',where="server"', "")


def natives(rows: dict[str, float]) -> dict[str, float]:
    """The same figures under label sets without `where`."""
    return {native(key): value for key, value in rows.items()}


def table(name: str, rows: Sequence[Row]) -> Group:
    """All *rows* under the native rules alone."""
    at, minutes = 6, 8
    pages = [page(row) for row in rows if row.page] + [page(row, severity="warning") for row in rows if row.warning]
    full = [saturated(row) for row in rows if row.saturated]
    late, wave = present(rows, "late"), present(rows, "waves")
    return Group(
        name,
        [one for row in rows for one in row.server(minutes).series()],
        [
            Value(rec.LATE_RATIO, at, late),
            Value(rec.WAVES, at, wave),
            Value(rec.QUEUE_TIME, at, quantiles(present(rows, "p50"), "0.5"), '{quantile="0.5"}'),
            Value(rec.QUEUE_TIME, at, quantiles(present(rows, "p90"), "0.9"), '{quantile="0.9"}'),
            Value(rec.QUEUE_EDGE, at, {native(row.key): row.edges[0] for row in rows}),
            Value(rec.SPLIT, at, present(rows, "split")),
        ],
        [
            Alert("just_short", BIMODAL, 1),
            Alert("fires", BIMODAL, 1.5, pages),
            Alert("just_short", SATURATED, 5),
            Alert("fires", SATURATED, 5.5, full),
            Alert("fires", BIMODAL, at, pages),
        ],
    )  # fmt: skip


def quantiles(rows: dict[str, float], order: str) -> dict[str, float]:
    """The label sets of *rows* with the quantile in its place."""
    return {key.replace(",where=", f',quantile="{order}",where='): value for key, value in rows.items()}


POISONED = Group(
    "a sum that goes back while its count rises gives no mean, no impact and no page, and does not end the rest",
    [
        *(
            one if "queue_time_seconds_sum" not in one["series"] else {**one, "values": "0+480x6 100+480x9"}
            for one in WAVY.server(8).series()
        ),
    ],
    [
        Value(rec.LATE_RATIO, 6, {WAVY.key: 0.4}),
        Value(rec.LATE_SECONDS, 6, {}),
        Value(rec.IMPACT, 6, {}),
        Value(rec.STAGE_MEAN, 6, {}, '{stage="queue"}'),
    ],
    [Alert("healthy", BIMODAL, 6)],
)

RESET = Group(
    "a server that restarts goes on paging, or goes on being silent",
    [one for row in EDGE_CASES if row.restart for one in row.server(8).series()],
    alerts=[
        Alert("reset", BIMODAL, 2.5, [page(row) for row in EDGE_CASES if row.restart and row.page]),
        Alert("reset", BIMODAL, 6, [page(row) for row in EDGE_CASES if row.restart and row.page]),
        Alert("reset", SATURATED, 6, [saturated(row) for row in EDGE_CASES if row.restart and row.saturated]),
    ],
)

HEALTHY = Group(
    "servers whose requests start at once are silent",
    [one for row in TABLE[:2] for one in row.server(12).series()],
    alerts=[Alert("healthy", BIMODAL, 10), Alert("healthy", SATURATED, 10)],
)

IDLE = Group(
    "a server without requests has no figures, rather than 0/0",
    Server("idle:8000", "idle", [Phase(8)]).series(),
    [
        Value(rec.LATE_RATIO, 6, {}),
        Value(rec.STAGE_MEAN, 6, {}),
        Value(rec.STAGE_SHARE, 6, {}),
        Value(rec.E2E_MEAN, 6, {}),
        Value(rec.QUEUE_REQUESTS_5M, 6, {labels(backend="idle:8000", model_name="idle"): 0}),
    ],
    [Alert("no_data", BIMODAL, 6), Alert("no_data", SATURATED, 6)],
)

PARTS = Group(
    "the parts of the split from which the native figures are made",
    [*WAVY.server(8).series(), *QUIET.server(8).series()],
    [
        Value(rec.QUEUE_REQUESTS_5M, 6, {native(WAVY.key): 1000, native(QUIET.key): 1000}),
        Value(rec.QUEUE_ON_TIME_5M, 6, {native(WAVY.key): 600, native(QUIET.key): 1000}),
        Value(rec.LATE_SECONDS, 6, {WAVY.key: 11.55}),
        Value(rec.IMPACT, 6, {WAVY.key: 0.545, QUIET.key: 0}),
    ],
)

SITUATIONS = table("the table of the definitions", TABLE)
EDGES_OF_IT = table("edge cases of the split", EDGE_CASES)

GROUPS = [
    SITUATIONS,
    EDGES_OF_IT,
    POISONED,
    RESET,
    HEALTHY,
    IDLE,
    PARTS,
]
