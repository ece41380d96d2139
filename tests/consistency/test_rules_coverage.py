"""Whatever the generated rule files hold is tested, explained and linked."""

import json
import re
from collections import defaultdict

import pytest

from mixin import generate
from tests.rules.cases import GROUPS
from tests.rules.promtool import ROOT, committed, reads
from tidegauge import dcgm, vllm
from tidegauge.catalogue import EXPORTED, RECORDED, places

RULES = [rule for group in committed()["groups"] for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
NAMES = sorted({rule["alert"] for rule in ALERTS})
RECORDS = {rule["record"] for rule in RULES if "record" in rule}
CHECKS = [(group, check) for group in GROUPS for check in group.alerts]
RUNBOOKS = ROOT / "docs" / "runbooks"
HEADINGS = ["## Meaning", "## Impact", "## Diagnosis", "## Mitigation"]
BY_NAME = {series.name: series for series in RECORDED}
LONGEST_GAP = 1  # minute: two steps, as the two generations of Prometheus disagree on a window's left end


def test_there_is_something_to_check():
    """Empty files would pass every other test here."""
    assert len(NAMES) >= 25
    assert len(RECORDS) >= 20
    assert len(GROUPS) >= 20


@pytest.mark.parametrize("name", NAMES)
def test_alert_has_every_kind_of_case(name):
    """Each alert is seen firing, just short of it, healthy, without data and after a counter reset."""
    assert {"fires", "just_short", "healthy", "no_data", "reset"} <= {c.kind for _, c in CHECKS if c.name == name}


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_each_severity_is_seen_firing(rule):
    """A rule of which no case fires is not proven to be able to."""
    fired = {
        one.labels["severity"] for _, c in CHECKS if c.name == rule["alert"] and c.kind == "fires" for one in c.firing
    }

    assert rule["labels"]["severity"] in fired


def test_kinds_mean_what_they_say():
    """A firing case expects alerts, a healthy one and one just short of the hold expect none."""
    for group, check in CHECKS:
        where = f"{group.name}: {check.name} at {check.at}"
        assert check.name in NAMES, where
        assert check.kind != "fires" or check.firing, where
        assert check.kind not in {"healthy", "just_short"} or not check.firing, where


def test_just_short_is_just_short():
    """A case that is silent just short of the hold fires within a minute of it."""
    for group, check in CHECKS:
        if check.kind == "just_short":
            later = [c.at for c in group.alerts if c.name == check.name and c.firing and c.at > check.at]
            assert later, f"{group.name}: {check.name} never fires"
            assert min(later) - check.at <= max(LONGEST_GAP, group.step / 60), f"{group.name}: {check.name}"


def test_recorded_series_are_those_of_the_catalogue():
    """The rules write what the catalogue promises and nothing else."""
    assert set(BY_NAME) == RECORDS


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_recorded_series_has_a_value_case(name):
    """Each recorded series has a case with values, under labels that the catalogue names."""
    samples = [s for group in GROUPS for value in group.values if value.recorded.name == name for s in value.samples]

    assert samples
    for sample in samples:
        assert set(re.findall(r"([a-z_]+)=", sample)) <= set(BY_NAME[name].labels)


def test_rules_read_only_series_that_exist():
    """A series that nobody writes makes a rule that never speaks."""
    readers = defaultdict(list)
    for rule in RULES:
        for name in reads(rule["expr"]):
            readers[name].append(rule.get("record") or rule["alert"])
    native = {*dcgm.NAMES}
    for name, family in {**{name: name for name in vllm.KINDS}, **vllm.ALIASES}.items():
        suffixes = ("_bucket", "_sum", "_count") if vllm.KINDS[family] == "histogram" else ("",)
        # The other prefixes are read where they are told to be the wrong ones.
        native |= {f"{prefix}{name}{suffix}" for prefix in vllm.PREFIXES for suffix in suffixes}

    assert len(readers) >= 30
    assert readers.keys() <= native | RECORDS | {series.name for series in EXPORTED} | {"up"}


def queries(node):
    """Every query of a board: of panels, annotations and variables."""
    if isinstance(node, list):
        return [found for one in node for found in queries(one)]
    if not isinstance(node, dict):
        return []
    own = [value for key, value in node.items() if key in {"expr", "query", "definition"} and isinstance(value, str)]
    return own + [found for one in node.values() for found in queries(one)]


def selectors(rule, texts):
    """The matchers, or none, with which *texts* read the series that the rule records."""
    return [found for text in texts for found in re.findall(rf"{rule['record']}(?![\w:])(\{{[^}}]*\}}|)", text)]


def test_each_series_of_a_backend_is_read():
    """A series or quantile that no rule, alert, board or runbook reads costs every backend something for nothing."""
    boards = [json.loads(path.read_text()) for path in (ROOT / "dashboards" / "json").glob("*.json")]
    texts = [rule["expr"] + str(rule.get("annotations", "")) for rule in RULES] + queries(boards)
    texts += [path.read_text(encoding="utf-8") for path in RUNBOOKS.glob("*.md")]
    recording = [rule for rule in RULES if "record" in rule and "backend" in BY_NAME[rule["record"]].labels]
    quantiles = [rule.get("labels", {}).get("quantile", "") for rule in recording]
    unread = [
        (rule["record"], quantile)
        for rule, quantile in zip(recording, quantiles, strict=True)
        if not any("quantile=" not in one or f'quantile="{quantile}"' in one for one in selectors(rule, texts))
    ]

    assert len(recording) > 40
    assert unread == []


def test_scrape_labels_never_leak():
    """A recorded series keeps neither job nor instance: the exporter's own would keep it from joining vLLM's."""
    for rule in RULES:
        if "record" in rule:
            assert {"instance", "job"}.isdisjoint(BY_NAME[rule["record"]].labels)


@pytest.mark.parametrize(("folder", "ending"), [("recording_rules", ""), ("alerts", "-alerts")])
def test_group_is_called_as_its_file(folder, ending):
    """A slow group in Prometheus's own metrics leads to its source; a second one in a file has a name of its own."""
    sources = sorted((ROOT / folder).glob("*.libsonnet"))
    found = [re.findall(r"name: 'tidegauge-([a-z-]+)'", path.read_text(encoding="utf-8")) for path in sources]
    named = [name for names in found for name in names]

    assert [f"{path.stem}{ending}" for path in sources] == [names[0] for names in found]
    assert {f"tidegauge-{name}" for name in named} <= {group["name"] for group in committed()["groups"]}


@pytest.mark.parametrize("name", NAMES)
def test_runbook_page(name):
    """Each alert has a page under its name with the four headings, in order, none of them empty."""
    page = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)

    assert page.startswith(f"# {name}\n")
    assert HEADINGS == [part.splitlines()[0] for part in parts[1:]]
    assert all(len(part.split()) > 15 for part in parts[1:])


def test_no_runbook_without_an_alert():
    """A page whose alert is gone misleads."""
    assert set(NAMES) == {path.stem for path in RUNBOOKS.glob("*.md")}


@pytest.mark.parametrize("name", NAMES)
def test_runbook_links(name):
    """A page links to its alert's source, and every relative link leads somewhere."""
    page = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)]+)\)", page) if "://" not in target]

    assert all((RUNBOOKS / target).exists() for target in targets), targets
    sources = [target for target in targets if target.endswith(".libsonnet")]
    assert any(f"'{name}'" in (RUNBOOKS / source).read_text(encoding="utf-8") for source in sources)


def test_runbooks_name_series_that_exist():
    """A query in a runbook that reads a renamed series would send the reader nowhere."""
    known = RECORDS | {series.name for series in EXPORTED}
    named = {
        (path.name, name)
        for path in RUNBOOKS.glob("*.md")
        for name in re.findall(r"[a-z_]+:[a-z0-9_]+:[a-z0-9_]+|tidegauge_[a-z0-9_]+", path.read_text(encoding="utf-8"))
    }

    assert named
    assert {name for _, name in named} <= known


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_alert_is_complete(rule):
    """Each alert has a severity, a hold, a text with the subject, its runbook and a board that exists."""
    notes = rule["annotations"]
    uids = {json.loads(path.read_text())["uid"] for path in (ROOT / "dashboards" / "json").glob("*.json")}

    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["for"]
    assert "$labels" in notes["summary"]
    assert len(notes["description"].split()) > 15
    assert (RUNBOOKS / notes["runbook_url"].removeprefix(f"{places.RUNBOOKS}/")).exists()
    assert uids
    assert re.search(r"/d/([^?]+)", notes["dashboard_url"]).group(1) in uids


def test_reference_lists_every_series():
    """docs/metrics.md has a row for each exported and recorded series, and no others."""
    rows = re.findall(r"^\| `([a-z_]+[a-z0-9_:]*)` \| \w", (ROOT / generate.METRICS).read_text(), flags=re.MULTILINE)
    names = {series.name for series in (*EXPORTED, *RECORDED)}

    assert names <= set(rows)
    assert {row for row in rows if row.startswith("tidegauge_") or ":" in row} <= names
