"""Budget burn of the three service levels: every rate, its hold, both of its windows and its least traffic."""

from collections.abc import Iterable

from tests.rules.cases_alerts_compute import restarted
from tests.rules.promtool import Alert, Firing, Group, Series, series
from tests.rules.steady import MODERN, OLD, RAY, Steady
from tidegauge import vllm
from tidegauge.catalogue import recorded as rec

NAMES = {"ttft": "VllmTTFTBudgetBurn", "tpot": "VllmTPOTBudgetBurn", "e2e": "VllmE2EBudgetBurn"}
SAYS = {
    "ttft": ("got their first token later than 1 s", "1 s"),
    "tpot": ("took longer per token than 0.05 s", "0.05 s"),
    "e2e": ("took longer than 30 s", "30 s"),
}
LOOK = {
    "ttft": "Look first at the share of the queue, then at prefill: prompt lengths and the prefix hit.",
    "tpot": "Look first at requests running (the batch), then at preemptions, then at long prompts that share the "
    "steps.",
    "e2e": "Look first at which stage holds the time, then at output lengths against those of the week before.",
}
SHORT = {"1h": "5m", "6h": "30m", "1d": "2h", "3d": "6h"}
SEVERITY = {"1h": "critical", "6h": "critical", "1d": "warning", "3d": "warning"}


def burns(sli: str, model: str, window: str, share: str, rate: str) -> Firing:
    """The alert's text."""
    says, target = SAYS[sli]
    return Firing(
        {"severity": SEVERITY[window], "window": window, "model_name": model, "sli": sli},
        f"{model}: {share} of the requests {says} within {window}; the error budget burns {rate} times too fast.",
        f"The objective is 95% within {target}, and the last {SHORT[window]} miss it as well. {LOOK[sli]}",
    )


def judged(model: str, good: Iterable[float] | str, total: Iterable[float] | str) -> list[Series]:
    """Good and judged requests per second as recorded, for all three."""
    return [
        series(one.name, values, model_name=model, sli=sli)
        for sli in NAMES
        for one, values in ((rec.SLO_GOOD, good), (rec.SLO_TOTAL, total))
    ]


def each(kind: str, at: float, *rows: tuple[str, str, str, str]) -> list[Alert]:
    """What fires of each of the three at a time: (model, window, share late, rate)."""
    return [Alert(kind, name, at, [burns(sli, *row) for row in rows]) for sli, name in NAMES.items()]  # type: ignore[arg-type]


FAST = Group(
    "the fastest rate pages within minutes, if both windows burn and there are requests",
    [
        *judged("burning", "0.2x150", "1x150"),
        *judged("nearly", "0.3x150", "1x150"),
        *judged("over", "0.2x60 1x90", "1x150"),
        *judged("has-begun", "1x100 0.2x50", "1x150"),
        *judged("all-good", "1x150", "1x150"),
        *judged("too-few", "0x150", "0.0052x150"),
        *judged("few", "0x150", "0.0058x150"),
    ],
    alerts=[
        *each("just_short", 1.5),
        *each(
            "fires", 2, ("burning", "1h", "80%", "16.0"), ("over", "1h", "80%", "16.0"), ("few", "1h", "100%", "20.0")
        ),
        *each("healthy", 0),
    ],
)

FAST_LATER = Group(
    "an hour that was bad does not page once five minutes are good; minutes that are bad do not make a bad hour",
    [
        *judged("over", "0.2x119 1x60", "1x200"),
        *judged("begun", "1x119 0x80", "1x200"),
        *judged("goes-on", "0.1x200", "1x200"),
    ],
    alerts=[
        *each(
            "fires",
            59,
            ("over", "1h", "80%", "16.0"),
            ("goes-on", "1h", "90%", "18.0"),
            ("over", "6h", "80%", "16.0"),
            ("goes-on", "6h", "90%", "18.0"),
        ),
        # The 5-minute ratio that is recorded is of that moment: it has its own five minutes in the rates it is made of.
        *each(
            "fires",
            65,
            ("goes-on", "1h", "90%", "18.0"),
            ("goes-on", "6h", "90%", "18.0"),
            ("goes-on", "1d", "90%", "18.0"),
            ("over", "6h", "73.28%", "14.7"),
            ("over", "1d", "73.28%", "14.7"),
        ),
    ],
)

HOLDS = Group(
    "each slower rate waits longer, and its own rate is not enough for a faster one",
    [
        *judged("eight", "0.6x40", "1x40"),
        *judged("four", "0.8x40", "1x40"),
        *judged("two", "0.9x40", "1x40"),
        *judged("half", "0.975x40", "1x40"),
        *judged("between", "0.71x40", "1x40"),
        *judged("under-six", "0.71x40", "1x40"),
        *judged("under-three", "0.86x40", "1x40"),
        *judged("under-one", "0.955x40", "1x40"),
    ],
    alerts=[
        *each("just_short", 0),
        *each("fires", 15, ("eight", "6h", "40%", "8.0")),
        *each("fires", 45, ("eight", "6h", "40%", "8.0")),
        *each(
            "fires",
            60,
            ("eight", "6h", "40%", "8.0"),
            ("eight", "1d", "40%", "8.0"),
            ("four", "1d", "20%", "4.0"),
            ("between", "1d", "29%", "5.8"),
            ("under-six", "1d", "29%", "5.8"),
        ),
        *each(
            "fires",
            165,
            ("eight", "6h", "40%", "8.0"),
            ("eight", "1d", "40%", "8.0"),
            ("four", "1d", "20%", "4.0"),
            ("between", "1d", "29%", "5.8"),
            ("under-six", "1d", "29%", "5.8"),
        ),
        *each(
            "fires",
            180,
            ("eight", "6h", "40%", "8.0"),
            ("eight", "1d", "40%", "8.0"),
            ("four", "1d", "20%", "4.0"),
            ("between", "1d", "29%", "5.8"),
            ("under-six", "1d", "29%", "5.8"),
            ("eight", "3d", "40%", "8.0"),
            ("four", "3d", "20%", "4.0"),
            ("two", "3d", "10%", "2.0"),
            ("between", "3d", "29%", "5.8"),
            ("under-six", "3d", "29%", "5.8"),
            ("under-three", "3d", "14%", "2.8"),
        ),
    ],
    step=15 * 60,
)

NEAR = Group(
    "one window that burns fast enough is not enough",
    [
        *judged("short-half", [0.0] * 110 + [0.5] * 16, "1x125"),
        *judged("long-half", "1x64 0x60", "1x125"),
    ],
    alerts=each(
        "fires",
        62.5,
        ("short-half", "6h", "93.65%", "18.7"),
        ("long-half", "6h", "48.41%", "9.7"),
        ("short-half", "1d", "93.65%", "18.7"),
    ),
)

HOURS = 160
RECOVERED = [0.6] * (HOURS - 7) + [1.0] * 7
"""Bad for days, and good for longer than the longest of the short windows."""


def bulk(hours: int, requests: float) -> list[float]:
    """Requests per second by the hour: *requests* in the first half of the last *hours*, 2 in the rest, none before."""
    first = hours // 2
    return [0.0] * (HOURS - hours) + [requests / first / 3600] * first + [2 / (hours - first) / 3600] * (hours - first)


TRAFFIC = Group(
    "a rate needs twenty requests in its long window, wherever in it, and burns no more once its short window is good",
    [
        *judged("recovered", RECOVERED, [1.0] * HOURS),
        *judged("six-hours", [0.0] * HOURS, bulk(6, 24)),
        *judged("six-hours-few", [0.0] * HOURS, bulk(6, 12)),
        *judged("a-day", [0.0] * HOURS, bulk(24, 20.5)),
        *judged("a-day-few", [0.0] * HOURS, bulk(24, 15)),
        *judged("days", [0.0] * HOURS, bulk(72, 20)),
        *judged("days-few", [0.0] * HOURS, bulk(72, 16)),
    ],
    alerts=[
        *each(
            "fires",
            (HOURS - 1) * 60,
            ("six-hours", "6h", "100%", "20.0"),
            ("six-hours", "1d", "100%", "20.0"),
            ("six-hours", "3d", "100%", "20.0"),
            ("a-day", "1d", "100%", "20.0"),
            ("a-day", "3d", "100%", "20.0"),
            ("days", "3d", "100%", "20.0"),
        ),
    ],
    step=60 * 60,
)

SERVERS = Group(
    "servers of several generations; a restart neither ends a page nor makes one, and no request is no burn",
    [
        restarted(one)
        for one in (
            *Steady(
                MODERN, {vllm.TTFT: {0.9: 2, 4: 18}, vllm.TPOT: {0.03: 2, 0.2: 18}, vllm.E2E: {9: 2, 40: 18}}
            ).series(),
            *Steady(
                {**OLD, "model_name": "fine"}, {vllm.TTFT: {0.9: 20}, vllm.TPOT: {0.03: 20}, vllm.E2E: {30: 20}}
            ).series(),
            # Servers before 0.11 have tokens that are late and no histogram of requests by their time per token.
            *Steady({**OLD, "model_name": "before"}, {"time_per_output_token_seconds": {0.2: 20}}).series(),
            *Steady(RAY, {vllm.TTFT: {0.9: 0}, vllm.TPOT: {0.03: 0}, vllm.E2E: {30: 0}}).series(),
        )
    ],
    alerts=[
        *each("no_data", 0),
        *each("just_short", 2),
        *each("fires", 2.5, ("/models/sim", "1h", "90%", "18.0")),
        *each("reset", 14.5, ("/models/sim", "1h", "90%", "18.0")),
        *each("reset", 28, ("/models/sim", "1h", "90%", "18.0"), ("/models/sim", "6h", "90%", "18.0")),
    ],
)

AGO = {6, 24, 72}
"""Hours ago at which nobody asks: the generations of Prometheus disagree whether these are inside the windows."""


def hourly(model: str, *late: tuple[int, float], before: float = 0) -> list[Series]:
    """Good and judged requests by the hour, from shares that are late: (hours, share), latest last."""
    shares = [share for hours, share in late for _ in range(hours)]
    shares = [before] * (HOURS - len(shares)) + shares
    total = [0.0 if HOURS - 1 - hour in AGO else 1.0 for hour in range(HOURS)]
    return judged(model, [(1 - share) * asked for share, asked in zip(shares, total, strict=True)], total)


APART = Group(
    "each window is held against the rate by itself: what burns fast over one and slowly over the other is silent",
    [
        # 4 over half an hour, 15 over six hours; 2 over two hours, 9 over a day; 0.6 over six hours, 5 over days.
        *hourly("six-short", (4, 1), (2, 0.2)),
        *hourly("three-short", (20, 0.5), (4, 0.1)),
        *hourly("one-short", (62, 0.3), (10, 0.03)),
        # 12 over half an hour, 5 over six hours; 10 over two hours, 2 over a day; 4 over six hours, 0.8 over days.
        *hourly("six-long", (2, 0.6), before=0.1),
        *hourly("three-long", (5, 0.5)),
        *hourly("one-long", (12, 0.2), before=0.01),
    ],
    alerts=each(
        "fires",
        (HOURS - 1) * 60,
        ("six-short", "1d", "19.13%", "3.8"),
        ("three-short", "3d", "14.14%", "2.8"),
        ("six-long", "3d", "11.43%", "2.3"),
        ("three-long", "6h", "41.67%", "8.3"),
    ),
    step=60 * 60,
)

HALF_HOUR = 60
IN_AN_HOUR = [0.0] * 125 + [24 / 1800] * HALF_HOUR + [2 / 1800] * HALF_HOUR
BULK = Group(
    "twenty requests within the hour are enough, wherever in it",
    judged("bulk", [0.0] * len(IN_AN_HOUR), IN_AN_HOUR),
    alerts=each(
        "fires",
        (len(IN_AN_HOUR) - 1) / 2,
        ("bulk", "1h", "100%", "20.0"),
        ("bulk", "6h", "100%", "20.0"),
    ),
)

# Requests a second of which each long window has twenty.
JUST_ENOUGH = {"hour": 20 / 3600, "six-hours": 20 / 21600, "day": 20 / 86400, "days": 20 / 259200}
ENOUGH = Group(
    "twenty requests in the long window are enough",
    [one for name, rate in JUST_ENOUGH.items() for one in judged(name, "0x12", f"{rate!r}x12")],
    alerts=each(
        "fires",
        180,
        *((name, window, "100%", "20.0") for index, name in enumerate(JUST_ENOUGH) for window in list(SHORT)[index:]),
    ),
    step=15 * 60,
)

GROUPS = [ENOUGH, FAST, FAST_LATER, BULK, NEAR, HOLDS, TRAFFIC, APART, SERVERS]
