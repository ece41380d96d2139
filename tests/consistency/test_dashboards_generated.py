"""The committed boards are what the code writes."""

from pathlib import Path

import pytest

from dashboards import generate

FOLDER = Path(generate.FOLDER)
REPAIR = "run `make generate` and commit the result"


@pytest.mark.parametrize("name", sorted(f"{name}.json" for name in generate.BOARDS))
def test_committed_board_is_current(name):
    """Each board's file holds byte for byte what its module makes."""
    path = FOLDER / name
    assert path.exists(), f"{path} is missing: {REPAIR}"
    assert generate.files()[name].encode() == path.read_bytes(), f"{path} is out of date: {REPAIR}"


def test_no_orphans():
    """No file in the folder lacks a module that writes it."""
    assert set(generate.files()) == {path.name for path in FOLDER.iterdir()}, REPAIR


def test_generation_is_deterministic():
    """Twice the same code gives twice the same bytes."""
    assert generate.files() == generate.files()


def test_generate_removes_orphans(tmp_path, monkeypatch):
    """The folder ends up with the boards and nothing else."""
    monkeypatch.setattr(generate, "FOLDER", tmp_path / "json")
    generate.main()
    (tmp_path / "json/old.json").write_text("{}")
    generate.main()
    assert set(generate.files()) == {path.name for path in (tmp_path / "json").iterdir()}
