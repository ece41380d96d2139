"""What kubernetes/ holds can be applied: every object is listed, named, and small enough."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tidegauge.grafana import boards

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "kubernetes"
BOARDS = boards.read(ROOT / boards.FOLDER)
CONFIGMAPS = list(yaml.safe_load_all((FOLDER / "dashboards.yaml").read_text(encoding="utf-8")))
OBJECTS = [
    made
    for name in yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    for made in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))
]
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
ANNOTATIONS = 256 * 1024


def test_every_file_is_listed():
    """A file that the kustomization does not name would never be applied."""
    listed = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]

    assert {path.name for path in FOLDER.iterdir()} == {"kustomization.yaml", *listed}
    assert len(listed) == len(set(listed))


def test_names_are_unique_and_of_rfc_1123():
    """The API server takes no others."""
    names = [(made["kind"], made["metadata"]["name"]) for made in OBJECTS]

    assert len(names) == len(set(names)) > 1
    assert [] == [name for _, name in names if not SUBDOMAIN.fullmatch(name) or len(name) > 253]


@pytest.mark.parametrize("made", OBJECTS, ids=lambda made: made["metadata"]["name"])
def test_an_object_can_be_applied(made):
    """`kubectl apply` keeps the whole of it in an annotation; all annotations together end at 256 KiB."""
    kept = len(json.dumps(made).encode())
    own = sum(len(key) + len(value) for key, value in made["metadata"].get("annotations", {}).items())

    assert kept + own + len("kubectl.kubernetes.io/last-applied-configuration") < ANNOTATIONS


def test_each_board_is_one_configmap():
    """As it is in dashboards/json, under a key that no other board has."""
    held = {key: json.loads(text) for made in CONFIGMAPS for key, text in made["data"].items()}

    assert {f"{board.uid}.json": board.content for board in BOARDS} == held
    assert [1] * len(BOARDS) == [len(made["data"]) for made in CONFIGMAPS]
    assert all(KEY.fullmatch(key) for key in held)


def test_the_sidecar_finds_them():
    """By the label and the folder's annotation that Grafana's chart documents, both of them text."""
    assert {("1", "tidegauge")} == {
        (made["metadata"]["labels"]["grafana_dashboard"], made["metadata"]["annotations"]["grafana_folder"])
        for made in CONFIGMAPS
    }
