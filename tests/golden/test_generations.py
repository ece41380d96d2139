"""One page per generation of vLLM: nothing that the release exports is missing, every number is right."""

import pytest

from tests.golden import generations, reference
from tidegauge import vllm
from tidegauge.parsing.exposition import PageReader, read_page

DEFINITIONS = generations.definitions()
STAGES_FROM_0_6_4 = (vllm.QUEUE, vllm.PREFILL, vllm.DECODE, vllm.E2E)


def families_of(page):
    found = {key.family for key in (*page.values, *page.histograms)}
    return found | ({vllm.CACHE_INFO} if page.cache_configs else set())


@pytest.mark.parametrize("version", DEFINITIONS)
def test_every_family_of_a_release_that_we_read_is_found(version):
    """A family that the release exports, under today's or an older name, is on the page we read."""
    exported = {vllm.ALIASES.get(name, name) for name in DEFINITIONS[version]["families"]}

    page = read_page(generations.page(DEFINITIONS[version]))

    assert exported & set(vllm.KINDS) == families_of(page)


@pytest.mark.parametrize("version", DEFINITIONS)
def test_every_number_equals_the_one_of_prometheus_client(version):
    """Values, sums, counts and buckets are those that prometheus_client's parser reads."""
    body = generations.page(DEFINITIONS[version], engines=("0", "3"))
    expected = reference.figures(body)

    found = reference.flat(read_page(body))

    assert len(expected) > 80
    assert expected == found


@pytest.mark.parametrize("version", [version for version in DEFINITIONS if version not in ("0.4.3", "0.6.3")])
def test_no_stage_is_missing_since_vllm_has_stages(version):
    """Queue, prefill, decode and end-to-end time are there for each engine, with sum and count."""
    page = read_page(generations.page(DEFINITIONS[version]))

    found = {
        (key.family, key.engine)
        for key, histogram in page.histograms.items()
        if histogram.sum is not None and histogram.count is not None
    }
    engines = {engine for family, engine in found if family == vllm.E2E}

    assert engines in ({""}, {"0", "1"})
    assert {(stage, engine) for stage in STAGES_FROM_0_6_4 for engine in engines} <= found


def test_the_generations_really_differ():
    """The pages span the renames: both spellings of the KV usage occur, alone and together."""
    spellings = {
        frozenset({"gpu_cache_usage_perc", vllm.KV_USAGE} & set(release["families"]))
        for release in DEFINITIONS.values()
    }

    assert {
        frozenset({"gpu_cache_usage_perc"}),
        frozenset({vllm.KV_USAGE}),
        frozenset({"gpu_cache_usage_perc", vllm.KV_USAGE}),
    } == spellings


def test_cache_configs_carry_every_label_per_engine():
    """The info series gives one configuration per engine with all labels of the release."""
    release = DEFINITIONS["0.24.0"]

    configs = read_page(generations.page(release, engines=("0", "1", "2"))).cache_configs

    assert ["0", "1", "2"] == [config.engine for config in configs]
    assert [
        "kv_cache_size_tokens of 0",
        "kv_cache_size_tokens of 1",
        "kv_cache_size_tokens of 2",
    ] == [config.labels["kv_cache_size_tokens"] for config in configs]
    assert {"engine", *release["cache_config_labels"]} == set(configs[1].labels)


def test_one_reader_follows_an_upgrade_through_all_generations():
    """A reader that saw older releases reads a newer one as a fresh reader does."""
    reader = PageReader()

    for release in DEFINITIONS.values():
        body = generations.page(release)
        assert read_page(body) == reader.read(body)
