"""Every group of cases."""

from tests.rules import (
    cases_bottleneck,
    cases_capacity,
    cases_fleet,
    cases_health,
    cases_latency,
    cases_load,
    cases_memory,
    cases_skew,
    cases_slo,
    cases_split,
    cases_split_exporter,
    cases_stages,
)

GROUPS = [
    *cases_split.GROUPS,
    *cases_split_exporter.GROUPS,
    *cases_stages.GROUPS,
    *cases_fleet.GROUPS,
    *cases_skew.GROUPS,
    *cases_health.GROUPS,
    *cases_latency.GROUPS,
    *cases_load.GROUPS,
    *cases_memory.GROUPS,
    *cases_capacity.GROUPS,
    *cases_bottleneck.GROUPS,
    *cases_slo.GROUPS,
]
