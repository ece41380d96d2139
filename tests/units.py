"""Whether values are of the size that their unit allows, and are ones that a panel has words for."""

import math
import re


def unit_of(panel, target):
    """The unit that the values of one query are shown in."""
    config = panel["fieldConfig"]
    for field in config["overrides"]:
        wanted = {target["legendFormat"], heading(panel, target)}
        if field["matcher"]["options"] in wanted:
            for prop in field["properties"]:
                if prop["id"] == "unit":
                    return prop["value"]
    if panel["type"] == "heatmap":
        return "none"
    return config["defaults"].get("unit")


def heading(panel, target):
    """The heading of the column that one query fills."""
    names = [one["options"]["renameByName"] for one in panel.get("transformations", []) if one["id"] == "organize"]
    return names[0].get(f"Value #{target['refId']}") if names else None


def named_states(panel, target):
    """The values that a query's panel or column has words for; empty where it shows numbers."""
    mappings = list(panel["fieldConfig"]["defaults"].get("mappings", []))
    for field in panel["fieldConfig"]["overrides"]:
        if field["matcher"]["options"] == heading(panel, target):
            mappings += [one for prop in field["properties"] if prop["id"] == "mappings" for one in prop["value"]]
    ranges = [range(one["options"]["from"], one["options"]["to"] + 1) for one in mappings if one["type"] == "range"]
    return {float(key) for one in mappings if one["type"] == "value" for key in one["options"]}.union(*ranges)


def misfits(panel, target, points):
    """What is wrong with the values of a query; NaN is a gap, not a value."""
    points = [point for point in points if not math.isnan(point)]
    unit, states = unit_of(panel, target), named_states(panel, target)
    low, high = (min(points), max(points)) if points else (0, 0)
    if low < 0 and not states:
        yield f"{target['refId']}: {low} {unit}"
    if unit == "percentunit" and high > 1.001:
        yield f"{target['refId']}: {high} as a share"
    if unit == "s" and high > 86400:
        yield f"{target['refId']}: {high} s"
    if unit == "none" and len(states) > 1 and set(points) - states:
        yield f"{target['refId']}: {sorted(set(points) - states)[:5]}, words for {sorted(states)}"
    if re.match(r"count\b", target["expr"]) and any(point % 1 for point in points):
        yield f"{target['refId']}: a count that is not whole"
