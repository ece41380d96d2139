"""Every group of cases."""

from tests.rules import cases_split

GROUPS = [*cases_split.GROUPS]
