"""Tell tidegauge what only the caller knows: barriers, the limiter's ceiling, waits for a slot, healthy backends.

    reporter = Reporter("http://127.0.0.1:10010", fleet="agents", caller="sim-1")
    limiter = reporter.limiter(ceiling=16)

    async def call(prompt):
        async with limiter.slot():          # in threads: `with limiter.slot():`
            return await client.completions.create(...)

    async with reporter.barrier(fan_out=len(prompts)):
        await asyncio.gather(*(call(prompt) for prompt in prompts))

    reporter.close()

Reporting never gets in the way: events go into a bounded queue that a background thread empties, nothing blocks, and
nothing is raised into the caller once the reporter exists. What could not be delivered is counted (`counts()`).
Of a request only its wait is told, never its text.

`tidegauge.caller.metrics` offers the same as metrics of the process itself and needs prometheus_client; the rest of
this folder needs Python 3.11 and its standard library only. The folder imports nothing else of tidegauge, so a client
program can carry a copy of it. The wire format, for any other language, is in docs/callers.md.
"""

from .limiter import Limiter, Slot
from .reporter import Barrier, Counts, Reporter

__all__ = ["Barrier", "Counts", "Limiter", "Reporter", "Slot"]
