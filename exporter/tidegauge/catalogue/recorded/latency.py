"""What a request feels: first token, tokens after it, end to end; quantiles of vLLM's histograms over 5 minutes."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_MODEL = (lb.BACKEND, lb.MODEL_NAME)

TTFT_5M = recorded(
    "ttft_5m",
    "backend_model:time_to_first_token_seconds:quantile5m",
    "seconds",
    "Quantile of the time from arrival to the first token; requests that were aborted later count too.",
    *_MODEL,
    lb.QUANTILE,
)
TPOT_5M = recorded(
    "tpot_5m",
    "backend_model:request_time_per_output_token_seconds:quantile5m",
    "seconds",
    "Quantile of a request's mean time per output token after the first; in the lowest bucket that bucket's edge.",
    *_MODEL,
    lb.QUANTILE,
)
ITL_5M = recorded(
    "itl_5m",
    "backend_model:inter_token_latency_seconds:quantile5m",
    "seconds",
    "Quantile of the time between two outputs of a request; in the lowest bucket that bucket's edge.",
    *_MODEL,
    lb.QUANTILE,
)
TOKEN_EDGE = recorded(
    "token_edge",
    "backend_model:token_edge_seconds:min",
    "seconds",
    "Lowest bucket edge of the server's per-token histograms: no quantile is known below it.",
    *_MODEL,
)
E2E_5M = recorded(
    "e2e_5m",
    "backend_model:e2e_request_latency_seconds:quantile5m",
    "seconds",
    "Quantile of the end-to-end time; in the lowest bucket that bucket's edge.",
    *_MODEL,
    lb.QUANTILE,
)
