"""Reading /metrics pages: our parser beside prometheus_client's, in one run, on the same pages.

Three kinds of load: consecutive polls of a real server under barriers; pages on which every single number changed
(the worst case of a steady layout); and first pages, with nothing remembered.
"""

import gzip
import itertools
import re
import statistics
import time
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.golden import generations, reference
from tidegauge.parsing.exposition import PageReader, read_page

_PAGES = Path(__file__).parent.parent / "tests" / "fixtures" / "pages"
_REPEATS = 7


def run():
    """The rows of the table."""
    rows = [f"{'page':44}{'bytes':>9}{'theirs':>12}{'first':>11}{'ratio':>7}{'next':>11}{'ratio':>7}   (CPU per page)"]
    rows += [_row(name, pages) for name, pages in _loads().items()]
    return [*rows, "same values for every series we use: checked on every page above"]


def _loads():
    real = gzip.decompress((_PAGES / "vllm-0.32-one-engine.prom.gz").read_bytes()).decode()
    polls = gzip.decompress((_PAGES / "vllm-0.32-barriers-12-polls.scrapes.gz").read_bytes()).decode()
    release = generations.definitions()["0.33.0"]
    loads = {
        "real 0.32, 12 polls 1 s apart": re.split(r"^# SCRAPE.*\n", polls, flags=re.MULTILINE)[1:],
        "real 0.32, every number changed": _changed(real),
    }
    for engines in (1, 4, 8):
        body = generations.page(release, engines=tuple(map(str, range(engines))))
        loads[f"0.33 with all families, engines: {engines}, all changed"] = _changed(body)
    return loads


def _changed(body, pages=6):
    def shifted(line, by):
        head, _, number = line.rpartition(" ")
        return line if line.startswith("#") or not head else f"{head} {float(number) + by!r}"

    return ["\n".join(shifted(line, by) for line in body.split("\n")) for by in range(pages)]


def _row(name, pages):
    _assert_same(pages)
    reader = PageReader()
    reader.read(pages[-1])
    theirs = _cpu(lambda body: list(text_string_to_metric_families(body)), pages)
    first, following = _cpu(read_page, pages), _cpu(reader.read, pages)
    ratios = f"{first * 1e6:8.0f} us{theirs / first:6.1f}x{following * 1e6:8.0f} us{theirs / following:6.1f}x"
    return f"{name:44}{len(pages[0]):9}{theirs * 1e6:9.0f} us{ratios}"


def _assert_same(pages):
    reader = PageReader()
    for body in pages:
        expected = reference.figures(body)
        assert expected
        assert expected == reference.flat(reader.read(body)) == reference.flat(read_page(body))
    for one, other in itertools.pairwise(pages):
        assert one != other


def _cpu(read, pages):
    """Median CPU seconds per page."""
    times = []
    for _ in range(_REPEATS):
        start = time.process_time()
        for body in pages:
            read(body)
        times.append((time.process_time() - start) / len(pages))
    return statistics.median(times)
