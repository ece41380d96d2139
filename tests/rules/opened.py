"""Which board each alert opens: the one that answers the question it raises."""

OPENED = {
    "latency": ("VllmUnaccountedLatencyHigh",),
    "waves": (
        "TidegaugePhaseEdgesCoarse",
        "VllmCallerCeilingClips",
        "VllmCallerCeilingInert",
        "VllmHealthyCountMismatch",
        "VllmPrefillBudgetBound",
        "VllmQueueSaturated",
        "VllmQueueTimeBimodal",
        "VllmSequenceSlotsBound",
    ),
    "skew": (
        "VllmBackendDown",
        "VllmBackendSkew",
        "VllmDuplicateBackends",
        "VllmPrefixHitDropped",
        "VllmServesNothing",
    ),
    "capacity": (
        "TidegaugeCapacityUnknown",
        "TidegaugeKVSourcesDisagree",
        "VllmKVCacheSaturated",
        "VllmPreempting",
    ),
    "load": (
        "VllmAdmissionRejections",
        "VllmAdmissionStalled",
        "VllmBurstArrivals",
        "VllmRequestsAborted",
    ),
    "bottleneck": (
        "VllmCommunicationImbalance",
        "VllmComputeBound",
        "VllmFalseComputeBound",
    ),
    "slo": (
        "VllmE2EBudgetBurn",
        "VllmTPOTBudgetBurn",
        "VllmTTFTBudgetBurn",
    ),
    "exporter": (
        "TidegaugeBackendFailing",
        "TidegaugeConfigReloadFailed",
        "TidegaugeDown",
        "TidegaugeNativeMetricsEscaped",
        "TidegaugeNativeMetricsMissing",
    ),
}
BOARD_OF = {alert: board for board, alerts in OPENED.items() for alert in alerts}
