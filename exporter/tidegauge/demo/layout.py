"""The demo's folder: the very files that docker compose mounts, with only addresses of this machine put in."""

import shutil
from pathlib import Path
from typing import Final

import attrs
import yaml

from tidegauge.catalogue import places
from tidegauge.demo.processes import DemoError

PLACEHOLDER: Final = "# PLACEHOLDER"


@attrs.frozen
class Ports:
    """Ports on 127.0.0.1."""

    exporter: int
    prometheus: int
    alertmanager: int
    inbox: int
    servers: tuple[int, ...]


def repository() -> Path:
    """The checkout that this package is installed from. Raises DemoError outside of one."""
    root = Path(__file__).resolve().parents[3]
    if not (root / "stack" / "prometheus.yml").is_file():
        msg = f"{root} is no checkout of tidegauge: the demo runs from one (stack/prometheus.yml is missing)"
        raise DemoError(msg)
    return root


def lay_out(root: Path, folder: Path, ports: Ports, grafana: str = places.GRAFANA) -> None:
    """Fill *folder* for Prometheus, Alertmanager and the exporter; alerts link to boards on *grafana*."""
    shutil.copy(root / "stack" / "prometheus.yml", folder / "prometheus.yml")
    for name in ("rules", "targets"):
        (folder / name).mkdir()
    shutil.copy(root / "recording_rules" / "rules.yaml", folder / "rules" / "rules.yaml")
    alerts = (root / "alerts" / "alerts.yaml").read_text(encoding="utf-8")
    here = places.RUNBOOKS.replace(places.EXPORTER_ADDRESS, f"127.0.0.1:{ports.exporter}")
    alerts = alerts.replace(places.RUNBOOKS, here).replace(places.GRAFANA, grafana)
    (folder / "rules" / "alerts.yaml").write_text(alerts, encoding="utf-8")
    for name, targets in (
        ("tidegauge", (ports.exporter,)),
        ("vllm", ports.servers),
        ("alertmanager", (ports.alertmanager,)),
    ):
        addresses = [{"targets": [f"127.0.0.1:{port}" for port in targets]}]
        (folder / "targets" / f"{name}.yml").write_text(yaml.safe_dump(addresses), encoding="utf-8")
    (folder / "alertmanager.yml").write_text(
        _with_inbox((root / "stack" / "alertmanager.yml").read_text(encoding="utf-8"), ports.inbox), encoding="utf-8"
    )
    (folder / "tidegauge.yml").write_text(_exporter(root, folder, ports), encoding="utf-8")


def _with_inbox(text: str, port: int) -> str:
    lines = text.splitlines()
    marked = [number for number, line in enumerate(lines) if line.rstrip().endswith(PLACEHOLDER)]
    if len(marked) != 1:
        msg = f"stack/alertmanager.yml: expected one line that ends in {PLACEHOLDER!r}, found {len(marked)}"
        raise DemoError(msg)
    before = lines[marked[0]].partition("url:")[0]
    lines[marked[0]] = f"{before}url: http://127.0.0.1:{port}/"
    return "\n".join(lines) + "\n"


def _exporter(root: Path, folder: Path, ports: Ports) -> str:
    """The demo profile's configuration with this machine's addresses."""
    config = yaml.safe_load((root / "exporter" / "tidegauge.demo.yml").read_text(encoding="utf-8"))
    config["listen"] = f"127.0.0.1:{ports.exporter}"
    config["state_file"] = str(folder / "state.json")
    for backend, port in zip(config["backends"], ports.servers, strict=True):
        backend["url"] = f"http://127.0.0.1:{port}"
        backend["log"] = {"file": str(folder / f"vllm-{port}.log")}
    return str(yaml.safe_dump(config, sort_keys=False))
