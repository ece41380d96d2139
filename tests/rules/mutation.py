"""Wrong variants of the rules, made one at a time from what each rule says.

Every threshold and other number, comparison, hold, window, label that something is aggregated or joined by, set
operator and severity has its wrong variants; and every series read is also made impossible: by a matcher that selects
nothing, and by the name of a counter without `_total`. Rules that write one series under several labels come from one
line of jsonnet, and are changed together.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

COMPARISONS = {
    ">=": (">", "<"),
    ">": (">=", "<="),
    "<=": ("<", ">"),
    "<": ("<=", ">="),
    "==": ("!=",),
    "!=": ("==",),
}
SET_OPERATORS = {"and": "unless", "unless": "and", "or": "and"}
LABEL_LISTS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
TWO = 2  # colons in the name of a recorded series
KEYWORDS = LABEL_LISTS | SET_OPERATORS.keys() | {"bool", "offset"}
TOKEN = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\])*")
    |(?P<duration>\d+[smhdw]\b)
    |(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)
    |(?P<name>[a-zA-Z_][a-zA-Z0-9_:]*)
    |(?P<comparison>>=|<=|==|!=|=~|!~|>|<)
    |(?P<other>\S)""",
    re.VERBOSE,
)


@attrs.frozen
class Mutant:
    """A fault called `name`: by group and index of a rule, the part that is changed and its wrong value."""

    name: str
    kind: str
    subject: str
    changes: Mapping[tuple[int, int], tuple[str, str]]

    def applied(self, rules: dict[str, Any]) -> dict[str, Any]:
        """The rules with the fault."""
        groups = [{**group, "rules": list(group["rules"])} for group in rules["groups"]]
        for (group, index), (part, new) in self.changes.items():
            rule = groups[group]["rules"][index]
            severity = {"labels": {**rule.get("labels", {}), "severity": new}}
            groups[group]["rules"][index] = {**rule, **(severity if part == "severity" else {part: new})}
        return {"groups": groups}


@attrs.frozen
class Edit:
    """Characters *start* to *end* of an expression become *new*."""

    kind: str
    start: int
    end: int
    new: str


@attrs.frozen
class Token:
    """A piece of an expression, whether it lies between braces, and the label list that it lies in."""

    kind: str
    text: str
    start: int
    end: int
    matcher: bool
    listed: str


def tokens(expr: str) -> list[Token]:
    """An expression in pieces."""
    found: list[Token] = []
    braces, listed, opened = 0, "", ""
    for match in TOKEN.finditer(expr):
        text = match.group()
        if text == "(" and found and found[-1].text in LABEL_LISTS:
            opened = found[-1].text
        elif text == ")" and listed:
            listed = opened = ""
        found.append(Token(match.lastgroup or "", text, match.start(), match.end(), braces > 0, listed))
        if opened and not listed:
            listed = opened
        braces += {"{": 1, "}": -1}.get(text, 0)
    return found


def number(text: str) -> Iterator[str]:
    value = float(text)
    yield from (f"{v:.12g}" for v in ((2 * value, value / 2) if value else (1,)))


def duration(text: str) -> Iterator[str]:
    """Twice and half of it; nothing below two samples of the cases, which would be no rate at all."""
    seconds = int(text[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}[text[-1]]
    yield f"{2 * seconds}s"
    yield f"{seconds // 2}s"


def raw(pieces: Sequence[Token]) -> bool:
    """Whether the aggregation whose labels these begin with reads a series as it was scraped, not aggregated before."""
    depth = 0
    for one in pieces[next(at for at, piece in enumerate(pieces) if piece.text == ")") + 1 :]:
        depth += {"(": 1, ")": -1}.get(one.text, 0)
        if one.text == "by":
            return False
        if (
            one.kind == "name"
            and not one.matcher
            and one.text.startswith(("vllm", "ray_", "tidegauge_", "DCGM_", "up"))
        ):
            return one.text.count(":") < TWO
        if depth == 0:
            break
    return False


def labels(pieces: Sequence[Token], at: int) -> Iterator[Edit]:
    """The label left out of its list; and beside the first of an aggregation, one more."""
    one = pieces[at]
    before, after = pieces[at - 1], pieces[at + 1]
    if after.text == ",":
        yield Edit("label left out", one.start, pieces[at + 2].start, "")
    elif before.text == ",":
        yield Edit("label left out", before.start, one.end, "")
    else:
        yield Edit("label left out", one.start, one.end, "")
    if one.listed == "by" and before.text == "(" and raw(pieces[at:]):
        yield Edit("label too many", one.start, one.start, "instance, engine, ")


def selector(pieces: Sequence[Token], at: int) -> Iterator[Edit]:
    """The series made impossible."""
    one = pieces[at]
    follows = pieces[at + 1].text if at + 1 < len(pieces) else ""
    if follows == "{":
        brace = pieces[at + 1].end
        comma = "" if pieces[at + 2].text == "}" else ","
        yield Edit("matcher selects nothing", brace, brace, f'none="nothing"{comma}')
    else:
        yield Edit("matcher selects nothing", one.end, one.end, '{none="nothing"}')
    if one.text.endswith("_total"):
        yield Edit("name without _total", one.start, one.end, one.text.removesuffix("_total"))


def edits(expr: str) -> Iterator[Edit]:
    """Every wrong variant of an expression."""
    pieces = tokens(expr)
    for at, one in enumerate(pieces):
        following = pieces[at + 1].text if at + 1 < len(pieces) else ""
        if one.matcher:
            continue
        if one.listed and one.kind == "name":
            yield from labels(pieces, at)
        elif one.kind == "number":
            near = {pieces[at - 1].kind if at else "", pieces[at + 1].kind if following else ""}
            kind = "threshold" if "comparison" in near else "number"
            yield from (Edit(kind, one.start, one.end, new) for new in number(one.text))
        elif one.kind == "duration":
            yield from (Edit("window", one.start, one.end, new) for new in duration(one.text))
        elif one.kind == "comparison":
            yield from (Edit("comparison", one.start, one.end, new) for new in COMPARISONS[one.text])
        elif one.text in SET_OPERATORS:
            yield Edit("set operator", one.start, one.end, SET_OPERATORS[one.text])
        elif one.kind == "name" and one.text not in KEYWORDS and following not in {"(", "by", "without"}:
            yield from selector(pieces, at)


def title(rule: dict[str, Any]) -> str:
    """A rule by its name; an alert with the labels that tell it from others of its name."""
    told = "".join(f",{rule['labels'][key]}" for key in ("severity", "window") if key in rule.get("labels", {}))
    return rule.get("record") or rule["alert"] + told


Place = tuple[int, int]


def of_family(family: Mapping[Place, dict[str, Any]]) -> Iterator[Mutant]:
    """The wrong variants of rules that are one but for their labels and numbers."""
    (first, *_) = family.values()
    subject = first.get("record") or first["alert"]
    variants = [list(edits(rule["expr"])) for rule in family.values()]
    for same in zip(*variants, strict=True):
        changes = {
            place: ("expr", rule["expr"][: edit.start] + edit.new + rule["expr"][edit.end :])
            for (place, rule), edit in zip(family.items(), same, strict=True)
        }
        old = first["expr"][same[0].start : same[0].end]
        name = f"{title(first)} at {same[0].start}: {same[0].kind}: {old!r} -> {same[0].new!r}"
        yield Mutant(name, same[0].kind, subject, changes)
    if "alert" in first:
        ((place, rule),) = family.items()
        for new in duration(rule["for"]):
            yield Mutant(f"{title(rule)}: hold: {rule['for']} -> {new}", "hold", subject, {place: ("for", new)})
        severity = rule["labels"]["severity"]
        new = "critical" if severity != "critical" else "warning"
        yield Mutant(f"{title(rule)}: severity: -> {new}", "severity", subject, {place: ("severity", new)})


def families(rules: dict[str, Any]) -> Iterator[dict[Place, dict[str, Any]]]:
    """Rules by what they write and the shape of their expressions; an alert is a family of its own."""
    found: dict[tuple[Any, ...], dict[Place, dict[str, Any]]] = {}
    for number_of_group, group in enumerate(rules["groups"]):
        for index, rule in enumerate(group["rules"]):
            place = (number_of_group, index)
            shape = tuple((edit.kind, edit.new if edit.kind == "comparison" else "") for edit in edits(rule["expr"]))
            found.setdefault((rule["record"], shape) if "record" in rule else place, {})[place] = rule
    yield from found.values()


def mutants(rules: dict[str, Any]) -> list[Mutant]:
    """The wrong variants of all rules, each with a name of its own."""
    made = [mutant for family in families(rules) for mutant in of_family(family)]
    seen: Counter[str] = Counter()
    named = []
    for mutant in made:
        seen[mutant.name] += 1
        again = f" ({seen[mutant.name]})" if seen[mutant.name] > 1 else ""
        named.append(attrs.evolve(mutant, name=mutant.name + again))
    return named
