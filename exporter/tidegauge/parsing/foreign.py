"""What a body is that is no page of vLLM's, in words for an operator who gave the wrong address."""

import re

from tidegauge.parsing.samples import Series

_ECHO = 60
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_COMMENT = re.compile(r"\s*#\s*(?:HELP|TYPE)\s+(\S+)")


def document(body: str) -> str | None:
    """Names a body that is HTML, XML or JSON, or empty; None for anything else."""
    start = body.lstrip()[:1]
    if not start:
        return "an empty body"
    if start == "<":
        title = _TITLE.search(body, 0, 10_000)
        return f"an HTML or XML document titled {echo(title[1])}" if title else "an HTML or XML document"
    return "a JSON document" if start in '{["' else None


def page(lines: list[str], series: dict[str, Series], routers: int) -> str:
    """Names a body without any series or family of vLLM's."""
    if routers:
        return f"a router's page: {routers} of its series tell of other servers (label server); ask the engines"
    for found in series.values():
        return f"a metrics page without vLLM's families, beginning with {echo(found.name)}"
    first = next((line for line in lines if line.strip()), "")
    return f"text that is no metrics page, beginning with {echo(first)}"


def names_vllm(lines: list[str], series: dict[str, Series], prefixes: tuple[str, ...]) -> bool:
    """Whether any sample, HELP or TYPE line has one of the prefixes; a name like `vllm_omni:x` is a neighbour's."""
    comments = (match[1] for line in lines if (match := _COMMENT.match(line)))
    return any(
        name.startswith(prefix) and ":" not in name[len(prefix) :]
        for names in ((found.name for found in series.values()), comments)
        for name in names
        for prefix in prefixes
    )


def echo(text: str) -> str:
    """A short, printable piece of foreign text."""
    flat = " ".join(text.split())
    return ascii(flat if len(flat) <= _ECHO else flat[: _ECHO - 3] + "...")[:80]
