"""A line of a log file as it was before containers, collectors and terminals wrapped and damaged it.

`unwrap` turns one line into pieces of plain text: colour codes are gone (also those that lost their escape character),
JSON is opened (Docker's json-file, vLLM's own formatter, collectors, a whole run in one string), carriage returns split
lines. Text that clients send to a server is never opened: values of keys such as `prompt` or `messages` are skipped.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

_COLOUR = re.compile(
    r"(?:\x1b|\^\[|\\x1b|\\u001b|\\033|#033|␛)?\[\d{1,3}(?:;\d{1,3})*m|(?:\x1b|\^\[)\[[0-9;?]*[A-Za-z]"
)
_CARET_RETURN = re.compile(r"(?:\^M)+(?=\s|$)")
_CRI = re.compile(r"^\S+T\S+ (?P<stream>std(?:out|err)) (?P<tag>[FP]) ")
_SPLIT_AT: Final = 16_000  # Docker and containerd cut longer lines into pieces of 16 KiB

# fmt: off
_TEXT_KEYS: Final = frozenset((
    "log", "message", "msg", "@message", "stdout", "stderr", "line", "_raw", "textpayload", "text", "body", "event",
    "record",
))
_CLIENT_KEYS: Final = frozenset((
    "prompt", "prompts", "messages", "content", "input", "inputs", "query", "question", "choices", "completion",
    "completions", "generated_text", "output", "outputs", "response", "request", "arguments",
))
# fmt: on
_JSON = re.compile(r'^\s*(["\[])|(\{)\s*"')
_TEXT_VALUE = re.compile(
    r'"(?:' + "|".join(map(re.escape, sorted(_TEXT_KEYS))) + r')"\s*:\s*"(?P<value>(?:[^"\\]|\\.)*)', re.IGNORECASE
)
_HALF_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")
_ENGINE = re.compile(r"EngineCore\w*")
_CLOCK = re.compile(r"(?:\d{4}-)?(\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_DEPTH: Final = 4


@attrs.frozen
class Piece:
    """One line of plain text, with what the JSON around it said: engine process, its pid, `MM-DD HH:MM:SS`.

    `labelled` is false for text found under a key that is not known to hold log lines: only complete records count
    there. `structured` is true when a JSON record carried the header's fields.
    """

    text: str
    engine: str = ""
    pid: str = ""
    clock: str | None = None
    labelled: bool = True
    structured: bool = False


def clean(text: str) -> str:
    """Remove colours, cursor movements, NUL bytes and carriage returns written out as `^M`."""
    if "[" in text:
        text = _COLOUR.sub("", text)
    if "^M" in text:
        text = _CARET_RETURN.sub("\r", text)
    return text.replace("\0", "")


def split_stream(line: str) -> str | None:
    """Name the stream of a piece whose rest comes on a later line, because a container runtime cut it; else None."""
    if len(line) < _SPLIT_AT:
        return None
    if found := _CRI.match(line):
        return found["stream"] if found["tag"] == "P" else None
    if line.startswith('{"log":"') and '\\n","stream":"' not in line[-300:]:
        return stream_of(line)
    return None


def stream_of(line: str) -> str:
    """Name the stream a container runtime wrote on the line, empty where it did not."""
    if found := _CRI.match(line):
        return found["stream"]
    return "stderr" if '"stream":"stderr"' in line[-300:] else "stdout" if '"stream":"stdout"' in line[-300:] else ""


def unwrap(line: str, known_start: re.Pattern[str]) -> list[Piece]:
    """Return the plain lines inside one line; `known_start` finds what marks text that is a log line already."""
    return list(_open(Piece(line), known_start, 0))


def _open(piece: Piece, known_start: re.Pattern[str], depth: int) -> Iterator[Piece]:
    for text in re.split(r"[\r\n]+", clean(piece.text)):
        line = attrs.evolve(piece, text=text)
        found = _JSON.search(text) if depth < _DEPTH else None
        if found and found.lastindex and not known_start.search(text, 0, found.start()):
            yield from _decode(line, found.start(found.lastindex), known_start, depth)
        elif text:
            yield line


def _decode(line: Piece, start: int, known_start: re.Pattern[str], depth: int) -> Iterator[Piece]:
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(line.text, start)
    except (ValueError, RecursionError):
        yield from _cut(line, known_start, depth)
        return
    rest = line.text[end:].strip()
    if rest and not isinstance(value, dict):
        yield line  # `[0] text` and `"word" text` only look like JSON
        return
    yield from _walk(value, attrs.evolve(line, text=line.text[:start]), known_start, depth + 1)
    if rest:
        yield from _open(attrs.evolve(line, text=rest), known_start, depth + 1)


def _cut(line: Piece, known_start: re.Pattern[str], depth: int) -> Iterator[Piece]:
    """Open JSON that was cut off, or whose first lines are elsewhere: the values of known keys, as far as they go."""
    found = list(_TEXT_VALUE.finditer(line.text))
    for match in found:
        text = _HALF_ESCAPE.sub("", match["value"])
        try:
            value = json.loads(f'"{text}"', strict=False)
        except ValueError:
            value = text
        yield from _open(attrs.evolve(line, text=value), known_start, depth + 1)
    if not found and not line.text.lstrip().startswith("{"):
        yield line


def _walk(value: Any, outer: Piece, known_start: re.Pattern[str], depth: int) -> Iterator[Piece]:
    """Open every text of a decoded JSON value that can be a log line."""
    if isinstance(value, str):
        yield from _open(attrs.evolve(outer, text=value), known_start, depth)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item, attrs.evolve(outer, labelled=False), known_start, depth)
    elif isinstance(value, Mapping):
        fields = {str(key).lower(): item for key, item in value.items()}
        record = _described(fields, outer)
        for key, item in fields.items():
            if key not in _CLIENT_KEYS:
                yield from _walk(item, attrs.evolve(record, labelled=key in _TEXT_KEYS), known_start, depth)


def _described(fields: Mapping[str, Any], outer: Piece) -> Piece:
    """Take over what a JSON record says beside its message."""
    chain = outer.text + " ".join(str(fields.get(key, "")) for key in ("vllm_process_name", "processname"))
    engine = _ENGINE.search(chain)
    clock = _CLOCK.search(str(fields.get("asctime", "")))
    return attrs.evolve(
        outer,
        engine=engine.group() if engine else outer.engine,
        pid=str(fields["process"]) if isinstance(fields.get("process"), int) else outer.pid,
        clock=f"{clock[1]} {clock[2]}" if clock else outer.clock,
        structured=outer.structured or bool({"levelname", "level", "severity", "levelno"} & fields.keys()),
    )
