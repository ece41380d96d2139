"""How vLLM words its startup lines, in every release from 0.2 to 0.33.

With vLLM's own header a message must begin with the wording. After another logger's header, or with no header, the
wording must stand after a separator and end the line, so that prose which quotes a log is not taken for one.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from tidegauge.parsing import arguments
from tidegauge.parsing import statements as st
from tidegauge.parsing.logrecords import PROCESS, Record, Style, quotes_client

Reading = Callable[[re.Match[str]], list[st.Statement]]


def _int(text: str) -> int:
    return int(text.replace(",", ""))


def _limit(name: str, trust: int) -> Reading:
    return lambda found: [st.Limit(name, _int(found["value"]), trust)]


def _named_limit(found: re.Match[str]) -> list[st.Statement]:
    return [st.Limit(found["name"], _int(found["value"]), st.TRUST_DEFAULT)]


def _arguments(found: re.Match[str]) -> list[st.Statement]:
    return [st.Arguments(arguments.integers(found.string, st.ARGUMENTS, found.end()))]


def _engine_start(found: re.Match[str]) -> list[st.Statement]:
    wanted = frozenset(("max_seq_len", st.DATA_PARALLEL_SIZE))
    values = arguments.integers(found.string, wanted, found.end())
    return [st.EngineStart(found["version"], values)]


def _size(found: re.Match[str]) -> list[st.Statement]:
    combined = _concurrency(found) if found["requests"] else []
    return [st.CacheSize(_int(found["tokens"])), *combined]


def _concurrency(found: re.Match[str]) -> list[st.Statement]:
    return [st.Concurrency(_int(found["length"]), float(found["requests"]))]


def _blocks(found: re.Match[str]) -> list[st.Statement]:
    return [st.Blocks(found["device"].upper(), _int(found["count"]), swap=found["swap"] is not None)]


@attrs.frozen
class Wording:
    """How a line is worded and what it says; `open_end` wordings go on, `own_only` ones need vLLM's own header."""

    pattern: re.Pattern[str]
    reading: Reading
    open_end: bool = False
    own_only: bool = False


def _wording(pattern: str, reading: Reading, *, open_end: bool = False, own_only: bool = False) -> Wording:
    return Wording(re.compile(pattern), reading, open_end, own_only)


def _banner(found: re.Match[str]) -> list[st.Statement]:
    return [st.Banner(found["version"])]


def _override(found: re.Match[str]) -> list[st.Statement]:
    return [st.Override(int(found["found"]), int(found["used"]))]


_BLOCK_LETTERS = "▀▄█?\ufffd"  # as drawn, and as other encodings leave them
_CONCURRENCY = r"Maximum concurrency for (?P<length>\d[\d,]*) tokens per request:\s*(?P<requests>\d+(?:\.\d+)?)x"

WORDINGS: Final[tuple[Wording, ...]] = (
    _wording(
        rf"[A-Z][A-Za-z0-9]{{0,20}}(?: \+ host)? KV cache size:\s*(?P<tokens>\d[\d,]*) tokens(?:, {_CONCURRENCY})?",
        _size,
    ),
    _wording(_CONCURRENCY, _concurrency),
    _wording(
        r"(?:OpenVINO \w{1,9}: )?(?:# {0,4}(?=\w{1,20} blocks: \d)|(?=\w{1,20} blocks: \d{1,12}, #))"
        r"(?P<device>\w{1,20}) blocks: (?P<count>\d{1,12})(?P<swap>[,;] # \w{1,20} blocks: \d{1,12})?",
        _blocks,
    ),
    _wording(r"non-default args: \{|args: Namespace\(", _arguments, open_end=True),
    _wording(
        r"Initializing an? (?:V\d )?LLM engine (?:\(v(?P<version>[^()\s]+)\) )?with config: ",
        _engine_start,
        open_end=True,
    ),
    _wording(r"vLLM API server version v?(?P<version>\d\S*)", _banner),
    _wording(rf"[{_BLOCK_LETTERS}] {{1,4}}version v?(?P<version>\d\S*)", _banner),
    _wording(r"\W*version v?(?P<version>\d\S*)$", _banner, own_only=True),
    _wording(r"Using max model len (?P<value>\d[\d,]*)", _limit(st.MAX_MODEL_LEN, st.TRUST_USED)),
    _wording(
        r"Auto-fit max_model_len: (?:reduced from \d[\d,]* to|full model context length) (?P<value>\d[\d,]*)\b",
        _limit(st.MAX_MODEL_LEN, st.TRUST_FITTED),
        open_end=True,
    ),
    _wording(
        r"Chunked prefill is enabled with max_num_batched_tokens=(?P<value>\d+)\.?",
        _limit(st.MAX_NUM_BATCHED_TOKENS, st.TRUST_CONFIG),
    ),
    _wording(
        rf"(?:Setting|Defaulting) (?P<name>{st.MAX_NUM_SEQS}|{st.MAX_NUM_BATCHED_TOKENS}) to (?P<value>\d+) "
        r"for \S+ usage context\.?",
        _named_limit,
    ),
    _wording(r"Overriding num_gpu_blocks=(?P<found>\d+) with num_gpu_blocks_override=(?P<used>\d+)", _override),
    _wording(
        r"(?:Engine \d+|\d+ Engines): vllm cache_config_info with initialization after num_gpu_blocks is: "
        r"(?P<count>\d+)",
        lambda found: [st.BlockTotal(int(found["count"]))],
    ),
)
_NEAR_START: Final = 4000  # characters; behind them a message without vLLM's header does not begin
_ENDING = re.compile(  # some layouts put the place in the source at the end
    r"\s*(?:\[repeated [^\]]*\]\s*)?(?:(?<=\s\s)(?:[\w./-]{1,80}\.py:\d+|\[[\w.]{1,80}\].*))?[\"'}\s]*$"
)
_SEPARATOR = re.compile(r"(?:[-:|\])>]|=\"|\b(?:DEBUG|INFO|WARNING|ERROR|debug|info|warning|error))$")
_OTHER_HEADER = re.compile(r"\d\d:\d\d|\b(?:DEBUG|INFO|WARN|WARNING|ERROR)\b", re.IGNORECASE)

_READY = re.compile(r"Application startup complete")
_TOO_LONG = re.compile(r"max seq len \((?P<length>\d[\d,]*)\)")
_FAILED = re.compile(
    r"Application startup failed|WorkerProc hit an exception|WorkerProc (?:initialization )?failed|"
    r"No available memory for the cache blocks|(?:EngineCore|Engine process|WorkerProc) failed to start|"
    r"[Ee]ngine (?:core )?initialization failed"
)
KNOWN_START: Final = re.compile(
    "|".join(re.sub(r"\(\?P<\w+>", "(?:", wording.pattern.pattern) for wording in WORDINGS if not wording.own_only)
)
"""Finds where any of the wordings begins."""


def read(record: Record) -> tuple[Style, list[st.Statement]]:
    """Return what a record says, with its style (text after another logger's header is better than bare text)."""
    if record.style is Style.OWN:
        for wording in WORDINGS:
            if found := wording.pattern.match(record.message):
                return record.style, wording.reading(found)
    else:
        for style, found, wording in _quoted(record):
            return style, wording.reading(found)
    return record.style, list(_outcome(record))


def _quoted(record: Record) -> Iterator[tuple[Style, re.Match[str], Wording]]:
    """Find wordings behind another logger's header, or at the start of a line without any."""
    for wording in WORDINGS:
        for found in () if wording.own_only else wording.pattern.finditer(record.message, 0, _NEAR_START):
            style = _style(record.message[: found.start()], record.style)
            if style is not None and (wording.open_end or _ENDING.match(record.message, found.end())):
                yield style, found, wording


def _style(before: str, known: Style) -> Style | None:
    text = before.rstrip(" " + _BLOCK_LETTERS)
    if not text:
        return known
    if quotes_client(before) or not _SEPARATOR.search(text):
        return None
    return Style.FOREIGN if _OTHER_HEADER.search(text) or PROCESS.search(text) else known


def _outcome(record: Record) -> Iterator[st.Statement]:
    """Read whether the start came to an end, from wherever in the message it says so."""
    if found := _TOO_LONG.search(record.message):
        message: st.Statement = st.Failed(_int(found["length"]))
    elif found := _FAILED.search(record.message):
        message = st.Failed()
    elif found := _READY.search(record.message):
        message = st.Ready()
    else:
        return
    if not quotes_client(record.message[: found.start()]):
        yield message
