"""Alerts on the figures themselves: pages without vLLM's series, coarse buckets, unknown facts, a failing exporter.

And on a server that is up and idle while its fleet works.
"""

from collections.abc import Mapping, Sequence

from tests.rules.cases_health import up
from tests.rules.promtool import Alert, Firing, Group, Series, series
from tests.rules.servers import Phase, Server, exporter, polled
from tests.rules.steady import MODERN, OLD, RAY
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

MISSING = "TidegaugeNativeMetricsMissing"
ESCAPED = "TidegaugeNativeMetricsEscaped"
COARSE = "TidegaugePhaseEdgesCoarse"
UNKNOWN = "TidegaugeCapacityUnknown"
DISAGREE = "TidegaugeKVSourcesDisagree"
FAILING = "TidegaugeBackendFailing"
IDLE = "VllmServesNothing"
EXPORTER = "10.0.0.9:10011"


def about(backend: str, severity: str, summary: str, description: str) -> Firing:
    return Firing({"severity": severity, "backend": backend}, f"{backend}{summary}", description)


def missing(backend: str) -> Firing:
    """The alert's text."""
    return about(
        backend,
        "warning",
        " is scraped and has no series of vLLM.",
        "Prometheus gets a page from this target without num_requests_running, so no rule and no other alert sees the "
        "server. Look first whether the target is a vLLM server (a router or a sidecar may match the job), then at its "
        "version and its --disable-log-stats, then at metric_relabel_configs that drop series.",
    )


def escaped(backend: str) -> Firing:
    """The alert's text."""
    return about(
        backend,
        "warning",
        " is scraped under another spelling of vLLM's names than the rules read.",
        "The series begin with vllm_, ray_vllm_, ray_vllm: here, and the rules read vllm:, so no other alert sees this "
        "server. Look first at the metric_relabel_configs of the job, which should bring all spellings to one, then at "
        "the mixin's metricPrefixes.",
    )


def running(names: Mapping[str, str], prefix: str = "vllm:", values: str = "0x50") -> list[Series]:
    """A target and the gauge by which it is known."""
    return [
        up(names["instance"], "1x50", names["job"]),
        series(f"{prefix}{vllm.RUNNING}", values, **names),
    ]


def at(names: Mapping[str, str], host: str) -> dict[str, str]:
    return {**names, "instance": host}


SPELLINGS = Group(
    "a page without vLLM's series, or with them in another spelling, is told; a dead target and other jobs are not",
    [
        *running(MODERN),
        *running(OLD),
        *running(RAY),
        up("router:8000", "1x50"),
        up("loads:8000", "1x50"),
        series(f"vllm:{vllm.RUNNING}", "_x31 0x20", instance="loads:8000", job="vllm", model_name="m"),
        up("dead:8000", "0x50"),
        up("node:9100", "1x50", "node"),
        *running(at(MODERN, "escaped:8000"), "vllm_"),
        *running(at(RAY, "ray:8080"), "ray_vllm_"),
        *running(at(RAY, "ray:8081"), "ray_vllm:"),
        *running(at({**MODERN, "job": "elsewhere"}, "other:8000"), "vllm_"),
        # Both, as while a relabelling rolls out.
        *running(at(OLD, "both:8000"), "vllm_"),
        *running(at(OLD, "both:8000"))[1:],
    ],
    alerts=[
        Alert("healthy", MISSING, 5),
        Alert("just_short", MISSING, 14.5),
        Alert("fires", MISSING, 15, [missing("router:8000"), missing("loads:8000")]),
        Alert("fires", MISSING, 16, [missing("router:8000")]),
        Alert("healthy", ESCAPED, 2),
        Alert("just_short", ESCAPED, 4.5),
        Alert("fires", ESCAPED, 5, [escaped("escaped:8000"), escaped("ray:8080"), escaped("ray:8081")]),
    ],
)

SPELLINGS_RESTART = Group(
    "a server that restarts is without series for minutes, and that is not told",
    [
        up("a:8000", "1x12 0x3 1x40"),
        series(f"vllm:{vllm.RUNNING}", "4x12 stale _x10 0x30", instance="a:8000", job="vllm", model_name="m"),
        up("b:8000", "1x60"),
        series(f"vllm_{vllm.RUNNING}", "4x12 stale _x2 4x30", instance="b:8000", job="vllm", model_name="m"),
    ],
    alerts=[
        Alert("reset", MISSING, 11),
        Alert("reset", MISSING, 18),
        Alert("reset", ESCAPED, 6, [escaped("b:8000")]),
        Alert("reset", ESCAPED, 12),
        Alert("reset", ESCAPED, 13.5, [escaped("b:8000")]),
    ],
)


def coarse(backend: str, model: str, share: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "info", "backend": backend, "model_name": model},
        f"{model} on {backend}: the lowest bucket of the queue time is {share} of a whole request.",
        "A wait below that edge counts as none, so queue split and waves say nothing about requests this short. Means "
        "and shares still hold. Look first at the share of the queue; buckets of their own at the server, or the wait "
        "as its callers measure it, tell more.",
    )


def short(
    model: str, decode: float, edges: Sequence[float] = (0.3, 1, 10), count: float = 20, restart: int | None = None
) -> list[Series]:
    """A server whose requests take *decode* seconds and nothing else."""
    phase = Phase(90, [(count, 0)], prefill=0, decode=decode, other=0)
    return Server(f"{model}:8000", model, [phase], edges=edges, restart=restart).series()


EDGES = Group(
    "requests that are short against the lowest bucket edge cannot be judged by it",
    [
        *short("embed", 0.25),
        *short("half", 0.625, (0.315, 1)),
        *short("enough", 0.61),
        *short("own-buckets", 0.25, (0.05, 1, 10)),
        *short("rare", 0.25, count=0.5),
        *short("again", 0.5, restart=50),
        *short("fine", 4, restart=50),
    ],
    alerts=[
        Alert("healthy", COARSE, 10),
        Alert("just_short", COARSE, 30),
        Alert(
            "fires",
            COARSE,
            30.5,
            [
                coarse("embed:8000", "embed", "120%"),
                coarse("half:8000", "half", "50.4%"),
                coarse("again:8000", "again", "60%"),
            ],
        ),
        Alert(
            "reset",
            COARSE,
            45,
            [
                coarse("embed:8000", "embed", "120%"),
                coarse("half:8000", "half", "50.4%"),
                coarse("again:8000", "again", "60%"),
            ],
        ),
    ],
)


def unknown(backend: str) -> Firing:
    """The alert's text."""
    return about(
        backend,
        "info",
        ": the exporter polls it and does not know how many tokens its KV cache holds.",
        "Request capacity and the narrowest backend leave this server out. Look first whether its startup log is "
        "configured and readable (lines parsed), then at its version: from 0.24 on the metrics page says it; else set "
        "kv_cache_capacity_tokens for the backend.",
    )


def disagree(backend: str, tokens: int) -> Firing:
    """The alert's text."""
    return about(
        backend,
        "warning",
        f": two sources of the KV capacity differ; {tokens} tokens are used.",
        "They are more than 1% apart, and ceilings are judged by the more trusted one. Look first whether a configured "
        "value is older than the last restart with other settings, then whether the log is that of another server.",
    )


def knows(backend: str, values: str, contested: str = "0x60", at: str = EXPORTER) -> list[Series]:
    return [
        exporter(ex.KV_CAPACITY, values, at, backend=backend, source="log"),
        exporter(ex.KV_DISAGREE, contested, at, backend=backend),
    ]


FACTS = Group(
    "a capacity that nobody knows, and one that two sources contest",
    [
        *(polled(f"{name}:8000", 60) for name in ("known", "unknown", "late", "contested", "again")),
        polled("native:8000", 60, up=0),
        *knows("known:8000", "1490818x60"),
        *knows("late:8000", "_x29 1490818x30"),
        *knows("contested:8000", "1490818x60", "1x60"),
        *knows("contested:8000", "1490818x60", "0x60", "10.0.0.8:10011"),
        # The exporter restarts, and reads its log again.
        *knows("again:8000", "1490818x20 stale _x4 1490818x40", "1x20 stale _x4 1x40"),
    ],
    alerts=[
        Alert("healthy", UNKNOWN, 10),
        Alert("healthy", DISAGREE, 1),
        Alert("just_short", UNKNOWN, 14.5),
        Alert("fires", UNKNOWN, 15, [unknown("unknown:8000")]),
        Alert("reset", UNKNOWN, 13),
        Alert("reset", UNKNOWN, 25, [unknown("unknown:8000")]),
        Alert("just_short", DISAGREE, 4.5),
        Alert("fires", DISAGREE, 5, [disagree("again:8000", 1490818), disagree("contested:8000", 1490818)]),
        Alert("reset", DISAGREE, 14, [disagree("contested:8000", 1490818)]),
        Alert("reset", DISAGREE, 19, [disagree("again:8000", 1490818), disagree("contested:8000", 1490818)]),
    ],
)


def failing(backend: str, share: str, instance: str = EXPORTER) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "backend": backend, "instance": instance, "job": "tidegauge"},
        f"The exporter {instance} fails to poll {backend}, lately {share} of the time.",
        "The server is reached otherwise, so it is the exporter's way there, its credentials or its timeout. Barriers, "
        "causes and capacity of this backend are missing or doubtful. Look first at tidegauge_scrape_failures_total by "
        "reason, then at tidegauge_scrape_duration_seconds against the timeout.",
    )


def polls(
    backend: str, values: Sequence[float] | str, native: str | None = "1x80", instance: str = EXPORTER
) -> list[Series]:
    """The exporter's polls of a backend, and Prometheus's own."""
    found = exporter(ex.BACKEND_UP, values, instance, backend=backend)
    return [found, up(backend, native)] if native else [found]


POLLS = Group(
    "an exporter that fails on a server that is reached otherwise is told; a server that is down is not its fault",
    [
        *polls("refused:8000", "0x80"),
        *polls("fine:8000", "1x80"),
        *polls("down:8000", "0x80", "0x80"),
        *polls("exporter-only:8000", "0x80", None),
        *polls("two:8000", "0x80"),
        *polls("two:8000", "1x80", None, "10.0.0.8:10011"),
        # A server that was down for six minutes, and one poll in twenty that fails.
        *polls("was-down:8000", "1x12 0x12 1x60", "1x12 0x12 1x60"),
        *polls("seldom:8000", "1x18 0 1x18 0 1x18 0 1x18 0"),
        *polls("begins:8000", "1x39 0x40"),
    ],
    alerts=[
        Alert("just_short", FAILING, 5.5),
        Alert("fires", FAILING, 6, [failing("refused:8000", "100%"), failing("two:8000", "100%")]),
        Alert("fires", FAILING, 18, [failing("refused:8000", "100%"), failing("two:8000", "100%")]),
        Alert(
            "fires",
            FAILING,
            32,
            [
                failing("refused:8000", "100%"),
                failing("two:8000", "100%"),
                failing("begins:8000", "100%"),
            ],
        ),
    ],
)

POLLS_RESTART = Group(
    "neither an exporter nor a server that restarts is a failing poll",
    [
        *polls("a:8000", "1x15 stale _ _ 1x40"),
        *polls("b:8000", "1x15 0x2 1x40", "1x15 0x2 1x40"),
        *polls("c:8000", "0x15 stale _ _ 0x40"),
    ],
    alerts=[
        Alert("healthy", FAILING, 3),
        Alert("reset", FAILING, 7.5, [failing("c:8000", "100%")]),
        Alert("reset", FAILING, 13, [failing("c:8000", "100%")]),
    ],
)


def idle(backend: str, model: str, fleet: str, requests: int) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "backend": backend, "model_name": model, "fleet": fleet},
        f"{model} on {backend} is up and serves nothing, while fleet {fleet} finished {requests} requests.",
        "For 15m it held no request and computed no token; the others carry its share. Look first at the list of "
        "backends of the router or caller, then at the health check that decides who gets requests, then whether the "
        "server was put to sleep.",
    )


def busy(
    host: str, model: str, count: float = 30, *, held: int = 4, minutes: float = 60, restart: int | None = None
) -> list[Series]:
    server = Server(f"{host}:8000", model, [Phase(minutes, [(count, 0)], running=held)], restart=restart)
    return [*server.series(), server.up()]


def nothing(host: str, model: str, held: str, tokens: str) -> list[Series]:
    """A server that computes nothing, by its gauges and its token counter."""
    names = {"instance": f"{host}:8000", "job": "vllm", "model_name": model}
    return [
        *(series(f"vllm:{gauge}", held, **names) for gauge in (vllm.WAITING, vllm.RUNNING)),
        series(f"vllm:{vllm.OUTPUT_TOKENS}", tokens, **names),
        up(f"{host}:8000", "1x120"),
    ]


SERVING = Group(
    "a server without requests is told while its fleet has some",
    [
        *busy("a", "sim"),
        *busy("b", "sim", 0, held=0),
        *busy("c", "sim", 0.1, held=0),
        *busy("d", "sim", 0, held=2),
        *busy("alone", "lonely", 0, held=0),
        *busy("e", "night", 0, held=0),
        *busy("f", "night", 0.6, held=0),
        *busy("g", "big", 60),
        *busy("h", "big", 0, held=0)[:-1],
        up("h:8000", "0x120"),
        # One request that is seen held once, and a server that is new.
        *busy("i", "odd", 60),
        *nothing("j", "odd", "0x9 1 0x110", "9x120"),
        *nothing("new", "sim", "_x20 0x100", "_x20 9x100"),
    ],
    alerts=[
        Alert("healthy", IDLE, 1),
        Alert("just_short", IDLE, 19.5),
        Alert("fires", IDLE, 20, [idle("b:8000", "sim", "sim", 903)]),
        Alert("fires", IDLE, 24, [idle("b:8000", "sim", "sim", 903)]),
        Alert("fires", IDLE, 26, [idle("b:8000", "sim", "sim", 903), idle("j:8000", "odd", "odd", 1800)]),
        Alert("fires", IDLE, 29.5, [idle("b:8000", "sim", "sim", 903), idle("j:8000", "odd", "odd", 1800)]),
        Alert("fires", IDLE, 30, [
            idle("b:8000", "sim", "sim", 903), idle("j:8000", "odd", "odd", 1800), idle("new:8000", "sim", "sim", 903),
        ]),
    ],
)  # fmt: skip

SERVING_RESTART = Group(
    "a server that restarted and gets nothing is told, one that restarted and works is not",
    [*busy("a", "sim", restart=50), *busy("b", "sim", 0, held=0, restart=50)],
    alerts=[
        Alert("reset", IDLE, 50, [idle("b:8000", "sim", "sim", 900)]),
    ],
)

GONE = Group(
    "where all of it was and nothing is left, only what misses it speaks",
    [
        *(one | {"values": one["values"].replace("x50", "x9 stale")} for one in running(MODERN)),
        exporter(ex.BACKEND_UP, "1x9 stale", backend=MODERN["instance"]),
        exporter(ex.KV_CAPACITY, "9x9 stale", backend=MODERN["instance"], source="log"),
        series(rec.PREFIX_HIT.name, "0.5x9 stale", backend=MODERN["instance"], model_name="m"),
    ],
    alerts=[Alert("no_data", name, 40) for name in (MISSING, ESCAPED, COARSE, UNKNOWN, DISAGREE, FAILING, IDLE)],
)

GROUPS = [
    SPELLINGS,
    SPELLINGS_RESTART,
    EDGES,
    FACTS,
    POLLS,
    POLLS_RESTART,
    SERVING,
    SERVING_RESTART,
    GONE,
]
