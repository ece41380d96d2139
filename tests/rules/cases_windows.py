"""Every recorded series of vLLM's own over its window, and only where there are enough requests."""

from collections.abc import Callable, Iterable
from math import floor

import attrs

from tests.rules.promtool import Group, Value, labels
from tests.rules.pulses import AT, STEPS, Pulsed
from tests.rules.servers import polled
from tidegauge import vllm
from tidegauge.catalogue import recorded as rec
from tidegauge.catalogue.series import Recorded

EVEN = {"now": 40, "five": 30, "ten": 30, "fifteen": 30, "thirty": 30}
COUNTERS = {
    vllm.PROMPT_TOKENS: 100,
    vllm.OUTPUT_TOKENS: 10,
    vllm.PREEMPTIONS: 1,
    vllm.PREFIX_QUERIES: 10,
    vllm.PREFIX_HITS: 5,
}
MAIN = Pulsed("a", "m1", EVEN, engines=("0", "1"), counters=COUNTERS)
SECOND = Pulsed("a", "m2", EVEN, slower=1.2, counters=COUNTERS)
TWIN = Pulsed("b", "m1", EVEN, slower=0.9, counters=COUNTERS)
# Enough in five minutes, though not in half of them; too few, though not in twice as many. Likewise in a quarter of an
# hour.
SOME = Pulsed("some", "m3", {"now": 12, "five": 14, "ten": 30})
FEW = Pulsed("few", "m4", {"now": 7, "five": 7, "ten": 20})
SOME_15 = Pulsed("some15", "m5", {"now": 6, "five": 6, "ten": 6, "fifteen": 8})
FEW_15 = Pulsed("few15", "m6", {"now": 4, "five": 4, "ten": 4, "fifteen": 4, "thirty": 30})
# Nobody waits: what is on time has its own window.
QUICK = Pulsed("quick", "m7", EVEN, slower=0.01)
# Just enough; one that waits; one that does not; and waits of less than a second.
EXACT = Pulsed("exact", "m8", {"now": 10, "five": 10, "ten": 5, "thirty": 9})
EXACT_15 = Pulsed("exact15", "m9", {"now": 10, "five": 4, "ten": 3, "fifteen": 3, "thirty": 9})
ONE_LATE = Pulsed("one-late", "m10", {"now": 50, "five": 1})
ONE_ON_TIME = Pulsed("one-on-time", "m11", {"now": 1, "five": 50})
SLIGHT = Pulsed("slight", "m12", EVEN, slower=0.07)
OLD = Pulsed("old", "m13", EVEN, old=True, counters=COUNTERS)
OLD_SOME = attrs.evolve(SOME, host="old-some", old=True)
OLD_FEW = attrs.evolve(FEW, host="old-few", old=True)
# Prefill of the far half of a quarter of an hour is longer than the whole requests of the near half.
EARLIER = Pulsed("earlier", "m14", {"now": 2, "fifteen": 30}, slower=1.2)
SERVERS = [
    MAIN,
    SECOND,
    TWIN,
    QUICK,
    SOME,
    FEW,
    SOME_15,
    FEW_15,
    EXACT,
    EXACT_15,
    ONE_LATE,
    ONE_ON_TIME,
    SLIGHT,
    OLD,
    OLD_SOME,
    OLD_FEW,
    EARLIER,
]
BUSY = [MAIN, SECOND, TWIN]
LEAST = 20
STAGES = {"queue": vllm.QUEUE, "prefill": vllm.PREFILL, "decode": vllm.DECODE}
Figure = Callable[[Pulsed], float]


def row(one: Pulsed, **extra: str) -> str:
    """The label set of a figure about a server."""
    return labels(backend=f"{one.host}:8000", model_name=one.model, **extra)


def exact(recorded: Recorded, rows: dict[str, float], matcher: str = "") -> Value:
    """A figure to six digits after the point."""
    return Value(recorded, AT, {key: floor(value * 1e6 + 0.5) / 1e6 for key, value in rows.items()}, matcher, 1e-6)


def coarse(recorded: Recorded, to: float, rows: dict[str, float], matcher: str = "") -> Value:
    """A count or rate, as coarse as the generations agree."""
    return Value(recorded, AT, {key: round(round(value / to) * to, 6) for key, value in rows.items()}, matcher, to)


def stage(one: Pulsed, name: str) -> float:
    if name != "other":
        return one.mean(STAGES[name], "15m")
    return max(one.mean(vllm.E2E, "15m") - sum(one.mean(family, "15m") for family in STAGES.values()), 0)


def means(servers: Iterable[Pulsed]) -> list[Value]:
    """Stages over a quarter of an hour."""
    servers = list(servers)
    every = [(one, name) for one in servers for name in (*STAGES, "other")]
    return [
        exact(rec.E2E_MEAN, {row(one): one.mean(vllm.E2E, "15m") for one in servers}),
        exact(rec.STAGE_MEAN, {row(one, stage=name): stage(one, name) for one, name in every}),
        exact(
            rec.STAGE_SHARE,
            {row(one, stage=name): stage(one, name) / one.mean(vllm.E2E, "15m") for one, name in every},
        ),
    ]


def late(one: Pulsed) -> float:
    return 1 - one.upto(vllm.QUEUE, "5m", 0.3) / one.count("5m")


def late_seconds(one: Pulsed) -> float:
    """No less than the edge, which all of the late ones have waited."""
    on_time = one.upto(vllm.QUEUE, "5m", 0.3)
    return max((one.total(vllm.QUEUE, "5m") - 0.3 * on_time) / (one.count("5m") - on_time), 0.3)


def split(servers: Iterable[Pulsed], poisoned: Iterable[Pulsed] = ()) -> list[Value]:
    """The split over five minutes; nothing that rests on sums for those whose sums cannot be true."""
    servers = [one for one in servers if one.count("5m") >= LEAST]
    trusted = [one for one in servers if one not in poisoned]
    waiting = [one for one in trusted if late(one) > 0]

    def of(recorded: Recorded, who: Iterable[Pulsed], figure: Figure) -> Value:
        return exact(recorded, {row(one, where="server"): figure(one) for one in who})

    return [
        of(rec.LATE_RATIO, servers, late),
        of(rec.LATE_SECONDS, waiting, late_seconds),
        of(rec.WAVES, servers, lambda one: 1 / (1 - late(one))),
        of(rec.IMPACT, trusted, lambda one: one.mean(vllm.QUEUE, "5m") / one.mean(vllm.E2E, "5m")),
        of(rec.SPLIT, waiting, lambda one: late_seconds(one) / 0.3),
        *(
            exact(
                rec.QUEUE_TIME,
                {row(one, where="server", quantile=q): one.clamped(float(q), vllm.QUEUE, "5m", 0.3) for one in servers},
                f'{{quantile="{q}"}}',
            )
            for q in ("0.5", "0.9")
        ),
    ]


def quantiles(recorded: Recorded, family: str, window: str, edge: float, *orders: str) -> list[Value]:
    """Quantiles of a histogram, each by itself."""
    who = [one for one in SERVERS if one.count(window) >= LEAST and not (one.old and family == vllm.TPOT)]
    return [
        exact(
            recorded,
            {row(one, quantile=q): one.clamped(float(q), family, window, edge) for one in who},
            f'{{quantile="{q}"}}',
        )
        for q in orders
    ]


def each(value: float) -> dict[str, float]:
    """The same for every busy server."""
    return {row(one): value for one in BUSY}


THEM = '{model_name=~"m1|m2"}'
WINDOWS = Group(
    "every figure of vLLM's own series covers its window, no more and no less, with two engines and with two models",
    [one for server in SERVERS for one in server.series()],
    [
        *means(SERVERS),
        *split(SERVERS),
        *quantiles(rec.TTFT_5M, vllm.TTFT, "5m", 0, "0.5", "0.9", "0.99"),
        *quantiles(rec.TPOT_5M, vllm.TPOT, "5m", 0.01, "0.5", "0.9", "0.99"),
        *quantiles(rec.ITL_5M, vllm.ITL, "5m", 0.01, "0.5", "0.9", "0.99"),
        *quantiles(rec.E2E_5M, vllm.E2E, "5m", 0.3, "0.5", "0.9", "0.99"),
        *quantiles(rec.PROMPT_LENGTH, vllm.PROMPT_LENGTH, "15m", 0, "0.5", "0.95", "0.99"),
        *quantiles(rec.OUTPUT_LENGTH, vllm.OUTPUT_LENGTH, "15m", 0, "0.5", "0.95", "0.99"),
        # 70 in five minutes, or 78; 40 in half of them, 100 in twice as many.
        coarse(rec.QUEUE_REQUESTS_5M, 40, each(70), THEM),
        coarse(rec.QUEUE_ON_TIME_5M, 40, {row(QUICK): 70}, '{model_name="m7"}'),
        # 130 in a quarter of an hour, or 134; 100 in half of it, 160 in twice as much.
        coarse(rec.WINDOW_REQUESTS, 30, each(130), THEM),
        # 40 and 44, 10 and 13, 65 and 69 requests' worth.
        coarse(rec.PROMPT_RATE, 8, each(40 * 100 / 300), THEM),
        coarse(rec.OUTPUT_RATE, 0.8, each(40 * 10 / 300), THEM),
        coarse(rec.PREEMPTION_RATE, 0.08, each(40 / 300), THEM),
        coarse(rec.REQUEST_RATE, 0.08, each(40 / 300), THEM),
        coarse(rec.FLEET_FINISHED_RATE, 0.16, {labels(fleet="m1", finished_reason="stop"): 80 / 300}, '{fleet="m1"}'),
        exact(rec.PREFIX_HIT, {**each(0.5), row(OLD): 0.5}),
        # 10 requests' worth in two minutes; nothing in one, 40 in four.
        coarse(rec.PROGRESS, 12, each(10 * 111 / 120), THEM),
    ],
)


TOKENS = Pulsed("tokens", "m1", EVEN, counters={vllm.OUTPUT_TOKENS: 100})
ANSWERS = Pulsed("answers", "m1", EVEN)
MOVES = Group(
    "tokens that come and requests that end within two minutes are progress, each by itself",
    [*TOKENS.series(), *ANSWERS.series()],
    [
        coarse(rec.PROGRESS, 8, {row(TOKENS): 10 * 101 / 120}, '{backend="tokens:8000"}'),
        coarse(rec.PROGRESS, 0.08, {row(ANSWERS): 10 / 120}, '{backend="answers:8000"}'),
    ],
)


def poisoned(host: str, *at: str, restarts: tuple[str, ...] = (), model: str = "m1") -> Pulsed:
    return Pulsed(host, model, EVEN, poisoned=at, restarts=restarts)


# Sums that went back within five minutes, or a quarter of an hour, make no mean; those of before do no harm. Sums that
# went back with their counts are those of a restart.
BAD_5M = [poisoned("p1", "five"), poisoned("p3", "five", model="m2")]
BAD_15M = [poisoned("p4", "fifteen"), poisoned("p6", "ten")]
GOOD = [
    poisoned("p7", "thirty"),
    poisoned("r1", restarts=("five",)),
    # The other model of a server whose sums are bad, and an engine beside another.
    poisoned("p3"),
]
POISONED = Group(
    "sums that go back make no mean, for as long as they are in its window, of their own model and server only",
    [one for server in (*BAD_5M, *BAD_15M, *GOOD) for one in server.series()],
    [*means(GOOD), *split([*BAD_5M, *BAD_15M, *GOOD], BAD_5M)],
)

RESTARTED = [poisoned("p2", "five", restarts=("ten",)), poisoned("p5", "fifteen", restarts=("thirty",))]
NO_EXCUSE = Group(
    "a restart of before the window excuses no sum that goes back in it",
    [one for server in RESTARTED for one in server.series()],
    [
        Value(rec.LATE_SECONDS, AT, {}, '{backend="p2:8000"}'),
        Value(rec.IMPACT, AT, {}, '{backend="p2:8000"}'),
        Value(rec.E2E_MEAN, AT, {}),
        Value(rec.STAGE_MEAN, AT, {}),
    ],
)


def only(host: str, family: str, at: str, **more: tuple[str, ...]) -> Pulsed:
    """A server of which one family's sums go back."""
    return attrs.evolve(poisoned(host, at, **more), families=(family,))


HALF_BAD = [
    only("q1", vllm.QUEUE, "five"),
    only("q2", vllm.QUEUE, "five", restarts=("ten",)),
    only("e1", vllm.E2E, "five"),
    only("e2", vllm.E2E, "five", restarts=("ten",)),
    attrs.evolve(only("both", vllm.E2E, "five"), model="m2"),
]
HALF_GOOD = [only("q3", vllm.QUEUE, "ten"), only("e3", vllm.E2E, "ten"), poisoned("both")]
ONE_FAMILY = Group(
    "a share needs both of its sums to be true, in its own window, model by model",
    [one for server in (*HALF_BAD, *HALF_GOOD) for one in server.series()],
    [
        exact(
            rec.IMPACT,
            {row(one, where="server"): one.mean(vllm.QUEUE, "5m") / one.mean(vllm.E2E, "5m") for one in HALF_GOOD},
        ),
    ],
)

RESTART = poisoned("r2", restarts=("fifteen",))
MEANS_LAST = Group("means of a quarter of an hour outlive a restart in it", RESTART.series(), means([RESTART]))

COVERED = attrs.evolve(MAIN, host="covered")
UNREACHED = attrs.evolve(TWIN, host="unreached", model="m2")
NEVER = attrs.evolve(SECOND, host="never")
PREFERRED = Group(
    "an exporter that reaches a server and says nothing of it is not overruled; one that does not reach it has no say",
    [
        *(one for server in (COVERED, UNREACHED, NEVER) for one in server.series()),
        polled("covered:8000", STEPS),
        polled("unreached:8000", STEPS, up=0),
    ],
    [
        *means([UNREACHED, NEVER]),
        *split([UNREACHED, NEVER]),
        coarse(rec.WINDOW_REQUESTS, 30, {row(UNREACHED): 130, row(NEVER): 130}),
        Value(rec.ABORTED, AT, {labels(backend="unreached:8000"): 0, labels(backend="never:8000"): 0}),
    ],
)

GROUPS = [
    attrs.evolve(group, every=round(AT * 60))
    for group in (WINDOWS, MOVES, POISONED, NO_EXCUSE, ONE_FAMILY, MEANS_LAST, PREFERRED)
]
