"""Stage means and shares: the case's table, at the case's numbers, beside a server with other ones."""

from tests.rules.promtool import Group, Series, Value, labels, series
from tests.rules.servers import EDGES, Phase, Server, exporter, polled
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

CASE = {"backend": "10.0.0.1:8000", "model_name": "/models/sim"}
OTHER = {"backend": "10.0.0.2:8000", "model_name": "chat"}

# 528 requests in 15 minutes: mean wait 3.75 s, p50 under 0.3 s, p90 30 s.
CASE_WAITS = [(17.6 * 0.88, 0), (17.6 * 0.02, 25), (17.6 * 0.1, 32.5)]
CASE_SERVER = Server(
    CASE["backend"], CASE["model_name"], [Phase(20, CASE_WAITS, prefill=2.78, decode=13.72, other=0.22, running=7)]
)
OTHER_SERVER = Server(
    OTHER["backend"], OTHER["model_name"], [Phase(20, [(10, 0.1)], prefill=0.2, decode=0.6, other=0.1)]
)

CASE_MEANS = {"queue": 3.75, "prefill": 2.78, "decode": 13.72, "other": 0.22}
CASE_SHARES = {"queue": 0.183, "prefill": 0.136, "decode": 0.67, "other": 0.011}
OTHER_MEANS = {"queue": 0.1, "prefill": 0.2, "decode": 0.6, "other": 0.1}


def stages(subject: dict[str, str], values: dict[str, float]) -> dict[str, float]:
    """Label sets by stage."""
    return {labels(stage=stage, **subject): value for stage, value in values.items()}


def both(case: float, other: float) -> dict[str, float]:
    """One figure of each server."""
    return {labels(**CASE): case, labels(**OTHER): other}


NATIVE = Group(
    "the case's table from vLLM's series alone",
    [*CASE_SERVER.series(), *OTHER_SERVER.series()],
    [
        Value(rec.STAGE_MEAN, 16, stages(CASE, CASE_MEANS) | stages(OTHER, OTHER_MEANS)),
        Value(rec.STAGE_SHARE, 16, stages(CASE, CASE_SHARES) | stages(OTHER, OTHER_MEANS)),
        Value(rec.E2E_MEAN, 16, both(20.47, 1)),
        Value(rec.WINDOW_REQUESTS, 16, both(528, 300)),
        Value(rec.QUEUE_TIME, 16, {
            labels(where="server", quantile="0.5", **CASE): 0.3,
            labels(where="server", quantile="0.9", **CASE): 30,
        }, '{model_name="/models/sim"}'),
    ],
)  # fmt: skip


def told(subject: dict[str, str], means: dict[str, float], instance: str = "10.0.0.9:10011") -> list[Series]:
    """The exporter's stage figures of one backend."""
    e2e = sum(means.values())
    return [
        exporter(ex.STAGE_SECONDS, f"{value}x40", instance, stage=stage, **subject) for stage, value in means.items()
    ] + [
        exporter(ex.E2E_SECONDS, f"{e2e}x40", instance, **subject),
        exporter(ex.WINDOW_REQUESTS, "77x40", instance, **subject),
    ]


EXPORTED_MEANS = {"queue": 1, "prefill": 2, "decode": 6, "other": 1}

BOTH = Group(
    "the exporter's stages where it covers the backend, the native ones elsewhere; the caller's stage is not a "
    "server's",
    [
        *CASE_SERVER.series(),
        *OTHER_SERVER.series(),
        polled(CASE["backend"], 40),
        *told(CASE, EXPORTED_MEANS),
        exporter(ex.STAGE_SECONDS, "9x40", stage="client", fleet="sim"),
    ],
    [
        Value(rec.BACKEND_COVERED, 16, {labels(backend=CASE["backend"]): 1}),
        Value(rec.STAGE_MEAN, 16, stages(CASE, EXPORTED_MEANS) | stages(OTHER, OTHER_MEANS)),
        Value(
            rec.STAGE_SHARE,
            16,
            stages(CASE, {"queue": 0.1, "prefill": 0.2, "decode": 0.6, "other": 0.1}) | stages(OTHER, OTHER_MEANS),
        ),
        Value(rec.E2E_MEAN, 16, both(10, 1)),
        Value(rec.WINDOW_REQUESTS, 16, both(77, 300)),
    ],
)

TWO_EXPORTERS = Group(
    "two exporters give one row per stage, whose shares still add up",
    [
        *told(CASE, EXPORTED_MEANS, "10.0.0.8:10011"),
        *told(CASE, {"queue": 2, "prefill": 2, "decode": 14, "other": 2}, "10.0.0.9:10011"),
        polled(CASE["backend"], 40),
    ],
    [
        Value(rec.STAGE_MEAN, 16, stages(CASE, {"queue": 1.5, "prefill": 2, "decode": 10, "other": 1.5})),
        Value(rec.STAGE_SHARE, 16, stages(CASE, {"queue": 0.1, "prefill": 0.133, "decode": 0.667, "other": 0.1})),
    ],
)

RESIDUAL = Group(
    "the residual is never below 0, and a server that lacks a stage has no residual",
    [
        *Server("a:1", "clocks", [Phase(8, [(10, 1)], prefill=1, decode=3, other=-0.4)]).series(),
        *(
            one
            for one in Server("b:1", "old", [Phase(8, [(10, 1)], prefill=1, decode=3, other=1)]).series()
            if "prefill" not in one["series"]
        ),
    ],
    [
        Value(
            rec.STAGE_MEAN,
            6,
            stages({"backend": "a:1", "model_name": "clocks"}, {"queue": 1, "prefill": 1, "decode": 3, "other": 0})
            | stages({"backend": "b:1", "model_name": "old"}, {"queue": 1, "decode": 3}),
        ),
        Value(
            rec.STAGE_SHARE,
            6,
            stages({"backend": "b:1", "model_name": "old"}, {"queue": 0.167, "decode": 0.5}),
            '{model_name="old"}',
        ),
    ],
)

RESTART = Group(
    "a restart inside the window leaves the means alone",
    [*Server("a:1", "m", [Phase(8, [(10, 1)], prefill=0.5, decode=3, other=0.5)], restart=8).series()],
    [
        Value(
            rec.STAGE_MEAN,
            6,
            stages({"backend": "a:1", "model_name": "m"}, {"queue": 1, "prefill": 0.5, "decode": 3, "other": 0.5}),
        ),
        Value(rec.E2E_MEAN, 6, {labels(backend="a:1", model_name="m"): 5}),
    ],
)

STEADY = {"queue": 1, "prefill": 2, "decode": 5, "other": 1}
QUICK = {"queue": 0.1, "prefill": 2.1, "decode": 0.1, "other": 0.1}
POISON_STEP = 10
"""Minute 5: in the window of a quarter of an hour at minute 16, not in half of it, and not at minute 22."""


def at_work(host: str, model: str, means: dict[str, float]) -> Server:
    """300 requests in a quarter of an hour."""
    phase = Phase(24, [(10, means["queue"])], prefill=means["prefill"], decode=means["decode"], other=means["other"])
    return Server(host, model, [phase])


def from_step(one: Series, step: int, more: float) -> Series:
    """A counter to which something is added at a step."""
    values = [float(value) + more * (at >= step) for at, value in enumerate(one["values"].split())]
    return {**one, "values": " ".join(f"{value:.12g}" for value in values)}


def poisoned(server: Server, seconds: float) -> list[Series]:
    """The server, of whose requests one has another prefill time by that much."""
    return [
        from_step(one, POISON_STEP, seconds) if f"{vllm.PREFILL}_sum" in one["series"] else one
        for one in server.series()
    ]


def buckets(server: Server, family: str, seconds: float, odd: float = 0, step: int = POISON_STEP) -> list[Series]:
    """Buckets of requests that take *seconds* each; one at a step takes *odd* instead."""
    names = {"engine": "0", "instance": server.instance, "job": "vllm", "model_name": server.model}
    found = []
    for edge in (*EDGES, float("inf")):
        steady = [10.0 * at * (seconds <= edge) for at in range(49)]
        shift = (odd <= edge) - (seconds <= edge) if odd else 0
        name = f"vllm:{family}_bucket"
        one = series(name, steady, **names, le="+Inf" if edge == float("inf") else str(float(edge)))
        found.append(from_step(one, step, shift))
    return found


# Hosts that are up for a month, a quarter of an hour and three minutes: the last shows in the buckets only.
LONG_UP, SHORT_UP, JUST_UP = (at_work(host, "poison", STEADY) for host in ("long:1", "short:1", "just:1"))
SOUND = at_work("sound:1", "poison", {"queue": 1, "prefill": 4, "decode": 14, "other": 1})
CLEAN = at_work("clean:1", "clean", QUICK)
POISONED = Group(
    "the uptime of a host that is booked as prefill makes no stages and no gains, of its own server and window only",
    [
        *poisoned(LONG_UP, 3e6),
        *poisoned(SHORT_UP, 1000),
        *poisoned(JUST_UP, 200),
        *buckets(JUST_UP, vllm.PREFILL, 2, odd=202),
        # A request of before the window that took longer.
        *buckets(JUST_UP, vllm.E2E, 9, odd=500, step=1),
        *SOUND.series(),
        # Prefill and whole request in one bucket.
        *CLEAN.series(),
        *buckets(CLEAN, vllm.PREFILL, 2.1),
        *buckets(CLEAN, vllm.E2E, 2.4),
    ],
    [
        Value(
            rec.STAGE_MEAN,
            16,
            stages({"backend": "sound:1", "model_name": "poison"}, {"queue": 1, "prefill": 4, "decode": 14, "other": 1})
            | stages({"backend": "clean:1", "model_name": "clean"}, QUICK),
        ),
        Value(
            rec.STAGE_SHARE,
            16,
            stages(
                {"backend": "sound:1", "model_name": "poison"},
                {"queue": 0.05, "prefill": 0.2, "decode": 0.7, "other": 0.05},
            ),
            '{model_name="poison"}',
        ),
        Value(
            rec.FLEET_STAGE_SHARE,
            16,
            stages({"fleet": "poison"}, {"queue": 0.05, "prefill": 0.2, "decode": 0.7, "other": 0.05}),
            '{fleet="poison"}',
        ),
        Value(
            rec.GAIN_CEILING, 16, {labels(fleet="poison", stage="prefill", cut="0.5"): 0.1},
            '{fleet="poison",stage="prefill",cut="0.5"}',
        ),
        Value(
            rec.STAGE_MEAN,
            22,
            {
                labels(backend=f"{host}:1", model_name="poison", stage="prefill"): mean
                for host, mean in (("long", 2), ("short", 2), ("just", 2), ("sound", 4))
            },
            '{model_name="poison",stage="prefill"}',
        ),
        # 300 requests of 9 s on three servers, and 300 of 20 s.
        Value(
            rec.FLEET_STAGE_SHARE,
            22,
            {labels(fleet="poison", stage="prefill"): round((3 * 2 + 4) / (3 * 9 + 20), 3)},
            '{fleet="poison",stage="prefill"}',
        ),
    ],
)  # fmt: skip

GROUPS = [NATIVE, BOTH, TWO_EXPORTERS, RESIDUAL, RESTART, POISONED]
