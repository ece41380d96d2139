"""The one catalogue of names: every series, label, bucket list and default threshold of tidegauge.

Exporter, rules, dashboards, report and the metric reference read their names from here; jsonnet reads the same
data from `mixin/catalogue.json`, which `make generate` writes. vLLM's own names live in `tidegauge.vllm`.
"""

from tidegauge.catalogue.exported import EXPORTED
from tidegauge.catalogue.labels import LABELS
from tidegauge.catalogue.recorded import RECORDED
from tidegauge.catalogue.series import Recorded, Series
from tidegauge.catalogue.thresholds import THRESHOLDS, Threshold

__all__ = ["EXPORTED", "LABELS", "RECORDED", "THRESHOLDS", "Recorded", "Series", "Threshold"]
