"""What becomes of a board, given what is there: pure."""

import pytest

from tidegauge.grafana.boards import Board
from tidegauge.grafana.plan import ROOT, Folder, Present, decide, payload, refusal, same, told, with_namesakes

CONTENT = {"uid": "u", "title": "T", "id": None, "version": 0, "refresh": "10s", "panels": [{"id": 1}]}
BOARD = Board("u.json", "u", "T", CONTENT)
HERE, THERE, NEW = Folder("Here", "h"), Folder("There", "t"), Folder("New", None)
OTHER = CONTENT | {"panels": []}


def present(content=CONTENT, folder=HERE, *, provisioned=False):
    return Present(content | {"id": 5, "version": 3}, folder, 3, provisioned)


@pytest.mark.parametrize(
    ("there", "asked", "action", "folder"),
    [
        (None, None, "create", ROOT),
        (None, THERE, "create", THERE),
        (None, NEW, "create", NEW),
        (present(), None, "keep", HERE),
        (present(), HERE, "keep", HERE),
        (present(), THERE, "move", THERE),
        (present(), ROOT, "move", ROOT),
        (present(), NEW, "move", NEW),
        (present(OTHER), None, "update", HERE),
        (present(OTHER), THERE, "update", THERE),
        (present(provisioned=True), None, "keep", HERE),
        (present(provisioned=True), THERE, "refuse", HERE),
        (present(OTHER, provisioned=True), None, "refuse", HERE),
        (present(OTHER, ROOT), None, "update", ROOT),
    ],
)
def test_decisions(there, asked, action, folder):
    """New boards are created, equal ones kept, others updated; a folder changes only if another one is asked for."""
    step = decide(BOARD, there, asked)

    assert (action, folder) == (step.action, step.folder)
    assert step.arrives == (action not in {"keep", "refuse"} and (there is None or there.folder != folder))


@pytest.mark.parametrize(
    ("theirs", "alike"),
    [
        ({"id": 9, "version": 12}, True),
        ({"refresh": "10s"}, True),
        ({"refresh": "1m"}, True),
        ({"refresh": "11000ms"}, True),
        ({"refresh": "1h"}, True),
        ({"refresh": "5s"}, False),
        ({"refresh": ""}, False),
        ({"refresh": False}, False),
        ({"refresh": "soon"}, False),
        ({"title": "t"}, False),
        ({"panels": [{"id": 2}]}, False),
        ({"panels": [{"id": 1}, {"id": 2}]}, False),
        ({"description": "added by a user"}, False),
    ],
)
def test_sameness(theirs, alike):
    """Grafana sets id and version, and may raise a refresh interval; whatever else differs, differs."""
    assert alike == same(CONTENT, CONTENT | theirs)


def test_sameness_without_a_refresh():
    """No refresh is the same as none, and not as one that a user set."""
    still = {key: value for key, value in CONTENT.items() if key != "refresh"}

    assert same(still, still)
    assert not same(still, CONTENT)


class TestPayload:
    @pytest.mark.parametrize(
        ("there", "asked", "version", "folder"),
        [(None, None, 0, None), (None, HERE, 0, "h"), (present(OTHER), None, 3, "h"), (present(), ROOT, 3, None)],
    )
    def test_payload(self, there, asked, version, folder):
        """The version that was seen, no id of another Grafana, never `overwrite`; the root is no folder at all."""
        sent = payload(decide(BOARD, there, asked), "why")

        assert CONTENT | {"id": None, "version": version} == sent["dashboard"]
        assert (False, "why", folder) == (sent["overwrite"], sent["message"], sent.get("folderUid"))

    def test_the_board_itself_is_not_changed(self):
        """It may be sent again."""
        before = dict(CONTENT)
        payload(decide(BOARD, present(OTHER), None), "why")

        assert before == BOARD.content


def test_namesakes():
    """Boards of the very same title in the folder of arrival, but for the board itself."""
    found = [
        {"uid": "b", "title": "T", "folderUid": "h"},
        {"uid": "a", "title": "T", "folderUid": "h"},
        {"uid": "u", "title": "T", "folderUid": "h"},
        {"uid": "c", "title": "T"},
        {"uid": "d", "title": "T", "folderUid": "t"},
        {"uid": "e", "title": "T and more", "folderUid": "h"},
        {"uid": "f", "title": "t", "folderUid": "h"},
    ]

    assert ("a", "b") == with_namesakes(decide(BOARD, None, HERE), found).namesakes
    assert ("c",) == with_namesakes(decide(BOARD, None, None), found).namesakes


@pytest.mark.parametrize(
    ("there", "asked", "done", "dry"),
    [
        (None, HERE, "created in Here", "would be created in Here"),
        (present(), None, "already there, in Here", "already there, in Here"),
        (present(), THERE, "moved from Here to There", "would be moved from Here to There"),
        (present(OTHER), None, "updated in Here", "would be updated in Here"),
        (
            present(OTHER),
            THERE,
            "updated in Here and moved to There",
            "would be updated in Here and moved to There",
        ),
    ],
)
def test_what_is_told(there, asked, done, dry):
    """The same words for what is done and what would be."""
    step = decide(BOARD, there, asked)

    assert (f"u: {done}", f"u: {dry}") == (told(step, dry=False), told(step, dry=True))


@pytest.mark.parametrize(
    ("there", "status", "code", "said", "expected"),
    [
        (None, 400, "", "bad", "u: 400: bad"),
        (None, 400, "", "", "u: 400: no reason given"),
        (None, 403, "", "no", "u: 403: the token may not save boards in General (dashboards:create) (no)"),
        (present(), 403, "", "", "u: 403: the token may not save boards in Here (dashboards:write)"),
        (None, 412, "plugin-dashboard", "of X", "u: 412: of X"),
    ],
)
def test_refusals(there, status, code, said, expected):
    """The status, what it means here, and Grafana's own words."""
    assert expected == refusal(decide(BOARD, there, None), status, code, said)
