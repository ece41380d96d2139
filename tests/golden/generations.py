"""Pages as each generation of vLLM writes them, made from its own metric definitions.

`tests/fixtures/vllm-families.json.gz` holds, per release, every metric family of its Python source: type, labels,
buckets (token histograms: those of a model with a context of 5,000), and the labels of `cache_config_info`. A page has
every family of the release, the hidden and the conditional ones too, and no two series with the same number.
"""

import gzip
import itertools
import json
from pathlib import Path

_FAMILIES = Path(__file__).parent.parent / "fixtures" / "vllm-families.json.gz"
_LABELS = {"finished_reason": ("stop", "length", "abort"), "reason": ("capacity", "deferred")}


def definitions():
    """{release: {"families": {name: {"type", "labels", "buckets"}}, "cache_config_labels": [...]}}."""
    return json.loads(gzip.decompress(_FAMILIES.read_bytes()))


def page(release, engines=("0", "1"), model="model-a"):
    """The text of one page; releases without an engine label get one series per family and `model`."""
    numbers = itertools.count(3)
    lines = []
    for name, family in release["families"].items():
        kind = "gauge" if family["type"] == "info" else family["type"]
        lines += [f"# HELP vllm:{name} About {name}.", f"# TYPE vllm:{name} {kind}"]
        for labels in _label_sets(name, family, release["cache_config_labels"], engines, model):
            lines += _series(name, family, labels, numbers)
    return "\n".join(lines) + "\n"


def _label_sets(name, family, config, engines, model):
    values = {"engine": engines, "model_name": (model,), **_LABELS}
    names = family["labels"]
    for combination in itertools.product(*(values.get(label, (f"{label}-x",)) for label in names)):
        labels = dict(zip(names, combination, strict=True))
        if name == "cache_config_info":
            labels |= {label: f"{label} of {labels.get('engine', 'all')}" for label in config}
        yield labels


def _series(name, family, labels, numbers):
    if family["type"] != "histogram":
        return [f"vllm:{name}{_text(labels)} {float(next(numbers))}"]
    buckets = [
        f"vllm:{name}_bucket{_text(labels | {'le': str(float(edge))})} {float(next(numbers))}"
        for edge in family["buckets"]
    ]
    count = float(next(numbers))
    return [
        f"vllm:{name}_sum{_text(labels)} {next(numbers) + 0.125}",
        *buckets,
        f"vllm:{name}_bucket{_text(labels | {'le': '+Inf'})} {count}",
        f"vllm:{name}_count{_text(labels)} {count}",
    ]


def _text(labels):
    inner = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{{{inner}}}" if inner else ""
