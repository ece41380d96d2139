"""Every exported series of the catalogue is on the golden page, with its labels, type and help; and nothing else is."""

from pathlib import Path

import pytest
from prometheus_client import ProcessCollector
from prometheus_client.parser import text_string_to_metric_families

from tidegauge import process
from tidegauge.catalogue import EXPORTED, LABELS
from tidegauge.catalogue import labels as lb

GOLDEN = Path(__file__).parent.parent / "golden" / "metrics.prom"
PARTS = ("_bucket", "_sum", "_count")


def family_name(series):
    return series.name.removesuffix("_total") if series.kind == "counter" else series.name


@pytest.fixture(scope="module")
def page():
    """The families of the golden page by name."""
    return {one.name: one for one in text_string_to_metric_families(GOLDEN.read_text(encoding="utf-8"))}


def test_page_holds_exactly_the_catalogue(page):
    """Both ways: a series without a sample on the page, a family without an entry."""
    exported = {family_name(series) for series in EXPORTED}

    assert exported == {name for name, family in page.items() if family.samples}
    assert exported == set(page)


def test_series_of_a_process_are_prometheus_clients():
    """Their names, types and help are those of the release that is installed, and there are no others."""
    found = [(one.name, one.type, one.documentation) for one in ProcessCollector(registry=None).collect()]

    assert [(family_name(series), series.kind, series.help) for series in process.SERIES] == found


@pytest.mark.parametrize("series", EXPORTED, ids=lambda series: series.name)
def test_series_is_as_its_entry_says(page, series):
    """Type, help, sample names, and each label on at least one sample; none that the entry does not name."""
    family = page[family_name(series)]
    used = {label for sample in family.samples for label in sample.labels} - ({"le"} if series.buckets else set())
    names = {series.name + part for part in PARTS} if series.kind == "histogram" else {series.name}

    assert (series.kind, series.help) == (family.type, family.documentation)
    assert set(series.labels) == used
    assert names == {sample.name for sample in family.samples}


def test_buckets_are_the_entrys(page):
    """Of every histogram."""
    histograms = [series for series in EXPORTED if series.kind == "histogram"]
    assert histograms
    for series in histograms:
        found = {sample.labels["le"] for sample in page[series.name].samples if sample.name.endswith("_bucket")}
        assert {str(float(edge)) for edge in series.buckets} | {"+Inf"} == found


def test_labels_of_every_entry_are_described():
    """A label has one meaning, written down once."""
    assert {label for series in EXPORTED for label in series.labels} <= set(LABELS)


@pytest.mark.parametrize(
    ("label", "values"),
    [
        (lb.STAGE, lb.STAGES),
        (lb.SOURCE, lb.SOURCES),
        (lb.BASIS, lb.BASES),
        (lb.STATE, lb.STATES),
        (lb.CAUSE, lb.CAUSES),
        (lb.WHERE, (lb.SERVER, lb.CALLER)),
        (lb.STAT, ("median", "p90", "max")),
    ],
)
def test_values_of_fixed_labels_are_the_catalogues(page, label, values):
    """Nothing invents a value of its own."""
    found = {sample.labels[label] for family in page.values() for sample in family.samples if label in sample.labels}

    assert found
    assert found <= set(values)


def test_every_name_is_ours():
    """`tidegauge_`, never vLLM's: scrape configurations rewrite those."""
    assert all(series.name.startswith("tidegauge_") for series in EXPORTED)
    assert len(EXPORTED) == len({series.name for series in EXPORTED}) == len({series.key for series in EXPORTED})
