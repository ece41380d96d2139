"""Skew: the case's two windows as two fleets, and everything that must not be compared."""

from collections.abc import Sequence

from tests.rules.promtool import Alert, Firing, Group, Series, Value, labels
from tests.rules.servers import Phase, Server, exporter, polled
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

SKEW = "VllmBackendSkew"


def server(instance: str, model: str, e2e: float, *, requests: float = 10, restart: int | None = None) -> list[Series]:
    """A server whose requests take *e2e* seconds, nearly all of it decode."""
    phase = Phase(20, [(requests, 0.05)], prefill=0.5, decode=e2e - 0.65, other=0.1)
    return Server(instance, model, [phase], restart=restart).series()


def skewed(fleet: str, ratio: str, slowest: str, e2e: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "fleet": fleet},
        f"fleet {fleet}: the slowest backend {slowest} takes {ratio} times as long as the fastest.",
        f"A request takes {e2e} on average there. Look first at its queue share and its prompt lengths against the "
        f"others', "
        "then at its prefix-cache hit rate: sticky routing under a tight ceiling piles long prompts up on one server.",
    )


def row(fleet: str, backend: str, model: str) -> str:
    return labels(fleet=fleet, backend=backend, model_name=model)


NATIVE = Group(
    "a fleet is the backends of one model: 2.70 is skewed, 1.05 is not",
    [
        *server("a:8000", "cap16", 32.91),
        *server("b:8000", "cap16", 12.18),
        *server("a:8000", "cap28", 17.90),
        *server("b:8000", "cap28", 17.05),
        *server("c:8000", "alone", 90),
        # Six requests in the window are no evidence.
        *server("d:8000", "few", 40, requests=0.2),
        *server("e:8000", "few", 10),
        *server("f:8000", "just-under", 14.9),
        *server("g:8000", "just-under", 10),
    ],
    [
        Value(rec.FLEET_SKEW, 16, {
            labels(fleet="cap16"): 2.702,
            labels(fleet="cap28"): 1.05,
            labels(fleet="just-under"): 1.49,
        }),
        Value(rec.FLEET_SLOWEST, 16, {
            row("cap16", "a:8000", "cap16"): 32.91,
            row("cap28", "a:8000", "cap28"): 17.9,
            row("alone", "c:8000", "alone"): 90,
            row("few", "e:8000", "few"): 10,
            row("just-under", "f:8000", "just-under"): 14.9,
        }),
        Value(rec.FLEET_E2E, 16, {
            row("cap16", "a:8000", "cap16"): 32.91,
            row("cap16", "b:8000", "cap16"): 12.18,
        }, '{fleet="cap16"}'),
    ],
    [
        Alert("just_short", SKEW, 10.5),
        Alert("fires", SKEW, 11, [skewed("cap16", "2.70", "a:8000", "32.91s")]),
    ],
)  # fmt: skip


def info(backend: str, fleet: str, instance: str = "10.0.0.9:10011") -> Series:
    """The exporter's word on a backend's fleet."""
    return exporter(ex.BACKEND_INFO, "1x40", instance, backend=backend, fleet=fleet, version="0.32.0")


def told(backend: str, model: str, e2e: float, requests: int = 200) -> list[Series]:
    """The exporter's end-to-end mean of a backend."""
    subject = {"backend": backend, "model_name": model}
    return [
        polled(backend, 40),
        exporter(ex.E2E_SECONDS, f"{e2e}x40", **subject),
        exporter(ex.WINDOW_REQUESTS, f"{requests}x40", **subject),
    ]


EXPORTED = Group(
    "the exporter's fleets: two names of one model compared, a twin and a backend with too few requests left out",
    [
        *told("a:8000", "/models/sim", 30),
        *told("b:8000", "sim", 12),
        *told("c:8000", "sim", 2),
        *told("d:8000", "sim", 1, requests=19),
        *(info(f"{one}:8000", "world") for one in "abcd"),
        exporter(ex.BACKEND_DISTINCT, "0x40", backend="c:8000"),
        exporter(ex.BACKEND_DISTINCT, "1x40", backend="a:8000"),
    ],
    [
        Value(rec.FLEET_SKEW, 12, {labels(fleet="world"): 2.5}),
        Value(rec.FLEET_SLOWEST, 12, {row("world", "a:8000", "/models/sim"): 30}),
    ],
    [Alert("just_short", SKEW, 9.5), Alert("fires", SKEW, 10, [skewed("world", "2.50", "a:8000", "30s")])],
)

BOTH = Group(
    "native figures join the exporter's fleet names; exporters that disagree on a fleet do not break the rule",
    [
        *server("a:8000", "sim", 24),
        *server("b:8000", "sim", 12),
        *server("c:8000", "sim", 12),
        *server("c:8000", "other", 12),
        *(info(f"{one}:8000", "world") for one in "ab"),
        *(info(f"{one}:8000", "world", "10.0.0.8:10011") for one in "ab"),
        info("c:8000", "left"),
        info("c:8000", "right", "10.0.0.8:10011"),
    ],
    [Value(rec.FLEET_SKEW, 16, {labels(fleet="world"): 2})],
    [Alert("fires", SKEW, 16, [skewed("world", "2.00", "a:8000", "24s")])],
)


def pair(slow: float, **more: int) -> list[Series]:
    """Two servers of one model."""
    return [*server("a:8000", "sim", slow, **more), *server("b:8000", "sim", 12, **more)]


HEALTHY = Group("even backends are silent", pair(13), alerts=[Alert("healthy", SKEW, 15)])
IDLE = Group(
    "idle backends are silent",
    [*server("a:8000", "sim", 24, requests=0), *server("b:8000", "sim", 12, requests=0)],
    [Value(rec.FLEET_SKEW, 16, {})],
    [Alert("no_data", SKEW, 15)],
)
RESTART: Sequence[Group] = (
    Group("a restart does not make skew", pair(13, restart=20), alerts=[Alert("reset", SKEW, 15)]),
    Group(
        "a restart does not hide skew",
        pair(30, restart=20),
        alerts=[Alert("reset", SKEW, 15, [skewed("sim", "2.50", "a:8000", "30s")])],
    ),
)

GROUPS = [NATIVE, EXPORTED, BOTH, HEALTHY, IDLE, *RESTART]
