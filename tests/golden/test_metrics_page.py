"""All figures of the /metrics page, byte for byte, and as Prometheus' own linter sees them."""

import os
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from tests.generations import program
from tests.golden.everything import everything
from tidegauge.collectors import FiguresCollector

GOLDEN = Path(__file__).parent / "metrics.prom"
UPDATE = "UPDATE_GOLDEN"


@pytest.fixture(scope="module")
def registry():
    found = CollectorRegistry()
    found.register(FiguresCollector(everything))
    return found


def samples(families):
    """{(name, labels): value} of parsed families."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_page_is_the_golden_one(registry):
    """Every byte. With UPDATE_GOLDEN=1 in the environment it is written anew, to be read before it is committed."""
    page = generate_latest(registry)
    if os.environ.get(UPDATE):
        GOLDEN.write_bytes(page)

    assert GOLDEN.read_bytes() == page, (
        f"the page differs; {UPDATE}=1 pytest tests/golden/{Path(__file__).name} updates it"
    )


def test_promtool_accepts_the_page():
    """Names, units, help, types: no complaint at all."""
    found = subprocess.run(
        [program("promtool"), "check", "metrics"],
        input=GOLDEN.read_bytes(),
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert (0, b"", b"") == (found.returncode, found.stdout, found.stderr)


def test_both_content_types_say_the_same(registry):
    """Text and OpenMetrics parse, and every sample is in both."""
    text = samples(parse_text(GOLDEN.read_text(encoding="utf-8")))
    open_ = samples(parse_openmetrics(openmetrics.generate_latest(registry).decode()))

    assert len(text) > 100
    assert text == open_


def test_no_label_is_empty():
    """An absent label is left out, as docs/metrics.md says."""
    assert '=""' not in GOLDEN.read_text(encoding="utf-8")
