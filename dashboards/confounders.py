"""What else may have changed between two windows, and whether a difference may be credited to anything at all.

A confounder is compared as moved, same or unknown. Unknown is no "same": a difference is comparable only where every
confounder is known and none moved.
"""

from collections.abc import Callable
from typing import Final

import attrs

from dashboards import windows as w
from dashboards.fields import GOOD, NEUTRAL, WARN, Json, between, state
from dashboards.queries import ON_BACKEND, by, native, otherwise, select
from dashboards.windows import AFTER, BEFORE, WINDOWS, Window
from tidegauge import vllm
from tidegauge.catalogue import Series
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th

TOLERANCE: Final = 0.05
"""Relative to before, what counts as the same: the mean length of some hundred requests differs that much by chance."""
FIGURE: Final = "figure"
"""The label that names the rows of a comparison."""
SAME, UNKNOWN, MOVED = 0, 1, 100
"""Told apart in their sum, as long as there are fewer than a hundred confounders."""
TOO_FEW: Final = 10_000
OVERLAP: Final = 20_000
_TOLD: Final = "~" + "|".join(one for one in lb.FACT_SOURCES if one != "observed")
"""What was observed is a lower bound that follows the load: a change of it is none of the configuration."""


@attrs.frozen
class Confounder:
    """A figure of both windows, and 1 where it moved, 0 where it is the same, nothing where that is not known."""

    title: str
    of: Callable[[Window], str]
    moved: str


def _measured(title: str, of: Callable[[Window], str]) -> Confounder:
    """A figure of the load: 0 in both windows is the same, and anything over 0 moved."""
    before, after = (of(window) for window in WINDOWS)
    return Confounder(title, of, f"abs(({after}) / ({before}) - 1) > bool {TOLERANCE:g}")


def _fact(title: str, series: Series) -> Confounder:
    """A fact about each server, compared server by server: two that swap theirs are no "same"."""

    def each(window: Window, which: str = "min") -> str:
        """The fact of each server, the least or the most of the window."""
        return by("max", f"{which}_over_time({window.range(select(series, source=_TOLD))})", lb.BACKEND)

    more = f"{each(AFTER, 'max')} > {ON_BACKEND} ({1 + TOLERANCE:g} * {each(BEFORE)})"
    less = f"{each(AFTER)} < {ON_BACKEND} ({1 - TOLERANCE:g} * {each(BEFORE, 'max')})"
    return Confounder(
        title, lambda window: f"sum({each(window)})", _judged(f"count({otherwise(more, less)}) ^ 0", each)
    )


def _versions() -> Confounder:
    def each(window: Window) -> str:
        told = select(ex.BACKEND_INFO).replace("{", f'{{{lb.VERSION}!="", ', 1)
        return by("group", f"last_over_time({window.range(told)})", lb.BACKEND, lb.VERSION)

    def others(here: str, there: str) -> str:
        """What servers that are in both windows run here and not there."""
        return f"(({here}) unless ({there})) and {ON_BACKEND} ({there})"

    before, after = (each(window) for window in WINDOWS)
    moved = f"count({otherwise(others(after, before), others(before, after))}) ^ 0"
    return Confounder(
        "server versions", lambda window: f"count({by('group', each(window), lb.VERSION)})", _judged(moved, each)
    )


def _judged(moved: str, each: Callable[[Window], str]) -> str:
    """1 where moved; else 0 if the fact is known of every server in both windows, else nothing."""
    unknown = " or ".join(
        f"({by('group', f'last_over_time({window.range(select(rc.FLEET_MEMBER))})', lb.BACKEND)} "
        f"unless {ON_BACKEND} {each(window)})"
        for window in WINDOWS
    )
    known = f"(count({each(BEFORE)}) + count({each(AFTER)})) * 0"
    return otherwise(moved, f"{known} unless on () ({unknown})")


def _up(window: Window) -> str:
    """Servers that were reached, on average: one that is gone for half the window counts half."""
    up = window.range(select(rc.BACKEND_UP))
    return f"sum(sum_over_time({up})) / max(count_over_time({up}))"


def _restarts(window: Window) -> str:
    """Servers whose counters fell: in the earlier window, or from its end to now."""
    span = f"[${{{w.OFFSET}}}]" if window is AFTER else f"[$__range]{window.shift}"
    return f"sum({native(f'resets(vllm:{vllm.E2E}_count%s{span})')})"


CONFOUNDERS: Final = (
    _measured("prefix-cache hit, 0 to 1", w.prefix_hit),
    _measured("requests per second", lambda window: w.rate(window, f"{vllm.E2E}_count")),
    _measured("prompt tokens, mean", lambda window: w.mean(window, vllm.PROMPT_LENGTH)),
    _measured("output tokens, mean", lambda window: w.mean(window, vllm.OUTPUT_LENGTH)),
    _measured("servers up", _up),
    Confounder("restarts, then and since", _restarts, f"({_restarts(AFTER)} + {_restarts(BEFORE)}) > bool 0"),
    _fact("max_num_seqs, all servers", ex.MAX_NUM_SEQS),
    _fact("step budget, all servers", ex.MAX_BATCHED_TOKENS),
    _fact("KV tokens, all servers", ex.KV_CAPACITY),
    _versions(),
)


def named(title: str, expr: str) -> str:
    """The value under its name, as a row of a table."""
    return f'label_replace({expr}, "{FIGURE}", "{title}", "", "")'


def values(window: Window) -> str:
    """Every confounder's figure in the window."""
    return " or ".join(named(one.title, one.of(window)) for one in CONFOUNDERS)


def states() -> str:
    """`MOVED`, `SAME` or `UNKNOWN` for every confounder."""
    return " or ".join(
        named(one.title, otherwise(f"({one.moved}) * {MOVED}", f"vector({UNKNOWN})")) for one in CONFOUNDERS
    )


def verdict() -> str:
    """The sum of the states, or `OVERLAP`, or `TOO_FEW` where a window has not enough requests."""
    enough = " and ".join(f"({w.requests(window)} >= {th.MIN_REQUESTS.value:g})" for window in WINDOWS)
    return otherwise(f"{w.overlapping()} * {OVERLAP}", f"sum({states()}) and {enough}", f"vector({TOO_FEW})")


def state_words() -> list[Json]:
    """What the table says for a state."""
    return [state(MOVED, "moved", WARN), state(SAME, "same", GOOD), state(UNKNOWN, "unknown", NEUTRAL)]


def verdict_words() -> list[Json]:
    """What the verdict says: nothing is credited while anything moved or is unknown."""
    counts = range(1, len(CONFOUNDERS) + 1)
    return [
        state(SAME, "comparable", GOOD),
        *(state(UNKNOWN * n, f"cannot tell: {n} unknown", NEUTRAL) for n in counts),
        *(between(MOVED * n, MOVED * (n + 1) - 1, f"confounded: {n} moved", WARN) for n in counts),
        state(TOO_FEW, "not enough data", NEUTRAL),
        state(OVERLAP, "windows overlap", NEUTRAL),
    ]
