"""Service levels per model: the share of requests within the target. Targets are set in the mixin's `_config`.

A target counts at the nearest bucket edge at or below it, so a ratio never flatters. TTFT counts at the first token,
TPOT and end to end when a request finishes. What is asked of a model is recorded with it, so that whatever shows a
ratio shows it against the objective and the target in force.
"""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_SLI = (lb.MODEL_NAME, lb.SLI)

SLO_GOOD = recorded(
    "slo_good", "model:slo_good:rate5m", "requests/s", "Requests per second that met the target.", *_SLI
)
SLO_TOTAL = recorded(
    "slo_total", "model:slo_total:rate5m", "requests/s", "Requests per second that were judged.", *_SLI
)
SLO_5M = recorded(
    "slo_5m",
    "model:slo_good:ratio_rate5m",
    "ratio",
    "Share of requests within the target over the last 5 minutes.",
    *_SLI,
)
SLO_30M = recorded(
    "slo_30m",
    "model:slo_good:ratio_rate30m",
    "ratio",
    "Share of requests within the target over the last 30 minutes.",
    *_SLI,
)
SLO_1H = recorded(
    "slo_1h",
    "model:slo_good:ratio_rate1h",
    "ratio",
    "Share of requests within the target over the last hour.",
    *_SLI,
)
SLO_2H = recorded(
    "slo_2h",
    "model:slo_good:ratio_rate2h",
    "ratio",
    "Share of requests within the target over the last 2 hours.",
    *_SLI,
)
SLO_6H = recorded(
    "slo_6h",
    "model:slo_good:ratio_rate6h",
    "ratio",
    "Share of requests within the target over the last 6 hours.",
    *_SLI,
)
SLO_1D = recorded(
    "slo_1d",
    "model:slo_good:ratio_rate1d",
    "ratio",
    "Share of requests within the target over the last day.",
    *_SLI,
)
SLO_3D = recorded(
    "slo_3d",
    "model:slo_good:ratio_rate3d",
    "ratio",
    "Share of requests within the target over the last 3 days.",
    *_SLI,
)
SLO_OBJECTIVE = recorded(
    "slo_objective",
    "model:slo_objective:ratio",
    "ratio",
    "Share of requests that is to be within the target, as configured for the model.",
    *_SLI,
)
SLO_ASKED = recorded(
    "slo_asked", "model:slo_target_seconds:asked", "seconds", "Target as configured for the model.", *_SLI
)
SLO_JUDGED = recorded(
    "slo_judged",
    "model:slo_target_seconds:judged",
    "seconds",
    "Target that requests are held to: the nearest bucket edge at or below the configured one.",
    *_SLI,
)
