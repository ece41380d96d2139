"""A reader that remembers the last page gives what a fresh one gives, whatever the next page is, in bounded memory."""

import gzip
import random
import re
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from tests.golden import reference
from tidegauge import vllm
from tidegauge.model import SeriesKey
from tidegauge.parsing.exposition import NotMetrics, PageReader, read_page

PAGES = Path(__file__).parent.parent / "fixtures" / "pages"
LINE = 'vllm:num_requests_running{{engine="0",model_name="{}"}} {}\n'


def real(name):
    return gzip.decompress((PAGES / name).read_bytes()).decode()


def polls():
    return re.split(r"^# SCRAPE.*\n", real("vllm-0.32-barriers-12-polls.scrapes.gz"), flags=re.MULTILINE)[1:]


def outcome(read, body):
    try:
        return read(body)
    except NotMetrics as refused:
        return str(refused)


class TestRealPages:
    @pytest.mark.parametrize(
        ("name", "engines"),
        [("vllm-0.32-one-engine.prom.gz", {"0"}), ("vllm-0.32-two-engines.prom.gz", {"0", "1"})],
    )
    def test_they_equal_what_prometheus_client_reads(self, name, engines):
        """Every number of a real 0.32 page is read, for each engine, with one cache configuration each."""
        body = real(name)

        found = read_page(body)

        assert reference.figures(body) == reference.flat(found)
        assert engines == {key.engine for key in found.histograms} == {config.engine for config in found.cache_configs}
        assert {} == found.problems

    def test_consecutive_polls_under_load(self):
        """One reader follows a server second by second as prometheus_client reads each page."""
        reader = PageReader()
        seen = [reference.flat(reader.read(body)) for body in polls()]

        assert [reference.figures(body) for body in polls()] == seen
        assert len({tuple(figures.values()) for figures in seen}) > 6

    def test_a_page_handed_out_stays_as_it_was(self):
        """Later pages do not change earlier ones, and unchanged histograms are shared."""
        first, *_, last = polls()
        reader = PageReader()
        page = reader.read(first)
        before = reference.flat(page)

        later = reader.read(last)

        assert before == reference.flat(page) != reference.flat(later)


class TestNextPage:
    @pytest.mark.parametrize(
        "following",
        [
            LINE.format("a", 4),
            LINE.format("a", "4 1764460800"),
            LINE.format("a", '4 # {x="y"} 1'),
            LINE.format("a", "NaN"),
            LINE.format("a", "-1"),
            LINE.format("a", "-2"),
            LINE.format("a", "four"),
            LINE.format("a", "4")[:-1],
            LINE.format("b", 4),
            LINE.format("a", 4) + LINE.format("b", 5),
            LINE.format("a", 4) + LINE.format("a", 5),
            LINE.format("a", 4) + "\n",
            "# " + LINE.format("a", 4),
            LINE.format("a", 4).replace("running", "waiting"),
            "vllm:num_requests_running 4\n",
            "x " + LINE.format("a", 4),
            "go_threads 7\n",
            "<html>\n",
            "",
        ],
    )
    def test_it_is_read_as_by_a_fresh_reader(self, following):
        """Whatever changed between two pages, and back again, memory makes no difference."""
        reader = PageReader()
        first = LINE.format("a", 3)

        for body in (first, following, following, first, following):
            assert outcome(read_page, body) == outcome(reader.read, body)

    def test_a_value_that_comes_and_goes(self):
        """A figure that becomes unknown disappears, with its fault counted per page, and returns."""
        reader = PageReader()
        bodies = [LINE.format("a", number) for number in (1, "NaN", "NaN", 2)]

        found = [reader.read(body) for body in bodies]

        assert [[1.0], [], [], [2.0]] == [list(page.values.values()) for page in found]
        assert [{}, {"value": 1}, {"value": 1}, {}] == [page.problems for page in found]

    def test_a_failed_poll_costs_nothing(self):
        """After an error page the server's next page is read as before."""
        reader = PageReader()
        reader.read(LINE.format("a", 1))
        with pytest.raises(NotMetrics, match="HTML"):
            reader.read("<html>\n")

        assert {SeriesKey(vllm.RUNNING, "a", "0"): 2.0} == reader.read(LINE.format("a", 2)).values

    def test_labels_that_change_on_every_page_are_forgotten(self):
        """What a reader remembers is the last page, not its past."""
        reader = PageReader()
        for number in range(300):
            reader.read("".join(LINE.format(f"{number}-{line}", 1) for line in range(number % 7 + 1)))

        assert 299 % 7 + 1 == len(reader._layout.series)


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=12)
NUMBERS = st.floats(min_value=0, max_value=1e15)


@st.composite
def expositions(draw):
    """Pages as prometheus_client writes them: any model names, any engines, any numbers."""
    registry = CollectorRegistry()
    gauge = Gauge(f"vllm:{vllm.RUNNING}", "n", ["model_name", "engine"], registry=registry)
    counter = Counter(f"vllm:{vllm.FINISHED}", "n", ["model_name", "engine", "finished_reason"], registry=registry)
    edges = sorted(draw(st.sets(st.floats(min_value=-1e6, max_value=1e6), min_size=1, max_size=5)))
    times = Histogram(f"vllm:{vllm.QUEUE}", "n", ["model_name", "engine"], buckets=edges, registry=registry)
    other = Gauge("http_requests", "n", ["handler"], registry=registry)
    other.labels(draw(NAMES)).set(draw(st.floats()))
    for model in draw(st.sets(NAMES, min_size=1, max_size=3)):
        for engine in draw(st.sets(st.sampled_from("0123"), min_size=1)):
            gauge.labels(model, engine).set(draw(NUMBERS))
            counter.labels(model, engine, draw(NAMES)).inc(draw(NUMBERS))
            for seconds in draw(st.lists(NUMBERS, max_size=4)):
                times.labels(model, engine).observe(seconds)
    return generate_latest(registry).decode()


def damaged(body, seed):
    """The page with a few bytes or lines lost, doubled, moved or replaced, as by a broken proxy."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 6)):
        at, length = chance.randrange(len(body) + 1), chance.choice((1, 1, 3, 40))
        piece = "".join(chance.choices(string.printable + 'é\u2028\x00{}"\\,=# ', k=chance.randint(0, 3)))
        repeated = body[at : at + length] * chance.choice((0, 1, 2))
        body = body[:at] + repeated + piece + body[at + length * chance.choice((0, 1)) :]
    return body


class TestAnyPage:
    @given(expositions())
    @settings(deadline=None, max_examples=60)
    def test_what_prometheus_client_writes_is_read_as_it_reads_it(self, body):
        """Round trip: the same series, the same numbers, no faults."""
        found = read_page(body)

        assert reference.figures(body) == reference.flat(found)
        assert {} == found.problems

    @given(expositions(), st.lists(st.integers(0, 2**32), min_size=1, max_size=4))
    @settings(deadline=None, max_examples=60)
    def test_damage_raises_nothing_but_not_metrics(self, body, seeds):
        """Any damage, page after page, gives a page or a refusal, the same with a memory and without."""
        reader = PageReader()
        reader.read(body)
        for seed in seeds:
            broken = damaged(body, seed)
            assert outcome(read_page, broken) == outcome(reader.read, broken)

    @given(st.text())
    @settings(deadline=None, max_examples=100)
    def test_any_text_gives_a_page_or_a_refusal(self, body):
        """Text that is no page at all is refused, never more than that."""
        assert outcome(read_page, body) is not None

    @pytest.mark.parametrize("seed", range(40))
    def test_a_damaged_real_page_keeps_what_is_whole(self, seed):
        """A few broken places in a real page cost at most a few figures; readers with and without memory agree."""
        body = real("vllm-0.32-one-engine.prom.gz")
        whole = read_page(body)
        reader = PageReader()
        reader.read(body)

        found = reader.read(damaged(body, seed))

        assert read_page(damaged(body, seed)) == found
        assert len(whole.histograms) - 12 <= len(found.histograms)
