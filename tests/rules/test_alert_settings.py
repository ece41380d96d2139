"""What the settings of the mixin make of the alerts."""

import re

import pytest

from mixin import generate
from tidegauge.rules import RulesError, evaluate

CATALOGUE = generate.rendered()[generate.CATALOGUE]


def alerts(config="{}"):
    groups = generate.render_jsonnet("prometheusAlerts", CATALOGUE, config)["groups"]
    return [rule for group in groups for rule in group["rules"]]


def burns(config="{}"):
    return [rule for rule in alerts(config) if "BudgetBurn" in rule["alert"]]


@pytest.mark.parametrize("objective", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_every_burn_rate_can_be_reached(objective):
    """An objective of 90 % cannot burn faster than ten times: no alert waits for what cannot be."""
    slo = ", ".join(f"{sli}+: {{ objective: {objective} }}" for sli in ("ttft", "tpot", "e2e"))
    rates = [
        float(rate) for rule in burns(f"{{ slo+: {{ {slo} }} }}") for rate in re.findall(r" > ([\d.]+)", rule["expr"])
    ]

    assert len(rates) == 24
    assert all(0 < rate < 1 / (1 - objective) for rate in rates)


def test_model_of_its_own():
    """A model with an objective or target of its own is held to it, and the others are not."""
    config = "{ sloByModel: { 'a/b+c': { ttft: { objective: 0.5, seconds: 2.5 } } } }"
    own = [rule for rule in burns(config) if 'model_name="a/b+c"' in rule["expr"]]
    others = [rule for rule in burns(config) if rule not in own]

    assert {"VllmTTFTBudgetBurn"} == {rule["alert"] for rule in own}
    assert len(own) == 4
    assert len(others) == len(burns())
    assert all("/ 0.5 >" in rule["expr"] and "2.5 s" in rule["annotations"]["summary"] for rule in own)
    ttft = [rule for rule in others if rule["alert"] == "VllmTTFTBudgetBurn"]
    assert all(r'model_name!~"a/b\\+c"' in rule["expr"] for rule in ttft)


def test_texts_say_the_target_that_is_judged():
    """Of requests that took 2.8 s, judged at 2.5 s for a target of 3 s, no text says that they took longer than 3 s."""
    (page, *_) = burns("{ slo+: { ttft+: { seconds: 3 } } }")

    assert "of the requests got their first token later than 2.5 s within 1h" in page["annotations"]["summary"]
    assert page["annotations"]["description"].startswith(
        "The objective is 95% within 3 s, judged at 2.5 s, the highest bucket edge below it, and the last 5m miss"
    )
    assert "judged" not in str(burns())


def test_no_two_alerts_are_alike_to_promtool():
    """Name and labels tell apart even the alerts of models with targets of their own."""
    own = "{ ttft: { seconds: 2.5 }, e2e: { objective: 0.9 } }"
    made = alerts(f"{{ sloByModel: {{ a: {own}, b: {own} }} }}")

    assert len(burns()) + 16 == len([rule for rule in made if "BudgetBurn" in rule["alert"]])
    assert len(made) == len({(rule["alert"], *sorted(rule["labels"].items())) for rule in made})


def test_an_alert_without_a_hold_is_named(tmp_path):
    """Whoever adds an alert is told the key that it lacks."""
    alert = "(import 'mixin/lib/alert.libsonnet').new({ holds: {} }, 'skew').info('VllmNew', 'up', '', '')"
    (tmp_path / "mixin").mkdir()
    (tmp_path / "mixin" / "lib").symlink_to(generate.ROOT / "mixin" / "lib")
    (tmp_path / "mixin" / "mixin.libsonnet").write_text(f"{{ rule: {alert} }}".replace("mixin/lib", "lib"))

    with pytest.raises(RulesError, match=r"holds\.VllmNew: not in mixin/config\.libsonnet"):
        evaluate(tmp_path, "rule")


def test_burn_rates_are_a_list_of_ones_own():
    """Each entry makes one alert for each service level, with its windows, severity and hold."""
    rate = "{ factor: 10, long: '2h', short: '30m', severity: 'info', hold: '7m' }"
    made = burns(f"{{ burnRates: [{rate}] }}")

    assert len(made) == 3
    assert {"7m"} == {rule["for"] for rule in made}
    assert {("info", "2h")} == {(rule["labels"]["severity"], rule["labels"]["window"]) for rule in made}
    assert all("ratio_rate2h" in rule["expr"] and "ratio_rate30m" in rule["expr"] for rule in made)


def test_no_alert_on_spellings_that_are_read():
    """Where the rules read every spelling, none can be the wrong one."""
    prefixes = "['vllm:', 'vllm_', 'ray_vllm_', 'ray_vllm:']"
    names = {rule["alert"] for rule in alerts(f"{{ metricPrefixes: {prefixes} }}")}

    assert "TidegaugeNativeMetricsEscaped" not in names
    assert "TidegaugeNativeMetricsMissing" in names


def test_figures_of_a_text_are_of_the_alerts_own_cluster():
    """With several clusters in one Prometheus, a text does not show another one's figure."""
    texts = [
        text
        for rule in alerts("{ clusterLabel: 'site' }")
        for text in (rule["annotations"]["summary"], rule["annotations"]["description"])
        if "printf" in text
    ]
    lookups = [lookup for text in texts for lookup in re.findall(r'printf "[^|]*\| query', text)]

    assert len(lookups) > 20
    assert all("site=%q" in lookup and "$labels.site" in lookup for lookup in lookups)


def test_joins_keep_to_a_cluster():
    """Every label list that an alert joins or aggregates by has the cluster."""
    lists = [
        one
        for rule in alerts("{ clusterLabel: 'site' }")
        for one in re.findall(r"\b(?:by|on) \(([^)]*)\)", rule["expr"])
        if one
    ]

    assert len(lists) > 20
    assert all(one.startswith("site") for one in lists)


def test_braces_of_a_setting_are_shown_as_they_are():
    """A model's name and a selector may look like a template, and are none."""
    config = """{ vllmSelector: 'job="{{x}}"', sloByModel: { 'a{{b': { ttft: { seconds: 2.5 } } } }"""
    made = alerts(config)

    (down,) = [rule for rule in made if rule["alert"] == "VllmBackendDown"]
    assert """must match job='{{ "{{" }}x}}'.""" in down["annotations"]["description"]
    own = [rule for rule in made if rule["labels"].get("model_name")]
    assert {'a{{ "{{" }}b'} == {rule["labels"]["model_name"] for rule in own}
    assert all('model_name="a{{b"' in rule["expr"] for rule in own)


def test_every_limit_is_used():
    """A limit that nothing reads would be a knob that turns nothing."""
    keys = list(generate.render_jsonnet("_config", CATALOGUE)["limits"])
    marks = {key: f"0.{number}1" for number, key in enumerate(keys, 710)}
    limits = ", ".join(f"{key}: {mark}" for key, mark in marks.items())
    text = "\n".join(rule["expr"] for rule in alerts(f"{{ limits+: {{ {limits} }} }}"))

    assert len(keys) >= 10
    assert [] == [key for key, mark in marks.items() if mark not in text]
