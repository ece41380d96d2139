"""Writing the Prometheus text format with the heads of the lines built once.

No client library: it would keep registries and build every label string anew for each of thousands of simulated polls.
"""

from collections.abc import Callable, Mapping

from prometheus_client.utils import floatToGoString

from tidegauge.demo.tally import Distribution

Block = Callable[[], str]
"""Some lines of a page, with the values of this moment."""


def number(value: float) -> str:
    """A sample value as the client library prints it."""
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped


def labels(pairs: Mapping[str, str]) -> str:
    """Labels in braces, in alphabetical order as the client library writes them; nothing for no labels."""
    if not pairs:
        return ""
    escaped = {key: value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for key, value in pairs.items()}
    return "{" + ",".join(f'{key}="{escaped[key]}"' for key in sorted(escaped)) + "}"


def head(name: str, text: str, kind: str) -> str:
    """HELP and TYPE of a family."""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}"


def created(name: str, text: str, series: Mapping[str, float]) -> str:
    """The `_created` gauge of a counter, histogram or summary: creation time (unix seconds) by label string."""
    stem = name.removesuffix("_total")
    lines = [f"{stem}_created{own} {number(at)}" for own, at in series.items()]
    return "\n".join([head(f"{stem}_created", text, "gauge"), *lines])


def buckets(name: str, pairs: Mapping[str, str], distribution: Distribution) -> Block:
    """The series of one histogram."""
    edges = [*distribution.edges, float("inf")]
    heads = [f"{name}_bucket{labels({**pairs, 'le': number(edge)})} " for edge in edges]
    own = labels(pairs)

    def lines() -> str:
        cumulative = distribution.cumulative()
        rows = [start + number(value) for start, value in zip(heads, cumulative, strict=True)]
        rows += [f"{name}_count{own} {number(cumulative[-1])}", f"{name}_sum{own} {number(distribution.sum)}"]
        return "\n".join(rows)

    return lines
