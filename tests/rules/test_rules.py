"""The committed rules and alerts, held against the truth tables by promtool."""

import shutil

import pytest

from tests.rules import cases
from tests.rules.promtool import NEWER, committed, needed, run

GENERATIONS = ("prometheus 2", "prometheus 3")


@pytest.fixture(scope="session", params=GENERATIONS)
def promtool(request):
    """The promtool of one generation of Prometheus."""
    if request.param == GENERATIONS[0]:
        found = shutil.which("promtool")
        if found is None:
            pytest.fail("promtool is not on PATH: run stack/tools.sh")
        return found
    if not NEWER.exists():
        pytest.skip("RULES NOT TESTED UNDER PROMETHEUS 3: no promtool in build/newer; run `make newer`")
    return str(NEWER)


@pytest.mark.parametrize("group", cases.GROUPS, ids=lambda group: group.name)
def test_group_holds(promtool, group, tmp_path):
    """Each group of series yields exactly the values and alerts of its table."""
    complaint = run(promtool, needed(committed(), [group]), [group], tmp_path)

    if complaint:
        pytest.fail(complaint, pytrace=False)
