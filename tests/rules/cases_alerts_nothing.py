"""A Prometheus that knows no vLLM, no exporter and no GPU: what rests on their series is silent.

The alerts that are meant to speak then are in cases_health.py.
"""

from tests.rules.cases_health import up
from tests.rules.promtool import Alert, Group

SILENT = (
    "TidegaugeBackendFailing",
    "TidegaugeCapacityUnknown",
    "TidegaugeConfigReloadFailed",
    "TidegaugeKVSourcesDisagree",
    "TidegaugeNativeMetricsEscaped",
    "TidegaugeNativeMetricsMissing",
    "TidegaugePhaseEdgesCoarse",
    "VllmAdmissionRejections",
    "VllmBurstArrivals",
    "VllmCallerCeilingClips",
    "VllmCallerCeilingInert",
    "VllmCommunicationImbalance",
    "VllmComputeBound",
    "VllmDuplicateBackends",
    "VllmE2EBudgetBurn",
    "VllmFalseComputeBound",
    "VllmHealthyCountMismatch",
    "VllmKVCacheSaturated",
    "VllmPreempting",
    "VllmPrefillBudgetBound",
    "VllmPrefixHitDropped",
    "VllmRequestsAborted",
    "VllmSequenceSlotsBound",
    "VllmServesNothing",
    "VllmTPOTBudgetBurn",
    "VllmTTFTBudgetBurn",
    "VllmUnaccountedLatencyHigh",
)
GROUPS = [
    Group(
        "a Prometheus that knows another job only",
        [up("node:9100", "1x120", job="node")],
        alerts=[Alert("no_data", name, 60) for name in SILENT],
    )
]
