"""Default limits of the rules that the boards draw as well; the mixin's `_config` overrides them for the rules.

Unlike the thresholds, the exporter decides nothing by them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs


@attrs.frozen
class BurnRate:
    """How many times too fast an error budget burns over a long and a short window before an alert fires.

    `hold` is for how long, `severity` that of the alert.
    """

    factor: float
    long: str
    short: str
    severity: str
    hold: str


BURN_RATES: Final = (
    BurnRate(14.4, "1h", "5m", "critical", "2m"),
    BurnRate(6, "6h", "30m", "critical", "15m"),
    BurnRate(3, "1d", "2h", "warning", "1h"),
    BurnRate(1, "3d", "6h", "warning", "3h"),
)
"""14.4 takes 2 % of a month's budget in an hour, 6 takes 5 % in six hours, 3 takes 10 % in a day, 1 all in a month."""

WAITING_REQUESTS: Final = 1
"""Requests that wait, on average over 5 minutes, from which it is worth a warning; in bursts a few always do."""

GPU_BUSY: Final = 0.95
"""Share of SM time from which a backend's GPUs are busy."""
GPU_SPREAD: Final = 0.2
"""Difference between its busiest and its idlest GPU beyond which they are uneven."""
GPU_IDLE: Final = 0.01
"""Share of SM time up to which a GPU did nothing: it is free, and no part of a replica that works."""
GPU_DRAM_LOW: Final = 0.45
"""Share of memory-interface time below which busy SMs do not compute: above the 0.4 of SMs that were busy copying."""
GPU: Final[Mapping[str, float]] = MappingProxyType(
    {"busy": GPU_BUSY, "spread": GPU_SPREAD, "idle": GPU_IDLE, "dramLow": GPU_DRAM_LOW}
)
"""The same, by their keys in `_config.gpu`."""
