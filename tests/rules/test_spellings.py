"""The rules rendered for other spellings, labels and clusters, held against the truth tables of the default ones."""

import attrs
import pytest

from mixin import generate
from tests.generations import program
from tests.rules import cases_bottleneck, cases_latency, cases_load, cases_memory, cases_slo, cases_split, cases_stages
from tests.rules.promtool import Group, Value, labels, run
from tests.rules.servers import Phase, Server
from tests.rules.steady import MODERN, Steady
from tidegauge import vllm
from tidegauge.catalogue import recorded as rec

GROUPS = [
    cases_latency.QUANTILES,
    cases_load.THROUGHPUT,
    cases_memory.MEMORY,
    cases_slo.FIVE_MINUTES,
    cases_split.PARTS,
    cases_stages.NATIVE,
]
NATIVE = "vllm:"


def rendered(config):
    """The recording rules with the jsonnet *config*."""
    text = (generate.ROOT / generate.CATALOGUE).read_text(encoding="utf-8")
    return generate.render_jsonnet("prometheusRules", text, config)


def complaint(config, group, folder):
    """What promtool says against *group* under the rules with *config*."""
    return run(program("promtool"), rendered(config), [attrs.evolve(group, alerts=())], folder)


def respelt(group, prefix_of):
    """The group with the prefix of each vLLM series replaced."""
    series = [
        {**one, "series": prefix_of(one["series"]) + one["series"].removeprefix(NATIVE)}
        if one["series"].startswith(NATIVE)
        else one
        for one in group.series
    ]
    assert series != list(group.series)
    return attrs.evolve(group, series=series)


@pytest.mark.parametrize("prefix", [prefix for prefix in vllm.PREFIXES if prefix != NATIVE])
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_a_prefix_can_be_chosen(prefix, group, tmp_path):
    """The figures of every prefix are those of vLLM's own."""
    assert "" == complaint(f"{{ metricPrefixes: ['{prefix}'] }}", respelt(group, lambda _: prefix), tmp_path)


def test_the_default_prefix_reads_no_other(tmp_path):
    """Without the setting a foreign prefix gives nothing, so the cases above are not won by the default rules."""
    assert "FAILED" in complaint("{}", respelt(cases_stages.NATIVE, lambda _: "vllm_"), tmp_path)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_servers_of_every_prefix_at_once(group, tmp_path):
    """With all prefixes configured, servers may differ in theirs."""
    prefixes, chosen = vllm.PREFIXES[1:], {}

    def prefix_of(series):
        instance = series.partition('instance="')[2].partition('"')[0]
        return chosen.setdefault(instance, prefixes[len(chosen) % len(prefixes)])

    mixed = respelt(group, prefix_of)

    assert len(set(chosen.values())) > 1
    assert "" == complaint(f"{{ metricPrefixes: {list(vllm.PREFIXES)} }}", mixed, tmp_path)


def test_a_server_under_two_prefixes_counts_once(tmp_path):
    """While a scrape changes names both are there for as long as the windows, and no rule fails or doubles."""
    series = Steady(
        MODERN,
        {vllm.TTFT: {0.2: 30}},
        {vllm.OUTPUT_TOKENS: 900},
        {vllm.RUNNING: 7, vllm.WAITING: 2, vllm.KV_USAGE: 0.4},
    ).series()
    twice = [*series, *respelt(Group("", series), lambda _: "vllm_").series]
    subject = labels(backend=MODERN["instance"], model_name=MODERN["model_name"])
    group = Group(
        "both",
        twice,
        [
            Value(rec.RUNNING, 8, {subject: 7}),
            Value(rec.OUTPUT_RATE, 8, {subject: 30}),
            Value(rec.KV_USAGE, 8, {subject: 0.4}),
            Value(rec.SLO_TOTAL, 8, {labels(model_name=MODERN["model_name"], sli="ttft"): 1}, '{sli="ttft"}'),
        ],
    )

    assert "" == complaint("{ metricPrefixes: ['vllm:', 'vllm_'] }", group, tmp_path)


def in_cluster(series, cluster):
    """The series with a cluster label, as a target of Prometheus has it."""
    return [{**one, "series": one["series"].replace("{", f'{{cluster="{cluster}",', 1)} for one in series]


def test_clusters_are_kept_apart(tmp_path):
    """Two clusters may have the same addresses and models: every rule tells them apart."""
    slow = Server("a:8000", "sim", [Phase(20, [(6, 0), (4, 12)], running=3)]).series()
    other = Server("b:8000", "sim", [Phase(20, [(20, 0)], decode=1, running=9)]).series()
    quick = Server("a:8000", "sim", [Phase(20, [(20, 0)], decode=1, running=5)]).series()
    series = [*in_cluster(slow, "east"), *in_cluster(other, "east"), *in_cluster(quick, "west")]
    a = {"backend": "a:8000", "model_name": "sim"}
    b = {"backend": "b:8000", "model_name": "sim"}
    group = Group(
        "clusters",
        series,
        [
            Value(
                rec.RUNNING,
                16,
                {labels(cluster="east", **a): 3, labels(cluster="east", **b): 9, labels(cluster="west", **a): 5},
            ),
            Value(
                rec.LATE_RATIO,
                16,
                {labels(cluster="east", where="server", **a): 0.4},
                '{cluster="east",backend="a:8000"}',
            ),
            # (4.8 + 0.5 + 3.4 + 0.1) / (0.5 + 1 + 0.1)
            Value(rec.FLEET_SKEW, 16, {labels(cluster="east", fleet="sim"): 5.5}),
            Value(
                rec.FLEET_MEMBER,
                16,
                {labels(cluster=c, fleet="sim", **one): 1 for c, one in (("east", a), ("east", b), ("west", a))},
            ),
            Value(
                rec.FLEET_FINISHED_RATE,
                16,
                {
                    labels(cluster="east", fleet="sim", finished_reason="length"): 1,
                    labels(cluster="west", fleet="sim", finished_reason="length"): 0.667,
                },
                '{finished_reason="length"}',
            ),
            Value(
                rec.STAGE_MEAN,
                16,
                {labels(cluster="west", stage="decode", **a): 1},
                '{cluster="west",stage="decode"}',
            ),
        ],
    )

    assert "" == complaint("{ clusterLabel: 'cluster' }", group, tmp_path)


def test_every_rule_keeps_the_cluster():
    """With a cluster label no aggregation or join of any rule leaves it out."""
    expressions = [
        rule["expr"] for group in rendered("{ clusterLabel: 'cluster' }")["groups"] for rule in group["rules"]
    ]

    assert len(expressions) > 80
    for expression in expressions:
        for keyword in ("by (", "on ("):
            for keys in expression.split(f" {keyword}")[1:]:
                assert keys.startswith("cluster"), expression


def test_a_backend_may_be_a_pod(tmp_path):
    """The configured label names the backend; two ports of one pod are one backend."""
    series = [
        {**one, "series": one["series"].replace("{", '{pod="vllm-0",', 1)}
        for instance, running in (("10.1.0.7:8000", 3), ("10.1.0.7:8001", 4))
        for one in Server(instance, "sim", [Phase(8, [(10, 0)], running=running)]).series()
    ]
    group = Group("pods", series, [Value(rec.RUNNING, 6, {labels(backend="vllm-0", model_name="sim"): 7})])

    assert "" == complaint("{ backendLabel: 'pod' }", group, tmp_path)


def test_a_model_may_have_its_own_target(tmp_path):
    """A model with a target of its own is judged by that one, and by the lower edge where the target is between two."""
    one = {**MODERN, "model_name": "Qwen/Qwen2.5-7B"}
    other = {**MODERN, "model_name": "Qwen/Qwen2x5-7B"}
    seen = {vllm.TTFT: {0.2: 10, 0.9: 10, 2: 10}}

    def both(own, default):
        return {
            labels(model_name=who["model_name"], sli="ttft"): value for who, value in ((one, own), (other, default))
        }

    group = Group(
        "targets",
        [*Steady(one, seen).series(), *Steady(other, seen).series()],
        [
            Value(rec.SLO_5M, 8, both(0.333, 0.667)),
            Value(rec.SLO_OBJECTIVE, 8, both(0.9, 0.95)),
            Value(rec.SLO_ASKED, 8, both(0.6, 1)),
            Value(rec.SLO_JUDGED, 8, both(0.5, 1)),
        ],
    )
    own = "{ ttft: { seconds: 0.6, objective: 0.9 } }"

    assert "" == complaint(f"{{ sloByModel: {{ 'Qwen/Qwen2.5-7B': {own} }} }}", group, tmp_path)


def test_tokens_are_late_by_the_target_of_their_model(tmp_path):
    """Busy GPUs and 60 ms a token: compute bound at 50 ms for all models, and not at 100 ms for this one alone."""
    series = [*cases_bottleneck.server("a", tpot=cases_bottleneck.SLOW), *cases_bottleneck.gpus("a", 0.97)]
    slower, faster = "{ tpot: { seconds: 0.1 } }", "{ tpot: { seconds: 0.04 } }"
    for config, level in (
        ("{}", "compute"),
        (f"{{ sloByModel: {{ sim: {slower} }} }}", "none"),
        (f"{{ sloByModel: {{ other: {slower} }} }}", "compute"),
        (f"{{ slo+: {{ tpot+: {{ seconds: 0.1 }} }}, sloByModel: {{ sim: {faster} }} }}", "compute"),
    ):
        group = Group("late", series, [Value(rec.BOTTLENECK, 8, cases_bottleneck.level("a", level))])
        assert "" == complaint(config, group, tmp_path), config
