"""What the demo plays: the ceiling in the caller, and the ceiling in one server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs

from tidegauge.demo.processes import DemoError
from tidegauge.demo.stack import FLEET, Stack
from tidegauge.demo.traffic import Traffic
from tidegauge.report.document import Document
from tidegauge.report.verdicts import best_barriers

ALERT: Final = "VllmQueueTimeBimodal"
_WIDE: Final[Mapping[str, int]] = {"max-num-seqs": 160, "kv-tokens": 131_072}
_OTHER: Final[Mapping[str, int]] = {"max-num-seqs": 96, "kv-tokens": 98_304}
_FEW_SLOTS: Final[Mapping[str, int]] = {"max-num-seqs": 2, "kv-tokens": 98_304}


@attrs.frozen
class Scenario:
    """Server flags by server, the caller's first ceiling, and the steps."""

    servers: tuple[Mapping[str, int], ...]
    ceiling: int
    play: Callable[[Stack, Traffic], Awaitable[None]]


async def _caller(stack: Stack, traffic: Traffic) -> None:
    stack.say(
        "ceiling 16: barriers of about 29 calls go through a limiter of 16; waiting for the page (its for: is 1 m)"
    )
    fleet = await stack.until("barriers cut into two waves", lambda _, fleet: _waves(fleet) == (2, "clips"), 60)
    _tell(stack, fleet)
    page = await stack.page("firing", 150, alertname=ALERT, severity="critical", where="caller", fleet=FLEET)
    stack.show(page)
    report, _ = await stack.report()
    queues = [model["queue"] for one in report["backends"] for model in one["models"]]
    shares = ", ".join("unknown" if queue is None else f"{queue['late_ratio']:.1%}" for queue in queues)
    stack.say(f"vLLM's own queues meanwhile: late share {shares}. The servers cannot see this wait.")
    if any(queue is not None and queue["bimodal"] for queue in queues):
        msg = "a server's own queue is split, too: the caller's ceiling was to be the only one"
        raise DemoError(msg)

    await _raise(stack, traffic, 28)
    fleet = await stack.until(
        "a ceiling of 28 that clips, without a split",
        lambda _, fleet: _met(fleet, 28) and not fleet["caller_queue"]["bimodal"] and _state(fleet) == "clips",
        60,
    )
    _tell(stack, fleet)

    await _raise(stack, traffic, 48)
    fleet = await stack.until(
        "a ceiling of 48 that is inert, and one wave for every barrier",
        lambda _, fleet: _met(fleet, 48) and _waves(fleet) == (1, "inert") and _most_waves(fleet) == 1,
        60,
    )
    _tell(stack, fleet)
    stack.show(await stack.page("resolved", 60, alertname=ALERT, severity="critical", where="caller", fleet=FLEET))


async def _raise(stack: Stack, traffic: Traffic, ceiling: int) -> None:
    """Move the ceiling, and wait until the exporter's window holds nothing from before."""
    traffic.set_ceiling(ceiling)
    report, _ = await stack.report()
    seconds = report["window_seconds"]
    stack.say(f"ceiling {ceiling}: waiting {seconds:.0f} s, so that the exporter's window holds nothing from before")
    await asyncio.sleep(seconds + 1)


async def _slots(stack: Stack, _: Traffic) -> None:
    narrow = stack.backend(1)
    slots = _FEW_SLOTS["max-num-seqs"]
    stack.say(f"{narrow} has {slots} sequence slots, the caller no ceiling that binds; waiting for the page")
    page = await stack.page("firing", 180, alertname=ALERT, severity="critical", where="server", backend=narrow)
    stack.show(page)
    await stack.restart_server(1, _OTHER)
    stack.say(f"{narrow} restarted with {_OTHER['max-num-seqs']} slots; the page should resolve")
    stack.show(await stack.page("resolved", 120, alertname=ALERT, severity="critical", where="server", backend=narrow))


SCENARIOS: Final = {
    "caller": Scenario((_WIDE, _OTHER), 16, _caller),
    "slots": Scenario((_WIDE, _FEW_SLOTS), 48, _slots),
}


def _client(fleet: Document) -> Document | None:
    return next((one for one in fleet["ceilings"] if one["ceiling"] == "client"), None)


def _state(fleet: Document) -> str | None:
    client = _client(fleet)
    return client["state"] if client else None


def _waves(fleet: Document) -> tuple[float, str] | None:
    client, barriers = _client(fleet), best_barriers(fleet)
    waves = barriers["waves"].get("client") if barriers else None
    return (waves["median"], client["state"]) if client and waves else None


def _most_waves(fleet: Document) -> float | None:
    barriers = best_barriers(fleet)
    waves = barriers["waves"].get("client") if barriers else None
    return waves["max"] if waves else None


def _met(fleet: Document, ceiling: int) -> bool:
    """Whether the ceiling is in force and the window holds enough to judge it."""
    client = _client(fleet)
    return client is not None and client["value"] == ceiling and fleet["caller_queue"] is not None


def _tell(stack: Stack, fleet: Document) -> None:
    client, queue, barriers = _client(fleet), fleet["caller_queue"], best_barriers(fleet)
    if client is None or barriers is None:
        return
    order = barriers["fan_out"]
    waits = f"; {queue['late_ratio']:.0%} of the calls waited for a slot" if queue else ""
    if queue and queue["late_seconds"]:
        waits += f", {queue['late_seconds']:.2f} s on average"
    stack.say(
        f"fan-out median {order['median']:g}, max {order['max']:.0f}; ceiling {client['value']:.0f}:"
        f" {client['state']}, {barriers['waves']['client']['median']:g} wave(s){waits}"
    )
