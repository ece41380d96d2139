"""The body of an answer: decompressed, never beyond a limit, and text."""

import zlib

import aiohttp

GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_SNIFF = 1024


class Unusable(Exception):  # noqa: N818 - an outcome, not a fault of the program
    """An answer that gives no page: a reason from `scrape.REASONS` and what was expected and found."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


async def read_text(response: aiohttp.ClientResponse, limit: int) -> str:
    """The body as text, invalid UTF-8 replaced; raises Unusable.

    Stops as soon as `limit` bytes (after decompression) are exceeded, so neither a huge page nor a compressed bomb
    takes memory beyond it. A compressed body that breaks off is an error: half a page looks like a whole one.
    """
    declared = response.content_length
    if declared is not None and declared > limit:
        raise _too_large(limit, f"Content-Length {declared}")
    unpack = _Unpacker(response.headers.get("Content-Encoding", ""))
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        plain = unpack.feed(chunk, limit - size + 1)
        size += len(plain)
        if size > limit:
            raise _too_large(limit, "more")
        chunks.append(plain)
    unpack.finish()
    return _text(b"".join(chunks))


def _too_large(limit: int, found: str) -> Unusable:
    return Unusable("too_large", f"expected a page of at most {limit} bytes, found {found}")


def _text(body: bytes) -> str:
    if b"\0" in body[:_SNIFF]:
        raise Unusable("not_text", "expected text, found binary data")
    return body.decode("utf-8-sig", errors="replace")


class _Unpacker:
    """Undoes one content encoding piece by piece, each to `at_most` bytes: the caller's limit and one more."""

    def __init__(self, encoding: str) -> None:
        name = encoding.strip().lower()
        if name not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise Unusable("encoding", f"expected Content-Encoding gzip or none, found {encoding[:40]!r}")
        self._zlib = None if name in {"", "identity"} else zlib.decompressobj(GZIP_OR_ZLIB)

    def feed(self, chunk: bytes, at_most: int) -> bytes:
        if self._zlib is None:
            return chunk
        try:
            return self._zlib.decompress(chunk, at_most)
        except zlib.error as error:
            raise Unusable("encoding", f"expected a gzip body, found: {error}") from error

    def finish(self) -> None:
        if self._zlib is not None and not self._zlib.eof:
            raise Unusable("encoding", "expected a whole gzip body, found one that breaks off")
