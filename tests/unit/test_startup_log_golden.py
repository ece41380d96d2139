"""Golden pairs: a log in one of the shapes people have, and the facts that follow from it alone.

A new pair is two files; `TIDEGAUGE_UPDATE_GOLDEN=1 pytest tests/unit/test_startup_log_golden.py` rewrites the facts of
all pairs from what is read now (then look at the difference: the reader is not the judge).
"""

import json
import os
from pathlib import Path

import attrs
import pytest

from tidegauge.parsing.logs import NEEDLES, StartupReader, read_log

LOGS = Path(__file__).parent.parent / "golden" / "logs"
NAMES = sorted(path.stem for path in LOGS.glob("*.log"))
# A terminal's line breaks may stand inside the very words a follower looks for: only a whole text can be mended.
WHOLE_TEXT_ONLY = {"damaged-terminal-wrap"}


def plain(facts):
    def known(value):
        return {key: each for key, each in value.items() if each is not None}

    found = known(attrs.asdict(facts))
    engines = [known(engine) for engine in found.pop("engines")]
    return {**found, **({"engines": engines} if engines else {})}


def text(name):
    return (LOGS / f"{name}.log").read_bytes().decode(errors="replace")


@pytest.mark.parametrize("name", NAMES)
def test_the_facts_of_each_log_are_read(name):
    """A log gives the facts written down beside it, no more and no less."""
    path = LOGS / f"{name}.json"
    expected = json.loads(path.read_text())
    found = plain(read_log(text(name)))
    if os.environ.get("TIDEGAUGE_UPDATE_GOLDEN"):
        path.write_text(json.dumps({**expected, "facts": found}, indent=2, ensure_ascii=False) + "\n")

    assert expected["facts"] == found, expected["about"]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WHOLE_TEXT_ONLY])
def test_lines_without_a_needle_say_nothing(name):
    """Lines that hold none of the needles can be left out, except where nothing but a process name is known."""
    expected = json.loads((LOGS / f"{name}.json").read_text())["facts"]
    reader = StartupReader()
    for line in text(name).split("\n"):
        if len(line) > 16_000 or any(needle.decode() in line for needle in NEEDLES):
            reader.feed(line)

    assert expected == plain(reader.facts()) or (expected["run"] == 0 == reader.facts().run)


def test_every_pair_is_complete_and_there_are_some():
    """No log without facts, no facts without a log."""
    assert NAMES == sorted(path.stem for path in LOGS.glob("*.json"))
    assert len(NAMES) > 90
