"""The events that callers send, checked field by field (docs/callers.md is the format's description)."""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

import attrs

MAX_EVENTS: Final = 1000
MAX_WAITS: Final = 1000
MAX_WAITS_OF_BATCH: Final = 10_000
MAX_COUNT: Final = 100_000
MAX_WAIT_SECONDS: Final = 86_400
MAX_AHEAD: Final = 60
MAX_AGE: Final = 3600
_NAME: Final = re.compile(r"[A-Za-z0-9._:/-]{1,64}", re.ASCII)


class BadEvent(Exception):  # noqa: N818 - what the caller sent, not what we did
    """A batch that cannot be taken; the message names the field, what was expected and what was found."""


@attrs.frozen
class BarrierOpened:
    """`fan_out` requests are launched together at unix time `at`."""

    at: float
    id: str
    fan_out: int


@attrs.frozen
class BarrierClosed:
    """The last request of the barrier came back at unix time `at`."""

    at: float
    id: str


@attrs.frozen
class Wait:
    """Requests waited so many seconds each for their caller's slot."""

    at: float
    seconds: tuple[float, ...]


@attrs.frozen
class Ceiling:
    """The caller's limiter lets `value` requests through at once."""

    at: float
    value: int


@attrs.frozen
class Healthy:
    """The caller believes `value` backends to be healthy."""

    at: float
    value: int


Event = BarrierOpened | BarrierClosed | Wait | Ceiling | Healthy


@attrs.frozen
class Batch:
    """What one caller of one fleet sent at once, in its order; `instance` tells processes of one name apart."""

    caller: str
    fleet: str
    events: tuple[Event, ...]
    instance: str = ""


@attrs.frozen
class Refusal:
    """Why a good batch is not taken now: `reason` in one word, `after` how many seconds until it may come again."""

    reason: str
    message: str
    after: int = 60


_Check = Callable[[str, Any, float], Any]


def read_events(body: bytes, now: float) -> Batch:
    """The batch of a request body, received at unix time `now`.

    Raises BadEvent, and nothing else, for a body that is not exactly the documented format: a batch with one bad
    event is refused as a whole, so that a caller's mistake shows instead of leaving half of its figures.
    """
    top = _object(_parse(body), "", ("caller", "fleet", "events"), ("instance",))
    events = top["events"]
    if not isinstance(events, list) or len(events) > MAX_EVENTS:
        found = f"{len(events)}" if isinstance(events, list) else _shown(events)
        raise BadEvent(f"events: expected a list of at most {MAX_EVENTS} events, found {found}")
    return Batch(
        caller=_name("caller", top["caller"], now),
        fleet=_name("fleet", top["fleet"], now),
        events=tuple(_events(events, now)),
        instance=_name("instance", top["instance"], now) if "instance" in top else "",
    )


def _events(events: list[Any], now: float) -> Iterator[Event]:
    waits = 0
    for number, one in enumerate(events):
        event = _event(f"events[{number}]", one, now)
        waits += len(event.seconds) if isinstance(event, Wait) else 0
        if waits > MAX_WAITS_OF_BATCH:
            raise BadEvent(f"events[{number}].seconds: expected at most {MAX_WAITS_OF_BATCH} waits in a batch")
        yield event


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), object_pairs_hook=_without_twins)
    except UnicodeDecodeError as error:
        raise BadEvent(f"body: expected UTF-8, found an invalid byte at {error.start}") from error
    except json.JSONDecodeError as error:
        raise BadEvent(f"body: expected JSON, found: {error.msg} at character {error.pos}") from error
    except (RecursionError, ValueError) as error:
        raise BadEvent("body: expected JSON, found nesting or a number beyond all bounds") from error


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise BadEvent(f"body: expected each key once, found {_shown(twin)} twice")
    return found


def _event(field: str, value: Any, now: float) -> Event:
    if not isinstance(value, dict):
        raise BadEvent(f"{field}: expected an object, found {_shown(value)}")
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        _wrong(f"{field}.type", f"one of {', '.join(_KINDS)}", value.get("type"))
    cls, checks = _KINDS[kind]
    given = _object(value, field, ("type", *checks))
    event: Event = cls(**{name: check(f"{field}.{name}", given[name], now) for name, check in checks.items()})
    return event


def _object(value: Any, field: str, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadEvent(f"{field or 'body'}: expected an object, found {_shown(value)}")
    prefix = f"{field}." if field else ""
    for key in value:
        if key not in keys and key not in optional:
            raise BadEvent(f"{prefix}{_shown(key)[1:-1]}: unknown field; expected {', '.join((*keys, *optional))}")
    for key in keys:
        if key not in value:
            raise BadEvent(f"{prefix}{key}: missing")
    return value


def _name(field: str, value: Any, _now: float) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        _wrong(field, "1 to 64 characters of A-Z a-z 0-9 . _ : / -", value)
    return value


def _whole(lowest: int) -> _Check:
    def check(field: str, value: Any, _now: float) -> int:
        if type(value) is not int or not lowest <= value <= MAX_COUNT:
            _wrong(field, f"an integer from {lowest} to {MAX_COUNT}", value)
        return int(value)

    return check


def _number(value: Any) -> float:
    """A JSON number as a float, NaN for anything else."""
    if type(value) not in {int, float}:
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _time(field: str, value: Any, now: float) -> float:
    at = _number(value)
    if not math.isfinite(at):
        _wrong(field, "unix time in seconds", value)
    if not -MAX_AGE <= at - now <= MAX_AHEAD:
        span = f"a time from {MAX_AGE} s ago to {MAX_AHEAD} s ahead"
        raise BadEvent(
            f"{field}: expected {span}, found {_shown(value)} ({abs(at - now):.0f} s {'ahead' if at > now else 'ago'})"
        )
    return at


def _wait(field: str, value: Any) -> float:
    seconds = _number(value)
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        _wrong(field, f"seconds from 0 to {MAX_WAIT_SECONDS}", value)
    return seconds


def _waits(field: str, value: Any, _now: float) -> tuple[float, ...]:
    if not isinstance(value, list):
        return (_wait(field, value),)
    if not 0 < len(value) <= MAX_WAITS:
        raise BadEvent(f"{field}: expected 1 to {MAX_WAITS} numbers, found {len(value)}")
    return tuple(_wait(f"{field}[{number}]", one) for number, one in enumerate(value))


_KINDS: Final[dict[str, tuple[Callable[..., Event], dict[str, _Check]]]] = {
    "barrier_opened": (BarrierOpened, {"at": _time, "id": _name, "fan_out": _whole(1)}),
    "barrier_closed": (BarrierClosed, {"at": _time, "id": _name}),
    "wait": (Wait, {"at": _time, "seconds": _waits}),
    "ceiling": (Ceiling, {"at": _time, "value": _whole(0)}),
    "healthy": (Healthy, {"at": _time, "value": _whole(0)}),
}


def _wrong(field: str, expected: str, found: Any) -> NoReturn:
    raise BadEvent(f"{field}: expected {expected}, found {_shown(found)}")


def _shown(value: Any) -> str:
    """What was found, in ASCII and short; containers by their kind only."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and abs(value) > 10**18:
        return "an integer beyond all bounds"
    text = ascii(value) if not isinstance(value, float) or math.isfinite(value) else f"{value}".replace("nan", "NaN")
    return text if len(text) <= 60 else f"{text[:56]}...{text[-1]}"
