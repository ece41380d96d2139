"""Servers that stand still or are gone, exporters that are gone, and a Prometheus that knows nothing."""

from tests.rules.promtool import Alert, Firing, Group, Series, Value, labels, series
from tests.rules.servers import Phase, Server, exporter, polled
from tidegauge.catalogue import exported
from tidegauge.catalogue import recorded as rec

STALLED = "VllmAdmissionStalled"
DOWN = "VllmBackendDown"
EXPORTER = "TidegaugeDown"
RELOAD = "TidegaugeConfigReloadFailed"
BUSY = Phase(3, [(20, 0.1)], running=12)
STUCK = Phase(6, running=12, waiting=5)
A = {"backend": "a:8000", "model_name": "sim"}
B = {"backend": "b:8000", "model_name": "chat"}


def stalled(subject: dict[str, str], held: int) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "critical", **subject},
        f"{subject['model_name']} on {subject['backend']}: {held} requests are held and nothing moves.",
        "No token was computed and no request finished for minutes while requests run or wait. Latency figures show "
        "the past: "
        "they move only when a request finishes. Look first at the server's log for an engine that died or hangs, "
        "then at the "
        "GPUs, then at what the requests wait for (remote KV, grammar).",
    )


def only_tokens(one: Series) -> bool:
    """Whether the series is a token counter, which alone moves while requests run."""
    return "generation_tokens" in one["series"]


def long_answers() -> list[Series]:
    """A server that computes tokens while nothing finishes."""
    steady = Server("long:8000", "long", [Phase(9, running=3)]).series()
    return [{**one, "values": "0+900x18"} if only_tokens(one) else one for one in steady]


def embeddings() -> list[Series]:
    """A server without output tokens, whose requests finish."""
    steady = Server("embed:8000", "embed", [Phase(9, [(20, 0.1)], running=3)]).series()
    return [{**one, "values": "0x18"} if "tokens" in one["series"] else one for one in steady]


STALL = Group(
    "requests held and nothing moving is a stall; waiting alone too; an idle, a slow and a token-less server are none",
    [
        *Server("a:8000", "sim", [BUSY, STUCK]).series(),
        *Server("b:8000", "chat", [BUSY, Phase(6, waiting=2)], engines=("0", "1")).series(),
        *Server("idle:8000", "idle", [BUSY, Phase(6)]).series(),
        *Server("fine:8000", "fine", [Phase(9, [(20, 0.1)], running=12, waiting=40)]).series(),
        *long_answers(),
        *embeddings(),
    ],
    [
        Value(rec.RUNNING, 6, {labels(**A): 12, labels(**B): 0}, '{model_name=~"sim|chat"}'),
        Value(rec.WAITING, 6, {labels(**A): 5, labels(**B): 4}, '{model_name=~"sim|chat"}'),
        Value(rec.IN_FLIGHT, 6, {
            labels(**A): 17,
            labels(**B): 4,
            labels(backend="idle:8000", model_name="idle"): 0,
            labels(backend="fine:8000", model_name="fine"): 52,
            labels(backend="long:8000", model_name="long"): 3,
            labels(backend="embed:8000", model_name="embed"): 3,
        }),
        # 20 requests of 560 tokens, and their being finished, in 30 s.
        Value(rec.PROGRESS, 2.5, {labels(**A): 374}, '{model_name="sim"}'),
        Value(rec.PROGRESS, 2.5, {labels(backend="long:8000", model_name="long"): 30}, '{model_name="long"}'),
        Value(rec.PROGRESS, 6, {labels(**A): 0, labels(**B): 0}, '{model_name=~"sim|chat"}'),
    ],
    [
        Alert("just_short", STALLED, 5),
        Alert("fires", STALLED, 6, [stalled(A, 17), stalled(B, 4)]),
    ],
)  # fmt: skip

MOVES_AGAIN = Group(
    "a stall ends with the first token, and a server that restarts is not stalled",
    [
        *Server("a:8000", "sim", [BUSY, Phase(4, running=12), Phase(2, [(20, 0.1)], running=12)]).series(),
        *Server("b:8000", "chat", [Phase(9, [(20, 0.1)], running=4)], restart=11).series(),
    ],
    alerts=[
        Alert("fires", STALLED, 6.5, [stalled(A, 12)]),
        Alert("healthy", STALLED, 7.5),
        Alert("reset", STALLED, 5),
        Alert("reset", STALLED, 8),
    ],
)

FROZEN_RESTART = Group(
    "a stall that follows a restart is found as any other",
    Server("a:8000", "sim", [BUSY, STUCK], restart=5).series(),
    alerts=[Alert("just_short", STALLED, 5), Alert("reset", STALLED, 6, [stalled(A, 17)])],
)


def down(backend: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "critical", "backend": backend},
        f"vLLM server {backend} cannot be reached.",
        "Neither Prometheus nor an exporter gets a metrics page from it. Look first whether the process runs and "
        "answers on "
        "/health, then at its log; the other backends now carry its load.",
    )


ABSENT = Firing(
    {"severity": "critical"},
    "Prometheus knows no vLLM server.",
    "There is no target of a vLLM job and no backend from an exporter, so every other alert on vLLM is blind. Look "
    "first at "
    "the service discovery and at the job names, which must match job=~'.*vllm.*'.",
)


def up(instance: str, values: str, job: str = "vllm") -> Series:
    """What Prometheus says of a target."""
    return series("up", values, instance=instance, job=job)


BACKENDS = Group(
    "a backend is down when nobody reaches it",
    [
        up("a:8000", "1x3 0x10"),
        up("b:8000", "1x14"),
        up("c:8000", "0x14"),
        polled("c:8000", 14),
        up("d:8000", "1x3 0x10", job="pods/vllm-prod"),
        polled("d:8000", 14, up=0),
        up("node:9100", "0x14", job="node"),
    ],
    [
        Value(rec.BACKEND_UP, 4, {
            labels(backend="a:8000"): 0,
            labels(backend="b:8000"): 1,
            labels(backend="c:8000"): 1,
            labels(backend="d:8000"): 0,
        }),
        Value(rec.BACKEND_COVERED, 4, {labels(backend="c:8000"): 1, labels(backend="d:8000"): 0}),
    ],
    [
        Alert("healthy", DOWN, 1.5),
        Alert("just_short", DOWN, 2.5),
        Alert("fires", DOWN, 3, [down("a:8000"), down("d:8000")]),
    ],
)  # fmt: skip

EXPORTER_ONLY = Group(
    "a backend that only the exporter knows counts too",
    [exporter(exported.BACKEND_UP, "1 0x10", backend="a:8000"), polled("b:8000", 11)],
    alerts=[Alert("just_short", DOWN, 1), Alert("fires", DOWN, 1.5, [down("a:8000")])],
)

LOADING = Group(
    "a server that is new loads for a quarter of an hour at most; one that was up is down within a minute, however new",
    [
        up("fine:8000", "1x90"),
        up("loads:8000", "_x10 0x28 1x50"),
        up("stays-down:8000", "0x90"),
        exporter(exported.BACKEND_UP, "_x20 0x70", backend="told:8000"),
        up("fell:8000", "_x10 0x5 1x2 0x73"),
        # A machine that comes back under its name after it was taken out.
        up("returns:8000", "1x3 stale _x35 0x50"),
    ],
    alerts=[
        Alert("healthy", DOWN, 9.5),
        Alert("fires", DOWN, 10.5, [down("fell:8000")]),
        Alert("fires", DOWN, 15.5, [down("fell:8000")]),
        Alert("fires", DOWN, 16, [down("fell:8000"), down("stays-down:8000")]),
        # Known for less than a quarter of an hour, and up for more than seven minutes ago.
        Alert("fires", DOWN, 19, [down("fell:8000"), down("stays-down:8000")]),
        Alert("fires", DOWN, 25.5, [down("fell:8000"), down("stays-down:8000")]),
        Alert("fires", DOWN, 27, [down("fell:8000"), down("stays-down:8000"), down("told:8000")]),
        Alert("fires", DOWN, 35, [down("fell:8000"), down("stays-down:8000"), down("told:8000")]),
        Alert("fires", DOWN, 36.5, [
            down("fell:8000"), down("stays-down:8000"), down("told:8000"), down("returns:8000"),
        ]),
    ],
)  # fmt: skip

BLIP = Group(
    "a server that restarts in half a minute is not down",
    [up("a:8000", "1x3 0 1x6"), *Server("a:8000", "sim", [Phase(5, [(20, 0.1)])], restart=4).series()],
    alerts=[Alert("reset", DOWN, 2), Alert("reset", DOWN, 2.5), Alert("reset", DOWN, 5)],
)

NOTHING = Group(
    "a Prometheus that knows no vLLM at all says so, and nothing else",
    [up("node:9100", "1x40", job="node")],
    alerts=[
        Alert("just_short", DOWN, 0.5),
        Alert("no_data", DOWN, 1, [ABSENT]),
        Alert("no_data", "VllmQueueTimeBimodal", 15),
        Alert("no_data", "VllmQueueSaturated", 15),
        Alert("no_data", "VllmAdmissionStalled", 15),
        Alert("no_data", "VllmBackendSkew", 15),
        Alert("no_data", EXPORTER, 15),
    ],
)

VANISHED = Group(
    "a fleet that disappears from service discovery does not disappear in silence",
    [up("a:8000", "1x3 stale"), up("b:8000", "1x4 stale")],
    alerts=[Alert("just_short", DOWN, 3), Alert("no_data", DOWN, 3.5, [ABSENT])],
)


def exporter_down(instance: str) -> Firing:
    """The alert's text for an exporter that is a target."""
    return Firing(
        {"severity": "warning", "instance": instance, "job": "tidegauge"},
        f"The tidegauge exporter {instance} cannot be scraped.",
        "Barriers, ceilings, callers' waits and capacity are not measured; stages and queue split fall back to "
        "vLLM's own series. "
        "Look first whether the process runs, then at its log.",
    )


EXPORTER_GONE = Firing(
    {"severity": "warning", "job": "tidegauge"},
    "The tidegauge exporter is no longer a target of Prometheus.",
    "Barriers, ceilings, callers' waits and capacity are not measured; stages and queue split fall back to vLLM's "
    "own series. "
    "Look first at the service discovery.",
)

EXPORTERS = Group(
    "an exporter that cannot be scraped is named, the one beside it is not",
    [up("t1:10011", "1x3 0x10", "tidegauge"), up("t2:10011", "1x14", "tidegauge"), up("a:8000", "0x14")],
    alerts=[
        Alert("healthy", EXPORTER, 1.5),
        Alert("just_short", EXPORTER, 3.5),
        Alert("fires", EXPORTER, 4, [exporter_down("t1:10011")]),
    ],
)

EXPORTER_VANISHED = Group(
    "an exporter that was a target and is none any more is missed; one that never was is not",
    [up("t1:10011", "1x3 stale", "tidegauge"), up("a:8000", "1x20")],
    alerts=[Alert("just_short", EXPORTER, 3.5), Alert("no_data", EXPORTER, 4, [EXPORTER_GONE])],
)

EXPORTER_BLIP = Group(
    "an exporter that restarts within a minute is not down",
    [up("t1:10011", "1x3 0x1 1x6", "tidegauge")],
    alerts=[Alert("reset", EXPORTER, 3), Alert("reset", EXPORTER, 4.5)],
)


def loaded(instance: str, values: str, at: str) -> list[Series]:
    """How an exporter's last reading of its configuration went, and when one last went well."""
    return [
        series(exported.CONFIG_LOADED.name, values, instance=instance, job="tidegauge"),
        series(exported.CONFIG_LOADED_AT.name, at, instance=instance, job="tidegauge"),
    ]


def refused(instance: str, since: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "instance": instance, "job": "tidegauge"},
        f"The tidegauge exporter {instance} refused its configuration when it read it again.",
        f"It goes on by the one that it read before, at {since}: a backend that was added is not polled, one that was "
        "taken out still is, and a restart would find no configuration to start with. Look first at its log, which "
        "names the file, the line and the key.",
    )


RELOADS = Group(
    "an exporter that refused its file is named, with the age of the one in force; a failed scrape changes nothing",
    [
        *loaded("t1:10011", "1x4 0x30", "1795000000x35"),
        *loaded("t2:10011", "1x4 0x5 stale _x2 0x21", "1796000000x10 stale _x2 1796000000x21"),
        *loaded("t3:10011", "1x35", "1795000000x35"),
        *loaded("t4:10011", "1x4 0x9 1x21", "1795000000x14 1795000450x21"),
        *loaded("t5:10011", "1x4 0 1 0 1 0 1x25", "1795000000x35"),
    ],
    alerts=[
        Alert("healthy", RELOAD, 2),
        Alert("just_short", RELOAD, 7.5),
        Alert(
            "fires",
            RELOAD,
            8.5,
            [
                refused("t1:10011", "2026-11-18 11:06:40 +0000 UTC"),
                refused("t2:10011", "2026-11-30 00:53:20 +0000 UTC"),
            ],
        ),
    ],
)

RELOAD_HOLD = Group(
    "a refusal is told after a whole minute beyond the window; no sample is on its edge, where generations differ",
    loaded("t1:10011", "1x4 0x20", "1795000000x25"),
    alerts=[
        Alert("just_short", RELOAD, 8.5),
        Alert("fires", RELOAD, 9, [refused("t1:10011", "2026-11-18 11:06:40 +0000 UTC")]),
    ],
    step=40,
    every=30,
)

RELOADED = Group(
    "a file that could be used, or a restart, which finds one, ends it with the next scrape",
    [*loaded("t1:10011", "1x4 0x18 1x6", "1795000000x23 1795000720x6"), up("t1:10011", "1x30", "tidegauge")],
    alerts=[
        Alert("fires", RELOAD, 11.5, [refused("t1:10011", "2026-11-18 11:06:40 +0000 UTC")]),
        Alert("reset", RELOAD, 12),
        Alert("reset", RELOAD, 14),
    ],
)

GROUPS = [
    STALL,
    MOVES_AGAIN,
    FROZEN_RESTART,
    BACKENDS,
    EXPORTER_ONLY,
    LOADING,
    BLIP,
    NOTHING,
    VANISHED,
    EXPORTERS,
    EXPORTER_VANISHED,
    EXPORTER_BLIP,
    RELOADS,
    RELOAD_HOLD,
    RELOADED,
]
