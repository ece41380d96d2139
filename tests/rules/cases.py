"""Every group of cases."""

from tests.rules import cases_fleet, cases_health, cases_split, cases_split_exporter, cases_stages

GROUPS = [
    *cases_split.GROUPS,
    *cases_split_exporter.GROUPS,
    *cases_stages.GROUPS,
    *cases_fleet.GROUPS,
    *cases_health.GROUPS,
]
