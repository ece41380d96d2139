"""The configuration: what it accepts, what it refuses, and how it says so."""

import contextlib
import re
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.catalogue import THRESHOLDS, places
from tidegauge.config import KEYS, Config, ConfigError, LimiterLog, Listen, LogSource, for_urls, load
from tidegauge.config.nodes import parse, shown
from tidegauge.parsing.exposition import NotMetrics
from tidegauge.sources.scrape import REASONS
from tidegauge.sources.target import BasicAuth, Target, Tls

ROOT = Path(__file__).parents[2]
CONFIGS = ROOT / "tests" / "configs"
INVALID = sorted((CONFIGS / "invalid").glob("*.yml"))
DOCS = (ROOT / "docs" / "configuration.md").read_text()
ONE = "backends: [{url: 'http://127.0.0.1:8000'}]\n"


def complete() -> Config:
    return load((CONFIGS / "complete.yml").read_text(), "/etc/tidegauge/tidegauge.yml", {})


class TestDefaults:
    def test_only_backends_are_required(self):
        """A file with nothing but a backend has every default of the documentation."""
        config = load(ONE, "t.yml", {})

        assert Listen("127.0.0.1", 10010) == config.listen
        assert "http://127.0.0.1:10010/runbooks" == places.RUNBOOKS  # served there
        assert (900.0, 3600.0, 1.0, 5.0) == (config.window, config.length_window, config.poll_interval, config.timeout)
        assert 16 * 1024**2 == config.max_page_size
        assert (None, None) == (config.state_file, config.metric_prefix)
        assert (None, 1024**2, 50, 100, 1000, {}, {}, ()) == attrs.astuple(config.callers)

    def test_thresholds_are_those_of_the_catalogue(self):
        """Without a thresholds section every key of the catalogue has its default."""
        assert {one.key: one.value for one in THRESHOLDS} == load(ONE, "t.yml", {}).thresholds

    def test_backend_name_is_host_and_port(self):
        """The default name is the URL's host and port, with the scheme's port where none is given."""
        config = for_urls(["http://10.0.0.1", "https://10.0.0.1", "http://h.example:9/x", "http://[::1]:8000"])

        assert ["10.0.0.1:80", "10.0.0.1:443", "h.example:9", "[::1]:8000"] == [b.name for b in config.backends]

    def test_null_section_is_an_empty_one(self):
        """A section whose keys are all commented out means its defaults."""
        assert load(ONE, "t.yml", {}) == load("callers:\nthresholds:\nstate_file: null\n" + ONE, "t.yml", {})


class TestComplete:
    def test_general_keys(self):
        """Each general key arrives in seconds, bytes and resolved paths."""
        config = complete()

        assert Listen("0.0.0.0", 10011) == config.listen
        assert (300.0, 7200.0, 2.0, 1.5) == (config.window, config.length_window, config.poll_interval, config.timeout)
        assert 8 * 1024**2 == config.max_page_size
        assert "/etc/tidegauge/state/facts.json" == config.state_file
        assert "vllm_omni:" == config.metric_prefix
        assert ("/run/secrets/caller-token", 256 * 1024, 7) == attrs.astuple(config.callers)[:3]
        assert (30, 250) == (config.callers.max_callers, config.callers.max_rate)
        assert {"agents": 32, "Qwen/Qwen3-8B": 5} == config.callers.roster
        assert {"agents": 28} == config.callers.ceilings

    def test_limiter_logs(self):
        """Each with its fleet, its file and its pattern as written."""
        assert (
            LimiterLog("agents", "/etc/tidegauge/logs/limiter.log", r"(?P<from>\d+) -> (?P<to>\d+), (?P<reason>.*)"),
            LimiterLog("batch", "/var/log/batch.log", r"ceiling=(?P<ceiling>\d+)"),
        ) == complete().callers.limiter_logs

    def test_thresholds_override_one_by_one(self):
        """Given thresholds replace their defaults and leave the others."""
        thresholds = complete().thresholds

        assert (30, 0.04, 0.9, 0.2) == tuple(
            thresholds[k] for k in ("min_requests", "bimodal_late_low", "bimodal_late_high", "caller_edge_seconds")
        )
        assert 10 == thresholds["bimodal_split"]
        assert len(THRESHOLDS) == len(thresholds)

    def test_backend_keys(self):
        """Each key of a backend arrives on its own field."""
        first = complete().backends[0]

        assert ("a", "agents", 0.5, 3.0) == (first.name, first.fleet, first.poll_interval, first.timeout)
        assert LogSource("/var/log/vllm/a.log") == first.log
        assert (1_490_818, 160, 8192, 131_072, 100_000) == (
            first.kv_cache_capacity_tokens,
            first.max_num_seqs,
            first.max_num_batched_tokens,
            first.max_model_len,
            first.p90_prompt_tokens,
        )

    def test_target_of_a_backend(self):
        """The poller's target carries address, limits and credentials; relative files lie beside the configuration."""
        config = complete()

        assert config.backends[0].target == Target(
            name="a",
            url="https://vllm-a.example:8443/metrics",
            timeout=3.0,
            max_page_size=8 * 1024**2,
            bearer_token_file="/etc/tidegauge/secrets/token",
            tls=Tls(
                ca_file="/etc/tidegauge/ca.pem",
                cert_file="/etc/tidegauge/client.pem",
                key_file="/etc/tidegauge/client.key",
                server_name="vllm.internal",
            ),
        )
        assert BasicAuth("tide", "/run/secrets/password") == config.backends[1].target.basic_auth

    def test_backends_inherit_general_polling(self):
        """A backend without overrides polls as the general keys say."""
        last = complete().backends[2]

        assert (2.0, 1.5, 8 * 1024**2) == (last.poll_interval, last.timeout, last.max_page_size)

    def test_a_path_in_the_url_is_kept(self):
        """`/metrics` is added to a bare URL only."""
        urls = [backend.url for backend in complete().backends]

        assert ["https://[::1]/custom/metrics?engine=0", "http://10.0.0.7/metrics"] == urls[1:]

    def test_every_known_key_is_used(self):
        """The complete example has each key that the loader knows, so the tests above speak for all of them."""
        text = (CONFIGS / "complete.yml").read_text()
        names = {key.rpartition(".")[2] for key in KEYS if not key.startswith("thresholds.")}

        assert set() == {name for name in names if not re.search(rf"\b{name}:", text)}


class TestValues:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("500ms", 0.5), ("1s", 1), ("0.25s", 0.25), ("15m", 900), ("1h30m", 5400), ("2d", 172800)],
    )
    def test_durations(self, text, seconds):
        """Durations are numbers with units, added up."""
        assert seconds == load(f"length_window: {text}\n{ONE}", "t.yml", {}).length_window

    @pytest.mark.parametrize(
        ("text", "size"), [("5B", 5), ("2kB", 2000), ("20MB", 20_000_000), ("1.5KiB", 1536), ("1GiB", 1024**3)]
    )
    def test_sizes(self, text, size):
        """Sizes are numbers with decimal or binary units."""
        assert size == load(f"max_page_size: {text}\n{ONE}", "t.yml", {}).max_page_size

    def test_environment_overrides_the_machine(self):
        """TIDEGAUGE_LISTEN and TIDEGAUGE_STATE_FILE win over the file; other variables are ignored."""
        env = {"TIDEGAUGE_LISTEN": "[::]:1", "TIDEGAUGE_STATE_FILE": "/s", "TIDEGAUGE_PORT": "tcp://10.0.0.1:10010"}
        config = load("listen: 127.0.0.1:5\n" + ONE, "t.yml", env)

        assert (Listen("::", 1), "/s") == (config.listen, config.state_file)

    def test_environment_is_checked(self):
        """A variable that is no address is refused by its name."""
        with pytest.raises(ConfigError, match=r"^TIDEGAUGE_LISTEN: expected an address .*, found '10010'$"):
            load(ONE, "t.yml", {"TIDEGAUGE_LISTEN": "10010"})

    def test_long_values_are_cut_in_messages(self):
        """A message stays short whatever the file holds."""
        with pytest.raises(ConfigError) as caught:
            load(f"window: {'9' * 5000}\n{ONE}", "t.yml", {})

        assert 200 > len(str(caught.value))


class TestInvalid:
    @pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
    def test_message(self, path):
        """Each invalid example is refused with exactly the message beside it."""
        with pytest.raises(ConfigError) as caught:
            load(path.read_text(), path.name, {})

        assert path.with_suffix(".txt").read_text() == f"{caught.value}\n"

    def test_examples_cover_every_key(self):
        """Each key has an invalid example whose message names it, and no message stands alone."""
        messages = "\n".join(path.with_suffix(".txt").read_text() for path in INVALID)
        named = {re.sub(r"\[\d+\]", "[]", key) for key in re.findall(r"yml:\d+: ([\w.\[\]]+): ", messages)}
        exempt = {key for key in KEYS if key.startswith("thresholds.")} - named
        # A whole section or a part of a pair is refused under its parent's key.
        exempt |= {"backends[].tls", "backends[].basic_auth", "callers.roster", "callers.ceilings"}
        exempt |= {"backends[].tls.ca_file", "backends[].tls.cert_file", "backends[].tls.key_file"}
        exempt |= {"backends[].basic_auth.username"}

        assert set() == KEYS - named - exempt
        assert {p.stem for p in INVALID} == {p.stem for p in (CONFIGS / "invalid").glob("*.txt")}

    @pytest.mark.parametrize(
        "url", ["http://me:hunter2@h:99999", "me:hunter2@h:8000", "ftp://me:hunter2@h", "http://me:hunter2@/x"]
    )
    def test_credentials_are_not_repeated(self, url):
        """A password in a URL is refused without being printed."""
        with pytest.raises(ConfigError) as caught:
            load(f"backends: [{{url: '{url}'}}]", "t.yml", {})

        assert "hunter2" not in str(caught.value)

    @given(st.text(max_size=200) | st.text(alphabet="ab:[]{}-&*! \n'\"0urlbackends", max_size=80))
    def test_any_text(self, text):
        """Whatever the file holds, the outcome is a configuration or a ConfigError."""
        with contextlib.suppress(ConfigError):
            load(text, "t.yml", {})

    @pytest.mark.parametrize(
        "value", ["!!python/object:os.system x", "&a [*a]", "{a: 1}", "!!binary aGk=", "2026-01-01"]
    )
    @pytest.mark.parametrize("key", sorted(key for key in KEYS if "." not in key))
    def test_odd_yaml(self, key, value):
        """YAML's odder kinds are refused under every key, and nothing is constructed from them."""
        with pytest.raises(ConfigError, match=rf"^t.yml:1: {key}"):
            load(f"{key}: {value}\n" + ("" if key == "backends" else ONE), "t.yml", {})

    @pytest.mark.parametrize(
        "text",
        [
            f"callers: {{max_rate: {'9' * 5000}}}",
            f"callers: {{max_body: 1{'0' * 400}MiB}}",
            'state_file: "\\U00110000"',
            'state_file: "\\U99999999"',
        ],
    )
    def test_beyond_what_python_takes(self, text):
        """More digits than it reads, more bytes than a float holds, and characters that there are not."""
        with pytest.raises(ConfigError, match=r"^t.yml(:1: callers.max_(rate|body): expected|: expected YAML)"):
            load(f"{text}\n{ONE}", "t.yml", {})

    def test_deep_nesting(self):
        """A file nested a hundred thousand deep is refused like any other."""
        with pytest.raises(ConfigError, match="nested too deeply"):
            load("[" * 100_000, "t.yml", {})


READ = {
    "callers.token_file": "/run/secrets/caller-token",
    "callers.limiter_logs[0].file": "/etc/tidegauge/logs/limiter.log",
    "backends[0].log.file": "/var/log/vllm/a.log",
    "backends[0].bearer_token_file": "/etc/tidegauge/secrets/token",
    "backends[1].basic_auth.password_file": "/run/secrets/password",
    "backends[0].tls.ca_file": "/etc/tidegauge/ca.pem",
    "backends[0].tls.cert_file": "/etc/tidegauge/client.pem",
    "backends[0].tls.key_file": "/etc/tidegauge/client.key",
}


class TestStateFile:
    @pytest.mark.parametrize(("key", "file"), [*READ.items(), ("this configuration", "/etc/tidegauge/tidegauge.yml")])
    def test_is_no_file_that_is_read(self, key, file):
        """A foreign file in its place is moved aside, and then written: a log, a secret, the configuration itself."""
        text = (CONFIGS / "complete.yml").read_text()
        with pytest.raises(ConfigError) as caught:
            load(text, "/etc/tidegauge/tidegauge.yml", {"TIDEGAUGE_STATE_FILE": file})

        assert f"TIDEGAUGE_STATE_FILE: expected a file of its own, found that of {key}" == str(caught.value)

    def test_every_key_of_a_file_that_is_read_is_tried(self):
        """One that is added later must not be forgotten above."""
        files = {key for key in KEYS if re.search(r"(^|[._])file$", key)}

        assert files == {re.sub(r"\d+", "", key) for key in READ} | {"state_file"}

    def test_is_compared_by_where_it_leads(self, tmp_path):
        """Another name of the same file is that file."""
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        log = f"backends: [{{url: 'http://h:1', log: {{file: {tmp_path}/link/a.log}}}}]"
        with pytest.raises(ConfigError, match=r"^t.yml:1: state_file: .* found that of backends\[0\].log.file$"):
            load(f"state_file: {tmp_path}/real/a.log\n{log}", "t.yml", {})

        assert f"{tmp_path}/link/b.log" == load(f"state_file: {tmp_path}/link/b.log\n{log}", "t.yml", {}).state_file


PRINTS = "expected a name of 1 to 200 characters that print"
URL_PRINTS = "expected a URL of at most 4096 characters that print"


class TestForUrls:
    def test_defaults(self):
        """Bare URLs make the same configuration as a file that lists them."""
        urls = ["http://10.0.0.1:8000", "http://10.0.0.2:8000/metrics"]

        assert load("backends:\n" + "".join(f"  - url: {url}\n" for url in urls), "t.yml", {}) == for_urls(urls)

    @pytest.mark.parametrize(
        ("urls", "message"),
        [
            ([], "expected at least one backend URL, found none"),
            (["http://a:1", "a:2"], "backend URL 2: expected a URL such as http://127.0.0.1:8000, found 'a:2'"),
            (["http://a:1", "http://a:1/metrics"], "backend URL 2: expected another server, found 'a:1' again"),
        ],
    )
    def test_mistakes(self, urls, message):
        """A bad or repeated URL is named by its place."""
        with pytest.raises(ConfigError) as caught:
            for_urls(urls)

        assert message == str(caught.value)

    def test_names_where_they_are_asked_for(self):
        """Before the first `=`; the one of a query is none. One server may have two names, as in a file."""
        urls = ["left=http://h:1", "http://h:2/x?engine=0", "right=http://h:1/metrics?engine=1"]
        found = for_urls(urls, named=True).backends

        assert [
            ("left", "http://h:1/metrics"),
            ("h:2", "http://h:2/x?engine=0"),
            ("right", "http://h:1/metrics?engine=1"),
        ] == [(one.name, one.url) for one in found]

    @pytest.mark.parametrize(
        ("urls", "message"),
        [
            (["a=http://h:1", "a=http://h:2"], "backend URL 2: expected a name of its own, found 'a' again"),
            (["http://h:1", "b=http://h:2", "http://h:1"], "backend URL 3: expected another server, found 'h:1' again"),
            (["=http://h:1"], "backend URL 1: expected a name before '=', found none"),
            (["a=h:1"], "backend URL 1: expected a URL such as http://127.0.0.1:8000, found 'h:1'"),
            (["a\x1b[2J=http://h:1"], f"backend URL 1: {PRINTS}, found 'a\\x1b[2J'"),
            (["a=http://h:1", " =http://h:2"], f"backend URL 2: {PRINTS}, found ' '"),
            ([f"{'a' * 201}=http://h:1"], f"backend URL 1: {PRINTS}, found '{'a' * 60}'"),
            (["a=http://h:1/\x07"], f"backend URL 1: {URL_PRINTS}, found 'http://h:1/\\x07'"),
            (["http://h:1/\x07"], f"backend URL 1: {URL_PRINTS}, found 'http://h:1/\\x07'"),
        ],
    )
    def test_mistakes_with_names(self, urls, message):
        """A name given twice is not passed over; a name or a URL that no configuration may hold is none here either."""
        with pytest.raises(ConfigError) as caught:
            for_urls(urls, named=True)

        assert message == str(caught.value)

    def test_name_where_none_is_asked_for(self):
        """It is no URL."""
        with pytest.raises(ConfigError, match=r"expected a URL such as .*, found 'a=http://h:1'"):
            for_urls(["a=http://h:1"])


class TestDocs:
    def documented(self) -> set[str]:
        keys = DOCS.partition("## How a backend is polled")[0]
        return set(re.findall(r"^\| `([a-z_0-9.\[\]]+)` \|", keys, re.MULTILINE))

    def test_each_key_is_documented_and_nothing_else(self):
        """The keys of the documentation's tables are the keys of the loader, both ways."""
        assert self.documented() == KEYS

    def test_each_reason_is_documented(self):
        """Every reason of a failed poll is in the documentation's last table."""
        table = DOCS.rpartition("| `reason` |")[2]
        documented = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))))

        assert {*REASONS, NotMetrics.reason} == documented

    def test_documented_threshold_defaults(self):
        """The documented defaults, units and meanings of thresholds are the catalogue's."""
        rows = re.findall(r"^\| `thresholds\.(\w+)` \| ([\d.]+) \| (\w+) \| ([^|;]*)", DOCS, re.MULTILINE)

        assert {one.key: (one.value, one.unit) for one in THRESHOLDS} == {k: (float(v), u) for k, v, u, _ in rows}

    def test_example_file_loads_with_defaults(self):
        """The example file is valid and, as it says, shows the defaults."""
        config = load((ROOT / "exporter" / "tidegauge.example.yml").read_text(), "tidegauge.example.yml", {})

        assert ["127.0.0.1:8000", "second"] == [backend.name for backend in config.backends]
        assert attrs.evolve(load(ONE, "t.yml", {}), backends=config.backends) == config


def test_shown_names_containers_by_kind():
    """Messages name a list or mapping by its kind, never by its content."""
    assert ("a list", "a mapping") == (shown(parse("[secret]", "t").node), shown(parse("a: secret", "t").node))
