"""What the figures mean, in sentences: each one says only what its figures carry."""

from collections.abc import Iterator
from typing import Final

from tidegauge.report.document import Document

_CAUSES: Final = {
    "deferred": "deferred by vLLM (remote KV, grammar, adapter)",
    "kv_cache": "for KV-cache space",
    "sequence_slots": "for a sequence slot (max_num_seqs)",
    "prefill_budget": "for the token budget of a step, with slots and KV cache free",
    "unknown": "for a cause that cannot be told, as max_num_seqs is unknown",
}
_OBSERVED: Final = {"source": "observed"}
"""Slots that were only observed bound nothing, like unknown ones."""
_ALIKE: Final = 1.1
"""A skew below this is the noise of any two servers."""


def verdicts(report: Document, fleet: Document) -> list[str]:
    """The findings on one fleet, the weightiest questions first."""
    backends = [one for one in report["backends"] if one["name"] in fleet["backends"]]
    return [
        *_stages(fleet),
        *_splits(fleet, backends),
        *_ceilings(fleet),
        *_waiting(backends),
        *_skew(fleet),
        *_capacity(fleet, backends),
        *_faults(backends),
    ]


def _stages(fleet: Document) -> Iterator[str]:
    stages = fleet["stages"]
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


def _splits(fleet: Document, backends: list[Document]) -> Iterator[str]:
    caller = fleet["caller_queue"]
    if caller is not None and caller["bimodal"]:
        yield (
            f"The caller's wait for a slot is split: {caller['late_ratio']:.0%} wait {_late(caller)}."
            f" vLLM cannot see this."
        )
    elif caller is not None and caller["saturated"]:
        yield f"The caller's limiter is saturated: {caller['late_ratio']:.0%} of the requests wait for a slot."
    for one in backends:
        for model in one["models"]:
            queue = model["queue"]
            if queue is not None and queue["bimodal"]:
                yield f"The queue of {one['name']} is split: {queue['late_ratio']:.0%} wait {_late(queue)}."
            elif queue is not None and queue["saturated"]:
                yield f"The queue of {one['name']} is saturated: {queue['late_ratio']:.0%} of the requests wait."


def _late(queue: Document) -> str:
    return f"at least {queue['late_seconds']:.2f} s in the mean, the others at most {queue['edge_seconds']:g} s"


def _ceilings(fleet: Document) -> Iterator[str]:
    bound = fleet["natural_bound"]
    barriers = best_barriers(fleet)
    for one in fleet["ceilings"]:
        who = "The caller's ceiling" if one["ceiling"] == "client" else "The servers' ceiling in sequence slots"
        order = barriers["waves"].get(one["ceiling"]) if barriers else None
        waves = f", {order['median']:.0f} wave(s) per barrier" if order else ""
        if one["state"] == "clips":
            yield f"{who} of {one['value']:.0f} clips: fan-out reaches {bound['value']:.0f}{waves}."
        elif one["state"] == "inert":
            yield f"{who} of {one['value']:.0f} is inert: fan-out never exceeds {bound['value']:.0f}{waves}."
        else:
            yield f"{who} of {one['value']:.0f} is unmeasured: no barrier was seen."
    if fleet["caller_queue"] is None and fleet["client_seconds"] is None:
        yield "No caller reports its waits: waiting before vLLM is unmeasured, not zero."


def _waiting(backends: list[Document]) -> Iterator[str]:
    for one in backends:
        booked = {cause: seconds for cause, seconds in one["waiting_seconds"].items() if seconds > 0}
        if booked:
            main = max(booked, key=lambda cause: booked[cause])
            yield (
                f"In {one['name']} requests waited {sum(booked.values()):.0f} s in all, {booked[main]:.0f} s of it"
                f" {_CAUSES.get(main, main)}."
            )
        if one["hidden_wait_seconds"]:
            yield (
                f"Preempted requests of {one['name']} waited again, about {one['hidden_wait_seconds']:.0f} s that vLLM"
                f" books as decode (an estimate)."
            )


def best_barriers(fleet: Document) -> Document | None:
    """The barriers of the exact source where there is one, else the inferred ones."""
    return next((one for one in fleet["barriers"] if one["count"]), None)


def _skew(fleet: Document) -> Iterator[str]:
    skew = fleet["skew"]
    if skew is not None and skew["ratio"] < _ALIKE:
        yield f"The backends are alike: mean end-to-end differs by a factor of {skew['ratio']:.2f}."
    elif skew is not None:
        yield (
            f"{skew['highest']} is the slowest backend: {skew['ratio']:.2f} times {skew['lowest']} by mean end-to-end."
        )


def _capacity(fleet: Document, backends: list[Document]) -> Iterator[str]:
    capacity, narrowest = fleet["request_capacity"], fleet["narrowest_request_capacity"]
    if "p90_prompt" in capacity:
        counted = [one for one in backends if one["up"] and not one["twin_of"]]
        unknown = [one["name"] for one in counted if (one["max_num_seqs"] or _OBSERVED)["source"] == "observed"]
        bound = f" An upper bound: the sequence slots of {', '.join(unknown)} are not known." if unknown else ""
        yield (
            f"At the p90 prompt the fleet holds {capacity['p90_prompt']:.0f} requests at once;"
            f" the narrowest backend holds {narrowest['p90_prompt']:.0f}.{bound}"
        )
    elif fleet["backends"] and not fleet["up"]:
        yield "Request capacity is 0: no backend of the fleet answers."
    elif fleet["backends"]:
        yield "Request capacity is unknown: a KV capacity or a p90 prompt is missing."


def _faults(backends: list[Document]) -> Iterator[str]:
    for one in backends:
        if one["twin_of"]:
            yield f"{one['name']} and {one['twin_of']} are one server: its capacity is counted once."
        if one["kv_cache_sources_disagree"]:
            yield f"The sources of the KV capacity of {one['name']} disagree."
        if one["up"] is False:
            yield f"{one['name']} does not answer."
        if one["dropped_intervals"]:
            reasons = ", ".join(f"{reason} {count}" for reason, count in one["dropped_intervals"].items())
            yield f"Intervals of {one['name']} that cannot be true were left out: {reasons}."
