"""What a query of a board reads: its parsed form, once every variable has some value."""

from collections.abc import Iterator
from typing import Any

import promql_parser

from tests.boards import GENERATED, defaults, substituted
from tidegauge import process, vllm
from tidegauge.catalogue import EXPORTED, RECORDED

SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}
OURS = {
    series.name + suffix: {*series.labels, *({"le"} if suffix == "_bucket" else ())}
    for series in (*EXPORTED, *process.SERIES, *RECORDED)
    for suffix in SUFFIXES.get(getattr(series, "kind", ""), ("",))
}
SPELT = vllm.KINDS | {old: vllm.KINDS[new] for old, new in vllm.ALIASES.items()}
"""vLLM's families under their older names too."""
VLLMS = {f"vllm:{name}{suffix}" for name, kind in SPELT.items() for suffix in SUFFIXES.get(kind, ("",))}
COUNTERS = {
    prefix + name + suffix
    for prefix, kinds in (("", {one.name: one.kind for one in (*EXPORTED, *process.SERIES)}), ("vllm:", SPELT))
    for name, kind in kinds.items()
    if kind in {"counter", "histogram"}
    for suffix in SUFFIXES.get(kind, ("",))
}
"""Series that only ever grow: what they are now says nothing, how much they grew does."""


def plain(expr: str) -> str:
    """The query as Grafana sends it when the board is opened."""
    return substituted(expr, {name: value for board in GENERATED.values() for name, value in defaults(board).items()})


def parsed(expr: str) -> Any:
    """The syntax tree."""
    return promql_parser.parse(plain(expr))


def within(node: Any, around: tuple[tuple[Any, str], ...] = ()) -> Iterator[tuple[Any, tuple[tuple[Any, str], ...]]]:
    """Every node of a tree, each with those around it, the outermost first, and in which part of them it lies."""
    yield node, around
    for part in ("expr", "lhs", "rhs", "vector_selector", "param"):
        child = getattr(node, part, None)
        if child is not None:
            yield from within(child, (*around, (node, part)))
    if isinstance(node, promql_parser.Call):
        for argument in node.args:
            yield from within(argument, (*around, (node, "args")))


def selectors(node: Any) -> Iterator[Any]:
    """Every vector selector of a tree."""
    return (one for one, _ in within(node) if isinstance(one, promql_parser.VectorSelector))


def names(expr: str) -> set[str]:
    """The series that a query reads."""
    return {selector.name for selector in selectors(parsed(expr))}
