"""Boards as files: found, read, rendered, wrapped in ConfigMaps; and what is no board."""

import json

import pytest
import yaml

from tidegauge import cli, shipped
from tidegauge.catalogue import places
from tidegauge.grafana import boards, configmaps
from tidegauge.grafana.boards import Board, BoardsError

BOARD = {"uid": "tide_Own", "title": "Own", "id": None, "panels": [{"title": "später"}]}


@pytest.fixture
def place(tmp_path):
    """A folder with one board."""
    (tmp_path / "own.json").write_text(json.dumps(BOARD))
    return tmp_path


class TestReading:
    def test_the_shipped_boards_are_found(self):
        """Without an option: those of this checkout, and all of them."""
        folder = boards.folder()

        assert {path.name for path in folder.glob("*.json")} == {board.file for board in boards.read(folder)}

    def test_those_of_an_installation(self, monkeypatch, place, tmp_path):
        """Beside no checkout they are in the share folder of the environment."""
        installed = tmp_path / "share/tidegauge" / boards.FOLDER
        installed.mkdir(parents=True)
        (installed / "own.json").write_text((place / "own.json").read_text())
        monkeypatch.setattr(shipped, "__file__", str(tmp_path / "a/b/c/shipped.py"))
        monkeypatch.setattr(shipped.sysconfig, "get_path", lambda _name: str(tmp_path))

        assert ["tide_Own"] == [board.uid for board in boards.read(boards.folder())]

    def test_nowhere(self, monkeypatch, tmp_path):
        """Both places are named, and the option."""
        monkeypatch.setattr(shipped, "__file__", str(tmp_path / "a/b/c/shipped.py"))
        monkeypatch.setattr(shipped.sysconfig, "get_path", lambda _name: str(tmp_path))

        with pytest.raises(BoardsError, match="give the folder of the boards with --boards DIR") as raised:
            boards.folder()
        assert f"no {tmp_path}/a/dashboards/json or {tmp_path}/share/tidegauge/dashboards/json" in str(raised.value)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("{", "expected JSON, found: "),
            ("[" * 100_000, "expected JSON, found: "),
            (json.dumps(BOARD | {"refresh": float("nan")}), "expected JSON, found: "),
            (json.dumps(BOARD | {"title": "half \ud800"}), "expected JSON, found: "),
            ("[]", "expected a Grafana board, found other JSON"),
            (json.dumps({"uid": "u", "title": "T"}), "expected a Grafana board, found other JSON"),
            (json.dumps(BOARD | {"uid": None}), "expected a uid of 1 to 40 letters, digits, - and _, found 'None'"),
            (json.dumps(BOARD | {"uid": "a/b"}), "found 'a/b'"),
            (json.dumps(BOARD | {"uid": "a" * 41}), "expected a uid of 1 to 40 letters"),
            (json.dumps(BOARD | {"title": " "}), "expected a title, found none"),
            (json.dumps(BOARD | {"__inputs": []}), "found an export for sharing (__inputs)"),
        ],
    )
    def test_what_is_no_board(self, tmp_path, content, says):
        """The file, what was expected, what was found."""
        (tmp_path / "bad.json").write_text(content)

        with pytest.raises(BoardsError) as raised:
            boards.read(tmp_path)
        assert str(raised.value).startswith(f"{tmp_path / 'bad.json'}: ")
        assert says in str(raised.value)

    def test_two_boards_of_one_uid(self, place):
        """One would overwrite the other: both files are named."""
        (place / "again.json").write_text(json.dumps(BOARD))

        with pytest.raises(BoardsError, match=r"again\.json and own\.json have the same uid, tide_Own"):
            boards.read(place)


class TestRunbooks:
    def test_links_lead_where_asked(self):
        """The constant that links are made of is set, as text and value; all else stays."""
        variable = {"name": "runbooks", "type": "constant", "query": "a", "current": {"text": "a", "value": "a"}}
        other = {"name": "cut", "query": "a", "current": {}}
        board = Board("own.json", "own", "Own", BOARD | {"templating": {"list": [other, variable], "enable": True}})
        set_ = variable | {"query": "http://wiki/x", "current": {"text": "http://wiki/x", "value": "http://wiki/x"}}

        made = boards.with_runbooks(board, "http://wiki/x")

        assert BOARD | {"templating": {"list": [other, set_], "enable": True}} == made.content
        assert "a" == variable["query"]

    @pytest.mark.parametrize("templating", [None, [], {}, {"list": None}, {"list": [1, {"name": "cut"}]}])
    def test_board_without_the_constant_is_as_it_was(self, templating):
        """One of one's own need not have it."""
        board = Board("own.json", "own", "Own", BOARD | {"templating": templating})

        assert board == boards.with_runbooks(board, "http://wiki/x")

    @pytest.mark.parametrize("given", ["", "wiki.example/runbooks", "javascript:alert(1)"])
    def test_what_no_link_can_begin_with(self, tmp_path, capsys, given):
        """It is refused before anything is written."""
        with pytest.raises(SystemExit, match="2"):
            cli.main(["dashboards", "render", "--runbooks", given, "-o", str(tmp_path / "new")])
        assert f"--runbooks: expected {places.EXPECTED}, found {given!r}" in capsys.readouterr().err
        assert not (tmp_path / "new").exists()

    def test_every_shipped_board_has_them(self, tmp_path):
        """And no other address of theirs is left in any file."""
        arguments = ["dashboards", "render", "--runbooks", "https://wiki.example/runbooks/", "-o", str(tmp_path)]
        assert 0 == cli.main(arguments)

        for path in tmp_path.iterdir():
            text = path.read_text(encoding="utf-8")
            assert '"query": "https://wiki.example/runbooks"' in text, path
            assert places.RUNBOOKS not in text


class TestConfigMaps:
    def test_a_configmap(self, place):
        """A name that Kubernetes takes, the sidecar's label and folder, the board under a file name of its own."""
        (made,) = configmaps.configmaps(boards.read(place), "Fleet")

        assert ("v1", "ConfigMap", "dashboard-tide-own") == (made["apiVersion"], made["kind"], made["metadata"]["name"])
        assert {"grafana_folder": "Fleet"} == made["metadata"]["annotations"]
        assert "1" == made["metadata"]["labels"]["grafana_dashboard"]
        assert ["tide_Own.json"] == list(made["data"])
        assert BOARD == json.loads(made["data"]["tide_Own.json"])

    def test_two_boards_of_one_name(self):
        """Kubernetes knows no capitals and no underscores: one would overwrite the other, so both are named."""
        two = [Board(f"{uid}.json", uid, uid, {}) for uid in ("my_board", "My-board")]

        with pytest.raises(
            BoardsError, match=r"my_board\.json and My-board\.json would be one ConfigMap, dashboard-my-b"
        ):
            configmaps.configmaps(two)

    def test_a_board_beyond_what_kubectl_takes(self):
        """It is named with its size, before anyone applies it."""
        largest = Board("big.json", "big", "Big", {"title": "x" * configmaps.LARGEST})

        with pytest.raises(configmaps.TooLargeError, match=r"big\.json: \d+ bytes as a ConfigMap, expected at most"):
            configmaps.configmaps([largest])


class TestRender:
    def test_files_are_the_committed_ones(self, tmp_path, capsys):
        """Byte for byte, and each is named."""
        assert 0 == cli.main(["dashboards", "render", "-o", str(tmp_path / "new")])

        written = {path.name: path.read_bytes() for path in (tmp_path / "new").iterdir()}
        assert {path.name: path.read_bytes() for path in boards.folder().glob("*.json")} == written
        assert sorted(str(tmp_path / "new" / name) for name in written) == capsys.readouterr().out.splitlines()

    @pytest.mark.parametrize(("given", "folder"), [((), "tidegauge"), (("--folder", "Fleet"), "Fleet")])
    def test_configmaps(self, place, tmp_path, given, folder):
        """One file of objects, for the folder asked for."""
        out = tmp_path / "new"
        arguments = ["dashboards", "render", "--format", "kubernetes", "--boards", str(place), "-o", str(out), *given]
        assert 0 == cli.main(arguments)

        (made,) = yaml.safe_load_all((out / "dashboards.yaml").read_text(encoding="utf-8"))
        assert {"grafana_folder": folder} == made["metadata"]["annotations"]

    @pytest.mark.parametrize("name", ["", " "])
    @pytest.mark.parametrize(
        "argv",
        [
            ("render", "--format", "kubernetes", "-o", "{}/new"),
            ("push", "--grafana", "http://127.0.0.1:1", "--token-file", "{}/none"),
        ],
        ids=lambda argv: argv[0],
    )
    def test_a_folder_has_a_name(self, tmp_path, capsys, argv, name):
        """An empty one would mean the root to one reader and a mistake to another; nothing is looked at or written."""
        with pytest.raises(SystemExit) as stop:
            cli.main(["dashboards", *(one.format(tmp_path) for one in argv), "--folder", name])

        assert 2 == stop.value.code
        assert f"argument --folder: expected a name, found {name!r}\n" in capsys.readouterr().err
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (("--folder", "F"), "--folder goes with --format kubernetes only"),
            (("--boards", "{}/missing"), "--boards {}/missing: expected a folder of boards, found none"),
            (("--boards", "{}/empty"), "{}/empty: expected boards, *.json, found none"),
        ],
    )
    def test_wrong_usage(self, tmp_path, capsys, given, says):
        """Exit code 2, and nothing is written."""
        (tmp_path / "empty").mkdir()
        arguments = [one.format(tmp_path) for one in given]

        assert 2 == cli.main(["dashboards", "render", "-o", str(tmp_path / "new"), *arguments])
        assert f"tidegauge: {says.format(tmp_path)}\n" == capsys.readouterr().err
        assert not (tmp_path / "new").exists()
