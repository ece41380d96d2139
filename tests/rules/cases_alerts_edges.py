"""Alerts exactly at their thresholds and windows, and just beside them."""

from tests.rules.cases_alerts_evidence import COARSE, FAILING, coarse, failing, idle, nothing, polls, short
from tests.rules.cases_alerts_memory import FULL, HIT, PREEMPTING, PREFIXES_RESTART, counted, full, preempting
from tests.rules.cases_alerts_requests import ABORTED, REFUSED, aborted, few_refused, refused, refusing
from tests.rules.cases_alerts_requests import told as leaves
from tests.rules.cases_fleet import SKEW, info, skewed, told
from tests.rules.cases_health import EXPORTER, EXPORTER_GONE, STALLED, stalled, up
from tests.rules.cases_split import BIMODAL, SATURATED, SERVER_TEXT
from tests.rules.promtool import Alert, Firing, Group, Series, series
from tests.rules.servers import Phase, Server, exporter, polled, split_rows
from tests.rules.steady import MODERN, OLD
from tidegauge import vllm
from tidegauge.catalogue import exported as ex

IDLE = "VllmServesNothing"


def split(model: str, late: float, impact: float, seconds: float = 10) -> list[Series]:
    """The exporter's split of a server, with an edge of 0.1 s."""
    subject = {"where": "server", "backend": f"{model}:8000", "model_name": model}
    rows = split_rows(40, late=late, late_seconds=seconds, edge=0.1, impact=impact, p50=0.1, p90=10, **subject)
    return [polled(f"{model}:8000", 40), *rows]


def bimodal(model: str, late: str, waves: str, impact: str = "", seconds: str = "10s") -> Firing:
    """A page, or without an impact a warning."""
    subject = {"where": "server", "backend": f"{model}:8000", "model_name": model}
    start = f"{model} on {model}:8000: {late} of requests wait {seconds}, the rest do not wait"
    burst = f"Load arrives in bursts that are served in {waves} waves"
    if impact:
        text = f"{burst}; waiting is {impact} of the time of a request. {SERVER_TEXT}"
        return Firing({"severity": "critical", **subject}, f"{start}.", text)
    text = f"{burst}. Waiting is less than 10% of the time of a request, or that share is not known. {SERVER_TEXT}"
    return Firing({"severity": "warning", **subject}, f"{start}; the wait costs little yet.", text)


def saturated(model: str, late: str, impact: str) -> Firing:
    return Firing(
        {"severity": "warning", "where": "server", "backend": f"{model}:8000", "model_name": model},
        f"{model} on {model}:8000: {late} of requests wait, 10s on average.",
        "Practically nobody is served at once: load exceeds what is let through, in bursts or not. Waiting is "
        f"{impact} of the time of a request. {SERVER_TEXT}",
    )


SPLITS = Group(
    "the split at each of its bounds: they belong to it, and what lies beside them does not",
    [
        *split("low", 0.05, 0.5), *split("under", 0.03, 0.5), *split("high", 0.95, 0.5), *split("near", 0.5, 0.5, 1),
        *split("nearer", 0.5, 0.5, 0.9), *split("costs", 0.5, 0.1), *split("costs-more", 0.5, 0.15),
        *split("low-cheap", 0.05, 0.05), *split("under-cheap", 0.03, 0.05), *split("some-cheap", 0.07, 0.05),
        *split("high-cheap", 0.95, 0.05), *split("over-cheap", 0.97, 0.05), *split("most-cheap", 0.6, 0.07),
        *split("near-cheap", 0.5, 0.05, 1), *split("nearer-cheap", 0.5, 0.05, 0.9), *split("full", 0.96, 0.1),
        *split("full-more", 0.97, 0.15), *split("full-cheap", 0.98, 0.07),
    ],
    alerts=[
        Alert("fires", BIMODAL, 10, [
            bimodal("low", "5%", "1.1", "50%"), bimodal("high", "95%", "20.0", "50%"),
            bimodal("near", "50%", "2.0", "50%", "1s"), bimodal("costs", "50%", "2.0", "10%"),
            bimodal("costs-more", "50%", "2.0", "15%"), bimodal("low-cheap", "5%", "1.1"),
            bimodal("some-cheap", "7%", "1.1"), bimodal("high-cheap", "95%", "20.0"),
            bimodal("most-cheap", "60%", "2.5"), bimodal("near-cheap", "50%", "2.0", seconds="1s"),
        ]),
        Alert("fires", SATURATED, 10, [saturated("full", "96%", "10%"), saturated("full-more", "97%", "15%")]),
    ],
)  # fmt: skip

JUST_SKEWED = Group(
    "a skew of exactly the bound is none; one of a tenth of a second is, and one of less is not worth a word",
    [
        *told("a:8000", "sim", 15), *told("b:8000", "sim", 10), info("a:8000", "f"), info("b:8000", "f"),
        *told("c:8000", "tenth", 0.25), *told("d:8000", "tenth", 0.15),
        *told("e:8000", "less", 0.25), *told("f:8000", "less", 0.16),
        *told("g:8000", "embed", 0.018), *told("h:8000", "embed", 0.0115),
    ],
    alerts=[Alert("fires", SKEW, 15, [skewed("tenth", "1.67", "c:8000", "250ms")])],
)  # fmt: skip

ONE_HELD = {"backend": "a:8000", "model_name": "sim"}
# In steps of 25 s no sample lies at the far end of two minutes, of which the generations of Prometheus disagree.
STALL = Group(
    "one request that is held and does not move is a stall, after a whole minute",
    Server("a:8000", "sim", [Phase(3, [(20, 0.1)], running=12), Phase(6, running=1)]).series(),
    alerts=[
        Alert("just_short", STALLED, 300 / 60),
        Alert("fires", STALLED, 325 / 60, [
            Firing(
                stalled(ONE_HELD, 1).labels,
                "sim on a:8000: 1 requests are held and nothing moves.",
                stalled(ONE_HELD, 1).description,
            ),
        ]),
    ],
    step=25,
)  # fmt: skip


def moved(host: str, model: str, at: int) -> list[Series]:
    """A server whose tokens rise once, at a step, while no scrape sees a request held."""
    names = {"instance": f"{host}:8000", "job": "vllm", "model_name": model}
    return [
        *(series(f"vllm:{gauge}", "0x120", **names) for gauge in (vllm.RUNNING, vllm.WAITING)),
        series(f"vllm:{vllm.OUTPUT_TOKENS}", f"100x{at - 1} 160x{120 - at}", **names),
        up(f"{host}:8000", "1x120"),
    ]


SERVES = Group(
    "what a server did within a quarter of an hour counts, of its own model, and a fleet with few requests is a fleet",
    [
        *Server("busy:8000", "sim", [Phase(60, [(1, 0)], running=1)]).series(), up("busy:8000", "1x120"),
        *moved("lately", "sim", 76), *moved("before", "sim", 30),
        # Another model of the busy server.
        *moved("busy", "chat", 3)[:-1], *Server("other:8000", "chat", [Phase(60, [(1, 0)], running=1)]).series(),
        up("other:8000", "1x120"),
        # An exporter counts whole requests: twenty are enough.
        polled("least:8000", 120),
        exporter(ex.WINDOW_REQUESTS, "20x120", backend="least:8000", model_name="least"),
        *nothing("quiet", "least", "0x120", "9x120"),
    ],
    alerts=[
        # At minute 53 the tokens of minute 38 are a quarter of an hour old, those of minute 15 half an hour and more.
        Alert("fires", IDLE, 37.5, [idle("before:8000", "sim", "sim", 30), idle("lately:8000", "sim", "sim", 30),
            idle("busy:8000", "chat", "chat", 30), idle("quiet:8000", "least", "least", 20)]),
        Alert("fires", IDLE, 53, [idle("before:8000", "sim", "sim", 30), idle("busy:8000", "chat", "chat", 30),
            idle("quiet:8000", "least", "least", 20)]),
    ],
)  # fmt: skip

MISSED = Group(
    "an exporter that is gone is missed for a day",
    [up("t1:10011", "1x12 stale", "tidegauge"), up("a:8000", "1x260")],
    alerts=[
        Alert("no_data", EXPORTER, 20 * 60, [EXPORTER_GONE]),
        Alert("no_data", EXPORTER, 30 * 60),
    ],
    step=600,
)


def cache(host: str, usage: str) -> list[Series]:
    names = {**MODERN, "instance": host}
    return [
        series(f"vllm:{vllm.KV_USAGE}", usage, **names),
        *(series(f"vllm:{gauge}", "3x90", **names) for gauge in (vllm.RUNNING, vllm.WAITING)),
    ]


CACHES = Group(
    "a KV cache is full by its mean of five minutes",
    [*cache("was:8000", "0.2x29 0.95x60"), *cache("for-a-moment:8000", "0.45x19 1x7 0.45x60")],
    alerts=[
        Alert("fires", FULL, 23, [full({**MODERN, "instance": "was:8000"}, "95%")]),
        Alert("healthy", FULL, 13.5),
        Alert("healthy", FULL, 14),
        Alert("healthy", FULL, 14.5),
    ],
)

HITS = Group(
    "a prefix hit is told after its hold",
    PREFIXES_RESTART.series,
    alerts=[Alert("reset", HIT, 92)],
)

REFUSALS = Group(
    "a page needs twenty requests in five minutes, and a warning holds as long as a page",
    [
        *refusing(MODERN, "num_requests", "0+1x40", "0+2x40"),
        *refusing(OLD, "num_requests", "0+4x40", "0+96x40"),
    ],
    alerts=[
        Alert("just_short", REFUSED, 2.5),
        Alert("fires", REFUSED, 3, [few_refused(OLD, "24", "num_requests")]),
        Alert("fires", REFUSED, 15, [
            refused(MODERN, "33.33%", "num_requests"), few_refused(OLD, "40", "num_requests"),
        ]),
    ],
)  # fmt: skip

# Two of ten polls fail. The sample at the far end of the last five minutes is their mean.
AT_TIMES = 60
SHARES = [0.0 if step % 10 in {3, 4} else 1.0 for step in range(AT_TIMES + 1)]
SHARES[AT_TIMES - 10] = 0.8
RARELY_UP = " ".join(["1", *["0"] * 6] * 12)
ALWAYS = [failing("more:8000", "15%"), failing("rarely:8000", "100%")]
POLLS = Group(
    "polls fail from a tenth of five minutes on; what was down is down, and what comes up now and then is not",
    [
        # As a store that averages samples would have it.
        *polls("more:8000", "0.85x80"),
        *polls("less:8000", "0.93x80"),
        *polls("twice:8000", "1x28 0.7 0 0 0.7 1x50"),
        *polls("goes-down:8000", "1x19 0x60", "1x19 0x60"),
        *polls("rarely:8000", "0x80", RARELY_UP),
    ],
    alerts=[Alert("fires", FAILING, at, ALWAYS) for at in (18.5, 23, 30)],
)

NOW_AND_THEN = Group(
    "polls that fail now and then are averaged over five minutes",
    polls("at-times:8000", SHARES),
    alerts=[Alert("fires", FAILING, AT_TIMES / 2, [failing("at-times:8000", "20%")])],
)

LEAST = {**MODERN, "instance": "least:8000"}
FEWEST = {**MODERN, "instance": "fewest:8000"}
BOUNDS = Group(
    "a figure at exactly its bound belongs to it, as whole numbers of requests bring it about",
    [
        counted(LEAST, "0+0.5x80"),
        *leaves("least:8000", "0+0.5x80", "5x80"),
        *refusing({**LEAST, "model_name": "five"}, "num_requests", "0+0.5x80", "0+50x80"),
        *refusing({**FEWEST, "model_name": "twenty"}, "num_requests", "0+1x80", "0+1x80"),
        *short("half", 0.7), polled("half:8000", 80),
        exporter(ex.E2E_SECONDS, "0.6x80", backend="half:8000", model_name="half"),
        exporter(ex.WINDOW_REQUESTS, "20x80", backend="half:8000", model_name="half"),
    ],
    alerts=[
        Alert("fires", PREEMPTING, 25, [preempting(LEAST, "1.0")]),
        Alert("fires", ABORTED, 25, [aborted("least:8000", "75%", "15")]),
        Alert("fires", REFUSED, 25, [
            few_refused({**LEAST, "model_name": "five"}, "5", "num_requests"),
            refused({**FEWEST, "model_name": "twenty"}, "50%", "num_requests"),
        ]),
        Alert("fires", COARSE, 31, [coarse("half:8000", "half", "50%")]),
    ],
)  # fmt: skip

GROUPS = [BOUNDS, NOW_AND_THEN, POLLS, SPLITS, JUST_SKEWED, STALL, SERVES, MISSED, CACHES, HITS, REFUSALS]
