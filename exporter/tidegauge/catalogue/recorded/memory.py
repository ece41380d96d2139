"""KV cache: how full, what it saves, what it throws out. Usage is never summed over backends."""

from tidegauge.catalogue import labels as lb
from tidegauge.catalogue.series import recorded

_MODEL = (lb.BACKEND, lb.MODEL_NAME)

KV_USAGE = recorded(
    "kv_usage",
    "backend_model:kv_cache_usage:max",
    "ratio",
    "KV-cache usage of the backend's fullest engine, 0 to 1.",
    *_MODEL,
)
FLEET_KV_MAX = recorded(
    "fleet_kv_max", "fleet:kv_cache_usage:max", "ratio", "KV-cache usage of the fullest backend of the fleet.", lb.FLEET
)
FLEET_KV_WEIGHTED = recorded(
    "fleet_kv_weighted",
    "fleet:kv_cache_usage:weighted",
    "ratio",
    "KV-cache usage of the fleet, each backend weighed by its capacity; absent unless the exporter knows all of them.",
    lb.FLEET,
)
KV_CAPACITY = recorded(
    "kv_capacity",
    "backend:kv_cache_capacity_tokens:max",
    "tokens",
    "Tokens that the backend's KV cache holds, from the exporter.",
    lb.BACKEND,
)
PREFIX_HIT = recorded(
    "prefix_hit",
    "backend_model:prefix_cache_hit:ratio_rate5m",
    "ratio",
    "Share of the looked-up prompt tokens that the prefix cache held, over 5 minutes; absent without look-ups.",
    *_MODEL,
)
PREEMPTION_RATE = recorded(
    "preemption_rate",
    "backend_model:num_preemptions:rate5m",
    "1/s",
    "Requests per second thrown out of the batch for want of KV cache.",
    *_MODEL,
)
FLEET_PREEMPTION_RATE = recorded(
    "fleet_preemption_rate", "fleet:num_preemptions:rate5m", "1/s", "Preemptions per second of the fleet.", lb.FLEET
)
