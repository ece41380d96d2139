"""`tidegauge dashboards push` against a little Grafana: what it does, says, and leaves alone."""

import json

import pytest

import tidegauge
from tests.unit.little_grafana import EVERYTHING, TOKEN, LittleGrafana, command
from tidegauge.grafana import boards

OURS = {board.uid: board.content for board in boards.read(boards.folder())}
SOME = min(OURS)


def theirs(uid="users-own", title="Mine", **more):
    return {"uid": uid, "title": title, "panels": [{"id": 1, "type": "text"}], "refresh": "1m"} | more


@pytest.fixture
def secret(tmp_path):
    """The token's file."""
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


@pytest.fixture
def pushed(secret, capsys):
    """Push to a Grafana: exit code, standard output, standard error. Nothing undocumented was asked of it."""

    def push(grafana, *argv):
        code = command(grafana.answer, "--token-file", secret, *argv, path=grafana.path)
        said = capsys.readouterr()
        assert [] == grafana.undocumented
        assert TOKEN not in said.out + said.err
        return code, said.out, said.err

    return push


@pytest.fixture
def few(tmp_path):
    """A folder with two boards of one's own."""
    place = tmp_path / "boards"
    place.mkdir()
    for uid, title in (("own-a", "A"), ("own-b", "B")):
        content = {"uid": uid, "title": title, "id": None, "version": 0, "refresh": "10s", "panels": [{"id": 7}]}
        (place / f"{uid}.json").write_text(json.dumps(content))
    return place


class TestCreating:
    def test_every_generated_board_is_created(self, pushed):
        """All that ship, as they are but for id and version, in the root, with the version of tidegauge as message."""
        grafana = LittleGrafana()
        code, out, err = pushed(grafana)

        assert (0, "") == (code, err)
        assert [f"{uid}: created in General" for uid in OURS] == out.splitlines()
        assert OURS.keys() == grafana.boards.keys()
        for uid, one in grafana.boards.items():
            assert OURS[uid] | {"id": one["content"]["id"], "version": 1} == one["content"]
            assert ("", [f"tidegauge {tidegauge.__version__}"]) == (one["folder"], one["messages"])

    def test_a_second_push_writes_nothing(self, pushed):
        """Boards that are the same are left alone, and said to be there."""
        grafana = LittleGrafana()
        pushed(grafana)
        before = grafana.snapshot()
        grafana.asked.clear()
        code, out, _ = pushed(grafana)

        assert (0, [], before) == (code, grafana.writes, grafana.snapshot())
        assert [f"{uid}: already there, in General" for uid in OURS] == out.splitlines()

    def test_a_refresh_that_grafana_raises_is_no_difference(self, pushed):
        """Grafana saves its own shortest interval; a push does not fight it."""
        grafana = LittleGrafana(shortest_refresh="1m")
        pushed(grafana)
        before = grafana.snapshot()
        code, _, _ = pushed(grafana)

        assert {"1m"} == {one["content"]["refresh"] for one in grafana.boards.values()}
        assert (0, before) == (code, grafana.snapshot())

    def test_under_a_path(self, pushed):
        """A Grafana under a path of its host is asked there."""
        grafana = LittleGrafana(path="/some/grafana")

        assert 0 == pushed(grafana)[0]
        assert OURS.keys() == grafana.boards.keys()

    def test_boards_of_ones_own(self, pushed, few):
        """`--boards` takes another folder's boards and none of those that ship."""
        grafana = LittleGrafana()

        assert 0 == pushed(grafana, "--boards", few)[0]
        assert ["own-a", "own-b"] == sorted(grafana.boards)


class TestUpdating:
    def test_what_differs_is_updated(self, pushed, few):
        """One board was edited: it alone is written, on top of its history."""
        grafana = LittleGrafana()
        pushed(grafana, "--boards", few)
        grafana.boards["own-a"]["content"]["panels"].append({"id": 8})
        kept = grafana.boards["own-b"].copy()
        code, out, _ = pushed(grafana, "--boards", few)

        assert (0, "own-a: updated in General\nown-b: already there, in General\n") == (code, out)
        assert ([{"id": 7}], 2) == tuple(grafana.boards["own-a"]["content"][key] for key in ("panels", "version"))
        assert kept == grafana.boards["own-b"]

    def test_a_change_that_came_between_is_kept(self, pushed, few):
        """What somebody saved after we looked is not written over (412 version-mismatch); the others go on."""
        grafana = LittleGrafana()
        pushed(grafana, "--boards", few)
        for one in grafana.boards.values():
            one["content"]["panels"] = []

        def somebody():
            grafana.boards["own-a"]["content"] |= {"version": 9, "title": "Somebody's"}

        grafana.before_save = somebody
        code, out, err = pushed(grafana, "--boards", few)

        assert (1, "own-b: updated in General\n") == (code, out)
        assert err.startswith("tidegauge: own-a: 412: somebody changed it just now, and that is kept")
        assert "Somebody's" == grafana.boards["own-a"]["content"]["title"]

    def test_a_provisioned_board_is_refused_beforehand(self, pushed, few):
        """A board from Grafana's own files cannot be saved: no attempt is made, and it is said where to change it."""
        grafana = LittleGrafana()
        grafana.put(theirs("own-a"), provisioned=True)
        before = grafana.snapshot()
        code, out, err = pushed(grafana, "--boards", few, "--folder", "F")

        assert 1 == code
        assert "own-b: created in F" in out
        assert (
            "tidegauge: own-a: provisioned from a file of Grafana's, in General: it can be changed there only\n" == err
        )
        assert before[0]["own-a"] == grafana.boards["own-a"]

    def test_a_provisioned_board_that_is_the_same_is_in_place(self, pushed, few):
        """It needs no write."""
        grafana = LittleGrafana()
        pushed(grafana, "--boards", few)
        grafana.boards["own-a"]["provisioned"] = True

        assert 0 == pushed(grafana, "--boards", few)[0]


class TestFolders:
    @pytest.mark.parametrize(("given", "folder"), [((), "elsewhere"), (("--folder", "Asked"), "asked")])
    @pytest.mark.parametrize("same", [True, False])
    def test_a_board_moves_only_when_asked(self, pushed, few, given, folder, same):
        """Without --folder a board stays where a user put it; with it, it is moved and the move is told."""
        grafana = LittleGrafana()
        grafana.folders = {"asked": "Asked", "elsewhere": "Else"}
        grafana.put(json.loads((few / "own-a.json").read_text()) | ({} if same else {"panels": []}), folder="elsewhere")
        code, out, _ = pushed(grafana, "--boards", few, *given)

        assert (0, folder, 7) == (
            code,
            grafana.boards["own-a"]["folder"],
            grafana.boards["own-a"]["content"]["panels"][0]["id"],
        )
        said = {
            (True, ()): "already there, in Else",
            (False, ()): "updated in Else",
            (True, ("--folder", "Asked")): "moved from Else to Asked",
            (False, ("--folder", "Asked")): "updated in Else and moved to Asked",
        }[same, given]
        assert f"own-a: {said}" == out.splitlines()[0]

    def test_a_folder_is_found_by_its_title(self, pushed, few):
        """However many there are; none is created, and no other is written into."""
        grafana = LittleGrafana()
        grafana.folders = {f"f{number}": f"F {number}" for number in range(2500)}
        code, _, _ = pushed(grafana, "--boards", few, "--folder", "F 2400")

        assert (0, 2500) == (code, len(grafana.folders))
        assert {"f2400"} == {one["folder"] for one in grafana.boards.values()}

    def test_a_folder_that_is_missing_is_created_once(self, pushed, few):
        """And found the next time."""
        grafana = LittleGrafana()
        code, out, _ = pushed(grafana, "--boards", few, "--folder", "New")

        assert (0, ["New"]) == (code, list(grafana.folders.values()))
        assert ["folder New: created", "own-a: created in New", "own-b: created in New"] == out.splitlines()
        before = grafana.snapshot()
        assert 0 == pushed(grafana, "--boards", few, "--folder", "New")[0]
        assert before == grafana.snapshot()

    def test_general_is_the_root(self, pushed, few):
        """Grafana calls its root General, and no folder of that name can be made."""
        grafana = LittleGrafana()
        grafana.folders = {"f": "F"}
        pushed(grafana, "--boards", few, "--folder", "F")
        code, out, _ = pushed(grafana, "--boards", few, "--folder", "general")

        assert (0, {"f": "F"}) == (code, grafana.folders)
        assert "own-a: moved from F to General" == out.splitlines()[0]

    def test_two_folders_of_one_title(self, pushed, few):
        """Nobody could say which was meant: both are named and nothing is written."""
        grafana = LittleGrafana()
        grafana.folders = {"f1": "F", "f2": "F"}
        code, _, err = pushed(grafana, "--boards", few, "--folder", "F")

        assert (1, []) == (code, grafana.writes)
        assert "expected one folder F, found 2 (uid f1, f2)" in err


class TestWhatBelongsToOthers:
    @pytest.mark.parametrize("unique_titles", [True, False])
    @pytest.mark.parametrize("given", [(), ("--folder", "Shared")])
    def test_nothing_of_theirs_changes(self, pushed, unique_titles, given):
        """Every board and folder that is not ours is, after two pushes, what it was before."""
        grafana = LittleGrafana(unique_titles=unique_titles)
        grafana.folders = {"shared": "Shared", "mine": "Mine"}
        for at, folder in enumerate(("", "shared", "mine")):
            grafana.put(theirs(f"users-{at}", f"Own {at}", tags=["tidegauge"]), folder=folder)
            grafana.put(theirs(f"twin-{at}", OURS[SOME]["title"]), folder=folder)
        before = grafana.snapshot()
        pushed(grafana, *given)
        pushed(grafana, *given)

        assert before[1] == grafana.folders
        assert before[0] == {uid: one for uid, one in grafana.boards.items() if uid not in OURS}

    def test_a_namesake_in_the_folder_up_to_11_2(self, pushed, few):
        """Grafana takes no second board of that title (412 name-exists): theirs is kept, ours reported."""
        grafana = LittleGrafana(unique_titles=True)
        grafana.put(theirs(title="A"))
        code, out, err = pushed(grafana, "--boards", few)

        assert (1, "own-b: created in General\n") == (code, out)
        assert err.startswith("tidegauge: own-a: 412: another board has the title 'A' in General, and is kept")
        assert "--folder" in err

    def test_a_namesake_in_the_folder_from_11_3(self, pushed, few):
        """Both lie side by side, and that is said."""
        grafana = LittleGrafana()
        grafana.put(theirs(title="A"))
        code, out, _ = pushed(grafana, "--boards", few)

        assert 0 == code
        assert (
            "own-a: created in General, beside another board of that title, which is left alone (uid users-own)"
            == out.splitlines()[0]
        )

    def test_a_namesake_in_another_folder(self, pushed, few):
        """It is not in the way and not mentioned."""
        grafana = LittleGrafana(unique_titles=True)
        grafana.folders = {"f": "F"}
        grafana.put(theirs(title="A"), folder="f")
        code, out, _ = pushed(grafana, "--boards", few)

        assert (0, "own-a: created in General") == (code, out.splitlines()[0])


class TestDryRun:
    def test_it_says_what_a_push_does_and_writes_nothing(self, pushed, few):
        """Creation, update, move and a folder are announced; what is held stays as it is; only GET is used."""
        grafana = LittleGrafana()
        grafana.put(json.loads((few / "own-a.json").read_text()))
        before = grafana.snapshot()
        code, out, _ = pushed(grafana, "--boards", few, "--folder", "New", "--dry-run")

        assert (0, [], before) == (code, grafana.writes, grafana.snapshot())
        assert [
            "folder New: would be created",
            "own-a: would be moved from General to New",
            "own-b: would be created in New",
        ] == out.splitlines()

    def test_it_tells_of_namesakes(self, pushed, few):
        """With what an older Grafana will say to them."""
        grafana = LittleGrafana()
        grafana.put(theirs(title="A"))
        _, out, _ = pushed(grafana, "--boards", few, "--dry-run")

        assert "which is left alone (uid users-own); Grafana before 11.3 will refuse it" in out

    def test_it_fails_where_a_push_would(self, pushed, few):
        """A provisioned board that differs."""
        grafana = LittleGrafana()
        grafana.put(theirs("own-a"), provisioned=True)

        assert 1 == pushed(grafana, "--boards", few, "--dry-run")[0]


class TestPermissions:
    @pytest.mark.parametrize(
        ("missing", "given", "says"),
        [
            ("dashboards:read", (), "(looking for it: dashboards:read)"),
            ("dashboards:create", (), "own-a: 403: the token may not save boards in General (dashboards:create)"),
            ("folders:read", ("--folder", "F"), "(looking for the folder F: folders:read)"),
            ("folders:create", ("--folder", "F"), "(creating the folder F: folders:create)"),
        ],
    )
    def test_what_the_token_lacks_is_named(self, pushed, few, missing, given, says):
        """Exit code 1, the permission, and nothing half done."""
        grafana = LittleGrafana(permissions=EVERYTHING - {missing})
        before = grafana.snapshot()
        code, _, err = pushed(grafana, "--boards", few, *given)

        assert (1, before) == (code, grafana.snapshot())
        assert says in err
        assert "403" in err

    def test_a_token_that_may_not_update(self, pushed, few):
        """Boards that are in place need no permission to write; the one that differs does."""
        grafana = LittleGrafana()
        pushed(grafana, "--boards", few)
        grafana.boards["own-b"]["content"]["panels"] = []
        grafana.permissions.discard("dashboards:write")
        code, out, err = pushed(grafana, "--boards", few)

        assert (1, "own-a: already there, in General\n") == (code, out)
        assert err.startswith("tidegauge: own-b: 403: the token may not save boards in General (dashboards:write)")
