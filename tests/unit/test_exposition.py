"""The spelling and the arithmetic of a page: names, labels, duplicates, sums over labels that are not ours."""

import math

import pytest

from tidegauge import vllm
from tidegauge.model import Histogram, SeriesKey
from tidegauge.parsing.exposition import NotMetrics, read_page


def page(*lines):
    return "\n".join(lines) + "\n"


def key(family, engine="", extra="", model=""):
    return SeriesKey(family, model, engine, extra)


class TestNames:
    @pytest.mark.parametrize("prefix", ["vllm:", "vllm_", "ray_vllm_", "ray_vllm:"])
    def test_each_known_prefix_is_read(self, prefix):
        """Gauges, counters and histogram parts are found under every prefix that vLLM and Ray write."""
        found = read_page(
            page(
                "# TYPE vllm:num_requests_running gauge",
                f'{prefix}num_requests_running{{engine="4"}} 7',
                f'{prefix}prompt_tokens_total{{engine="4"}} 91',
                f'{prefix}request_queue_time_seconds_sum{{engine="4"}} 2.5',
            )
        )

        assert {key(vllm.RUNNING, "4"): 7.0, key(vllm.PROMPT_TOKENS, "4"): 91.0} == found.values
        assert {key(vllm.QUEUE, "4"): Histogram((), (), 2.5, None)} == found.histograms

    def test_a_configured_prefix_replaces_the_known_ones(self):
        """Only the prefixes asked for are read."""
        body = page('kserve_vllm:num_requests_waiting{engine="1"} 5', 'vllm:num_requests_waiting{engine="1"} 8')

        assert {key(vllm.WAITING, "1"): 5.0} == read_page(body, prefixes=("kserve_vllm:",)).values
        assert {key(vllm.WAITING, "1"): 8.0} == read_page(body).values

    @pytest.mark.parametrize(
        "name",
        [
            "vllm_omni:num_requests_running",
            "kserve_vllm:num_requests_running",
            "xvllm:num_requests_running",
            "vllm:num_requests_running_by_tier",
            "vllm:num_requests_runnin",
            "vllm:num_requests_running_total",
            "num_requests_running",
            "tidegauge_num_requests_running",
            "vllm:time_in_queue_requests_sum",
            "vllm:gpu_prefix_cache_hit_rate",
            "vllm:num_preemptions_created",
            "vllm:lora_requests_info",
        ],
    )
    def test_a_name_that_is_only_like_ours_is_not_ours(self, name):
        """Neighbours, longer and shorter names, other engines' and V0 families of another meaning give nothing."""
        found = read_page(page(f'{name}{{engine="2"}} 6', 'vllm:num_requests_waiting{engine="2"} 3'))

        assert {key(vllm.WAITING, "2"): 3.0} == found.values
        assert {} == found.histograms

    def test_waiting_by_reason_is_not_waiting(self):
        """The family whose name goes on stays apart from the one it begins with."""
        found = read_page(
            page(
                'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9',
                'vllm:num_requests_waiting_by_reason{engine="0",reason="deferred"} 4',
                'vllm:num_requests_waiting{engine="0"} 13',
            )
        )

        assert {
            key(vllm.WAITING_BY_REASON, "0", "capacity"): 9.0,
            key(vllm.WAITING_BY_REASON, "0", "deferred"): 4.0,
            key(vllm.WAITING, "0"): 13.0,
        } == found.values

    @pytest.mark.parametrize(("alias", "family"), [*vllm.ALIASES.items(), ("request_success", vllm.FINISHED)])
    def test_an_older_name_gives_todays_figure(self, alias, family):
        """Older spellings, and Ray's counters without their suffix, are read as today's family."""
        suffix = "_sum" if vllm.KINDS[family] == "histogram" else ""
        found = read_page(page(f"vllm:{alias}{suffix} 0.75"))

        figures = {**found.values, **{at: histogram.sum for at, histogram in found.histograms.items()}}

        assert {key(family): 0.75} == figures

    @pytest.mark.parametrize("order", [1, -1])
    def test_todays_name_wins_over_the_older_one(self, order):
        """Where a page has both, wherever they stand, the older one is not added."""
        lines = ('vllm:gpu_cache_usage_perc{engine="0"} 0.9', 'vllm:kv_cache_usage_perc{engine="0"} 0.4')

        found = read_page(page(*lines[::order]))

        assert {key(vllm.KV_USAGE, "0"): 0.4} == found.values
        assert {} == found.problems

    def test_one_series_under_two_prefixes_counts_once(self):
        """Both of Ray's spellings on one page are one counter."""
        found = read_page(page("ray_vllm_prompt_tokens_total 40", "ray_vllm:prompt_tokens_total 41"))

        assert {key(vllm.PROMPT_TOKENS): 40.0} == found.values


class TestLabels:
    def test_engines_models_and_reasons_are_kept_apart(self):
        """Data-parallel engines, model names and the family's own label each make a series."""
        found = read_page(
            page(
                'vllm:request_success_total{engine="0",finished_reason="stop",model_name="a"} 5',
                'vllm:request_success_total{engine="0",finished_reason="abort",model_name="a"} 2',
                'vllm:request_success_total{engine="1",finished_reason="stop",model_name="a"} 7',
                'vllm:request_success_total{engine="1",finished_reason="stop",model_name="b"} 11',
            )
        )

        assert {
            key(vllm.FINISHED, "0", "stop", "a"): 5.0,
            key(vllm.FINISHED, "0", "abort", "a"): 2.0,
            key(vllm.FINISHED, "1", "stop", "a"): 7.0,
            key(vllm.FINISHED, "1", "stop", "b"): 11.0,
        } == found.values

    def test_what_ray_replicas_count_is_added_up(self):
        """Two replicas that both call themselves engine 0 are one engine: sums, but the fuller KV cache."""
        found = read_page(
            page(
                'ray_vllm_num_requests_running{engine="0",ReplicaId="r1",WorkerId="w1"} 3',
                'ray_vllm_num_requests_running{engine="0",ReplicaId="r2",WorkerId="w2"} 4',
                'ray_vllm_generation_tokens_total{engine="0",NodeAddress="192.0.2.1"} 100',
                'ray_vllm_generation_tokens_total{engine="0",NodeAddress="192.0.2.2"} 23',
                'ray_vllm_kv_cache_usage_perc{engine="0",WorkerId="w1"} 0.2',
                'ray_vllm_kv_cache_usage_perc{engine="0",WorkerId="w2"} 0.7',
            )
        )

        assert {
            key(vllm.RUNNING, "0"): 7.0,
            key(vllm.OUTPUT_TOKENS, "0"): 123.0,
            key(vllm.KV_USAGE, "0"): 0.7,
        } == found.values
        assert {} == found.problems

    def test_the_process_that_knows_the_kv_usage_speaks(self):
        """Of eight API server processes one has the usage, the others say 0."""
        lines = [
            f'vllm:kv_cache_usage_perc{{engine="0",pid="{pid}"}} {0.31 if pid == 44 else 0}' for pid in range(40, 48)
        ]

        assert {key(vllm.KV_USAGE, "0"): 0.31} == read_page(page(*lines)).values

    def test_histograms_of_two_replicas_add_up_at_their_common_edges(self):
        """Counts are exact only where both have an edge; a sum that one of them lacks is unknown."""
        lines = []
        for worker, edges in (("w1", {"1.0": 2, "5.0": 6, "+Inf": 9}), ("w2", {"2.0": 1, "5.0": 3, "+Inf": 4})):
            lines += [
                f'vllm:request_prompt_tokens_bucket{{WorkerId="{worker}",le="{edge}"}} {count}'
                for edge, count in edges.items()
            ]
            lines.append(f'vllm:request_prompt_tokens_count{{WorkerId="{worker}"}} {edges["+Inf"]}')
        lines.append('vllm:request_prompt_tokens_sum{WorkerId="w1"} 30')

        found = read_page(page(*lines)).histograms[key(vllm.PROMPT_LENGTH)]

        assert Histogram((5.0, math.inf), (9.0, 13.0), None, 13.0) == found

    def test_a_router_is_no_backend(self):
        """Series about other servers are refused with a word for the operator, and never booked."""
        body = page('vllm:num_requests_running{server="http://192.0.2.7:8000"} 6', "router_active_requests 6")

        with pytest.raises(NotMetrics, match="router"):
            read_page(body)

    def test_a_routers_series_beside_an_engines_are_left_out(self):
        """A page that has both gives the engine's."""
        found = read_page(page('vllm:num_requests_running{server="s"} 6', 'vllm:num_requests_running{engine="0"} 1'))

        assert {key(vllm.RUNNING, "0"): 1.0} == found.values

    def test_the_same_series_twice_counts_once(self):
        """The first one stays, even with its labels in another order, and the repetition is counted."""
        found = read_page(
            page(
                'vllm:prompt_tokens_total{engine="0",model_name="a"} 10',
                'vllm:prompt_tokens_total{engine="0",model_name="a"} 20',
                'vllm:prompt_tokens_total{model_name="a", engine="0"} 30',
                'vllm:e2e_request_latency_seconds_bucket{le="1"} 4',
                'vllm:e2e_request_latency_seconds_bucket{le="1.0"} 5',
            )
        )

        assert {key(vllm.PROMPT_TOKENS, "0", model="a"): 10.0} == found.values
        assert (4.0,) == found.histograms[key(vllm.E2E)].cumulative
        assert {"duplicate": 3} == found.problems


class TestCacheConfig:
    def test_one_entry_per_engine_with_all_labels(self):
        """The info series gives each engine its labels as spelt, escapes undone."""
        found = read_page(
            page(
                'vllm:cache_config_info{block_size="16",engine="0",path="C:\\\\kv",x="None"} 1.0',
                'vllm:cache_config_info{block_size="32",engine="1",path="D:",x="7"} 1.0',
            )
        )

        assert [
            ("0", {"block_size": "16", "engine": "0", "path": "C:\\kv", "x": "None"}),
            ("1", {"block_size": "32", "engine": "1", "path": "D:", "x": "7"}),
        ] == [(config.engine, dict(config.labels)) for config in found.cache_configs]
        assert not found.blind

    def test_processes_repeat_it_and_replicas_have_their_own(self):
        """`pid` makes no second cache, a replica does."""
        found = read_page(
            page(
                'ray_vllm_cache_config_info{num_gpu_blocks="50",pid="1",ReplicaId="a"} 1',
                'ray_vllm_cache_config_info{num_gpu_blocks="50",pid="2",ReplicaId="a"} 1',
                'ray_vllm_cache_config_info{num_gpu_blocks="50",pid="3",ReplicaId="b"} 1',
            )
        )

        assert ["a", "b"] == [config.labels["ReplicaId"] for config in found.cache_configs]
        assert [""] * 2 == [config.engine for config in found.cache_configs]


class TestProcessStart:
    def test_the_start_of_the_process_is_read(self):
        """It has no prefix, and is no figure of vLLM's."""
        found = read_page(page("process_start_time_seconds 1.7e+09", "vllm:num_requests_running 1"))

        assert 1.7e9 == found.process_start
        assert {key(vllm.RUNNING): 1.0} == found.values

    def test_two_processes_have_no_common_start(self):
        """A page that joins processes says nothing about one."""
        lines = [f'process_start_time_seconds{{pid="{pid}"}} {1.7e9 + pid}' for pid in (1, 2)]

        assert read_page(page(*lines, "vllm:num_requests_running 1")).process_start is None


class TestWhatIsNoPage:
    @pytest.mark.parametrize(
        ("body", "says"),
        [
            ("", "empty"),
            (" \n\t\n", "empty"),
            ("<!DOCTYPE html><title>502 Bad\n Gateway</title><p>vllm:num_requests_running 5</p>\n", "502 Bad Gateway"),
            ("<html>\nvllm:num_requests_running 5\n</html>\n", "HTML"),
            ('\ufeff{"detail": "Not Found"}\n', "JSON"),
            ('["vllm:num_requests_running 5"]\n', "JSON"),
            ("upstream connect error\n", "upstream connect error"),
            ("# HELP go_threads n\n# TYPE go_threads gauge\ngo_threads 5\n", "go_threads"),
            ('node_load1 5\nvllm_omni:num_requests_running{stage="0"} 5\n', "node_load1"),
            ("num_requests_running 5\n", "num_requests_running"),
            ("# only a remark\n", "only a remark"),
            ("vllm:num_requests_running 5", "vllm:num_requests_running"),
        ],
    )
    def test_it_is_named(self, body, says):
        """Whatever is no page of vLLM's is refused, and the message tells what it is."""
        with pytest.raises(NotMetrics, match=says):
            read_page(body)

    @pytest.mark.parametrize(
        "body", ["x" * 5000, "<title>" + "y" * 5000 + "</title>", "\x00\U0001f600" * 500, "z" * 500 + " 1\n"]
    )
    def test_little_of_it_is_repeated(self, body):
        """A message stays short and printable, however long or odd the body is."""
        with pytest.raises(NotMetrics) as caught:
            read_page(body)

        message = str(caught.value)
        assert message.isascii()
        assert message.isprintable()
        assert len(message) < 80 + 60

    def test_vllm_without_series_is_blind(self):
        """Families with HELP and TYPE but no series mean statistics are off: nothing is known, nothing is 0."""
        found = read_page(page("# HELP vllm:num_requests_running n", "# TYPE vllm:num_requests_running gauge", "up 1"))

        assert found.blind
        assert ({}, {}, (), {}) == (found.values, found.histograms, found.cache_configs, found.problems)
