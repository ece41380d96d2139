"""The board of bottlenecks: one state per backend, with or without GPU figures, and which backends have a bar."""

import pytest

from dashboards.boards import bottleneck
from tests.unit.board_queries import evaluated, panel_of, plain, shown
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

TIMELINE, TABLE = 4, 6


def at(level, gpu, backend="a"):
    """The series of a backend that is at a level."""
    return {f'{rc.BOTTLENECK.name}{{backend="{backend}", level="{level}", gpu="{gpu}"}}': 1}


@pytest.fixture(scope="module")
def board():
    return bottleneck.board()


def expr_of(board, id_, query=0):
    expr = plain(panel_of(board, id_)["targets"][query]["expr"])
    return expr.replace("$__range", "1m").replace("@ end()", "@ 60")


class TestLevels:
    def test_every_level_has_its_words_and_colour(self):
        """No two look alike, and whatever the catalogue says a level may be has both."""
        named = [name for name in bottleneck.LEVELS if name in lb.LABELS[lb.LEVEL]]
        looks = {(one.words, one.colour) for one in bottleneck.LEVELS.values()}

        assert list(bottleneck.LEVELS) == named
        assert len({one.colour for one in bottleneck.LEVELS.values()}) == len(looks) == 7

    @pytest.mark.parametrize(
        ("level", "gpu", "words"),
        [
            ("scheduling", "seen", "scheduling (L1)"),
            ("scheduling", "unseen", "scheduling (L1), GPU unseen"),
            ("memory", "unseen", "memory (L2), GPU unseen"),
            ("compute", "seen", "compute (L3)"),
            ("false_compute", "seen", "false compute"),
            ("communication", "seen", "communication (L4)"),
            ("none", "seen", "none"),
            ("none", "unseen", "none, GPU unseen"),
            ("unknown", "seen", "not enough evidence"),
            ("unknown", "unseen", "not enough evidence"),
        ],
    )
    def test_bar_says_the_level_and_whether_gpus_were_seen(self, board, tmp_path, level, gpu, words):
        """A backend without GPU figures says so, but where their absence is the verdict itself."""
        (value,) = evaluated(tmp_path, at(level, gpu), expr_of(board, TIMELINE)).values()
        assert (words, bottleneck.LEVELS[level].colour) == shown(panel_of(board, TIMELINE), value)

    def test_table_says_the_same_level_whether_gpus_were_seen_or_not(self, board, tmp_path):
        """Level and GPU data are two columns."""
        series = {**at("memory", "seen"), **at("memory", "unseen", "b")}
        assert {"backend=a": 2, "backend=b": 2} == evaluated(tmp_path, series, expr_of(board, TABLE))
        assert {"backend=a": 1, "backend=b": 0} == evaluated(tmp_path, series, expr_of(board, TABLE, 1))

    def test_nobody_unseen_is_none_and_nobody_known_is_nothing(self, board, tmp_path):
        """Zero is said only where there are backends."""
        assert {"": 0} == evaluated(tmp_path, at("none", "seen"), expr_of(board, 2))
        assert {"": 1} == evaluated(tmp_path, {**at("none", "seen"), **at("unknown", "unseen", "b")}, expr_of(board, 2))
        assert {} == evaluated(tmp_path, {"up": 1}, expr_of(board, 2))


def test_bars_are_those_of_backends_that_were_held_back(board, tmp_path):
    """Of more backends than there is room for, the idle ones and the unjudged ones go first."""
    held = {key: one for n in range(bottleneck.SHOWN) for key, one in at("memory", "seen", f"held-{n}").items()}
    others = {**at("none", "seen", "idle"), **at("unknown", "unseen", "unjudged")}
    found = evaluated(tmp_path, {**others, **held}, expr_of(board, TIMELINE))

    assert {f"backend=held-{n}" for n in range(bottleneck.SHOWN)} == set(found)
    assert {"backend=idle", "backend=unjudged"} == set(evaluated(tmp_path, others, expr_of(board, TIMELINE)))
