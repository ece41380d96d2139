"""Where the time of finished requests goes, per backend and for the fleet."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_MODEL = (lb.BACKEND, lb.MODEL_NAME)

WINDOW_REQUESTS = recorded(
    "window_requests",
    "backend_model:window_requests:window",
    "requests",
    "Requests finished in the window that the stage means cover.",
    *_MODEL,
)
E2E_MEAN = recorded(
    "e2e_mean", "backend_model:e2e_seconds:mean", "seconds", "Mean end-to-end time over the stage window.", *_MODEL
)
STAGE_MEAN = recorded(
    "stage_mean",
    "backend_model:stage_seconds:mean",
    "seconds",
    "Mean time in the stage over the stage window; absent while vLLM's sums hold a time that cannot be true.",
    *_MODEL,
    lb.STAGE,
)
STAGE_SHARE = recorded(
    "stage_share",
    "backend_model:stage_share:mean",
    "ratio",
    "Share of the stage in end-to-end time over the stage window; the four server stages add up to 1.",
    *_MODEL,
    lb.STAGE,
)
FLEET_STAGE_SHARE = recorded(
    "fleet_stage_share",
    "fleet:stage_share:mean",
    "ratio",
    "Share of the stage in the end-to-end time of all requests of the fleet, over the stage window.",
    lb.FLEET,
    lb.STAGE,
)
GAIN_CEILING = recorded(
    "gain_ceiling",
    "fleet:gain_ceiling:ratio",
    "ratio",
    "Largest end-to-end gain of an optimisation that removes the cut from the stage: share times cut.",
    lb.FLEET,
    lb.STAGE,
    lb.CUT,
)
