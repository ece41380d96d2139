"""Take out of grafanalib's JSON what a current Grafana does not read."""

from collections.abc import Iterable
from typing import Any, Final

from dashboards.fields import Json

_DEAD_ON_BOARD: Final = ("rows", "style", "sharedCrosshair", "hideControls", "gnetId", "__inputs")
_DEAD_ON_PANEL: Final = ("cacheTimeout", "editable", "error", "height", "minSpan", "span", "hideTimeOverride")
_DEAD_ON_VARIABLE: Final = ("useTags", "tagsQuery", "tagValuesQuery", "auto", "auto_min", "auto_count")
_KEPT_ON_ROW: Final = ("collapsed", "gridPos", "id", "panels", "title", "type")


def clean(board: Json) -> Json:
    """Take out what a current Grafana does not read, and nulls: all but a threshold's base value."""
    out = _without(board, _DEAD_ON_BOARD)
    out["timepicker"] = {}
    out["panels"] = [_panel(panel) for panel in out["panels"]]
    variables = [_without(variable, _DEAD_ON_VARIABLE) for variable in out["templating"]["list"]]
    out["templating"] = {"list": variables}
    pruned: Json = _without_nulls(out)
    return {**pruned, "id": None}


def _panel(panel: Json) -> Json:
    """A panel, or a row with the panels that are folded into it."""
    if panel["type"] != "row":
        return _without(panel, _DEAD_ON_PANEL)
    row = {key: panel[key] for key in _KEPT_ON_ROW}
    return {**row, "panels": [_panel(one) for one in panel["panels"]]}


def _without(value: Json, keys: Iterable[str]) -> Json:
    return {key: item for key, item in value.items() if key not in keys}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None or key == "value"}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
