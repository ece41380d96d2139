"""Alerts on how callers load a fleet: ceilings, wrong counts, one server under two addresses, bursts."""

from tests.rules.promtool import Alert, Firing, Group, Series, Value, labels, series
from tests.rules.servers import exporter
from tests.rules.steady import Steady
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

CLIPS = "VllmCallerCeilingClips"
INERT = "VllmCallerCeilingInert"
COUNT = "VllmHealthyCountMismatch"
TWINS = "VllmDuplicateBackends"
BURSTS = "VllmBurstArrivals"
OTHER = "10.0.0.8:10011"


def ceiling(fleet: str, clipped: str, limit: str = "16x90", state: str = "clips", kind: str = "client") -> list[Series]:
    """A ceiling against barriers of 32 at most."""
    names = {"fleet": fleet, "ceiling": kind}
    states = {one: "1x90" if one == state else "0x90" for one in ("clips", "inert", "unmeasured")}
    return [
        exporter(ex.CEILING, limit, **names, source="reported"),
        exporter(ex.BARRIER_CLIPPED, clipped, **names, source="reported"),
        exporter(ex.NATURAL_BOUND, "32x90", fleet=fleet, source="config"),
        *(exporter(ex.CEILING_STATE, values, **names, state=one) for one, values in states.items()),
    ]


def memory(fleet: str, usage: str, preemptions: str = "0x90") -> list[Series]:
    """The one server of a fleet that is called like its model."""
    names = {"engine": "0", "instance": f"{fleet}:8000", "job": "vllm", "model_name": fleet}
    return [
        *Steady(names, gauges={vllm.RUNNING: 9, vllm.WAITING: 0}, steps=90).series(),
        series(f"vllm:{vllm.KV_USAGE}", usage, **names),
        series(f"vllm:{vllm.PREEMPTIONS}", preemptions, **names),
    ]


def clips(fleet: str, share: str, limit: int = 16) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "fleet": fleet, "ceiling": "client"},
        f"fleet {fleet}: the caller's ceiling of {limit} cuts {share} of the barriers into waves.",
        "Calls launched together are held back by the caller while no server is full and none preempts, so every step "
        "takes one more wave than it needs. Look first at the ceiling against the largest fan-out (32), then at the "
        "fleet's request capacity, then at how the ceiling was chosen.",
    )


CLIPPING = Group(
    "a caller's ceiling that cuts barriers is told, unless a server is full or preempts",
    [
        *ceiling("case", "0.975x90"),
        *memory("case", "0.22x90"),
        *ceiling("one", "0.01x90"),
        *ceiling("two", "0.5x90"),
        *(exporter(ex.BARRIER_CLIPPED, "0.25x90", OTHER, fleet="two", ceiling="client", source="inferred"),),
        *ceiling("fits", "0x90"),
        *memory("fits", "0.22x90"),
        *ceiling("slots", "0.9x90", kind="server"),
        *memory("slots", "0.22x90"),
        *ceiling("full", "0.9x90"),
        *memory("full", "0.9x90"),
        *ceiling("nearly", "0.9x90"),
        *memory("nearly", "0.89x90"),
        *ceiling("thrashes", "0.9x90"),
        *memory("thrashes", "0.4x90", "0+1x90"),
        # Full for a moment every ten minutes.
        *ceiling("at-times", "0.9x90"),
        *memory("at-times", "1 1 0.3x18 1 0.3x19 1 0.3x19 1 0.3x19 1"),
        # Full for the last time at minute 10.
        *ceiling("no-longer", "0.9x90"),
        *memory("no-longer", "1x20 0.3x70"),
    ],
    alerts=[
        Alert("just_short", CLIPS, 4.5),
        Alert(
            "fires", CLIPS, 5, [clips("case", "97.5%"), clips("one", "1%"), clips("two", "50%"), clips("nearly", "90%")]
        ),
        Alert(
            "fires",
            CLIPS,
            29,
            [clips("case", "97.5%"), clips("one", "1%"), clips("two", "50%"), clips("nearly", "90%")],
        ),
        Alert(
            "fires",
            CLIPS,
            31,
            [
                clips("case", "97.5%"),
                clips("one", "1%"),
                clips("two", "50%"),
                clips("nearly", "90%"),
                clips("no-longer", "90%"),
            ],
        ),
        Alert(
            "fires",
            CLIPS,
            44,
            [
                clips("case", "97.5%"),
                clips("one", "1%"),
                clips("two", "50%"),
                clips("nearly", "90%"),
                clips("no-longer", "90%"),
            ],
        ),
    ],
)

PREEMPTED = Group(
    "a preemption excuses the ceiling for a quarter of an hour",
    [*ceiling("once", "0.9x90"), *memory("once", "0.2x90", "0x29 1x60")],
    alerts=[
        Alert("fires", CLIPS, 14, [clips("once", "90%")]),
        Alert("healthy", CLIPS, 34),
        Alert("fires", CLIPS, 44, [clips("once", "90%")]),
    ],
)

CLIPPING_RESTART = Group(
    "an exporter that restarts forgets its barriers for a while, and a server's restart is no preemption",
    [
        *ceiling("case", "0.9x20 stale _x10 0.9x50"),
        *memory("case", "0.2x90", "900x20 0x60"),
        *ceiling("fuse", "_x90", "48x90", "inert"),
        *ceiling("fits", "0x90"),
        *memory("fits", "0.2x90", "900x20 0x60"),
    ],
    alerts=[
        Alert("reset", CLIPS, 9, [clips("case", "90%")]),
        Alert("reset", CLIPS, 13),
        Alert("reset", CLIPS, 20),
        Alert("reset", CLIPS, 22, [clips("case", "90%")]),
    ],
)


FITTING = Group(
    "a ceiling that cuts nothing is silent",
    [*ceiling("fits", "0x90"), *memory("fits", "0.2x90"), *ceiling("fuse", "0x90", "48x90", "inert")],
    alerts=[Alert("healthy", CLIPS, 20)],
)


def inert(fleet: str, margin: str, limit: int = 48) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "info", "fleet": fleet, "ceiling": "client"},
        f"fleet {fleet}: the caller's ceiling of {limit} is {margin} times the largest fan-out and never binds.",
        "It is a fuse and no control: raising it changes nothing, and whoever tunes it sees no effect. Look first at "
        "the natural bound, then at the fleet request capacity, which the fuse should not exceed.",
    )


FUSES = Group(
    "a caller's ceiling above the largest fan-out is told quietly, and after a while",
    [
        *ceiling("fuse", "0x90", "48x90", "inert"),
        *ceiling("equal", "0x90", "32x90", "inert"),
        *ceiling("case", "0.9x90"),
        *ceiling("new", "_x90", "48x90", "unmeasured"),
        *ceiling("server", "0x90", "320x90", "inert", "server"),
        # A restart of the exporter, in which it does not know.
        *ceiling("again", "0x90", "48x20 stale _ _ 48x80", "inert"),
    ],
    alerts=[
        Alert("healthy", INERT, 10),
        Alert("just_short", INERT, 29.5),
        Alert("fires", INERT, 30, [inert("fuse", "1.50"), inert("equal", "1.00", 32)]),
        Alert("reset", INERT, 41, [inert("fuse", "1.50"), inert("equal", "1.00", 32)]),
        Alert("reset", INERT, 42, [inert("fuse", "1.50"), inert("equal", "1.00", 32), inert("again", "1.50")]),
    ],
)


def member(
    backend: str, fleet: str = "world", up: str = "1x40", distinct: str = "1x40", at: str = OTHER
) -> list[Series]:
    """A backend as its exporter sees it."""
    return [
        exporter(ex.BACKEND_INFO, "1x40", at, backend=backend, fleet=fleet, version="0.32.0"),
        exporter(ex.BACKEND_UP, up, at, backend=backend),
        exporter(ex.BACKEND_DISTINCT, distinct, at, backend=backend),
    ]


def believes(fleet: str, values: str) -> Series:
    return exporter(ex.CALLER_HEALTHY, values, fleet=fleet)


def mismatch(fleet: str, believed: int, there: int) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "fleet": fleet},
        f"fleet {fleet}: the caller counts {believed} healthy backends, there are {there}.",
        "A ceiling per backend times a wrong count is a wrong ceiling: too high it overloads the fleet, too low it "
        "makes waves. Look first for targets that are the same server, then for a backend that is down or that the "
        "caller does not know, then at the health check of the caller.",
    )


def twin(backend: str, number: int) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "warning", "backend": backend},
        f"{backend} answers from the same server process as another target, {number} such in all.",
        "One server is configured under several addresses, and whoever counts addresses counts it several times: "
        "capacity and ceilings come out too high. The exporter itself counts it once. Look first at the list of "
        "backends for a host name and an IP address, or a service address, of the same server.",
    )


COUNTS = Group(
    "a caller that counts other servers than there are is told: twins and dead ones are none",
    [
        *member("a:8000"),
        *member("b:8000"),
        *member("b:8000", at="10.0.0.9:10011"),
        *member("a-again:8000", distinct="0x40"),
        *member("b-again:8000", distinct="0x40"),
        # The other exporter does not poll the original, and cannot know.
        *member("b-again:8000", at="10.0.0.9:10011"),
        believes("world", "4x40"),
        *member("c:8000", "right"),
        *member("d:8000", "right", up="0x40"),
        believes("right", "1x40"),
        *member("e:8000", "goes"),
        *member("f:8000", "goes", up="1x9 0x30"),
        believes("goes", "2x40"),
        *member("g:8000", "silent"),
        *member("h:8000", "dead", up="0x40"),
        believes("dead", "1x40"),
        *member("i:8000", ""),
    ],
    [
        Value(
            rec.FLEET_DISTINCT_UP,
            3,
            {
                labels(fleet="world"): 3,
                labels(fleet="right"): 1,
                labels(fleet="goes"): 2,
                labels(fleet="silent"): 1,
            },
        ),
        Value(
            rec.FLEET_DISTINCT_UP,
            8,
            {labels(fleet="world"): 3, labels(fleet="right"): 1, labels(fleet="goes"): 1, labels(fleet="silent"): 1},
        ),
    ],
    [
        Alert("just_short", COUNT, 4.5),
        Alert("fires", COUNT, 5, [mismatch("world", 4, 3)]),
        Alert("fires", COUNT, 10, [mismatch("world", 4, 3), mismatch("goes", 2, 1)]),
        Alert("just_short", TWINS, 4.5),
        Alert("fires", TWINS, 5, [twin("a-again:8000", 2), twin("b-again:8000", 2)]),
    ],
)

COUNTS_RESTART = Group(
    "an exporter that restarts finds the twin again; a caller and a fleet that agree are silent throughout",
    [
        *member("a:8000"),
        *member("b:8000"),
        *member("b-again:8000", distinct="0x11 1x1 0x26"),
        believes("world", "2x40"),
        *member("c:8000", "other"),
        believes("other", "1x9 stale _ _ 1x20"),
        *member("d:8000", "third"),
        believes("third", "3x9 stale _ _ 3x20"),
    ],
    alerts=[
        Alert("healthy", COUNT, 4.5),
        Alert("healthy", TWINS, 4.5),
        Alert("reset", COUNT, 10.5),
        Alert("reset", COUNT, 12, [mismatch("third", 3, 1)]),
        Alert("reset", TWINS, 6, []),
        Alert("reset", TWINS, 13, [twin("b-again:8000", 1)]),
    ],
)

ONE_SERVER_EACH = Group(
    "servers of their own, and a caller that counts them, are silent",
    [*member("a:8000"), *member("b:8000"), believes("world", "2x40")],
    alerts=[Alert("healthy", COUNT, 15), Alert("healthy", TWINS, 15)],
)


def bursts(fleet: str, times: int) -> Firing:
    """The alert's text."""
    return Firing(
        {"severity": "info", "fleet": fleet},
        f"fleet {fleet}: requests arrive in bursts, {times} times the mean rate in the busiest seconds.",
        "A fleet sized for the mean rate serves such bursts in waves, at low mean utilisation. Look first at the "
        "barriers and their fan-out, then at the effective waves of the queue, then whether the callers could launch "
        "their calls one after another.",
    )


def arriving(fleet: str, backend: str, calls: float, burst: str, at: str = OTHER) -> list[Series]:
    """A backend at which *calls* arrive in 30 s, and its fleet's burstiness."""
    return [
        exporter(ex.BACKEND_INFO, "1x60", at, backend=backend, fleet=fleet, version=""),
        exporter(ex.ARRIVALS, f"0+{calls:g}x60", at, backend=backend),
        exporter(ex.ARRIVAL_BURSTINESS, burst, at, fleet=fleet),
    ]


ARRIVALS = Group(
    "bursts are ten times the mean rate and five requests a second",
    [
        *arriving("case", "a:8000", 9, "60x60"),
        *arriving("case", "b:8000", 6, "")[:2],
        *arriving("case", "b:8000", 6, "58x60", "10.0.0.9:10011"),
        *arriving("ten", "c:8000", 15, "10x60"),
        *arriving("even", "d:8000", 900, "1.4x60"),
        *arriving("nearly", "e:8000", 900, "9.9x60"),
        *arriving("few", "i:8000", 6, "20x60"),
        # A request every 20 seconds: some second has one.
        *arriving("rare", "f:8000", 1.5, "20x60"),
        *arriving("none", "g:8000", 0, "_x60"),
        # An exporter that starts again.
        *arriving("again", "h:8000", 30, "40x20 stale _x9 40x30"),
    ],
    [
        Value(
            rec.FLEET_ARRIVAL_RATE,
            8,
            {
                labels(fleet="case"): 0.5,
                labels(fleet="ten"): 0.5,
                labels(fleet="even"): 30,
                labels(fleet="nearly"): 30,
                labels(fleet="few"): 0.2,
                labels(fleet="few"): 0.2,
                labels(fleet="rare"): 0.05,
                labels(fleet="none"): 0,
                labels(fleet="again"): 1,
            },
        ),
    ],
    [
        Alert("healthy", BURSTS, 9),
        Alert("fires", BURSTS, 24, [bursts("case", 60), bursts("ten", 10)]),
        Alert("reset", BURSTS, 24, [bursts("case", 60), bursts("ten", 10)]),
        Alert("reset", BURSTS, 25.5, [bursts("case", 60), bursts("ten", 10), bursts("again", 40)]),
    ],
)

FIRST_BURST = Group(
    "a burst is told when it has held",
    [*arriving("case", "a:8000", 600, "60x60"), *arriving("even", "d:8000", 900, "1.4x60")],
    alerts=[Alert("just_short", BURSTS, 10), Alert("fires", BURSTS, 10.5, [bursts("case", 60)])],
)

GROUPS = [
    CLIPPING,
    PREEMPTED,
    CLIPPING_RESTART,
    FITTING,
    FUSES,
    COUNTS,
    COUNTS_RESTART,
    ONE_SERVER_EACH,
    ARRIVALS,
    FIRST_BURST,
]
