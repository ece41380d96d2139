"""The split with an exporter: alone, beside the native figures, twice, gone, and on callers, whom only it knows."""

import attrs

from tests.rules.cases_split import BIMODAL, QUIET, SATURATED, WAVY, Row, page
from tests.rules.promtool import Alert, Firing, Group, Value, labels
from tests.rules.servers import Phase, Server, exporter, polled, split_rows
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

CALLER_TEXT = (
    "The wait is in the caller, for a slot of its own limiter; the servers never see it, their queues look empty and "
    "their "
    "utilisation low. Look first at the limiter's ceiling against the calls launched at once, then at whether that "
    "ceiling "
    "was ever measured."
)
CALLER = {"where": "caller", "fleet": "sim"}


def caller_page(late: str, mean: str, wave: str, impact: str) -> Firing:
    """The text of a bimodal page on a caller."""
    return Firing(
        {"severity": "critical", **CALLER},
        f"fleet sim: {late} of requests wait {mean}, the rest do not wait.",
        f"Load arrives in bursts that are served in {wave} waves; waiting is {impact} of the time of a request. "
        f"{CALLER_TEXT}",
    )


def saturated_caller() -> Firing:
    """The text of a caller whose requests all wait."""
    return Firing(
        {"severity": "warning", "where": "caller", "fleet": "rollout"},
        "fleet rollout: 97% of requests wait, 8s on average.",
        "Practically nobody is served at once: load exceeds what is let through, in bursts or not. Waiting is "
        f"40% of the time of a request. {CALLER_TEXT}",
    )


EXPORTED_WAVY = attrs.evolve(WAVY, page=("42%", "11.2s", "1.7", "50%"))
WORST = {"late": 0.42, "late_seconds": 11.2, "edge": 0.3, "impact": 0.5, "p50": 0.3, "p90": 13.5}
SLOTS = {"edge": 0.1, "impact": 0.2, "p50": 0.1, "p90": 4}
CALM = {"late": 0.0, "late_seconds": 0.3, "edge": 0.3, "impact": 0.01, "p50": 0.3, "p90": 0.3}


def subject(row: Row) -> dict[str, str]:
    return {"where": "server", "backend": row.backend, "model_name": row.model}


WITH_EXPORTER = Group(
    "with an exporter only: its server row and its caller row page, each for itself",
    [
        polled(WAVY.backend, 20),
        polled(QUIET.backend, 20),
        *split_rows(20, **WORST, **subject(WAVY)),
        *split_rows(20, **CALM, **subject(QUIET)),
        *split_rows(20, late=0.45, late_seconds=3.8, edge=0.1, impact=0.2, p50=0.1, p90=4.5, **CALLER),
        *split_rows(20, late=0.97, late_seconds=8, edge=0.1, impact=0.4, p50=7, p90=9, where="caller", fleet="rollout"),
    ],
    [
        Value(rec.LATE_RATIO, 2, {
            labels(**CALLER): 0.45,
            labels(where="caller", fleet="rollout"): 0.97,
            WAVY.key: 0.42,
            QUIET.key: 0,
        }),
        Value(rec.IMPACT, 2, {labels(**CALLER): 0.2}, '{fleet="sim"}'),
    ],
    [
        Alert("just_short", BIMODAL, 0.5),
        Alert("fires", BIMODAL, 1, [page(EXPORTED_WAVY), caller_page("45%", "3.8s", "1.8", "20%")]),
        Alert("just_short", SATURATED, 4.5),
        Alert("fires", SATURATED, 5, [saturated_caller()]),
    ],
)  # fmt: skip

BOTH = Group(
    "with both: the exporter's word on a backend that it covers, the native figure on the others",
    [
        *WAVY.server(8).series(),
        *attrs.evolve(WAVY, model="elsewhere").server(8).series(),
        polled(WAVY.backend, 16),
        *split_rows(16, **CALM, **subject(WAVY)),
    ],
    [Value(rec.LATE_RATIO, 6, {WAVY.key: 0, attrs.evolve(WAVY, model="elsewhere").key: 0.4})],
    [Alert("fires", BIMODAL, 6, [page(attrs.evolve(WAVY, model="elsewhere"))])],
)

SILENT_EXPORTER = Group(
    "an exporter that covers a backend and says nothing of its queue is believed",
    [*WAVY.server(8).series(), polled(WAVY.backend, 16)],
    [Value(rec.LATE_RATIO, 6, {})],
    [Alert("healthy", BIMODAL, 6)],
)

UNREACHING_EXPORTER = Group(
    "an exporter that does not reach a backend has no say in it",
    [*WAVY.server(8).series(), polled(WAVY.backend, 16, up=0)],
    [Value(rec.LATE_RATIO, 6, {WAVY.key: 0.4})],
    [Alert("fires", BIMODAL, 6, [page(WAVY)])],
)

TWO_EXPORTERS = Group(
    "two exporters on one backend give one row, and the page comes once",
    [
        *WAVY.server(8).series(),
        *(polled(WAVY.backend, 16, instance=one) for one in ("10.0.0.8:10011", "10.0.0.9:10011")),
        *split_rows(16, **WORST, instance="10.0.0.8:10011", **subject(WAVY)),
        *split_rows(16, **WORST, instance="10.0.0.9:10011", **subject(WAVY)),
        *split_rows(16, late=0.4, late_seconds=3, **SLOTS, instance="10.0.0.8:10011", **CALLER),
        *split_rows(16, late=0.5, late_seconds=5, **SLOTS, instance="10.0.0.9:10011", **CALLER),
    ],
    [Value(rec.LATE_RATIO, 6, {WAVY.key: 0.42, labels(**CALLER): 0.45})],
    [Alert("fires", BIMODAL, 6, [page(EXPORTED_WAVY), caller_page("45%", "4s", "1.8", "20%")])],
)  # fmt: skip

LOST_EXPORTER = Group(
    "when the exporter goes, the native figures take over at once and the page stays",
    [
        *WAVY.server(10).series(),
        exporter(ex.BACKEND_UP, "1x11 stale", backend=WAVY.backend),
        exporter(ex.QUEUE_LATE_RATIO, "0.42x11 stale", **subject(WAVY)),
        exporter(ex.QUEUE_LATE_SECONDS, "11.2x11 stale", **subject(WAVY)),
        exporter(ex.QUEUE_EDGE, "0.3x11 stale", **subject(WAVY)),
        exporter(ex.QUEUE_IMPACT, "0.5x11 stale", **subject(WAVY)),
        exporter(ex.QUEUE_WAVES, "1.724x11 stale", **subject(WAVY)),
    ],
    [Value(rec.LATE_RATIO, 5.5, {WAVY.key: 0.42}), Value(rec.LATE_RATIO, 6, {WAVY.key: 0.4})],
    [Alert("fires", BIMODAL, 5.5, [page(EXPORTED_WAVY)]), Alert("fires", BIMODAL, 6, [page(WAVY)])],
)

RESOLVES = Group(
    "the page resolves with the exporter's window, not with the native one",
    [
        *Server(WAVY.backend, WAVY.model, [Phase(4, WAVY.waits), Phase(4, [(100, 0)])]).series(),
        polled(WAVY.backend, 16),
        exporter(ex.QUEUE_LATE_RATIO, "0.42x8 0x8", **subject(WAVY)),
        exporter(ex.QUEUE_LATE_SECONDS, "11.2x8 _x8", **subject(WAVY)),
        exporter(ex.QUEUE_EDGE, "0.3x16", **subject(WAVY)),
        exporter(ex.QUEUE_IMPACT, "0.5x8 0.01x8", **subject(WAVY)),
        exporter(ex.QUEUE_WAVES, "1.724x8 1x8", **subject(WAVY)),
    ],
    alerts=[Alert("fires", BIMODAL, 4, [page(EXPORTED_WAVY)]), Alert("healthy", BIMODAL, 4.5)],
)

UNKNOWN_IMPACT = Group(
    "a split whose impact is not known warns and does not page",
    [
        exporter(ex.QUEUE_LATE_RATIO, "0.45x10", **CALLER),
        exporter(ex.QUEUE_LATE_SECONDS, "3.8x10", **CALLER),
        exporter(ex.QUEUE_EDGE, "0.1x10", **CALLER),
        exporter(ex.QUEUE_WAVES, "1.818x10", **CALLER),
    ],
    alerts=[
        Alert("fires", BIMODAL, 3, [
            Firing(
                {"severity": "warning", **CALLER},
                "fleet sim: 45% of requests wait 3.8s, the rest do not wait; the wait costs little yet.",
                "Load arrives in bursts that are served in 1.8 waves. Waiting is less than 10% of the time of a "
                "request, or that "
                f"share is not known. {CALLER_TEXT}",
            )
        ])
    ],
)  # fmt: skip

GROUPS = [
    WITH_EXPORTER,
    BOTH,
    SILENT_EXPORTER,
    UNREACHING_EXPORTER,
    TWO_EXPORTERS,
    LOST_EXPORTER,
    RESOLVES,
    UNKNOWN_IMPACT,
]
