"""What derivation needs of the configuration."""

from collections.abc import Mapping

import attrs

from tidegauge.catalogue import thresholds as th
from tidegauge.derive.queueing import Limits


@attrs.frozen
class Settings:
    """Window in seconds; the thresholds in force, every key of the catalogue; by fleet, roster and ceiling of callers.

    A roster is the natural bound as configured.
    """

    window: float = 900.0
    thresholds: Mapping[str, float] = th.DEFAULTS
    rosters: Mapping[str, int] = attrs.field(factory=dict)
    ceilings: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def limits(self) -> Limits:
        """The thresholds of the split."""
        return Limits.of(self.thresholds)

    @property
    def disagree(self) -> float:
        """Relative difference of two capacity sources that is worth a warning."""
        return self.thresholds[th.SOURCES_DISAGREE.key]

    @property
    def kv_full(self) -> float:
        """KV-cache usage from which there is no cache to spare."""
        return self.thresholds[th.KV_FULL.key]
