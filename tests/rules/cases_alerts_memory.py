"""Alerts on the KV cache: full while requests wait, preempting, and a prefix cache that no longer helps."""

from collections.abc import Iterable, Mapping

from tests.rules.promtool import Alert, Firing, Group, Series, series
from tests.rules.steady import MODERN, OLD, RAY, Steady
from tidegauge import vllm
from tidegauge.catalogue import recorded as rec

FULL = "VllmKVCacheSaturated"
PREEMPTING = "VllmPreempting"
HIT = "VllmPrefixHitDropped"
RANK = {**MODERN, "instance": "10.0.0.2:8000"}
NEAR = {**MODERN, "instance": "10.0.0.3:8000"}
ALONE = {**RAY, "instance": "10.0.0.5:8080"}


def subject(names: Mapping[str, str]) -> dict[str, str]:
    """The labels of an alert about a server with these native labels."""
    return {"backend": names["instance"], "model_name": names["model_name"]}


def gauges(names: Mapping[str, str], usage: float, waiting: float, spelling: str = vllm.KV_USAGE) -> list[Series]:
    return Steady(names, gauges={spelling: usage, vllm.WAITING: waiting, vllm.RUNNING: 3}).series()


def full(names: Mapping[str, str], usage: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", **subject(names)},
        f"{names['model_name']} on {names['instance']}: the KV cache is {usage} full and requests wait.",
        "Whoever waits waits for a running request to end and give back its blocks. Look first at preemptions, then at "
        "the lengths of prompts and outputs against what the cache holds, then at requests in flight against the "
        "request capacity: a lower ceiling keeps the same throughput with less waste.",
    )


FULL_CACHES = Group(
    "a KV cache is saturated when it is full and somebody waits, in every spelling and over ranks",
    [
        *gauges(MODERN, 0.9, 3),
        # The fullest rank counts, and whoever waits for any of them.
        *gauges({**RANK, "engine": "0"}, 0.95, 0),
        *gauges({**RANK, "engine": "1"}, 0.2, 1),
        *gauges(OLD, 0.99, 2, "gpu_cache_usage_perc"),
        *gauges(RAY, 0.97, 0),
        *gauges(NEAR, 0.89, 5),
        # One full sample among many, and a queue that was seen once within the last minutes.
        *Steady(ALONE, gauges={vllm.RUNNING: 3}).series(),
        series(f"vllm:{vllm.KV_USAGE}", "0.5x6 1 0.5x20", **ALONE),
        series(f"vllm:{vllm.WAITING}", "1x27", **ALONE),
    ],
    alerts=[
        Alert("just_short", FULL, 1.5),
        Alert("fires", FULL, 2, [full(MODERN, "90%"), full(RANK, "95%"), full(OLD, "99%")]),
        Alert("fires", FULL, 10, [full(MODERN, "90%"), full(RANK, "95%"), full(OLD, "99%")]),
    ],
)

QUEUE_SEEN_ONCE = Group(
    "a queue that shows in one scrape within five minutes is enough beside a full cache, and five minutes are all",
    [
        series(f"vllm:{vllm.KV_USAGE}", "1x40", **MODERN),
        series(f"vllm:{vllm.RUNNING}", "1x40", **MODERN),
        series(f"vllm:{vllm.WAITING}", "0x5 4 0x34", **MODERN),
        # Full for two minutes and half empty before and after.
        series(f"vllm:{vllm.KV_USAGE}", "0.8x20 1x3 0.8x20", **NEAR),
        series(f"vllm:{vllm.RUNNING}", "1x40", **NEAR),
        series(f"vllm:{vllm.WAITING}", "4x40", **NEAR),
    ],
    alerts=[
        Alert("just_short", FULL, 4.5),
        Alert("fires", FULL, 5, [full(MODERN, "100%")]),
        Alert("fires", FULL, 7.5, [full(MODERN, "100%")]),
        Alert("healthy", FULL, 8.5),
        Alert("healthy", FULL, 14),
    ],
)

FULL_RESTART = Group(
    "a server that restarts into a full cache goes on warning",
    [
        series(f"vllm:{vllm.KV_USAGE}", "0.95x9 stale _ 0.95x20", **MODERN),
        series(f"vllm:{vllm.RUNNING}", "9x9 stale _ 9x20", **MODERN),
        series(f"vllm:{vllm.WAITING}", "9x9 stale _ 9x20", **MODERN),
    ],
    alerts=[Alert("reset", FULL, 5, [full(MODERN, "95%")]), Alert("reset", FULL, 8, [full(MODERN, "95%")])],
)


def preempting(names: Mapping[str, str], per_minute: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", **subject(names)},
        f"{names['model_name']} on {names['instance']}: {per_minute} requests a minute are thrown out of the batch.",
        "The KV cache is too small for what runs: a preempted request is computed again from its first token, and "
        "waits a second time. vLLM books that wait as decode, so the queue's share understates it. Look first at "
        "KV-cache usage and at the lengths of prompts, then at requests running against the request capacity.",
    )


def counted(names: Mapping[str, str], values: str) -> Series:
    return series(f"vllm:{vllm.PREEMPTIONS}", values, **names)


PREEMPTIONS = Group(
    "preemptions warn from one a minute on, over all ranks",
    [
        counted(MODERN, "0x20 0+3x30"),
        counted({**RANK, "engine": "0"}, "0x20 0+0.25x30"),
        counted({**RANK, "engine": "1"}, "0x20 0+0.5x30"),
        counted(OLD, "0x20 0+0.45x30"),
        counted(RAY, "7x50"),
    ],
    alerts=[
        Alert("healthy", PREEMPTING, 10),
        Alert("just_short", PREEMPTING, 16),
        Alert("fires", PREEMPTING, 16.5, [preempting(MODERN, "6.0")]),
        Alert("fires", PREEMPTING, 25, [preempting(MODERN, "6.0"), preempting(RANK, "1.5")]),
    ],
)

PREEMPTIONS_RESTART = Group(
    "a restart is no preemption, and hides none",
    [counted(MODERN, "0+3x20 3+3x20"), counted(OLD, "900x20 0x20")],
    alerts=[
        Alert("reset", PREEMPTING, 10.5, [preempting(MODERN, "6.0")]),
        Alert("reset", PREEMPTING, 18, [preempting(MODERN, "6.0")]),
    ],
)


def hit(model: str, values: Iterable[float] | str, requests: str = "1x206") -> list[Series]:
    """A prefix hit as recorded, and finished requests per second."""
    names = {"backend": f"{model}:8000", "model_name": model}
    return [series(rec.PREFIX_HIT.name, values, **names), series(rec.REQUEST_RATE.name, requests, **names)]


def dropped(model: str, now: str, before: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "backend": f"{model}:8000", "model_name": model},
        f"{model} on {model}:8000: the prefix cache holds {now} of the prompt tokens, {before} before.",
        "What the cache held is computed again, so prefill takes longer and the token budget is spent on it. Look "
        "first for a change of the prompts (a timestamp or an id at their start), then for a router that no longer "
        "sends a conversation to the same server, then at KV-cache usage: a full cache evicts prefixes.",
    )


TWENTY = 20 / 300
"""Requests per second of which five minutes have just enough."""
# In steps of a quarter of an hour. The samples at both ends of the day are the mean of the rest, as the generations of
# Prometheus disagree whether they are inside, and for how long: 0.6 over the day, 0.8 over half of it, 0.75 over two.
VARIED = [0.9] * 99 + [0.6] * 2 + [0.4] * 47 + [0.8] * 47 + [0.6] + [0.8] * 2
PREFIXES = Group(
    "a prefix hit has dropped when it is under half of what it was over the day before, and was worth something",
    [
        *hit("halved", "0.6x197 0.2x9"),
        *hit("just-half", "0.6x197 0.3x9"),
        *hit("never-much", "0.06x197 0.01x9"),
        *hit("much-enough", "0.125x197 0.05x9"),
        *hit("varied", [*VARIED, *[0.35] * 9]),
        *hit("varied-more", [*VARIED, *[0.25] * 9]),
        *hit("new", "_x197 0.2x9"),
        # Twenty requests in five minutes, and a few less.
        *hit("least", "0.6x197 0.2x9", f"{TWENTY!r}x206"),
        *hit("probed-now", "0.6x197 0x9", "1x197 0.06x9"),
        *hit("probed-before", "0.6x197 0.2x9", "0.06x197 1x9"),
        # One time of enough requests, at the floor; and none that is an hour ago.
        *hit("floor", "0.1x197 0.04x9", "0.06x150 1 0.06x45 1x9"),
        *hit("lately", "0.6x197 0.2x9", "0.06x195 1x11"),
        *hit("probed-by-night", "0x60 0.6x30 0x70 0.6x34 0.2x9", "0.03x60 1x30 0.03x70 1x43"),
    ],
    alerts=[
        Alert("healthy", HIT, 2955),
        Alert("just_short", HIT, 2970),
        Alert(
            "fires",
            HIT,
            2985,
            [
                dropped("halved", "20%", "60%"),
                dropped("much-enough", "5%", "12.5%"),
                dropped("varied-more", "25%", "60%"),
                dropped("least", "20%", "60%"),
                dropped("probed-by-night", "20%", "60%"),
                dropped("floor", "4%", "10%"),
            ],
        ),
    ],
    step=15 * 60,
)


def cached(names: Mapping[str, str], hits: str, queries: str) -> list[Series]:
    return [
        series(f"vllm:{vllm.PREFIX_HITS}", hits, **names),
        series(f"vllm:{vllm.PREFIX_QUERIES}", queries, **names),
        series(f"vllm:{vllm.FINISHED}", "0+5x221", **names, finished_reason="stop"),
    ]


PREFIXES_RESTART = Group(
    "a restarted server is compared with what it was before, and a cache that is cold for minutes is not a drop",
    [
        *cached(MODERN, "0+60x150 0+10x60", "0+100x150 0+100x60"),
        *cached(OLD, "0+60x150 0x10 0+60x60", "0+100x150 0+100x71"),
    ],
    alerts=[
        Alert("reset", HIT, 85),
        Alert(
            "reset",
            HIT,
            98,
            [
                Firing(
                    {"severity": "warning", **subject(MODERN)},
                    "/models/sim on 10.0.0.1:8000: the prefix cache holds 10% of the prompt tokens, 60% before.",
                    dropped("any", "", "").description,
                )
            ],
        ),
    ],
)

GROUPS = [
    FULL_CACHES,
    QUEUE_SEEN_ONCE,
    FULL_RESTART,
    PREEMPTIONS,
    PREEMPTIONS_RESTART,
    PREFIXES,
    PREFIXES_RESTART,
]
