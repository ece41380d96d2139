"""docker-compose.yml as the real `docker compose config` resolves it, and the files that it mounts."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import tidegauge
from tests.generations import GENERATIONS, program
from tidegauge import config as configuration
from tidegauge.config import Listen

ROOT = Path(__file__).parents[2]
COMPOSE = Path(sys.executable).with_name("docker-compose")
HADOLINT = Path(sys.executable).with_name("hadolint")
PORT = 10010
PROFILES = ("compose", "demo")
STACK = {"exporter", "prometheus", "alertmanager", "grafana"}
SERVERS = ("vllm-a", "vllm-b")
DEMO = {"inbox", *SERVERS, "workload"}


def run_compose(*arguments: str, env_file: Path = Path(os.devnull), **variables: str) -> str:
    """Run `docker compose` on the repository with nothing of this machine's environment but `variables`."""
    command = [str(COMPOSE), "--project-directory", str(ROOT), "--env-file", str(env_file), *arguments]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **variables}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def resolve(env_file: Path = Path(os.devnull), **variables: str) -> dict[str, Any]:
    return json.loads(run_compose("config", "--format", "json", env_file=env_file, **variables))


def settings(grafana: dict[str, Any]) -> dict[str, str]:
    return {key: value for key, value in grafana["environment"].items() if value}


def exporter_config(profile: str) -> configuration.Config:
    """The exporter's own reading of the file that compose mounts for the profile."""
    path = ROOT / f"exporter/tidegauge.{profile}.yml"
    return configuration.load(path.read_text(), str(path), {})


@pytest.fixture(scope="module", params=["", "demo"], ids=["default", "demo"])
def config(request):
    return resolve(COMPOSE_PROFILES=request.param)


@pytest.fixture(scope="module")
def services(config):
    return config["services"]


@pytest.fixture
def example(tmp_path):
    """`.env.example` with every setting in force."""
    path = tmp_path / "env"
    path.write_text(re.sub(r"^#(?=[A-Z_]+=)", "", (ROOT / ".env.example").read_text(), flags=re.MULTILINE))
    return path


class TestServices:
    def test_runs_without_an_env_file(self):
        """`docker compose up` needs no `.env`, and starts the stack without the simulated fleet."""
        assert set(resolve()["services"]) == STACK

    def test_demo_profile_adds_the_fleet(self):
        """The demo profile adds two servers and their caller."""
        assert set(resolve(COMPOSE_PROFILES="demo")["services"]) == STACK | DEMO

    def test_env_example_is_the_defaults(self, example):
        """Taking the comment signs out of `.env.example` changes nothing but the profile and the log folder."""
        ours = resolve(COMPOSE_PROFILES="demo")["services"]
        theirs = resolve(env_file=example, TIDEGAUGE_CONFIG="", PROMETHEUS_TARGETS="", VLLM_LOG_DIR="")["services"]
        assert ours == theirs

    def test_env_example_knows_every_variable(self):
        """`.env.example` lists exactly the variables that the file interpolates."""
        used = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))
        listed = set(re.findall(r"^#([A-Z_]+)=", (ROOT / ".env.example").read_text(), flags=re.MULTILINE))
        assert used == listed

    def test_publishes_on_loopback_only(self, services):
        """Every published port is bound to 127.0.0.1."""
        addresses = [port.get("host_ip") for service in services.values() for port in service.get("ports", [])]
        assert {"127.0.0.1"} == set(addresses)
        assert len(STACK) == len(addresses)

    def test_ports_are_configurable(self):
        """Each port moves by its own variable, and the exporter alone can be opened to other machines."""
        variables = {f"{name.upper()}_PORT": str(20000 + index) for index, name in enumerate(sorted(STACK))}
        moved = resolve(EXPORTER_BIND_ADDRESS="0.0.0.0", **variables)["services"]
        ports = {name: moved[name]["ports"][0] for name in STACK}
        assert {name: str(20000 + index) for index, name in enumerate(sorted(STACK))} == {
            name: port["published"] for name, port in ports.items()
        }
        assert {"exporter"} == {name for name, port in ports.items() if port["host_ip"] != "127.0.0.1"}

    def test_images_are_pinned(self, services):
        """Every image has a full version; ours is the version of the package."""
        for service in services.values():
            assert re.search(r":v?\d+\.\d+\.\d+$", service["image"]), service["image"]
        assert f"tidegauge:{tidegauge.__version__}" == services["exporter"]["image"]

    def test_every_service_is_hardened(self, services):
        """Read-only root, no capabilities, no new privileges, no root user, a restart policy, bounded logs."""
        for name, service in services.items():
            assert service["read_only"], name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
            assert int(service["user"].split(":")[0]) > 0, name
            assert service["restart"] == "unless-stopped", name
            assert service["logging"]["options"]["max-size"], name

    def test_every_server_has_a_health_check(self, services):
        """Whatever answers requests says whether it is well; the workload only asks."""
        assert {"workload"} & set(services) == {
            name for name in services if "test" not in services[name]["healthcheck"]
        }

    def test_bind_mounts_exist_and_are_read_only(self, services):
        """No bind mount names a missing file, and none can be written to."""
        binds = [v for service in services.values() for v in service.get("volumes", []) if v["type"] == "bind"]
        assert binds
        for bind in binds:
            assert Path(bind["source"]).exists(), bind["source"]
            assert bind["read_only"], bind["source"]


class TestDemo:
    @pytest.mark.parametrize("name", sorted(DEMO))
    def test_commands_are_understood(self, name):
        """The module that each demo service runs takes the flags it is given."""
        service = resolve(COMPOSE_PROFILES="demo")["services"][name]
        command = [sys.executable, *service["entrypoint"][1:], *service["command"], "--help"]
        done = subprocess.run(command, cwd=ROOT / "exporter", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        flags = {part.split("=")[0] for part in service["command"] if part.startswith("--")}
        assert flags <= set(re.findall(r"--[a-z-]+", done.stdout))

    def test_servers_write_where_the_exporter_reads(self):
        """Each simulated server's log is the file that the exporter's configuration follows, on one volume."""
        services = resolve(COMPOSE_PROFILES="demo")["services"]
        logs = {
            f"{name}:8000": services[name]["command"][services[name]["command"].index("--log") + 1] for name in SERVERS
        }
        assert logs == {backend.name: backend.log.file for backend in exporter_config("demo").backends}
        mounts = [
            next(v for v in services[n]["volumes"] if v["target"] == "/var/log/vllm") for n in (*SERVERS, "exporter")
        ]
        assert {"vllm-logs"} == {mount["source"] for mount in mounts}

    def test_servers_differ(self):
        """Two backends that are equal show nothing."""
        services = resolve(COMPOSE_PROFILES="demo")["services"]
        assert services["vllm-a"]["command"][6:] != services["vllm-b"]["command"][6:]

    def test_workload_calls_the_watched_servers(self):
        """The caller loads the fleet that the exporter watches, and reports to it as that fleet."""
        command = resolve(COMPOSE_PROFILES="demo")["services"]["workload"]["command"]
        backends = exporter_config("demo").backends
        called = [part.removeprefix("--backend=") for part in command if part.startswith("--backend=")]
        assert called == [backend.url.removesuffix("/metrics") for backend in backends]
        assert {f"--fleet={backend.fleet}" for backend in backends} <= set(command)
        assert f"--exporter=http://exporter:{PORT}" in command


class TestGrafana:
    def test_no_account_without_a_password(self):
        """Without a password Grafana creates no admin, offers no login, and lets everyone look."""
        lines = (ROOT / "stack/grafana/grafana.ini").read_text().splitlines()
        assert {
            "disable_initial_admin_creation = true",
            "disable_login_form = true",
            "org_role = Viewer",
        } <= set(lines)
        assert {"GF_SERVER_ROOT_URL"} == set(settings(resolve()["services"]["grafana"]))

    def test_password_turns_the_account_on(self):
        """A password creates the admin with it, and shows the login form."""
        grafana = settings(resolve(GRAFANA_ADMIN_PASSWORD="correct horse")["services"]["grafana"])
        assert {
            "GF_SECURITY_ADMIN_PASSWORD": "correct horse",
            "GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "false",
            "GF_AUTH_DISABLE_LOGIN_FORM": "false",
        }.items() <= grafana.items()

    def test_provisioned_paths_are_mounted(self):
        """The dashboard provider and the home page point into mounted folders, the data source at Prometheus."""
        grafana = resolve()["services"]["grafana"]
        boards = next(v for v in grafana["volumes"] if v["source"] == str(ROOT / "dashboards/json"))
        provider = yaml.safe_load((ROOT / "stack/grafana/provisioning/dashboards/tidegauge.yml").read_text())
        source = yaml.safe_load((ROOT / "stack/grafana/provisioning/datasources/prometheus.yml").read_text())
        home = re.search(r"default_home_dashboard_path = (.+)", (ROOT / "stack/grafana/grafana.ini").read_text())
        assert boards["target"] == provider["providers"][0]["options"]["path"]
        assert (ROOT / "dashboards/json" / Path(home[1]).relative_to(boards["target"])).exists()
        assert source["datasources"][0]["url"] == "http://prometheus:9090"


class TestPrometheus:
    @pytest.mark.parametrize("generation", GENERATIONS)
    def test_mounted_layout_is_valid(self, services, generation, tmp_path):
        """What compose mounts under /etc/prometheus passes promtool, rules and targets included, without a warning."""
        for volume in services["prometheus"]["volumes"]:
            if volume["type"] == "bind":
                target = tmp_path / Path(volume["target"]).relative_to("/etc/prometheus")
                target.parent.mkdir(exist_ok=True)
                source = Path(volume["source"])
                shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        command = [program("promtool", generation), "check", "config", str(tmp_path / "prometheus.yml")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "2 rule files found" in done.stdout
        assert "WARNING" not in done.stdout

    @pytest.mark.parametrize(
        ("scraped", "stored"),
        [
            ("vllm:num_requests_running", "vllm:num_requests_running"),
            ("vllm_num_requests_running", "vllm:num_requests_running"),
            ("ray_vllm_num_requests_running", "vllm:num_requests_running"),
            ("ray_vllm:num_requests_running", "vllm:num_requests_running"),
            ("tidegauge_backend_up", "tidegauge_backend_up"),
            ("my_vllm_thing", "my_vllm_thing"),
            ("process_start_time_seconds", "process_start_time_seconds"),
        ],
    )
    def test_names_are_normalised(self, scraped, stored):
        """Every spelling of vLLM's names is stored as `vllm:`, and no other name changes."""
        jobs = yaml.safe_load((ROOT / "stack/prometheus.yml").read_text())["scrape_configs"]
        (rule,) = next(job for job in jobs if job["job_name"] == "vllm")["metric_relabel_configs"]
        match = re.fullmatch(rule["regex"], scraped)
        renamed = match.expand(rule["replacement"].replace("${1}", r"\1")) if match else scraped
        assert stored == renamed

    @pytest.mark.parametrize("profile", PROFILES)
    def test_one_name_per_backend(self, profile):
        """What the exporter calls a backend is what Prometheus calls its instance."""
        targets = yaml.safe_load((ROOT / f"stack/targets/{profile}/vllm.yml").read_text())
        assert [backend.name for backend in exporter_config(profile).backends] == targets[0]["targets"]

    @pytest.mark.parametrize("profile", PROFILES)
    def test_one_port_for_the_exporter(self, services, profile):
        """Configuration, compose file, image and Prometheus agree on where the exporter listens."""
        listen = exporter_config(profile).listen
        targets = yaml.safe_load((ROOT / f"stack/targets/{profile}/tidegauge.yml").read_text())
        assert listen == Listen("0.0.0.0", PORT)
        assert targets == [{"targets": [f"exporter:{PORT}"]}]
        assert services["exporter"]["ports"][0]["target"] == PORT
        assert f"127.0.0.1:{PORT}/-/healthy" in services["exporter"]["healthcheck"]["test"][-1]
        assert f"EXPOSE {PORT}" in (ROOT / "exporter/Dockerfile").read_text().splitlines()


def paths(value: Any) -> set[str]:
    """Every absolute path that a configuration names, wherever in it."""
    if isinstance(value, dict | list):
        return {path for one in (value.values() if isinstance(value, dict) else value) for path in paths(one)}
    return {value} if isinstance(value, str) and value.startswith("/") else set()


class TestAlertmanager:
    @pytest.mark.parametrize("name", ["alertmanager.yml", "alertmanager.receivers.yml"])
    def test_what_the_configuration_names_is_mounted(self, services, name):
        """Templates are there, and secrets are looked for in the folder that is meant for them."""
        mounts = {v["target"]: Path(v["source"]) for v in services["alertmanager"]["volumes"] if v["type"] == "bind"}
        settings = yaml.safe_load((ROOT / "stack" / name).read_text())
        named = {Path(path) for path in paths(settings)}
        templates = {Path(path) for path in settings.get("templates", [])}
        secrets = Path("/etc/alertmanager/secrets")

        assert (name == "alertmanager.receivers.yml") == bool(templates)
        assert all(list(mounts[str(path.parent)].glob(path.name)) for path in templates)
        assert {secrets} >= {path.parent for path in named - templates}
        assert ROOT / "stack/secrets" == mounts[str(secrets)]


class TestImage:
    def test_dockerfile_passes_hadolint(self):
        """hadolint has nothing to say."""
        done = subprocess.run(
            [str(HADOLINT), str(ROOT / "exporter/Dockerfile")], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "")

    def test_base_is_pinned(self):
        """Every stage starts from the same Python of a full version."""
        bases = re.findall(r"^FROM (\S+)", (ROOT / "exporter/Dockerfile").read_text(), flags=re.MULTILINE)
        assert len(set(bases)) == 1
        assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", bases[0])

    def test_context_holds_what_is_copied(self):
        """Every file that the image copies exists and is let through by `.dockerignore`."""
        copied = re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "exporter/Dockerfile").read_text(), flags=re.MULTILINE)
        sources = {source for line in copied for source in line.split()}
        ignore = (ROOT / ".dockerignore").read_text().splitlines()
        assert sources == {line[1:] for line in ignore if line.startswith("!")}
        assert {source for source in sources if (ROOT / source).exists()} == sources
