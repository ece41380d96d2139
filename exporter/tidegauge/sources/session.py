"""The one HTTP session that all polls share, set up so that no backend can hold up another."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from tidegauge import __version__


class Resolver(AbstractResolver):
    """Name look-ups on threads of their own, one per backend.

    The event loop's default pool has a handful of threads: as many names that hang would stop the look-ups of
    every other backend.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=max(1, threads), thread_name_prefix="tidegauge-dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        def look_up() -> list[ResolveResult]:
            found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
            return [
                ResolveResult(hostname=host, host=str(at[0]), port=port, family=kind, proto=proto, flags=_NUMERIC)
                for kind, _, proto, _, at in found
            ]

        return await asyncio.get_running_loop().run_in_executor(self._pool, look_up)

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


_NUMERIC = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


def open_session(backends: int) -> aiohttp.ClientSession:
    """A session for so many backends; close it with `async with` or `close()`.

    No limit on connections (a hundred hanging backends must leave one for the next), no cookies (a backend's cookie
    would travel to others of the same host) and no proxy from the environment.
    """
    connector = aiohttp.TCPConnector(limit=0, resolver=Resolver(backends), ttl_dns_cache=30)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        headers={"User-Agent": f"tidegauge/{__version__}"},
    )
