"""Alerts on requests: what they wait for inside a server, refused, aborted, or slow where vLLM measures nothing."""

from collections.abc import Mapping

from tests.rules.promtool import Alert, Firing, Group, Series, series
from tests.rules.servers import exporter, polled
from tests.rules.steady import MODERN, OLD, RAY
from tidegauge import vllm
from tidegauge.catalogue import exported as ex

BUDGET = "VllmPrefillBudgetBound"
SLOTS = "VllmSequenceSlotsBound"
REFUSED = "VllmAdmissionRejections"
ABORTED = "VllmRequestsAborted"
OTHER = "VllmUnaccountedLatencyHigh"
RANK = {**MODERN, "instance": "10.0.0.2:8000"}
THIRD = {**MODERN, "instance": "10.0.0.3:8000"}
EVERYBODY = {**OLD, "instance": "10.0.0.7:8000"}


def about(names: Mapping[str, str]) -> str:
    return f"{names['model_name']} on {names['instance']}"


def warning(names: Mapping[str, str], summary: str, description: str, severity: str = "warning") -> Firing:
    """An alert about a backend and model."""
    subject = {"backend": names["instance"], "model_name": names["model_name"]}
    return Firing({"severity": severity, **subject}, f"{about(names)}: {summary}", description)


def waited(backend: str, cause: str, values: str, instance: str = "10.0.0.9:10011") -> Series:
    return exporter(ex.WAITING_SECONDS, values, instance, backend=backend, cause=cause)


def budget(backend: str, number: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "backend": backend, "cause": "prefill_budget"},
        f"{backend}: {number} requests on average wait for the token budget of a step.",
        "Slots and KV cache are free, yet requests wait: prompts queue for the tokens that one step may compute, as "
        "after a burst of long prompts. More slots or memory change nothing. Look first at burstiness and prompt "
        "lengths, then at max_num_batched_tokens.",
    )


def slots(backend: str, number: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "backend": backend, "cause": "sequence_slots"},
        f"{backend}: {number} requests on average wait for a free slot.",
        "As many requests run as max_num_seqs lets through, and the KV cache has room. Look first at KV-cache usage: "
        "where it is low, a higher max_num_seqs serves more at once; then at the time per output token, which rises "
        "with the batch.",
    )


CAUSES = Group(
    "a cause warns when on average one request waits for it; each cause has its own alert, and most have none here",
    [
        waited("a:8000", "prefill_budget", "0x9 0+330x40"),
        waited("a:8000", "prefill_budget", "0x9 0+310x40", "10.0.0.8:10011"),
        waited("a:8000", "sequence_slots", "0x9 0+3x40"),
        waited("b:8000", "sequence_slots", "0x19 0+360x40"),
        waited("b:8000", "kv_cache", "0x9 0+999x40"),
        waited("c:8000", "prefill_budget", "0x9 0+27x40"),
        waited("c:8000", "sequence_slots", "0x9 0+27x40"),
        waited("d:8000", "prefill_budget", "0x9 0+30x50"),
        waited("d:8000", "sequence_slots", "0x9 0+30x50"),
        waited("e:8000", "unknown", "0x9 0+600x40"),
        waited("e:8000", "deferred", "0x9 0+600x40"),
    ],
    alerts=[
        Alert("healthy", BUDGET, 5),
        Alert("healthy", SLOTS, 10),
        Alert("just_short", SLOTS, 14),
        Alert("fires", SLOTS, 15, [slots("d:8000", "1.0")]),
        Alert("just_short", BUDGET, 10),
        Alert("fires", BUDGET, 10.5, [budget("a:8000", "11.0")]),
        Alert("fires", SLOTS, 15.5, [slots("b:8000", "12.0"), slots("d:8000", "1.0")]),
        Alert("fires", BUDGET, 20, [budget("a:8000", "11.0"), budget("d:8000", "1.0")]),
    ],
)

CAUSES_RESTART = Group(
    "an exporter that starts again counts from 0, and warns on and stays silent as before",
    [
        waited("a:8000", "prefill_budget", "0+60x20 60+60x20"),
        waited("a:8000", "sequence_slots", "0+60x20 60+60x20"),
        waited("b:8000", "prefill_budget", "90000x20 0x20"),
        waited("b:8000", "sequence_slots", "90000x20 0x20"),
    ],
    alerts=[
        Alert("reset", BUDGET, 11, [budget("a:8000", "2.0")]),
        Alert("reset", SLOTS, 11, [slots("a:8000", "2.0")]),
        Alert("reset", BUDGET, 18, [budget("a:8000", "2.0")]),
        Alert("reset", SLOTS, 18, [slots("a:8000", "2.0")]),
    ],
)


def refusing(names: Mapping[str, str], reason: str, refusals: str, finished: str) -> list[Series]:
    """A server and its refusals, which have no engine label."""
    known = {key: value for key, value in names.items() if key != "engine"}
    return [
        series(f"vllm:{vllm.REJECTIONS}", refusals, **known, reason=reason),
        series(f"vllm:{vllm.FINISHED}", finished, **names, finished_reason="stop"),
    ]


def refused(names: Mapping[str, str], share: str, reasons: str) -> Firing:
    """The page's text."""
    return warning(
        names,
        f"{share} of the requests are refused, by the limit on {reasons}.",
        "Callers get status 503 and nothing else. The queue of this server is limited and full. Look first whether the "
        "other backends refuse as well: one alone is badly balanced, all of them are too few; then at what requests "
        "wait for.",
        "critical",
    )


def few_refused(names: Mapping[str, str], number: str, reason: str) -> Firing:
    """The warning's text."""
    return warning(
        names,
        f"{number} requests were refused within 5 minutes, by the limit on {reason}.",
        "Callers get status 503. The queue of this server is limited and was full for moments. Look first at "
        "burstiness and at the fan-out of the callers, then whether they try again after a pause.",
    )


REFUSALS = Group(
    "refusals page from a twentieth of the requests on, and warn from five within five minutes on",
    [
        # A quarter, by two limits; all.
        *refusing(MODERN, "num_requests", "0x19 0+8x40", "0x19 0+30x40"),
        *refusing(MODERN, "num_tokens", "0x19 0+2x40", "")[:1],
        *refusing(EVERYBODY, "num_requests", "0x19 0+30x40", "9x60"),
        # A twentieth exactly, over two ranks.
        *refusing({**RANK, "engine": "0"}, "num_tokens", "0x19 0+30x40", "0x19 0+270x40"),
        *refusing({**RANK, "engine": "1"}, "num_tokens", "", "0x19 0+300x40")[1:],
        # 4 of 100; half of too few to say; three within 5 minutes; long ago.
        *refusing(THIRD, "num_requests", "0x19 0+4x40", "0x19 0+96x40"),
        *refusing(RAY, "num_requests", "0x19 0+0.8x40", "0x19 0+0.8x40"),
        *refusing(OLD, "num_requests", "0x19 0+0.3x40", "0+50x60"),
        *refusing({**OLD, "instance": "never:8000"}, "num_requests", "30x60", "0+50x60"),
    ],
    alerts=[
        Alert("healthy", REFUSED, 10),
        Alert("just_short", REFUSED, 12),
        Alert(
            "fires",
            REFUSED,
            12.5,
            [
                refused(MODERN, "25%", "num_requests num_tokens"),
                refused(EVERYBODY, "100%", "num_requests"),
                refused(RANK, "5%", "num_tokens"),
            ],
        ),
        Alert(
            "fires",
            REFUSED,
            23,
            [
                refused(MODERN, "25%", "num_requests num_tokens"),
                refused(EVERYBODY, "100%", "num_requests"),
                refused(RANK, "5%", "num_tokens"),
                few_refused(THIRD, "40", "num_requests"),
                few_refused(RAY, "8", "num_requests"),
            ],
        ),
    ],
)

REFUSALS_RESTART = Group(
    "a restart neither refuses nor forgets",
    [*refusing(MODERN, "num_requests", "0+5x20 5+5x20", "0+5x20 5+5x20"), *refusing(OLD, "x", "90x20 0x20", "0+50x41")],
    alerts=[
        Alert("reset", REFUSED, 11, [refused(MODERN, "50%", "num_requests")]),
        Alert("reset", REFUSED, 18, [refused(MODERN, "50%", "num_requests")]),
    ],
)


def aborted(backend: str, share: str, number: str) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "backend": backend},
        f"{backend}: {share} of the requests left without an answer, {number} of them within 15m.",
        "Their callers hung up, mostly because a timeout ran out; the tokens computed for them are lost. They are in "
        "no latency figure, so these look better than what users feel. Look first at the callers' timeout against the "
        "end-to-end p99, then at what requests wait for.",
    )


def leaving(names: Mapping[str, str], first: str, ends: str) -> list[Series]:
    """A server whose requests get a first token, or an end."""
    return [
        series(f"vllm:{vllm.TTFT}_count", first, **names),
        series(f"vllm:{vllm.E2E}_count", ends, **names),
        series(f"vllm:{vllm.RUNNING}", "0x80", **names),
    ]


def told(backend: str, left: str, finished: str | None, instance: str = "10.0.0.9:10011") -> list[Series]:
    """What the exporter says of a backend that it polls."""
    rows = [polled(backend, 80, instance=instance), exporter(ex.DEPARTED_UNFINISHED, left, instance, backend=backend)]
    ended = exporter(ex.WINDOW_REQUESTS, finished or "", instance, backend=backend, model_name="far")
    return [*rows, ended] if finished else rows


ABORTS = Group(
    "aborts warn from a tenth of the requests on, where there are enough requests",
    [
        *leaving(MODERN, "0+5x80", "0+4x80"),
        # A tenth exactly, over two ranks; a little less; too few to say.
        *leaving({**RANK, "engine": "0"}, "0+4x80", "0+3x80"),
        *leaving({**RANK, "engine": "1"}, "0+6x80", "0+6x80"),
        *leaving(THIRD, "0+50x80", "0+46x80"),
        *leaving(OLD, "0+0.6x80", "0+0.3x80"),
        *told("told:8000", "0+1x80", "30x80"),
        *told("nobody:8000", "0+1x80", None),
        *told("few:8000", "0+0.5x80", None),
    ],
    alerts=[
        Alert("healthy", ABORTED, 1),
        Alert(
            "fires",
            ABORTED,
            25,
            [
                aborted(MODERN["instance"], "20%", "30"),
                aborted(RANK["instance"], "10%", "30"),
                aborted("told:8000", "50%", "30"),
                aborted("nobody:8000", "100%", "30"),
            ],
        ),
    ],
)

ABORTS_BEGIN = Group(
    "aborts are told once they have been many for the hold",
    [*leaving(MODERN, "0+50x40", "0+40x40"), *leaving(THIRD, "0+40x40", "0+40x40")],
    alerts=[
        Alert("just_short", ABORTED, 5),
        Alert("fires", ABORTED, 5.5, [aborted(MODERN["instance"], "20%", "110")]),
    ],
)

ABORTS_RESTART = Group(
    "a restart drops what runs, and that is no abort; nor does it end the warning",
    [
        *leaving(OLD, "0+40x30 40+40x50", "0+40x30 40+40x50"),
        *leaving(MODERN, "0+50x30 50+50x50", "0+40x30 40+40x50"),
    ],
    alerts=[
        Alert("reset", ABORTED, 20, [aborted(MODERN["instance"], "20%", "300")]),
        Alert("reset", ABORTED, 28, [aborted(MODERN["instance"], "20%", "300")]),
    ],
)


def unaccounted(names: Mapping[str, str], share: str, each: str) -> Firing:
    """The alert's text."""
    found = warning(
        names,
        f"{share} of the time of a request is in no stage, {each} each.",
        "That time passes outside the engine, nearly all of it before the first token: in the API server, the "
        "tokeniser, or waiting for a step to end. Queue figures do not contain it. Look first at the CPU of the API "
        "server process, then at burstiness, then at long prompts and large images, which are prepared there.",
    )
    return Firing({**found.labels, "stage": "other"}, found.summary, found.description)


def stages(names: Mapping[str, str], count: str, **seconds: str) -> list[Series]:
    """A server's stage sums and its requests."""
    families = {"queue": vllm.QUEUE, "prefill": vllm.PREFILL, "decode": vllm.DECODE, "e2e": vllm.E2E}
    return [
        one
        for stage, family in families.items()
        for one in (
            series(f"vllm:{family}_sum", seconds[stage], **names),
            series(f"vllm:{family}_count", count, **names),
        )
    ]


def measured(host: str, share: float, seconds: float, model: str = "sim") -> list[Series]:
    """What the exporter says of a server whose requests spend *seconds* in no stage."""
    subject = {"backend": f"{host}:8000", "model_name": model}
    return [
        polled(f"{host}:8000", 90),
        exporter(ex.WINDOW_REQUESTS, "50x90", **subject),
        exporter(ex.E2E_SECONDS, f"{seconds / share:g}x90", **subject),
        exporter(ex.STAGE_SECONDS, f"{seconds:g}x90", **subject, stage="other"),
    ]


HALF = {"queue": "0+1x90", "prefill": "0+1x90", "decode": "0+3x90"}
UNACCOUNTED = Group(
    "time in no stage warns from a fifth of a request's time on",
    [
        *stages(MODERN, "0+1x90", **HALF, e2e="0+8x90"),
        # A fifth and a bit, over two ranks; a bit less; too few requests; nothing.
        *stages({**RANK, "engine": "0"}, "0+1x90", **HALF, e2e="0+7x90"),
        *stages({**RANK, "engine": "1"}, "0+1x90", **HALF, e2e="0+5.6x90"),
        *stages(THIRD, "0+1x90", **HALF, e2e="0+6.2x90"),
        *stages(OLD, "0+0.3x90", **HALF, e2e="0+8x90"),
        *stages({**MODERN, "model_name": "rare"}, "0+0.3x90", **HALF, e2e="0+8x90"),
        *stages(RAY, "0+1x90", **HALF, e2e="0+5x90"),
    ],
    alerts=[
        # Twenty requests are there after 5 minutes on two ranks, after 10 on one.
        Alert("just_short", OTHER, 14.5),
        Alert("fires", OTHER, 15, [unaccounted(RANK, "20.63%", "1.3s")]),
        Alert("fires", OTHER, 19.5, [unaccounted(RANK, "20.63%", "1.3s")]),
        Alert("fires", OTHER, 20, [unaccounted(MODERN, "37.5%", "3s"), unaccounted(RANK, "20.63%", "1.3s")]),
    ],
)

UNACCOUNTED_BOUNDS = Group(
    "a fifth of a request's time is told, and so is a tenth of a second; of requests that take less it is nothing",
    [
        *measured("fifth", 0.2, 1),
        *measured("tenth", 0.25, 0.1),
        *measured("less", 0.25, 0.09),
        *measured("embeds", 0.32, 0.008),
        *measured("embeds", 0.1, 2, "chat")[1:],
    ],
    alerts=[
        Alert("fires", OTHER, 20, [
            unaccounted({"instance": "fifth:8000", "model_name": "sim"}, "20%", "1s"),
            unaccounted({"instance": "tenth:8000", "model_name": "sim"}, "25%", "100ms"),
        ]),
    ],
)  # fmt: skip

UNACCOUNTED_RESTART = Group(
    "means outlive a restart; a server that accounts for all is silent",
    [
        *stages(
            MODERN,
            "0+1x40 1+1x50",
            queue="0+1x40 1+1x50",
            prefill="0+1x40 1+1x50",
            decode="0+3x40 3+3x50",
            e2e="0+8x40 8+8x50",
        ),
        *stages(RAY, "0+1x90", **HALF, e2e="0+5x90"),
    ],
    alerts=[
        Alert("healthy", OTHER, 9),
        Alert("reset", OTHER, 21, [unaccounted(MODERN, "37.5%", "3s")]),
        Alert("reset", OTHER, 35, [unaccounted(MODERN, "37.5%", "3s")]),
    ],
)

GROUPS = [
    CAUSES,
    CAUSES_RESTART,
    REFUSALS,
    REFUSALS_RESTART,
    ABORTS,
    ABORTS_BEGIN,
    ABORTS_RESTART,
    UNACCOUNTED,
    UNACCOUNTED_BOUNDS,
    UNACCOUNTED_RESTART,
]
