"""Settings of the rules, from the command line and a file, and what rendering says of wrong ones."""

import json
import subprocess
import sys
import tomllib

import pytest
import yaml

from tests.generations import GENERATIONS, program
from tidegauge import cli, rules
from tidegauge.rules import RulesError, render, settings, sources

ROOT = sources()
ADDRESS = "expected an address that begins with http://, https:// or /"


class TestSettings:
    """Reading `--set` and `--values`."""

    @pytest.mark.parametrize(
        ("assignments", "expected"),
        [
            ([], {}),
            (["backendLabel=pod"], {"backendLabel": "pod"}),
            (["slo.ttft.seconds=2.5"], {"slo": {"ttft": {"seconds": 2.5}}}),
            (['vllmSelector=job="a",cluster="b=c"'], {"vllmSelector": 'job="a",cluster="b=c"'}),
            (["metricPrefixes=[vllm_, 'ray_vllm:']"], {"metricPrefixes": ["vllm_", "ray_vllm:"]}),
            (
                ['sloByModel."Qwen/Qwen2.5-7B".e2e.seconds=9'],
                {"sloByModel": {"Qwen/Qwen2.5-7B": {"e2e": {"seconds": 9}}}},
            ),
            (["gpu.busy=0.9", "gpu.spread=0.1"], {"gpu": {"busy": 0.9, "spread": 0.1}}),
            (["gpu.busy=0.9", "gpu.busy=0.8"], {"gpu": {"busy": 0.8}}),
            (["clusterLabel="], {"clusterLabel": None}),
        ],
    )
    def test_assignments_make_nested_settings(self, assignments, expected):
        """Keys are split at dots outside quotes, values are YAML, later ones win."""
        assert expected == settings(assignments)

    @pytest.mark.parametrize("assignment", ["backendLabel", "", "=pod", "a..b=1", "slo.ttft.=2", 'x."y=1'])
    def test_what_is_no_assignment_is_refused(self, assignment):
        """A slip of the keyboard is an error that quotes it, not a setting of another name."""
        with pytest.raises(RulesError, match="expected KEY=VALUE"):
            settings([assignment])

    def test_a_key_cannot_be_a_value_and_settings(self):
        """The second assignment would have to throw the first away."""
        with pytest.raises(RulesError, match=r"--set gpu\.busy\.x=1: busy already has a value"):
            settings(["gpu.busy=0.9", "gpu.busy.x=1"])

    def test_assignments_win_over_the_file(self, tmp_path):
        """What stands in the file is kept where the command line is silent."""
        (tmp_path / "own.yml").write_text("backendLabel: pod\nslo: {ttft: {seconds: 2.5, objective: 0.9}}\n")

        found = settings(["slo.ttft.seconds=5"], str(tmp_path / "own.yml"))

        assert {"backendLabel": "pod", "slo": {"ttft": {"seconds": 5, "objective": 0.9}}} == found

    @pytest.mark.parametrize(
        "value", ["[", "2001-01-01", "2001-99-99", ".inf", "!!binary aGk=", "&a [*a]", "[" * 5000, "9" * 5000]
    )
    def test_what_no_setting_can_be_is_refused(self, value):
        """YAML knows dates, bytes, infinities and circles; jsonnet does not."""
        with pytest.raises(RulesError, match="expected YAML of texts, numbers and settings, found: ") as raised:
            settings([f"gpu.busy={value}"])
        assert str(raised.value).startswith(f"--set gpu.busy={value}: ")

    @pytest.mark.parametrize(("content", "message"), [("- a", "expected settings"), ("a: [", "expected YAML")])
    def test_a_file_that_is_no_settings_is_named(self, content, message, tmp_path):
        """The message begins with the file."""
        (tmp_path / "own.yml").write_text(content)

        with pytest.raises(RulesError, match=message) as raised:
            settings([], str(tmp_path / "own.yml"))
        assert str(raised.value).startswith(str(tmp_path / "own.yml"))

    def test_a_file_without_end_is_not_read(self):
        """Nor is anything but a regular one."""
        with pytest.raises(RulesError, match="/dev/zero: cannot be read: expected a regular file, found a device"):
            settings([], "/dev/zero")

    def test_an_empty_file_asks_for_the_defaults(self, tmp_path):
        """A file of comments is a file."""
        (tmp_path / "own.yml").write_text("# nothing yet\n")

        assert {} == settings([], str(tmp_path / "own.yml"))


MATCHERS = (
    'expected matchers such as job="{}", joined by commas, without braces; '
    "regular expressions of literals, groups, classes and repeats up to 1000"
)
NO_MATCHERS = [
    "llm",
    '{job="vllm"}',
    'job="vllm",',
    'job="vllm',
    'job="a" pod="b"',
    'job=="a"',
    'job= ~"a"',
    '9="a"',
    '__name__="a"',
    r'job=~"\d"',
    'job="a\nb"',
    'job=~"vllm("',
    'job=~"(?=vllm)"',
]
PATTERN = (
    "expected a regular expression with a group for the GPU's place, such as '([^:]+).*', of literals, groups, classes "
    "and repeats up to 1000, found "
)
NO_PATTERNS = [
    *("", r"\d+", "([^:+", "(a))", "(a", "(a**)", "(a)[z-a]", "(a)[]", "(a)[[:alpha:]]", "(a)^*", "*(a)"),
    *(
        "(a){1001}",
        "((a){40}){40}",
        "(a){2,1}",
        "(a){,2}",
        "(?=(a))",
        "(?P<x>a)",
        r"(a)\1",
        r"(a)\pL",
        "(a)(?i",
        "(a)\\",
    ),
]
PREFIXES = "expected a list of prefixes such as ['vllm:'], of letters, digits, underscores and colons, found "
CUTS = "expected a list of fractions in quotes, such as ['0.5'], found "

WRONG = [
    ({"stageWindo": "5m"}, "stageWindo: unknown key; known: backendLabel"),
    ({"slo": {"ttft": {"secnds": 2}}}, "slo.ttft.secnds: unknown key; known: edges, objective, seconds"),
    ({"stageWindow": 5}, "stageWindow: expected a text, found 5"),
    ({"stageWindow": "5 minutes"}, 'stageWindow: expected a duration such as 15m, found "5 minutes"'),
    ({"stageWindow": "0m"}, 'stageWindow: expected a duration such as 15m, found "0m"'),
    ({"loadingTime": "0s"}, 'loadingTime: expected a duration such as 15m, found "0s"'),
    ({"holds": {"VllmBackendDown": 60}}, "holds.VllmBackendDown: expected a text, found 60"),
    ({"holds": {"VllmBackendDwn": "1m"}}, "holds.VllmBackendDwn: unknown key"),
    ({"thresholds": {"skew": "1.5"}}, 'thresholds.skew: expected a number, found "1.5"'),
    ({"thresholds": {"skew": -1}}, "thresholds.skew: expected a number of at least 0, found -1"),
    ({"thresholds": None}, "thresholds: expected settings, found null"),
    ({"holds": {"VllmBackendDown": ""}}, 'holds.VllmBackendDown: expected a duration such as 5m or 0s, found ""'),
    ({"holds": {"VllmBackendDown": "30m1h"}}, "holds.VllmBackendDown: expected a duration such as 5m or 0s, found"),
    ({"holds": {"VllmBackendDown": "300y"}}, "holds.VllmBackendDown: expected a duration such as 5m or 0s, found"),
    ({"backendLabel": "a-b"}, 'backendLabel: expected a label name, found "a-b"'),
    *(
        ({"vllmSelector": one}, f"vllmSelector: {MATCHERS.format('vllm')}, found {json.dumps(one)}")
        for one in NO_MATCHERS
    ),
    ({"tidegaugeSelector": "te"}, f'tidegaugeSelector: {MATCHERS.format("tidegauge")}, found "te"'),
    ({"gpu": {"selector": "dcgm"}}, f'gpu.selector: {MATCHERS.format("dcgm")}, found "dcgm"'),
    *(({"gpu": {"backendPattern": one}}, f"gpu.backendPattern: {PATTERN}{json.dumps(one)}") for one in NO_PATTERNS),
    ({"backendLabel": ""}, 'backendLabel: expected a label name, found ""'),
    ({"clusterLabel": "7"}, 'clusterLabel: expected a label name, or empty, found "7"'),
    *(({"metricPrefixes": one}, f"metricPrefixes: {PREFIXES}{json.dumps(one)}") for one in ([], ["vllm."], ["9x"])),
    ({"metricPrefixes": "vllm_"}, 'metricPrefixes: expected a list, found "vllm_"'),
    *(({"cuts": [one]}, f"""cuts: {CUTS}["{one}"]""") for one in ("half", "1.0.0", ".5", "0.", "1.5", "")),
    ({"slo": {"e2e": {"objective": 99}}}, "slo.e2e.objective: expected a share between 0 and 1, found 99"),
    ({"slo": {"e2e": {"edges": []}}}, "slo.e2e.edges: expected a list of bucket edges in seconds, found []"),
    ({"slo": {"e2e": {"seconds": 0.1}}}, "slo.e2e: no bucket edge at or below 0.1 s; the lowest is 0.3 s"),
    ({"sloByModel": {"m": {"ttf": {"seconds": 1}}}}, "sloByModel.m.ttf: unknown key; known: e2e, tpot, ttft"),
    (
        {"sloByModel": {"m": {"ttft": {"second": 1}}}},
        "sloByModel.m.ttft.second: unknown key; known: objective, seconds",
    ),
    ({"sloByModel": {"m": 3}}, "sloByModel.m: expected settings, found 3"),
    ({"runbookBaseUrl": "wiki"}, f'runbookBaseUrl: {ADDRESS}, found "wiki"'),
    ({"dashboardBaseUrl": "grafana:3000"}, f'dashboardBaseUrl: {ADDRESS}, found "grafana:3000"'),
    ({"dashboardBaseUrl": ""}, f'dashboardBaseUrl: {ADDRESS}, found ""'),
    ({"kubernetes": {"labels": {"release": 1}}}, "kubernetes.labels: expected labels and their values"),
]


class TestRender:
    """Rules and alerts with settings of one's own."""

    @pytest.mark.parametrize(("overrides", "message"), WRONG, ids=lambda value: json.dumps(value)[:60])
    def test_a_wrong_setting_is_named(self, overrides, message):
        """The message is the key, what is wrong with it, and no stack."""
        with pytest.raises(RulesError) as raised:
            render(ROOT, overrides)
        assert str(raised.value).startswith(message)
        assert "libsonnet" not in str(raised.value)

    def test_every_fault_is_told_at_once(self):
        """One run shows all there is to mend."""
        with pytest.raises(RulesError) as raised:
            render(ROOT, {"stageWindow": 5, "nonsense": 1, "gpu": {"busy": "x"}})
        assert ["gpu.busy", "nonsense", "stageWindow"] == [
            line.split(":")[0] for line in str(raised.value).splitlines()
        ]

    def test_without_settings_it_writes_what_is_committed(self):
        """The rendered default is the shipped file, but for its first line."""
        files = render(ROOT, {})

        for name, folder in (("rules.yaml", "recording_rules"), ("alerts.yaml", "alerts")):
            committed = (ROOT / folder / name).read_text(encoding="utf-8").partition("\n")[2]
            assert committed == files[name].partition("\n")[2]
            assert files[name].startswith("# generated by tidegauge rules render\n")

    def test_settings_merge_at_every_level(self):
        """What is not named keeps its default, however deep."""
        text = render(ROOT, {"slo": {"ttft": {"seconds": 5}}})["rules.yaml"]

        assert 'time_to_first_token_seconds_bucket{job=~".*vllm.*",le=~"5|5\\\\.0"}' in text
        assert 'request_time_per_output_token_seconds_bucket{job=~".*vllm.*",le="0.05"}' in text

    def test_kubernetes_object_holds_both(self):
        """One PrometheusRule with the groups of rules and alerts, under the labels asked for."""
        labels = {"release": "prometheus"}

        (text,) = render(ROOT, {"kubernetes": {"labels": labels, "namespace": "llm"}}, "kubernetes").values()
        made = yaml.safe_load(text)

        assert ("monitoring.coreos.com/v1", "PrometheusRule") == (made["apiVersion"], made["kind"])
        assert labels.items() <= made["metadata"]["labels"].items()
        assert "llm" == made["metadata"]["namespace"]
        names = [group["name"] for group in made["spec"]["groups"]]
        assert {"tidegauge-slo", "tidegauge-queue-alerts"} <= set(names)
        assert len(names) == len(set(names))

    def test_without_jsonnet_it_says_what_to_install(self, monkeypatch):
        """The exporter itself does not need jsonnet."""
        monkeypatch.setitem(sys.modules, "_gojsonnet", None)

        with pytest.raises(RulesError, match=r"pip install gojsonnet"):
            render(ROOT, {})


class TestLoadable:
    """What is accepted is a rule file to Prometheus of both generations."""

    @pytest.mark.parametrize("generation", GENERATIONS)
    @pytest.mark.parametrize(
        "overrides",
        [
            {"vllmSelector": """job=~"(?i)vllm[-_]\\\\d{1,3}|(?:a|b)+?\\"",zone!='it\\'s',pod!~`x\\d`"""},
            {"vllmSelector": 'job="{{ no template }}"', "metricPrefixes": ["ray_vllm:", ""]},
            {"gpu": {"backendPattern": r'"([^:]+\.\d{1,3}[\w\-a-f]*)"(?::[0-9]+)?$'}},
            {"sloByModel": {'a{{b}}"\\ü\n{{{': {"ttft": {"seconds": 2.5, "objective": 0.5}, "tpot": {"seconds": 1}}}},
            {"holds": {"VllmBackendDown": "0s", "VllmBurstArrivals": "1h30m"}, "stageWindow": "1h30m5s10ms"},
            {"cuts": ["0", "1", "1.0", "0.999"], "prefixMemory": "1w1d", "exporterMemory": "1y"},
            {"runbookBaseUrl": "https://wiki/{{x", "dashboards": {"skew": "{{"}},
        ],
        ids=lambda value: json.dumps(value)[:40],
    )
    def test_what_is_accepted_loads(self, generation, overrides, tmp_path):
        """Quotes, backslashes and braces of a setting are escaped where they stand in PromQL or in a template."""
        for name, text in render(ROOT, overrides).items():
            (tmp_path / name).write_text(text)
            done = subprocess.run(
                [program("promtool", generation), "check", "rules", name],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            assert 0 == done.returncode, done.stdout + done.stderr

    def test_a_long_setting_is_read_to_its_end(self):
        """Jsonnet's stack ends at 500 calls; a list of a hundred jobs does not end there."""
        jobs = "|".join(f"vllm-{number}" for number in range(500))

        assert jobs in render(ROOT, {"vllmSelector": f'job=~"{jobs}"'})["rules.yaml"]
        with pytest.raises(RulesError, match="vllmSelector: expected matchers"):
            render(ROOT, {"vllmSelector": f'job=~"{jobs}("'})

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ("{ cuts: ['1.0.0'] }", f"cuts: {CUTS}"),
            (
                "{ thresholds: { skew: 2 } }",
                r"thresholds: expected every key, found none of bimodal_late_high, .*; with `\+:` the defaults",
            ),
            ("{ slo+: { ttft: { seconds: 5 } } }", "slo.ttft: expected every key, found none of edges, objective;"),
            ("{ vllmSelector: '{}' }", "vllmSelector: expected matchers"),
        ],
    )
    def test_plain_jsonnet_says_the_same(self, config, message):
        """Whoever merges `_config` without the command reads the key as well, before any rule is made."""
        with pytest.raises(RulesError, match="^" + message.replace("[", r"\[")):
            rules.evaluate(ROOT, "prometheusRules", config)


class TestSources:
    """Where the rules' sources are."""

    def test_a_folder_without_them_is_named(self, tmp_path):
        """Only that folder is looked into, and the message tells what to give."""
        with pytest.raises(RulesError, match="give the folder of a checkout with --mixin") as raised:
            sources(str(tmp_path))
        assert f"{tmp_path}/mixin/mixin.libsonnet" in str(raised.value)

    def test_an_installation_has_them_all(self, tmp_path):
        """A copy of what the package installs renders the same as the checkout."""
        folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
        for folder, patterns in folders.items():
            place = tmp_path / folder.removeprefix("share/tidegauge/")
            place.mkdir(parents=True)
            for pattern in patterns:
                for path in ROOT.glob(pattern):
                    (place / path.name).write_bytes(path.read_bytes())

        assert render(ROOT, {}) == render(sources(str(tmp_path)), {})
        assert rules.evaluate(tmp_path, "grafanaDashboards")


class TestCommand:
    """`tidegauge rules render`."""

    def test_files_pass_promtool(self, tmp_path, capsys):
        """What it writes is a rule file, and it says where it wrote it."""
        assert 0 == cli.main(["rules", "render", "--set", "clusterLabel=cluster", "-o", str(tmp_path / "new")])

        written = capsys.readouterr().out.split()
        assert [str(tmp_path / "new" / name) for name in ("rules.yaml", "alerts.yaml")] == written
        done = subprocess.run(["promtool", "check", "rules", *written], capture_output=True, text=True, check=False)
        assert 0 == done.returncode, done.stdout + done.stderr

    def test_a_wrong_setting_writes_nothing(self, tmp_path, capsys):
        """Exit code 2, the key on standard error, and no half-written folder."""
        assert 2 == cli.main(["rules", "render", "--set", "slo.ttft.secnds=1", "-o", str(tmp_path / "new")])

        assert capsys.readouterr().err.startswith("tidegauge: slo.ttft.secnds: unknown key")
        assert not (tmp_path / "new").exists()
