"""What every page for people stands in: one head, one style, light or dark as the reader has it."""

import html
from typing import Final

from aiohttp import web

_STYLE: Final = (
    "body{font:16px/1.5 sans-serif;margin:2rem auto;max-width:50rem;padding:0 1rem}"
    "code{background:#eee;color:#222;padding:.1em .3em}"
    "td,th{padding:.2rem 1rem .2rem 0;text-align:left}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}a{color:#8bf}}"
)


def framed(title: str, body: str) -> web.Response:
    """The page of a *title*, which is text, and a *body*, which is markup already."""
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>{body}</body></html>'
    )
    return web.Response(text=text, content_type="text/html")
