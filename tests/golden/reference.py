"""The same figures by prometheus_client's parser, for comparison: slow, and written apart from ours."""

from prometheus_client.parser import text_string_to_metric_families

from tidegauge import vllm
from tidegauge.model import SeriesKey


def figures(body, prefix="vllm:"):
    """{(series key, part): number} of a page in today's or older names; part is value, sum, count or a bucket edge."""
    older, today = {}, {}
    for family in text_string_to_metric_families(body):
        for sample in family.samples:
            found = _place(sample.name.removeprefix(prefix), sample.labels) if sample.name.startswith(prefix) else None
            if found:
                (older if found[2] else today)[found[0], found[1]] = sample.value
    return older | today


def flat(page):
    """What our parser found, in the same shape."""
    found = {(key, "value"): number for key, number in page.values.items()}
    for key, histogram in page.histograms.items():
        found |= {(key, edge): number for edge, number in zip(histogram.edges, histogram.cumulative, strict=True)}
        found |= {(key, "sum"): histogram.sum, (key, "count"): histogram.count}
    return {place: number for place, number in found.items() if number is not None}


def _place(name, labels):
    for suffix, part in (("", "value"), ("_bucket", labels.get("le")), ("_sum", "sum"), ("_count", "count")):
        spelling = name.removesuffix(suffix)
        family = vllm.ALIASES.get(spelling, spelling)
        is_histogram = vllm.KINDS.get(family) == "histogram"
        if (
            name.endswith(suffix)
            and family in vllm.KINDS
            and is_histogram == bool(suffix)
            and family != vllm.CACHE_INFO
        ):
            extra = [labels[label] for label in vllm.EXTRA_LABELS.get(family, ())]
            key = SeriesKey(family, labels.get("model_name", ""), labels.get("engine", ""), *extra)
            return key, (float(part) if suffix == "_bucket" else part), spelling != family
    return None
