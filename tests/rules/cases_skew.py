"""Who belongs to which fleet, and by which signals its backends differ."""

from tests.rules.cases_fleet import info, server
from tests.rules.promtool import Group, Series, Value, labels
from tests.rules.servers import Phase, Server, exporter, polled
from tests.rules.steady import Steady
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec


def one(instance: str, late: float, running: int, hits: float, model: str = "sim") -> list[Series]:
    """A server of which *late* of 10 requests a step wait 12 s."""
    names = {"engine": "0", "instance": instance, "job": "vllm", "model_name": model}
    counters = {vllm.PREFIX_HITS: hits, vllm.PREFIX_QUERIES: 1000}
    return [
        *Server(instance, model, [Phase(10, [(10 - late, 0), (late, 12)], running=running, waiting=1)]).series(),
        *Steady(names, counters=counters, steps=20).series(),
    ]


def signals(fleet: str, late: float, running: float, hit: float) -> dict[str, float]:
    """A figure per signal."""
    return {
        labels(fleet=fleet, signal="queue_late"): late,
        labels(fleet=fleet, signal="running"): running,
        labels(fleet=fleet, signal="prefix_hit"): hit,
    }


SIGNALS = Group(
    "each signal has its own odd one out; a twin and a fleet of one are not compared",
    [
        *one("a:8000", 4, 3, 583),
        *one("b:8000", 1, 15, 541),
        *one("c:8000", 2, 9, 560),
        *one("twin:8000", 9, 60, 10),
        *one("alone:8000", 5, 7, 300, "alone"),
        exporter(ex.BACKEND_DISTINCT, "0x20", backend="twin:8000"),
    ],
    [
        Value(rec.SKEW_RATIO, 8, signals("sim", 4, 5, 1.078)),
        Value(rec.SKEW_DIFFERENCE, 8, signals("sim", 0.3, 12, 0.042)),
        Value(rec.SKEW_WORST, 8, {
            labels(fleet="sim", backend="a:8000", model_name="sim", signal="queue_late"): 0.4,
            labels(fleet="sim", backend="b:8000", model_name="sim", signal="running"): 15,
            labels(fleet="sim", backend="b:8000", model_name="sim", signal="prefix_hit"): 0.541,
        }),
    ],
)  # fmt: skip

ZERO = Group(
    "beside a backend with none there is a difference and no ratio",
    [*one("a:8000", 4, 3, 0), *one("b:8000", 0, 0, 500)],
    [
        Value(rec.SKEW_RATIO, 8, {}),
        Value(rec.SKEW_DIFFERENCE, 8, signals("sim", 0.4, 3, 0.5)),
    ],
)

MEMBERS = Group(
    "the exporter names the fleet, else the model does; what only an exporter sees belongs too",
    [
        *server("a:8000", "sim", 5),
        *server("b:8000", "sim", 5),
        *server("b:8000", "chat", 5),
        polled("told:8000", 40),
        exporter(ex.WINDOW_REQUESTS, "50x40", backend="told:8000", model_name="far"),
        info("a:8000", "world"),
        info("a:8000", "world", "10.0.0.8:10011"),
        info("told:8000", ""),
    ],
    [
        Value(rec.FLEET_MEMBER, 8, {
            labels(fleet="world", backend="a:8000", model_name="sim"): 1,
            labels(fleet="sim", backend="b:8000", model_name="sim"): 1,
            labels(fleet="chat", backend="b:8000", model_name="chat"): 1,
            labels(fleet="far", backend="told:8000", model_name="far"): 1,
        }),
    ],
)  # fmt: skip

GAINS = Group(
    "a fleet's shares weigh each backend by the time its requests took, and a gain is share times cut",
    [
        *Server("a:8000", "sim", [Phase(20, [(10, 4)], prefill=1, decode=5, other=1)]).series(),
        *Server("b:8000", "sim", [Phase(20, [(5, 0)], prefill=1, decode=2.5, other=0.5)]).series(),
        *Server("c:8000", "chat", [Phase(20, [(7, 1)], prefill=1, decode=2, other=0)]).series(),
    ],
    [
        # Of 130 s a step: 10 requests of 11 s and 5 of 4 s.
        Value(rec.FLEET_STAGE_SHARE, 16, {
            labels(fleet="sim", stage="queue"): 0.308,
            labels(fleet="sim", stage="prefill"): 0.115,
            labels(fleet="sim", stage="decode"): 0.481,
            labels(fleet="sim", stage="other"): 0.096,
            labels(fleet="chat", stage="queue"): 0.25,
            labels(fleet="chat", stage="prefill"): 0.25,
            labels(fleet="chat", stage="decode"): 0.5,
            labels(fleet="chat", stage="other"): 0,
        }),
        Value(rec.GAIN_CEILING, 16, {
            labels(fleet="sim", stage=stage, cut=cut): value
            for cut, values in {"0.25": (0.077, 0.029, 0.12, 0.024), "0.5": (0.154, 0.058, 0.24, 0.048)}.items()
            for stage, value in zip(("queue", "prefill", "decode", "other"), values, strict=True)
        }, '{fleet="sim"}'),
    ],
)  # fmt: skip

GROUPS = [SIGNALS, ZERO, MEMBERS, GAINS]
