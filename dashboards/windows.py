"""Figures of a whole window: the dashboard's range ("after"), or one of its length, earlier by `$offset` ("before").

What is recorded covers a window of its own, which would reach from one of these into the time before it. So vLLM's
counters are asked for exactly the two windows, each figure over all requests of the chosen backends: a mean is time
over requests, never a mean of means.
"""

from typing import Final

import attrs

from dashboards.queries import FILTERS, NATIVE, ON_SUBJECT, RANGE, SUBJECT, buckets, by, native, otherwise, select
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc
from tidegauge.catalogue import thresholds as th
from tidegauge.catalogue.series import Recorded

OFFSET: Final = "offset"
P90: Final = 0.9
PHASES: Final = {"queue": vllm.QUEUE, "prefill": vllm.PREFILL, "decode": vllm.DECODE}
_SERVER: Final = (*NATIVE, lb.MODEL_NAME)
_ANY: Final = 1e-9
"""Less than anything that is counted, to divide by where that is nothing."""


@attrs.frozen
class Window:
    """One of the two windows; `shift` is what PromQL needs behind a selector to look at it."""

    name: str
    shift: str

    def range(self, selector: str) -> str:
        """The selector's samples in the window."""
        return f"{selector}{RANGE}{self.shift}"


AFTER: Final = Window("after", "")
BEFORE: Final = Window("before", f" offset ${{{OFFSET}}}")
WINDOWS: Final = (BEFORE, AFTER)


def checked(expr: str) -> str:
    """The expression, which Prometheus refuses where a reader has typed anything but a duration for `$offset`.

    `offset` alone takes `-1h`, `1h * 2` and, in Prometheus 3, plain numbers, and gives figures. What follows `0y` in
    brackets can only be a duration, of weeks at most. Nothing there is ever over 0.
    """
    return f"({expr}) unless on () max_over_time(vector(0)[0y${{{OFFSET}}}:1d]) > 0"


def overlapping() -> str:
    """1 where the windows have time in common, else nothing.

    A clock that is read that much earlier tells how far they are apart: the text of `$offset` is no number.
    """
    then = f"last_over_time(vector(time())[1s:1s]{BEFORE.shift})"
    return f"(vector($__range_s) > time() - {then}) ^ 0"


# --- vLLM's counters ------------------------------------------------------------------------------------------
def _increase(window: Window, name: str) -> str:
    """For `native`: what a counter of vLLM grew by, under its older names where today's is missing."""
    return " or ".join(f"increase({window.range(f'vllm:{one}%s')})" for one in (name, *vllm.older(name)))


def total(window: Window, counter: str) -> str:
    """What a counter of vLLM grew by, over the chosen backends."""
    return f"sum({native(_increase(window, counter))})"


def rate(window: Window, counter: str) -> str:
    """The same, per second."""
    return f"{total(window, counter)} / $__range_s"


def requests(window: Window) -> str:
    """Requests that finished."""
    return total(window, f"{vllm.E2E}_count")


def _resets(window: Window, family: str) -> list[str]:
    """For `native`: how often the sum of a histogram went back, and how often its count did."""
    return [f"resets({window.range(f'vllm:{family}{part}%s')})" for part in ("_sum", "_count")]


def _time(window: Window, family: str) -> str:
    """Summed time of a histogram; absent where a sum went back and its count did not, which is no restart."""
    back, restarted = (f"sum({native(one)})" for one in _resets(window, family))
    return f"({total(window, f'{family}_sum')} unless {back} > {restarted})"


def mean(window: Window, family: str) -> str:
    """Mean of what a histogram observed; absent where that is nothing."""
    return f"{_time(window, family)} / ({total(window, f'{family}_count')} > 0)"


def _phases(window: Window) -> str:
    return " + ".join(_time(window, family) for family in PHASES.values())


def other(window: Window) -> str:
    """Mean of the end-to-end time that is in no stage of the engine."""
    return f"clamp_min({_time(window, vllm.E2E)} - ({_phases(window)}), 0) / ({requests(window)} > 0)"


def share(window: Window, stage: str) -> str:
    """A stage's share of end-to-end time; of the four they add up to 1."""
    whole = f"({_time(window, vllm.E2E)} > 0)"
    if stage == "other":
        return f"clamp_min(1 - ({_phases(window)}) / {whole}, 0)"
    return f"{_time(window, PHASES[stage])} / {whole}"


def late(window: Window) -> str:
    """Share of requests that waited in the servers longer than the lowest bucket edge."""
    on_time = f"min without (le) ({native(_increase(window, f'{vllm.QUEUE}_bucket'))})"
    return f"clamp_min(1 - sum({on_time}) / ({total(window, f'{vllm.QUEUE}_count')} > 0), 0)"


def worst(window: Window, family: str, edge: Recorded | None = None) -> str:
    """p90 of the backend where it is longest, of those with enough requests; in the lowest bucket that one's edge."""
    grown = by("sum", native(_increase(window, f"{family}_bucket")), "le", *_SERVER)
    enough = f"{by('sum', native(_increase(window, f'{family}_count')), *_SERVER)} >= {th.MIN_REQUESTS.value:g}"
    longest = f"max(histogram_quantile({P90:g}, {grown}) and {enough})"
    if edge is None:
        return longest
    return f"clamp_min({longest}, scalar(max(last_over_time({window.range(select(edge))}))))"


def prefix_hit(window: Window) -> str:
    """Share of the looked-up prompt tokens that the prefix cache held; 0 where none was looked up."""
    return f"{total(window, vllm.PREFIX_HITS)} / clamp_min({total(window, vllm.PREFIX_QUERIES)}, {_ANY:g})"


# --- callers --------------------------------------------------------------------------------------------------
def _waits(window: Window, part: str, **labels: str) -> str:
    series = select(ex.CALLER_WAIT).replace("{", f"{part}{{", 1)
    given = "".join(f'{name}="{value}", ' for name, value in labels.items())
    return f"sum(increase({window.range(series.replace('{', f'{{{given}', 1))}))"


def caller_mean(window: Window) -> str:
    """Mean wait for a slot of the caller's own limiter."""
    return f"{_waits(window, '_sum')} / ({_waits(window, '_count')} > 0)"


def caller_late(window: Window) -> str:
    """Share of requests that waited longer than the default edge for the caller's slot."""
    on_time = _waits(window, "_bucket", le=f"{th.CALLER_EDGE_SECONDS.value:g}")
    return f"clamp_min(1 - {on_time} / ({_waits(window, '_count')} > 0), 0)"


def caller_p90(window: Window) -> str:
    """p90 of the wait for the caller's slot, of all callers (their buckets are alike); the edge where few waited."""
    grown = by("sum", f"increase({window.range(buckets(ex.CALLER_WAIT))})", "le")
    return f"clamp_min(histogram_quantile({P90:g}, {grown}) >= 0, {th.CALLER_EDGE_SECONDS.value:g})"


def waves(late_share: str) -> str:
    """Effective waves of a late share; absent when everyone waits."""
    return f"1 / (1 - {late_share} > 0)"


# --- one backend against another ------------------------------------------------------------------------------
def _members(window: Window) -> str:
    """Each chosen backend and model with the fleet that it was longest in."""
    return f"topk by ({', '.join(SUBJECT)}) (1, count_over_time({window.range(select(rc.FLEET_MEMBER))})) ^ 0"


def _each(window: Window, of_server: str) -> str:
    """The value of each server that is a chosen backend, by the name that our series have for it."""
    chosen = of_server.replace("%s", f'{{{lb.MODEL_NAME}=~"{FILTERS[lb.MODEL_NAME]}"}}')
    named = (
        f'label_join({chosen}, "{lb.BACKEND}", "", "{label}") and {ON_SUBJECT} {_members(window)}' for label in NATIVE
    )
    return by("max", otherwise(*named), *SUBJECT)


def _server(growth: str) -> str:
    """What a server's engines grew by together."""
    return by("sum", growth, *_SERVER)


def _served(window: Window) -> str:
    return _server(_increase(window, f"{vllm.E2E}_count"))


def _mean_of_server(window: Window, least: str) -> str:
    spent, (back, restarted) = _increase(window, f"{vllm.E2E}_sum"), _resets(window, vllm.E2E)
    return f"{_server(spent)} / ({_served(window)} {least}) unless {_server(back)} > {_server(restarted)}"


def each_requests(window: Window) -> str:
    """Requests that finished, by backend."""
    return _each(window, _served(window))


def each_mean(window: Window) -> str:
    """Mean end-to-end time, by backend."""
    return _each(window, _mean_of_server(window, "> 0"))


def each_prefix_hit(window: Window) -> str:
    """Prefix-cache hit, by backend."""
    hits, looked_up = (_server(_increase(window, one)) for one in (vllm.PREFIX_HITS, vllm.PREFIX_QUERIES))
    return _each(window, f"{hits} / ({looked_up} > 0)")


def skew(window: Window) -> str:
    """Slowest over fastest backend by mean end-to-end time, of the fleet where it is largest; both served enough."""
    enough = f">= {th.MIN_REQUESTS.value:g}"

    def of_fleet(operation: str, of_server: str) -> str:
        fleets = f"{_each(window, of_server)} * {ON_SUBJECT} group_left ({lb.FLEET}) {_members(window)}"
        return by(operation, fleets, lb.FLEET)

    slowest, fastest = (of_fleet(one, _mean_of_server(window, enough)) for one in ("max", "min"))
    return f"max({slowest} / ({fastest} > 0) and {of_fleet('count', f'({_served(window)} {enough})')} > 1)"
