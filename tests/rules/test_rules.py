"""The committed rules and alerts, held against the truth tables by promtool."""

import pytest

from tests.generations import GENERATIONS, program
from tests.rules import cases
from tests.rules.promtool import committed, needed, run


@pytest.fixture(params=GENERATIONS)
def promtool(request):
    """The promtool of one generation of Prometheus."""
    return program("promtool", request.param)


@pytest.mark.parametrize("group", cases.GROUPS, ids=lambda group: group.name)
def test_group_holds(promtool, group, tmp_path):
    """Each group of series yields exactly the values and alerts of its table."""
    complaint = run(promtool, needed(committed(), [group]), [group], tmp_path)

    if complaint:
        pytest.fail(complaint, pytrace=False)
