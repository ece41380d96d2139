"""What derivation needs of the configuration."""

from collections.abc import Mapping

import attrs

from tidegauge.catalogue import thresholds as th
from tidegauge.derive.queueing import Limits


@attrs.frozen
class Settings:
    """Window in seconds and thresholds; by fleet, the configured natural bound and ceiling of its callers."""

    window: float = 900.0
    limits: Limits = Limits()
    disagree: float = th.SOURCES_DISAGREE.value
    kv_full: float = th.KV_FULL.value
    rosters: Mapping[str, int] = attrs.field(factory=dict)
    ceilings: Mapping[str, int] = attrs.field(factory=dict)
