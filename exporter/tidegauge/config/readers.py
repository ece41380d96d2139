"""Readers of single values: text, numbers, durations, sizes, addresses, URLs, files."""

import math
import os
import re
from typing import Final

import yaml
from yarl import URL

from tidegauge.config.nodes import At, Reader, entries
from tidegauge.config.values import Listen
from tidegauge.parsing.limiterlog import LONGEST_PATTERN, fault

MAX_NAME: Final = 200
MAX_PATH: Final = 4096
MAX_DURATION: Final = 366 * 86400
MAX_SIZE: Final = 1024**3
MAX_COUNT: Final = 10**15

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: Final = {"B": 1, "kB": 1000, "MB": 1000**2, "GB": 1000**3, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_DURATION: Final = re.compile(rf"(?:{_DURATION_PART.pattern})+")
_SIZE: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_BYTES)})")
_INTEGER: Final = re.compile(r"0|[1-9]\d*(?:_\d+)*", re.ASCII)
_LISTEN: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})", re.ASCII)
_PREFIX: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*", re.ASCII)
_TAG: Final = "tag:yaml.org,2002:"


def text(at: At, longest: int = MAX_NAME) -> str:
    """Text that is not empty and prints; a number or a truth value must be quoted to be text."""
    expected = f"text of 1 to {longest} characters"
    kind = at.node.tag.removeprefix(_TAG)
    if kind in {"int", "float", "bool", "timestamp"}:
        raise at.wrong(f"{expected} (put it in quotes)")
    if kind != "str" or not isinstance(at.node, yaml.ScalarNode):
        raise at.wrong(expected)
    value = str(at.node.value)
    if not is_text(value, longest):
        raise at.wrong(expected)
    return value


def is_text(value: str, longest: int = MAX_NAME) -> bool:
    """Whether it is not empty, not too long, and prints: a control character could forge lines of a log."""
    return 0 < len(value.strip()) <= len(value) <= longest and value.isprintable()


def boolean(at: At) -> bool:
    if at.node.tag != _TAG + "bool" or at.node.value.lower() not in {"true", "false"}:
        raise at.wrong("true or false")
    return bool(at.node.value.lower() == "true")


def integer(at: At) -> int:
    """A whole number from 1 to 10^15; `1_490_818` is fine."""
    value = at.node.value if isinstance(at.node, yaml.ScalarNode) and at.node.tag == _TAG + "int" else ""
    # By float, which also takes more digits than `int` reads.
    if not _INTEGER.fullmatch(value) or not 0 < float(value) <= MAX_COUNT:
        raise at.wrong("a whole number from 1 to 10^15")
    return int(value)


def number(lowest: float, highest: float) -> Reader:
    """A reader of numbers in a range."""

    def read(at: At) -> float:
        try:
            # YAML 1.1 takes 1e3 for text; whoever writes it means the number
            value = float(at.node.value) if isinstance(at.node, yaml.ScalarNode) else math.nan
        except ValueError:
            value = math.nan
        if not lowest <= value <= highest or math.isinf(value):
            raise at.wrong(
                f"a number from {lowest:g} to {highest:g}"
                if math.isfinite(highest)
                else f"a number of at least {lowest:g}"
            )
        return value

    return read


def duration(at: At) -> float:
    """Seconds from `500ms`, `1s`, `15m`, `1h30m`, `2d`; positive, at most a year."""
    value = at.node.value if isinstance(at.node, yaml.ScalarNode) else ""
    seconds = -1.0
    if _DURATION.fullmatch(value):
        seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in _DURATION_PART.findall(value))
    if not 0 < seconds <= MAX_DURATION:
        raise at.wrong("a positive duration such as 500ms, 1s, 15m or 1h30m")
    return seconds


def size(at: At) -> int:
    """Bytes from `512KiB`, `16MiB`, `20MB`; from 1 byte to 1 GiB."""
    value = at.node.value if isinstance(at.node, yaml.ScalarNode) else ""
    match = _SIZE.fullmatch(value)
    found = float(match[1]) * _BYTES[match[2]] if match else 0.0
    if not 1 <= found <= MAX_SIZE:
        raise at.wrong("a size with its unit such as 512KiB or 16MiB, at most 1GiB")
    return int(found)


def listen(at: At) -> Listen:
    """`host:port`; IPv6 in brackets; 0.0.0.0 for every address."""
    value = at.node.value if isinstance(at.node, yaml.ScalarNode) else ""
    address = parse_listen(value)
    if address is None:
        raise at.wrong("an address such as 127.0.0.1:10010")
    return address


def parse_listen(value: str) -> Listen | None:
    """The address of `host:port`, None if it is none."""
    match = _LISTEN.fullmatch(value)
    if match is None or int(match[2]) > 65535:
        return None
    return Listen(match[1].strip("[]"), int(match[2]))


def metric_prefix(at: At) -> str:
    """A prefix of metric names, such as `vllm_omni:` (in quotes: it ends in a colon)."""
    if not _PREFIX.fullmatch(value := text(at)):
        raise at.wrong("a prefix of metric names such as 'vllm_omni:'")
    return value


def path(at: At) -> str:
    """A file; a relative one is taken from the folder of the configuration file."""
    return os.path.join(os.path.dirname(at.file), text(at, MAX_PATH))  # noqa: PTH118, PTH120 - "" stays "", text stays text


def url(at: At) -> str:
    """The page to poll; raises ConfigError naming what is wrong with the URL."""
    value = text(at, MAX_PATH)
    complaint = bad_url(value)
    if complaint is not None:
        raise at.wrong(*complaint)
    return page_url(value)


def page_url(value: str) -> str:
    """The URL with `/metrics` where it has no path."""
    parsed = URL(value)
    return str(parsed.with_path("/metrics")) if parsed.path in {"", "/"} and not parsed.query_string else value


def bad_url(value: str) -> tuple[str, str] | None:
    """What was expected and found when this is no URL of a backend; credentials are never repeated."""
    try:
        parsed = URL(value)
        port = parsed.port
    except ValueError:
        return "a URL such as http://127.0.0.1:8000", "one that cannot be read"
    if "@" in value.split("//", 1)[-1].split("/", 1)[0]:
        return "a URL without user and password (use basic_auth)", "one with them"
    if parsed.scheme not in {"http", "https"} or not parsed.host or not port or any(c.isspace() for c in value):
        return "a URL such as http://127.0.0.1:8000", repr(value if len(value) <= 60 else value[:57] + "...")
    return ("a URL without a fragment", repr(f"#{parsed.fragment[:40]}")) if parsed.fragment else None


def limiter_pattern(at: At) -> str:
    """A regular expression that finds the ceiling in a line of a limiter's log."""
    value = text(at, LONGEST_PATTERN)
    complaint = fault(value)
    if complaint is not None:
        raise at.wrong(*complaint)
    return value


def counts(at: At) -> dict[str, int]:
    """A mapping of names to whole numbers."""
    return {name: integer(place) for name, place in entries(at)}
