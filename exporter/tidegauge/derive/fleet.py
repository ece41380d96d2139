"""Backends held against each other: the odd one out, and targets that are one server."""

from collections.abc import Mapping, Sequence

import attrs

from tidegauge.model import Identity


@attrs.frozen
class Skew:
    """Largest over smallest of a signal over the backends of a fleet, and who they are."""

    ratio: float
    highest: str
    lowest: str


def skew(values: Mapping[str, float]) -> Skew | None:
    """The skew of *values* by backend; None with fewer than two backends or a smallest value of 0."""
    if len(values) < 2:
        return None
    highest = max(values, key=lambda name: (values[name], name))
    lowest = min(values, key=lambda name: (values[name], name))
    if values[lowest] <= 0:
        return None
    return Skew(values[highest] / values[lowest], highest, lowest)


def duplicates(identities: Sequence[Identity]) -> dict[str, str]:
    """Backends that answer from the same process as an earlier one in the list, mapped to that one."""
    found: dict[str, str] = {}
    kept: list[Identity] = []
    for identity in identities:
        twin = next((other for other in kept if same_process(other, identity)), None)
        if twin is None:
            kept.append(identity)
        else:
            found[identity.backend] = twin.backend
    return found


def same_process(left: Identity, right: Identity) -> bool:
    """Whether two targets answer from one process.

    Same process start, same series, and counters that never go down from the earlier poll to the later. Without a
    process start (several API servers) the counters must be the same and not all zero.
    """
    if left.process_start != right.process_start or left.counters.keys() != right.counters.keys():
        return False
    if left.process_start is None:
        return any(left.counters.values()) and left.counters == right.counters
    early, late = (left, right) if left.at <= right.at else (right, left)
    return all(value <= late.counters[key] for key, value in early.counters.items())
