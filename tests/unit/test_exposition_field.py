"""Pages and pieces of pages in the shapes in which people post them; figures and names are made up."""

import math
import textwrap

from tidegauge import vllm
from tidegauge.model import Histogram, SeriesKey
from tidegauge.parsing.exposition import read_page


def keys(model="", engine="", extra=""):
    return lambda family: SeriesKey(family, model, engine, extra)


def test_a_page_of_the_old_engine_pasted_with_indentation():
    """V0: no engine label, old names, sum before buckets, hit rates of -1, no stage histograms."""
    body = textwrap.indent(
        textwrap.dedent("""\
            # HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.
            # TYPE vllm:num_preemptions_total counter
            vllm:num_preemptions_total{model_name="m7"} 4.0
            # TYPE vllm:prompt_tokens_total counter
            vllm:prompt_tokens_total{model_name="m7"} 7.251904e+06
            # TYPE vllm:request_success_total counter
            vllm:request_success_total{finished_reason="stop",model_name="m7"} 812.0
            vllm:request_success_total{finished_reason="length",model_name="m7"} 17.0
            # TYPE vllm:lora_requests_info gauge
            vllm:lora_requests_info{max_lora="0",running_lora_adapters="",waiting_lora_adapters=""} 1.0
            # TYPE vllm:cache_config_info gauge
            vllm:cache_config_info{block_size="32",num_cpu_blocks="512",num_gpu_blocks="4021"} 1.0
            # TYPE vllm:num_requests_swapped gauge
            vllm:num_requests_swapped{model_name="m7"} 9.0
            # TYPE vllm:gpu_cache_usage_perc gauge
            vllm:gpu_cache_usage_perc{model_name="m7"} 0.37
            # TYPE vllm:cpu_cache_usage_perc gauge
            vllm:cpu_cache_usage_perc{model_name="m7"} 0.99
            # TYPE vllm:gpu_prefix_cache_hit_rate gauge
            vllm:gpu_prefix_cache_hit_rate{model_name="m7"} -1.0
            # TYPE vllm:time_per_output_token_seconds histogram
            vllm:time_per_output_token_seconds_sum{model_name="m7"} 901.25
            vllm:time_per_output_token_seconds_bucket{le="0.05",model_name="m7"} 15000.0
            vllm:time_per_output_token_seconds_bucket{le="+Inf",model_name="m7"} 16001.0
            vllm:time_per_output_token_seconds_count{model_name="m7"} 16001.0
        """),
        "    ",
    )
    at = keys("m7")

    found = read_page(body)

    assert {
        at(vllm.PREEMPTIONS): 4.0,
        at(vllm.PROMPT_TOKENS): 7251904.0,
        keys("m7", extra="stop")(vllm.FINISHED): 812.0,
        keys("m7", extra="length")(vllm.FINISHED): 17.0,
        at(vllm.KV_USAGE): 0.37,
    } == found.values
    assert {at(vllm.ITL): Histogram((0.05, math.inf), (15000.0, 16001.0), 901.25, 16001.0)} == found.histograms
    assert [("", "4021", "32")] == [
        (config.engine, config.labels["num_gpu_blocks"], config.labels["block_size"]) for config in found.cache_configs
    ]
    assert {} == found.problems


def test_a_page_cut_inside_a_bucket_line():
    """The line is lost; the histogram has what came before, sum and count are unknown; earlier families stay."""
    body = textwrap.dedent("""\
        process_start_time_seconds 1.75100400557e+09
        vllm:num_requests_running{model_name="org/m-13B"} 6.0
        # TYPE vllm:request_queue_time_seconds histogram
        vllm:request_queue_time_seconds_bucket{le="0.3",model_name="org/m-13B"} 170.0
        vllm:request_queue_time_seconds_bucket{le="0.5",model_name="org/m-13B"} 183.0
        vllm:request_queue_time_seconds_bucket{le="0.8",model_name="or""")
    at = keys("org/m-13B")

    found = read_page(body)

    assert {at(vllm.RUNNING): 6.0} == found.values
    assert {at(vllm.QUEUE): Histogram((0.3, 0.5), (170.0, 183.0), None, None)} == found.histograms
    assert 1751004005.57 == found.process_start
    assert {"line": 1} == found.problems


def test_a_piece_of_a_data_parallel_servers_page():
    """Two engines, no HELP and TYPE, other edges per engine and other parts missing."""
    body = textwrap.dedent("""\
        vllm:request_decode_time_seconds_bucket{engine="1",le="40.0",model_name="m"} 2.0
        vllm:request_decode_time_seconds_bucket{engine="1",le="+Inf",model_name="m"} 5.0
        vllm:request_decode_time_seconds_count{engine="1",model_name="m"} 5.0
        vllm:request_generation_tokens_bucket{engine="0",le="50000.0",model_name="m"} 8.0
        vllm:request_generation_tokens_bucket{engine="0",le="+Inf",model_name="m"} 8.0
        vllm:request_generation_tokens_count{engine="0",model_name="m"} 8.0
        vllm:request_generation_tokens_bucket{engine="1",le="100.0",model_name="m"} 0.0
        vllm:request_generation_tokens_bucket{engine="1",le="200.0",model_name="m"} 3.0
    """)

    assert {
        SeriesKey(vllm.DECODE, "m", "1"): Histogram((40.0, math.inf), (2.0, 5.0), None, 5.0),
        SeriesKey(vllm.OUTPUT_LENGTH, "m", "0"): Histogram((50000.0, math.inf), (8.0, 8.0), None, 8.0),
        SeriesKey(vllm.OUTPUT_LENGTH, "m", "1"): Histogram((100.0, 200.0), (0.0, 3.0), None, None),
    } == read_page(body).histograms


def test_a_server_that_counts_adapters_under_their_own_names():
    """Two model names, their lines interleaved, sums first; the adapters' info series is no figure."""
    body = textwrap.dedent("""\
        vllm:num_requests_running{model_name="law-adapter"} 1.0
        vllm:num_requests_running{model_name="org/base-9b"} 2.0
        vllm:request_decode_time_seconds_sum{model_name="law-adapter"} 0.21
        vllm:request_decode_time_seconds_sum{model_name="org/base-9b"} 6.5
        vllm:request_decode_time_seconds_bucket{le="0.3",model_name="law-adapter"} 1.0
        vllm:request_decode_time_seconds_count{model_name="law-adapter"} 1.0
        vllm:request_decode_time_seconds_bucket{le="0.3",model_name="org/base-9b"} 3.0
        vllm:request_decode_time_seconds_count{model_name="org/base-9b"} 4.0
        vllm:lora_requests_info{max_lora="2",running_lora_adapters="law-adapter",waiting_lora_adapters=""} 1.8e+09
    """)
    adapter, base = keys("law-adapter"), keys("org/base-9b")

    found = read_page(body)

    assert {adapter(vllm.RUNNING): 1.0, base(vllm.RUNNING): 2.0} == found.values
    assert {
        adapter(vllm.DECODE): Histogram((0.3,), (1.0,), 0.21, 1.0),
        base(vllm.DECODE): Histogram((0.3,), (3.0,), 6.5, 4.0),
    } == found.histograms


def test_a_page_with_nothing_but_the_cache_configuration():
    """The capacity can be read from it; the old hit rate gauge has no successor of its meaning; it is not blind."""
    body = textwrap.dedent("""\
        # TYPE vllm:cache_config_info gauge
        vllm:cache_config_info{block_size="16",num_gpu_blocks="811",num_gpu_blocks_override="811"} 1.0
        # TYPE vllm:gpu_prefix_cache_hit_rate gauge
        vllm:gpu_prefix_cache_hit_rate{model_name="m"} 0.61
    """)

    found = read_page(body)

    assert ({}, {}, False) == (found.values, found.histograms, found.blind)
    assert ["811"] == [config.labels["num_gpu_blocks"] for config in found.cache_configs]
