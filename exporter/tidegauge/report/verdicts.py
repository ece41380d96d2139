"""What the figures mean, in sentences: each one says only what its figures carry."""

from collections.abc import Iterator
from typing import Final

from tidegauge.catalogue import thresholds as th
from tidegauge.report.document import Document

_CAUSES: Final = {
    "deferred": "deferred by vLLM (remote KV, grammar, adapter)",
    "kv_cache": "for KV-cache space",
    "sequence_slots": "for a sequence slot (max_num_seqs)",
    "prefill_budget": "with a slot free and KV usage under what counts as full: most likely for a step's token budget",
    "unknown": "for a cause that cannot be told, as max_num_seqs was not known then",
}
ENOUGH: Final = 0.95
"""Of a window, what counts as all of it: its oldest slot leaves as a whole, and the last poll is a while ago."""
_OBSERVED: Final = {"source": "observed"}
"""Slots that were only observed bound nothing, like unknown ones."""


def verdicts(report: Document, fleet: Document) -> list[str]:
    """The findings on one fleet, the weightiest questions first."""
    backends = [one for one in report["backends"] if one["name"] in fleet["backends"]]
    thresholds = report["thresholds"]
    return [
        *_down(backends),
        *_stages(fleet),
        *_splits(fleet, backends, thresholds),
        *_inferred(fleet),
        *_ceilings(fleet, backends),
        *_waiting(backends),
        *_skew(fleet, thresholds),
        *_capacity(fleet, backends),
        *_faults(backends),
        *_shorter(report, backends),
    ]


def of_no_fleet(report: Document) -> list[str]:
    """The findings on backends whose fleet is not known, since they were never reached."""
    return [*_down(without_fleet(report))]


def without_fleet(report: Document) -> list[Document]:
    """The backends whose fleet is not known."""
    return [one for one in report["backends"] if not one["fleet"]]


def _down(backends: list[Document]) -> Iterator[str]:
    for one in backends:
        if one["up"] is not False:
            continue
        last = f"failed with {one['last_failure']}"
        if one["models"]:
            yield f"{one['name']} is down: its last poll {last} (failed polls: {_failed(one)})."
        else:
            polls = _count(sum(one["failed_polls"].values()), "poll")
            yield f"{one['name']} is down: no page of vLLM's metrics in {polls}; the last one {last}."


def _failed(one: Document) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in one["failed_polls"].items())


def _stages(fleet: Document) -> Iterator[str]:
    stages = fleet["stages"]
    if not fleet["backends"]:
        yield "Callers report this fleet, but no backend has it as its fleet or model: check the name."
        return
    if stages is None:
        yield "No request finished in the window: nothing can be said of latency."
        return
    shares = {name: share for name, share in stages["share"].items() if share is not None}
    if not shares:
        yield "This vLLM does not export the stages of a request."
        return
    largest = max(shares, key=lambda name: shares[name])
    yield (
        f"{largest} is the largest stage: {shares[largest]:.1%} of end-to-end time;"
        f" halving it wins at most {stages['gain_ceiling'][largest]['0.5']:.1%}."
    )


def _splits(fleet: Document, backends: list[Document], thresholds: Document) -> Iterator[str]:
    caller = fleet["caller_queue"]
    if caller is not None and caller["bimodal"]:
        split = _split(caller, "the caller's whole time", thresholds)
        yield f"The caller's wait for a slot is split{split} vLLM cannot see this."
    elif caller is not None and caller["saturated"]:
        yield f"The caller's limiter is saturated: {caller['late_ratio']:.0%} of the requests wait for a slot."
    for one in backends:
        for model in one["models"]:
            queue = model["queue"]
            if queue is not None and queue["bimodal"]:
                yield f"The queue of {one['name']} is split" + _split(queue, "end-to-end time", thresholds)
            elif queue is not None and queue["saturated"]:
                yield f"The queue of {one['name']} is saturated: {queue['late_ratio']:.0%} of the requests wait."
            elif queue is not None and some_wait(queue, thresholds) and _costs(queue, thresholds):
                yield (
                    f"The queue of {one['name']} is {queue['impact_ratio']:.0%} of end-to-end time:"
                    f" {queue['late_ratio']:.0%} of the requests wait over {queue['edge_seconds']:g} s, yet too short"
                    f" against that edge to call it split."
                )


def some_wait(queue: Document, thresholds: Document) -> bool:
    """Whether more than a few stragglers waited."""
    return queue["late_seconds"] is not None and bool(queue["late_ratio"] >= thresholds[th.BIMODAL_LATE_LOW.key])


def _costs(queue: Document, thresholds: Document) -> bool:
    return queue["impact_ratio"] is not None and bool(queue["impact_ratio"] >= thresholds[th.PAGE_IMPACT.key])


def _split(queue: Document, whole: str, thresholds: Document) -> str:
    """How deep a split is, and whether it is the finding: one that costs little of *whole* is only a warning."""
    impact = queue["impact_ratio"]
    late = (
        f"{queue['late_ratio']:.0%} wait at least {queue['late_seconds']:.2f} s in the mean,"
        f" the others at most {queue['edge_seconds']:g} s"
    )
    if queue["pages"]:
        return f": {late}. Waiting is {impact:.1%} of {whole}."
    if impact is None:
        return f": {late}. What that costs is not known."
    least = thresholds[th.PAGE_IMPACT.key] * 100
    return (
        f" but costs little: {late}. Waiting is {impact:.1%} of {whole}, under {least:g}%: not the first thing to mend."
    )


def _inferred(fleet: Document) -> Iterator[str]:
    """How far an inferred fan-out can be trusted, before anything is made of it."""
    barriers, grounds = best_barriers(fleet), grounds_of(fleet)
    if barriers is None or grounds is None:
        return
    count, largest = _count(barriers["count"], "inferred barrier"), f"The largest, {barriers['fan_out']['max']:.0f},"
    if grounds["few"]:
        yield f"Fan-out rests on {count} only: watch longer before acting on it."
    if grounds["maybe_merged"]:
        seen = (
            f"is one of them: at most {grounds['largest_in_flight']} of its calls were seen in flight at once"
            if grounds["largest_maybe_merged"]
            else "is none of them"
        )
        yield (
            f"{grounds['maybe_merged']} of {count} may each be several seen as one: calls came in place of finished"
            f" ones, though under a caller's ceiling they do so too (docs/barriers.md). {largest} {seen}."
        )


def grounds_of(fleet: Document) -> Document | None:
    """What the fan-out rests on where it is inferred; None where it is exact, or not known."""
    barriers = best_barriers(fleet)
    if barriers is None or barriers["source"] != "inferred":
        return None
    grounds: Document | None = fleet["inference"]["grounds"]
    return grounds


def _ceilings(fleet: Document, backends: list[Document]) -> Iterator[str]:
    barriers = best_barriers(fleet)
    known = {one["ceiling"]: one for one in fleet["ceilings"]}
    for one in fleet["ceilings"]:
        order = barriers["waves"].get(one["ceiling"]) if barriers else None
        waves = f"; the median barrier takes {_count(order['median'], 'wave')}" if order else ""
        if one["ceiling"] == "server":
            yield _slots(one, known.get("client"), fleet, backends, waves)
            continue
        who = "The caller's ceiling" + (", observed as a plateau," if one["source"] == "observed" else "")
        yield f"{who} of {one['value']:.0f} {_judged(one, fleet)}{waves}."
    if fleet["caller_queue"] is None and fleet["client_seconds"] is None:
        yield "No caller reports its waits: waiting before vLLM is unmeasured, not zero."


def _judged(one: Document, fleet: Document) -> str:
    """What the ceiling's state means, against the natural bound and where that is from."""
    bound = fleet["natural_bound"]
    if one["state"] == "unmeasured":
        return "is unmeasured: no barrier was seen"
    seen = "fan-out, as inferred," if bound["source"] == "inferred" else "fan-out"
    if one["state"] == "clips":
        return f"clips: {seen} reaches {bound['value']:.0f}"
    return f"is inert: {seen} never exceeds {bound['value']:.0f}"


def _slots(one: Document, client: Document | None, fleet: Document, backends: list[Document], waves: str) -> str:
    """The servers' slots are one pool only where calls spread as the slots do, and only what a caller lets through."""
    who = f"The servers' ceiling of {one['value']:.0f} sequence slots in all"
    if client is not None and client["value"] < one["value"]:
        return f"{who} is not reached: the caller's ceiling of {client['value']:.0f} is lower."
    short = [backend["name"] for backend in backends if backend["waiting_seconds"].get("sequence_slots")]
    if one["state"] == "inert" and short:
        return f"{who} would do, yet requests waited for a slot on {', '.join(short)}: calls do not spread as slots do."
    return f"{who} {_judged(one, fleet)}{waves}."


def _count(number: float, noun: str) -> str:
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def _waiting(backends: list[Document]) -> Iterator[str]:
    for one in backends:
        booked = {cause: seconds for cause, seconds in one["waiting_seconds"].items() if seconds > 0}
        if booked:
            main = max(booked, key=lambda cause: booked[cause])
            yield (
                f"On {one['name']} requests waited about {sum(booked.values()):.0f} s in all by its waiting gauge,"
                f" {booked[main]:.0f} s of it {_CAUSES.get(main, main)}."
            )
        if one["hidden_wait_seconds"]:
            yield (
                f"Preempted requests of {one['name']} waited again, about {one['hidden_wait_seconds']:.0f} s that vLLM"
                f" books as decode (an estimate)."
            )


def best_barriers(fleet: Document) -> Document | None:
    """The barriers of the exact source where there is one, else the inferred ones."""
    return next((one for one in fleet["barriers"] if one["count"]), None)


def _skew(fleet: Document, thresholds: Document) -> Iterator[str]:
    skew = fleet["skew"]
    if skew is None:
        return
    least = thresholds[th.SKEW.key]
    if skew["ratio"] < least:
        yield (
            f"No backend is the odd one out: mean end-to-end differs by a factor of {skew['ratio']:.2f} at most"
            f" ({skew['highest']} over {skew['lowest']}), under {least:g}."
        )
    else:
        yield f"{skew['highest']} is the odd one out: {skew['ratio']:.2f} times {skew['lowest']} by mean end-to-end."


def _capacity(fleet: Document, backends: list[Document]) -> Iterator[str]:
    capacity, narrowest = fleet["request_capacity"], fleet["narrowest_request_capacity"]
    if "p90_prompt" in capacity:
        counted = [one for one in backends if one["up"] and not one["twin_of"]]
        unknown = [one["name"] for one in counted if (one["max_num_seqs"] or _OBSERVED)["source"] == "observed"]
        bound = f" An upper bound: the sequence slots of {', '.join(unknown)} are not known." if unknown else ""
        whole = capacity.get("p90_prompt_and_output")
        output = f", {whole:.0f} with their output" if whole is not None and whole != capacity["p90_prompt"] else ""
        least = f"; the narrowest backend holds {narrowest['p90_prompt']:.0f}" if len(counted) > 1 else ""
        yield f"At the p90 prompt the fleet holds {capacity['p90_prompt']:.0f} requests at once{output}{least}.{bound}"
    elif fleet["backends"] and not fleet["up"]:
        yield "Request capacity is 0: no backend of the fleet answers."
    elif fleet["backends"]:
        lacking = [one["name"] for one in backends if one["up"] and "p90_prompt" not in one["request_capacity"]]
        yield (
            f"Request capacity of the fleet is unknown: of {', '.join(lacking)} the KV capacity, or enough requests for"
            f" a p90 prompt, is missing."
        )


def _faults(backends: list[Document]) -> Iterator[str]:
    for one in backends:
        if one["twin_of"]:
            yield f"{one['name']} and {one['twin_of']} are one server: its capacity is counted once."
        if one["kv_cache_sources_disagree"]:
            yield f"The sources of the KV capacity of {one['name']} disagree."
        if one["up"] is not False and one["failed_polls"]:
            yield f"{one['name']} did not answer every poll ({_failed(one)}): what happened then is in no figure."
        if one["restarts"]:
            yield f"{one['name']} restarted {_count(one['restarts'], 'time')}."
        aborted = sum(model["aborted_after_first_token"] or 0 for model in one["models"])
        if aborted:
            yield f"{_count(aborted, 'request')} of {one['name']} left after the first token: no latency has them."
        if one["dropped_intervals"]:
            reasons = ", ".join(f"{reason} {count}" for reason, count in one["dropped_intervals"].items())
            yield f"Intervals of {one['name']} that cannot be true were left out: {reasons}."


def covered(report: Document) -> float:
    """The seconds of the window that polls of any backend covered; 0: the life of the servers."""
    known = [one["covered_seconds"] for one in report["backends"] if one["covered_seconds"] is not None]
    window: float = report["window_seconds"]
    longest: float = max(known, default=window)
    return window if longest >= ENOUGH * window else longest


def _shorter(report: Document, backends: list[Document]) -> Iterator[str]:
    """Backends whose figures are of another time than the report says."""
    whole = covered(report)
    for one in backends:
        if one["covered_seconds"] is None and whole:
            yield f"The figures of {one['name']} are of the server's whole life: its capture holds one page."
        elif one["covered_seconds"] and one["covered_seconds"] < ENOUGH * whole:
            yield f"The figures of {one['name']} cover {one['covered_seconds']:.0f} s of those {whole:.0f} s."
