"""Alerts that need GPU figures, on the series of DCGM's exporter."""

from tests.rules.cases_bottleneck import SLOW, gpus, server
from tests.rules.promtool import Alert, Firing, Group, Series

COMPUTE = "VllmComputeBound"
FALSE = "VllmFalseComputeBound"
UNEVEN = "VllmCommunicationImbalance"


def firing(host: str, summary: str, description: str) -> Firing:
    return Firing({"severity": "warning", "backend": f"{host}:8000"}, f"{host}:8000: {summary}", description)


def compute(host: str, share: str) -> Firing:
    """The alert's text."""
    return firing(
        host,
        f"the GPUs compute {share} of the time and tokens are late.",
        "The GPUs are the limit: no setting of the scheduler gives more. Look first at prompt lengths and the prefix "
        "hit, which decide how much is computed, then at requests running: a lower ceiling gives faster tokens, "
        "another server gives more of them.",
    )


def false(host: str, share: str) -> Firing:
    """The alert's text."""
    return firing(
        host,
        f"the GPUs look busy, but their memory bandwidth is only {share} used.",
        "Kernels are resident and wait, for another GPU, for the host or for each other, or they copy. More GPUs of "
        "this kind will wait as well. Look first at the CPU of the engine process and whether CUDA graphs are on "
        "(enforce_eager), "
        "then at the batch size, then at collectives.",
    )


def uneven(host: str, share: str) -> Firing:
    """The alert's text."""
    return firing(
        host,
        f"busiest and idlest GPU are {share} of the time apart.",
        "GPUs of one replica wait for each other: every step takes as long as its slowest rank. Look first for a GPU "
        "that is throttled, shared or behind a slower link, then at how the model is split over ranks (pipeline "
        "stages, experts), then at NCCL errors in the log.",
    )


def restarted(one: Series) -> Series:
    """The series of a process that starts again after a quarter of an hour, short of one sample."""
    start, _, rise = one["values"].removesuffix("x40").partition("+")
    first = f"{start}+{rise}x29" if rise else f"{start}x29"
    return {**one, "values": f"{first} stale {first}"}


LEVELS = Group(
    "each level that GPU figures tell has its alert, and its alert only",
    [
        *server("compute", tpot=SLOW, waiting=3),
        *gpus("compute", 0.97, 0.96),
        *server("edge", tpot=SLOW),
        *gpus("edge", 0.95),
        *server("fast"),
        *gpus("fast", 0.97),
        *server("free", tpot=SLOW),
        *gpus("free", 0.94),
        *server("false", tpot=SLOW),
        # The second case: SMs at 98 %, memory bandwidth at 40 %.
        *gpus("false", 0.98, 0.98, dram=0.4),
        *server("near", tpot=SLOW),
        *gpus("near", 0.98, 0.98, dram=0.44),
        *server("dram", tpot=SLOW),
        *gpus("dram", 0.98, 0.98, dram=0.45),
        *server("uneven", tpot=SLOW),
        *gpus("uneven", 0.99, 0.75),
        # Two servers of one GPU each, and a server on half of its host.
        *server("pair"),
        *server("pair", port=8001, running=0, tpot={0.06: 0}),
        *gpus("pair", 0.9, 0.3),
        *server("half"),
        *gpus("half", 0.9, 0.9, 0, 0),
        *server("almost"),
        *gpus("almost", 0.9, 0.71),
        *server("full", kv=0.95, tpot=SLOW),
        *gpus("full", 0.99, 0.5, dram=0.1),
        *server("idle", running=0, tpot={0.06: 0}),
        *gpus("idle", 0.99, 0.5, dram=0.1),
        *server("unseen", tpot=SLOW),
    ],
    alerts=[
        Alert("healthy", COMPUTE, 5),
        Alert("just_short", FALSE, 9.5),
        Alert("fires", FALSE, 10, [false("false", "40%"), false("near", "44%")]),
        Alert("just_short", UNEVEN, 9.5),
        Alert("fires", UNEVEN, 10, [uneven("uneven", "24%")]),
        Alert("just_short", COMPUTE, 10),
        Alert("fires", COMPUTE, 10.5, [compute("compute", "96.5%"), compute("edge", "95%"), compute("dram", "98%")]),
        Alert("fires", FALSE, 15, [false("false", "40%"), false("near", "44%")]),
        Alert("fires", UNEVEN, 15, [uneven("uneven", "24%")]),
    ],
)

RESTARTS = Group(
    "a server and its GPUs' exporter that start again neither end a finding nor make one",
    [
        restarted(one)
        for one in (
            *server("compute", tpot=SLOW),
            *gpus("compute", 0.97),
            *server("false"),
            *gpus("false", 0.98, dram=0.1),
            *server("uneven"),
            *gpus("uneven", 0.9, 0.6),
            *server("fine"),
            *gpus("fine", 0.9, 0.8),
        )
    ],
    alerts=[
        Alert("healthy", FALSE, 5),
        Alert("healthy", UNEVEN, 5),
        Alert("reset", COMPUTE, 14.5, [compute("compute", "97%")]),
        Alert("reset", FALSE, 14.5, [false("false", "10%")]),
        Alert("reset", UNEVEN, 14.5, [uneven("uneven", "30%")]),
        Alert("reset", COMPUTE, 29, [compute("compute", "97%")]),
        Alert("reset", FALSE, 29, [false("false", "10%")]),
        Alert("reset", UNEVEN, 29, [uneven("uneven", "30%")]),
    ],
)

GROUPS = [LEVELS, RESTARTS]
