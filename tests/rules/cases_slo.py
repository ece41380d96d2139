"""Service levels: good and judged requests per model, and every window."""

import attrs

from tests.rules.promtool import Group, Series, Value, labels, series
from tests.rules.steady import MODERN, OLD, Steady
from tidegauge import vllm
from tidegauge.catalogue import recorded as rec

TWIN = {**MODERN, "instance": "10.0.0.2:8000"}


def rows(model: str, **values: float) -> dict[str, float]:
    """A figure per service level."""
    return {labels(model_name=model, sli=sli): value for sli, value in values.items()}


def asked(*models: str) -> list[Value]:
    """What is asked of these models where nothing is configured for them: objective, target, and where it is judged."""
    each = {
        rec.SLO_OBJECTIVE: {"ttft": 0.95, "tpot": 0.95, "e2e": 0.95},
        rec.SLO_ASKED: {"ttft": 1, "tpot": 0.05, "e2e": 30},
        rec.SLO_JUDGED: {"ttft": 1, "tpot": 0.05, "e2e": 30},
    }
    return [
        Value(one, 8, {key: value for model in models for key, value in rows(model, **values).items()})
        for one, values in each.items()
    ]


SERVERS = [
    # Within 1 s, 50 ms and 30 s.
    Steady(MODERN, {vllm.TTFT: {0.2: 18, 0.9: 9, 2: 3}, vllm.TPOT: {0.03: 24, 0.06: 6}, vllm.E2E: {20: 15, 100: 15}}),
    Steady(TWIN, {vllm.TTFT: {1: 30}, vllm.TPOT: {0.05: 15, 0.2: 15}, vllm.E2E: {30: 30}}),
    Steady(OLD, {vllm.TTFT: {4: 30}, vllm.E2E: {10: 30}}, edges={vllm.E2E: (10, 30, 60)}),
]

FIVE_MINUTES = Group(
    "the share within the target over all servers of a model; a server without a histogram is not judged by it",
    [one for server in SERVERS for one in server.series()],
    [
        Value(rec.SLO_GOOD, 8, rows("/models/sim", ttft=1.9, tpot=1.3, e2e=1.5) | rows("old", ttft=0, e2e=1)),
        Value(rec.SLO_TOTAL, 8, rows("/models/sim", ttft=2, tpot=2, e2e=2) | rows("old", ttft=1, e2e=1)),
        Value(rec.SLO_5M, 8, rows("/models/sim", ttft=0.95, tpot=0.65, e2e=0.75) | rows("old", ttft=0, e2e=1)),
        Value(rec.SLO_30M, 18, rows("/models/sim", ttft=0.95, tpot=0.65, e2e=0.75) | rows("old", ttft=0, e2e=1)),
    ],
)

ASKED = Group(
    "a model is held to its targets while it is asked and while it is idle, and to none that its servers cannot tell",
    [
        *SERVERS[0].series(),
        *Steady({**MODERN, "model_name": "idle"}, {vllm.TTFT: {1: 0}, vllm.TPOT: {1: 0}, vllm.E2E: {1: 0}}).series(),
        *Steady({**OLD, "instance": "10.0.0.9:8000"}, {vllm.E2E: {10: 30}}).series(),
    ],
    [
        Value(one.recorded, one.at, {**one.samples, **rows("old", e2e=value)})
        for one, value in zip(asked("/models/sim", "idle"), (0.95, 30, 30), strict=True)
    ],
)

GONE = Group(
    "a model whose servers are gone is held to its targets as long as its requests count",
    [
        series(one.name, [2] * 9 + [None] * 200, model_name="sim", sli=sli)
        for one in (rec.SLO_GOOD, rec.SLO_TOTAL)
        for sli in ("ttft", "tpot", "e2e")
    ],
    [attrs.evolve(one, at=30) for one in asked("sim")],
)

IDLE = Group(
    "nobody judged is no ratio",
    Steady(MODERN, {vllm.TTFT: {1: 0}, vllm.TPOT: {1: 0}, vllm.E2E: {1: 0}}).series(),
    [
        Value(rec.SLO_TOTAL, 8, rows("/models/sim", ttft=0, tpot=0, e2e=0)),
        Value(rec.SLO_5M, 8, {}),
        Value(rec.SLO_1H, 8, {}),
    ],
)

# Three days and a bit, in steps of a quarter of an hour, latest last. The samples at the far end of a window have no
# requests: the generations of Prometheus disagree whether it is inside. Two requests a step otherwise, or four:
# (steps, share within the target).
BACKWARDS = [
    (2, 0.9),
    (0, 0),
    (1, 0.8),
    (0, 0),
    (3, 0.6),
    (0, 0),
    (15, 1),
    (0, 0),
    (71, 0.5),
    (0, 0),
    (191, 1),
    (0, 0),
    (12, 0.5),
]


def history(requests: float) -> tuple[list[float], list[float]]:
    """Good and judged requests per second, oldest first."""
    good, total = [], []
    for steps, share in BACKWARDS:
        good += [requests * share] * steps or [0]
        total += [requests] * steps or [0]
    return good[::-1], total[::-1]


def recorded_before(model: str, sli: str, requests: float) -> list[Series]:
    good, total = history(requests)
    names = {"model_name": model, "sli": sli}
    return [series(rec.SLO_GOOD.name, good, **names), series(rec.SLO_TOTAL.name, total, **names)]


LAST = (len(history(1)[0]) - 1) * 15
WINDOWS = Group(
    "each window weighs all of its requests alike, and none from before it",
    [*recorded_before("sim", "ttft", 2), *recorded_before("sim", "e2e", 4)],
    [
        Value(one, LAST, rows("sim", ttft=value, e2e=value))
        for one, value in {
            rec.SLO_5M: 0.9,
            rec.SLO_30M: 0.9,
            rec.SLO_1H: 0.867,  # (2 x 0.9 + 0.8) / 3
            rec.SLO_2H: 0.733,  # (2.6 + 3 x 0.6) / 6
            rec.SLO_6H: 0.924,  # (4.4 + 15) / 21
            rec.SLO_1D: 0.597,  # (19.4 + 71 x 0.5) / 92
            rec.SLO_3D: 0.869,  # (54.9 + 191) / 283
        }.items()
    ],
    step=15 * 60,
)

GROUPS = [FIVE_MINUTES, ASKED, GONE, IDLE, WINDOWS]
