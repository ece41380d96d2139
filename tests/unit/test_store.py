"""Facts that outlive the exporter: written whole or not at all, and only ours are read."""

import json
import os
from pathlib import Path

import pytest

from tidegauge.model import EngineFacts, Remembered, StartupFacts
from tidegauge.sources import store
from tidegauge.sources.store import Kept, StoreError, load, save, set_aside

KEPT = Kept(
    {
        "a:8000": Remembered(
            1_795_996_203.25,
            StartupFacts(
                run=3,
                version="0.32.0",
                engines=(
                    EngineFacts("EngineCore_DP0", 524_288, "printed", None, None, 64.0),
                    EngineFacts("EngineCore_DP1", 32_768, "blocks_x_block_size", 2048, 16, None),
                ),
                max_model_len=8192,
                max_num_seqs=None,
                started=True,
            ),
        ),
        "b:8000": Remembered(5.0, StartupFacts()),
    },
    {"agents": 32},
)


class TestRoundTrip:
    def test_what_is_saved_is_loaded(self, tmp_path):
        """Every fact, known or not."""
        path = tmp_path / "deep" / "state.json"
        save(path, KEPT)

        assert KEPT == load(path)

    def test_no_file_is_nothing_kept(self, tmp_path):
        """The first start."""
        assert Kept() == load(tmp_path / "none.json")

    def test_saving_again_replaces(self, tmp_path):
        """And leaves nothing beside it."""
        path = tmp_path / "state.json"
        save(path, KEPT)
        save(path, Kept({}, {"agents": 33}))

        assert Kept({}, {"agents": 33}) == load(path)
        assert [path] == list(tmp_path.iterdir())


class TestFailure:
    def test_failed_write_leaves_the_old_file_and_no_rubbish(self, tmp_path, monkeypatch):
        """A full disk."""
        path = tmp_path / "state.json"
        save(path, KEPT)

        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(store.json, "dump", full)
        with pytest.raises(StoreError, match=r"state\.json: cannot be written: .*No space left"):
            save(path, Kept())

        assert KEPT == load(path)
        assert [path] == list(tmp_path.iterdir())

    def test_folder_that_cannot_be_had_is_named(self, tmp_path):
        """A file stands where the folder should be."""
        (tmp_path / "file").touch()

        with pytest.raises(StoreError, match=r"state\.json: cannot be written"):
            save(tmp_path / "file" / "state.json", KEPT)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b'"text"',
            b"{}",
            b'{"format": 2, "backends": {}, "largest_fan_out": {}}',
            b'{"format": 1, "backends": {}}',
            b'{"format": 1, "backends": [], "largest_fan_out": {}}',
            b'{"format": 1, "backends": {"a": 5}, "largest_fan_out": {}}',
            b'{"format": 1, "backends": {"a": {"process_start": 5}}, "largest_fan_out": {}}',
            b'{"format": 1, "backends": {"a": {"process_start": 5, "startup": {"engines": 5}}}, "largest_fan_out": {}}',
            b'{"format": 1, "backends": {}, "largest_fan_out": {"a": "many"}}',
            b'{"format": 1, "backends": {}, "largest_fan_out": {"a": -5}}',
            b'{"format": 1, "backends": {}, "largest_fan_out": {"a": 1e999}}',
            b'{"format": 1, "backends": {}, "largest_fan_out": {"a": NaN}}',
            (
                b'{"format": 1, "largest_fan_out": {}, "backends": {"a": {"process_start": 1e999, "startup":'
                b' {"engines": []}}}}'
            ),
            (
                b'{"format": 1, "largest_fan_out": {}, "backends": {"a": {"process_start": 5, "startup":'
                b' {"engines": [], "run": -1}}}}'
            ),
            b"\xff\xfe\x00",
            b"[" * 100_000,
        ],
    )
    def test_file_that_is_not_ours_is_named(self, tmp_path, content):
        """Whatever it is, StoreError and nothing else."""
        path = tmp_path / "state.json"
        path.write_bytes(content)

        with pytest.raises(StoreError, match=r"state\.json"):
            load(path)

    @pytest.mark.parametrize(
        ("name", "value"), [("max_num_seqs", "many"), ("version", 9), ("max_model_len", [1]), ("surprise", 1)]
    )
    def test_fact_of_the_wrong_kind_is_refused_at_once(self, tmp_path, name, value):
        """It would fail at every scrape otherwise."""
        path = tmp_path / "state.json"
        save(path, KEPT)
        data = json.loads(path.read_text(encoding="utf-8"))
        data["backends"]["a:8000"]["startup"][name] = value
        path.write_text(json.dumps(data), encoding="utf-8")

        with pytest.raises(StoreError, match=name):
            load(path)

    def test_unreadable_file_is_named(self, tmp_path):
        """A folder, for one, and a file that fails while it is read."""
        for path in (tmp_path, Path("/proc/self/mem")):
            with pytest.raises(StoreError, match=rf"^{path}: cannot be read: "):
                load(path)

    def test_pipe_is_neither_waited_for_nor_replaced(self, tmp_path):
        """Nor is a device: a state file of /dev/null must leave /dev/null what it is."""
        path = tmp_path / "state.json"
        os.mkfifo(path)

        with pytest.raises(StoreError, match=r"state\.json: cannot be read: .*found a named pipe"):
            load(path)
        with pytest.raises(StoreError, match=r"state\.json: cannot be written: expected a regular file"):
            save(path, KEPT)
        assert ([path], True, None) == (list(tmp_path.iterdir()), path.is_fifo(), set_aside(path))

    def test_file_that_is_not_ours_is_kept_beside(self, tmp_path):
        """A wrong path in the configuration must not cost somebody's file."""
        path = tmp_path / "state.json"
        path.write_text("somebody's diary", encoding="utf-8")

        assert tmp_path / "state.json.unreadable" == set_aside(path)
        assert "somebody's diary" == (tmp_path / "state.json.unreadable").read_text(encoding="utf-8")
        assert (False, None) == (path.exists(), set_aside(path))
