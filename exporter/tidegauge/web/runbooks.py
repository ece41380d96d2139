"""The runbooks as pages, so that the link in a page that wakes somebody leads somewhere on any installation."""

import html
import re
from collections.abc import Mapping
from typing import Final

from aiohttp import web
from markdown_it import MarkdownIt

from tidegauge import shipped

FOLDER: Final = "docs/runbooks"
_ELSEWHERE: Final = re.compile(r"\[([^\]]+)\]\(\.\./[^)]*\)")
"""A link to a file of the repository, which is not served."""
_STYLE: Final = (
    "body{font:16px/1.5 sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem}"
    "code{background:#eee;color:#222;padding:.1em .3em}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"
)


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
        return _page("Runbooks", f"<h1>Runbooks</h1>{body}")

    async def one(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in pages:
            raise web.HTTPNotFound(text="no such runbook; /runbooks/ lists them\n")
        return _page(name, markdown.render(_ELSEWHERE.sub(r"\1", pages[name])))

    async def slash(_: web.Request) -> web.Response:
        # Relative: a proxy may serve the exporter below a path of its own.
        raise web.HTTPFound("runbooks/")

    return [
        web.get("/runbooks", slash),
        web.get("/runbooks/", index),
        web.get("/runbooks/{name}.md", one),
    ]


def _page(title: str, body: str) -> web.Response:
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>{body}</body></html>'
    )
    return web.Response(text=text, content_type="text/html")
