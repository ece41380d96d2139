"""The runbooks as pages, so that the link in a page that wakes somebody leads somewhere on any installation."""

import re
from collections.abc import Mapping
from typing import Final

from aiohttp import web
from markdown_it import MarkdownIt

from tidegauge import shipped
from tidegauge.web.frame import framed

FOLDER: Final = "docs/runbooks"
_ELSEWHERE: Final = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")
"""A link to a file of the repository, which is not served."""


def read() -> dict[str, str]:
    """The shipped pages as Markdown, by the name of their alert; empty where the installation has none."""
    try:
        folder = shipped.root(FOLDER) / FOLDER
    except shipped.MissingError:
        return {}
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}


def routes(pages: Mapping[str, str]) -> list[web.RouteDef]:
    """`/runbooks/` lists the pages, `/runbooks/ALERT.md` is one; links between them work."""
    # A page is text of the project, but nothing in it may become markup of its own.
    markdown = MarkdownIt("commonmark", {"html": False})

    async def index(_: web.Request) -> web.Response:
        rows = "".join(f'<li><a href="{name}.md">{name}</a></li>' for name in pages)
        body = f"<ul>{rows}</ul>" if rows else "<p>This installation has none: they are in docs/runbooks.</p>"
        return framed("Runbooks", f"<h1>Runbooks</h1>{body}")

    async def one(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in pages:
            raise web.HTTPNotFound(text="no such runbook; /runbooks/ lists them\n")
        return framed(name, markdown.render(_ELSEWHERE.sub(r"\1", pages[name])))

    async def slash(_: web.Request) -> web.Response:
        # Relative: a proxy may serve the exporter below a path of its own.
        raise web.HTTPFound("runbooks/")

    return [
        web.get("/runbooks", slash),
        web.get("/runbooks/", index),
        web.get("/runbooks/{name}.md", one),
    ]
