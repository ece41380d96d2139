"""A simulated page is a vLLM 0.32 page: compared with the skeleton of one that a real server served."""

import json
import time
from pathlib import Path

import attrs
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tidegauge import vllm
from tidegauge.demo.engine import Engine
from tidegauge.demo.pages import PageWriter
from tidegauge.demo.requests import Request
from tidegauge.demo.settings import EngineSettings
from tidegauge.demo.tally import LATENCY, Distribution, token_edges
from tidegauge.demo.weblayer import Exchange, ProcessFacts, WebTally

SKELETON = Path(__file__).parent.parent / "fixtures" / "vllm_032_skeleton.json"
OWN_LABELS = ("reason", "source", "finished_reason", "sleep_state")
LIKE_THE_CAPTURE = EngineSettings(max_num_seqs=8, max_model_len=8192, block_size=128, num_blocks=4096)


def skeleton(text):
    """Families of a page in order: type, help, label names in order, bucket edges, values of vLLM's own labels."""
    families = {}
    for family in text_string_to_metric_families(text):
        labels, edges, values = {}, [], []
        for sample in family.samples:
            labels.setdefault(sample.name, list(sample.labels))
            edges += [edge for edge in [sample.labels.get("le")] if edge is not None and edge not in edges]
            values += [v for name, v in sample.labels.items() if name in OWN_LABELS and v not in values]
        families[family.name] = {"type": family.type, "help": family.documentation, "labels": labels}
        families[family.name] |= ({"edges": edges} if edges else {}) | ({"values": values} if values else {})
    return families


def busy(settings=LIKE_THE_CAPTURE, started=1_796_000_000.25):
    """A page after three requests, one of them still in flight, and one HTTP exchange."""
    engine = Engine(settings, started)
    for number, (prompt, output) in enumerate(((400, 3), (150, 9), (90, 500))):
        engine.submit(Request(f"r{number}", f"s{number % 2}", prompt, output, prompt // 2), started + 1 + number / 10)
    done = engine.advance(started + 5)
    web = WebTally(started)
    web.answered(Exchange("/v1/completions", "POST", 200, 0.7, 120, 340, at=started + 2))
    return engine, done, PageWriter(engine, web).page()


def samples(page):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def value(page, family, **labels):
    """The value of the one sample of that name with these labels."""
    wanted = labels.items()
    found = [v for (name, *own), v in samples(page).items() if name == f"vllm:{family}" and wanted <= dict(own).items()]
    assert 1 == len(found)
    return found[0]


class TestShape:
    def test_families_labels_and_buckets_are_those_of_a_real_page(self):
        """Same families in the same order, same types, texts, label names in order, label values and bucket edges."""
        real = json.loads(SKELETON.read_text())
        ours = skeleton(busy()[2])
        assert list(real) == list(ours)
        assert real == ours

    def test_the_comparison_notices_a_missing_bucket(self):
        """Take one bucket line away, and the skeletons differ."""
        page = "\n".join(line for line in busy()[2].splitlines() if 'seconds_bucket{engine="0",le="0.3"' not in line)
        assert json.loads(SKELETON.read_text()) != skeleton(page + "\n")

    def test_every_family_that_tidegauge_reads_is_there(self):
        """No family of the names table is missing from the page."""
        names = {name for name, *_ in samples(busy()[2])}
        for family, kind in vllm.KINDS.items():
            assert f"vllm:{family}{'_count' if kind == 'histogram' else ''}" in names

    @pytest.mark.parametrize(
        ("window", "last", "length"), [(8192, 5000, 12), (4096, 2000, 11), (131_072, 100_000, 16), (5000, 5000, 12)]
    )
    def test_token_buckets_end_at_the_window(self, window, last, length):
        """The 1-2-5 series runs up to max_model_len, so servers with different windows have different buckets."""
        edges = token_edges(window)
        assert (last, length) == (edges[-1], len(edges))

    def test_a_model_name_is_escaped(self):
        """Quotes and backslashes in a served name survive the way through the text format."""
        name = 'odd "name" \\ here'
        page = busy(attrs.evolve(LIKE_THE_CAPTURE, model_name=name))[2]
        assert 1.0 == value(page, vllm.RUNNING, model_name=name)

    def test_a_page_is_cheap(self):
        """A page costs well under 15 ms of CPU."""
        writer = PageWriter(busy()[0])
        began = time.process_time()
        for _ in range(20):
            writer.page()
        assert (time.process_time() - began) / 20 < 0.015


class TestValues:
    def test_sums_and_counts_are_those_of_the_finished_requests(self):
        """Two requests finished, a third is running: its lengths and stages are not on the page yet, its prompt is."""
        _, done, page = busy()
        assert 2 == len(done)
        for family, stage in ((vllm.QUEUE, "queue"), (vllm.PREFILL, "prefill"), (vllm.DECODE, "decode")):
            assert sum(getattr(f, stage) for f in done) == value(page, f"{family}_sum")
        assert sum(f.e2e for f in done) == value(page, f"{vllm.E2E}_sum")
        assert (2, 3) == (value(page, f"{vllm.E2E}_count"), value(page, f"{vllm.TTFT}_count"))
        assert (550, 640) == (value(page, f"{vllm.PROMPT_LENGTH}_sum"), value(page, vllm.PROMPT_TOKENS))
        assert (1, 0) == (value(page, vllm.RUNNING), value(page, vllm.WAITING))
        assert 2 == value(page, vllm.FINISHED, finished_reason="length")
        assert 0 == value(page, vllm.FINISHED, finished_reason="abort")

    def test_buckets_are_cumulative(self):
        """A histogram's buckets count everything up to their edge."""
        distribution = Distribution(LATENCY)
        for seconds in (0.3, 0.31, 0.1, 7681.0):
            distribution.observe(seconds)
        assert [2, 3, 3] == distribution.cumulative()[:3]
        assert 4 == distribution.cumulative()[-1]

    def test_cached_and_computed_prompt_tokens_add_up(self):
        """prompt_tokens_by_source splits prompt_tokens into computed and cached."""
        engine, _, page = busy()
        engine.submit(Request("again", "s0", 400, 2, 300), engine.now)
        engine.advance(engine.now + 5)
        page = PageWriter(engine).page()
        cached = value(page, "prompt_tokens_by_source_total", source="local_cache_hit")
        computed = value(page, "prompt_tokens_by_source_total", source="local_compute")
        assert 128 == cached == value(page, vllm.PREFIX_HITS) == value(page, "prompt_tokens_cached_total")
        assert 1040 - 128 == computed
        assert 1040 == value(page, vllm.PROMPT_TOKENS) == value(page, vllm.PREFIX_QUERIES)

    def test_the_cache_info_carries_capacity(self):
        """Capacity is in labels, for a server of odd size too, and there is no model name among them."""
        settings = EngineSettings.for_kv_tokens(100_003, block_size=32, max_model_len=5000)
        page = busy(settings)[2]
        labels = next(dict(own) for (name, *own), _ in samples(page).items() if name == f"vllm:{vllm.CACHE_INFO}")
        assert ("100003", "3125", "32") == tuple(
            labels[name] for name in ("kv_cache_size_tokens", "num_gpu_blocks", "block_size")
        )
        assert "model_name" not in labels

    def test_start_times_are_the_servers(self):
        """process_start_time_seconds and every _created are the start of this server, so a restart shows in all."""
        engine, _, page = busy(started=1_796_000_777.5)
        found = samples(page)
        assert 1_796_000_777.5 == found[(vllm.PROCESS_START,)]
        assert {1_796_000_777.5} == {
            v for (name, *_), v in found.items() if name.startswith("vllm:") and "_created" in name
        }
        assert 3.0 == samples(PageWriter(engine).page(ProcessFacts(3.0, cpu_seconds=9.0)))[(vllm.PROCESS_START,)]

    def test_http_counts_go_by_handler_and_status_class(self):
        """Two handlers with different results are counted apart, their sizes summed."""
        web = WebTally(5.0)
        for status, size in ((200, 10), (404, 20), (201, 30)):
            web.answered(Exchange("/v1/completions", "POST", status, 0.2, size, 7, at=6.0))
        web.answered(Exchange("/v1/models", "GET", 200, 2.0, 0, 9, at=7.0))
        found = samples(PageWriter(Engine(LIKE_THE_CAPTURE), web).page())
        posts = {
            dict(own)["status"]: v
            for (name, *own), v in found.items()
            if name == "http_requests_total" and dict(own)["handler"] == "/v1/completions"
        }
        assert {"2xx": 2.0, "4xx": 1.0} == posts
        assert 60.0 == found[("http_request_size_bytes_sum", ("handler", "/v1/completions"))]
        assert 9.0 == found[("http_response_size_bytes_sum", ("handler", "/v1/models"))]
