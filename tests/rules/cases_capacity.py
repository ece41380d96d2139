"""Capacity, ceilings and causes of waiting: what the exporter says, once per subject."""

from tests.rules.promtool import Group, Series, Value, labels
from tests.rules.servers import exporter
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec
from tidegauge.catalogue.series import Series as Exported

TWO = ("10.0.0.8:10011", "10.0.0.9:10011")


def told(one: Exported, value: float, other: float | None = None, **names: str) -> list[Series]:
    """What two exporters say of one subject."""
    return [exporter(one, f"{v:g}x20", at, **names) for at, v in zip(TWO, (value, other or value), strict=True)]


FACTS = Group(
    "capacity, ceilings and verdict of each fleet, one row however many exporters there are",
    [
        *told(ex.REQUEST_CAPACITY, 14, backend="a:8000", basis="p90_prompt"),
        *told(ex.REQUEST_CAPACITY, 11.37, backend="a:8000", basis="context_window"),
        *told(ex.REQUEST_CAPACITY, 9, backend="b:8000", basis="p90_prompt"),
        *told(ex.FLEET_REQUEST_CAPACITY, 23, 14, fleet="world", basis="p90_prompt"),
        *told(ex.NARROWEST_REQUEST_CAPACITY, 9, 14, fleet="world", basis="p90_prompt"),
        *told(ex.CEILING, 16, fleet="world", ceiling="client", source="reported"),
        *told(ex.CEILING, 320, fleet="world", ceiling="server", source="config"),
        *told(ex.CEILING, 48, fleet="fused", ceiling="client", source="config"),
        *told(ex.NATURAL_BOUND, 32, fleet="world", source="config"),
        *told(ex.NATURAL_BOUND, 32, fleet="fused", source="observed"),
        *told(ex.BARRIER_CLIPPED, 0.9, 0.8, fleet="world", ceiling="client", source="reported"),
        *told(ex.BARRIER_CLIPPED, 0.7, fleet="world", ceiling="client", source="inferred"),
        *told(ex.BARRIER_CLIPPED, 0, fleet="fused", ceiling="client", source="reported"),
        exporter(ex.CEILING_STATE, "1x20", fleet="world", ceiling="client", state="clips"),
        exporter(ex.CEILING_STATE, "0x20", fleet="world", ceiling="client", state="inert"),
        exporter(ex.CEILING_STATE, "0x20", fleet="world", ceiling="client", state="unmeasured"),
        exporter(ex.CEILING_STATE, "1x20", fleet="fused", ceiling="client", state="inert"),
    ],
    [
        Value(rec.REQUEST_CAPACITY, 8, {
            labels(backend="a:8000", basis="p90_prompt"): 14,
            labels(backend="a:8000", basis="context_window"): 11.37,
            labels(backend="b:8000", basis="p90_prompt"): 9,
        }),
        Value(rec.FLEET_CAPACITY, 8, {labels(fleet="world", basis="p90_prompt"): 23}),
        Value(rec.NARROWEST_CAPACITY, 8, {labels(fleet="world", basis="p90_prompt"): 9}),
        Value(rec.CEILING, 8, {
            labels(fleet="world", ceiling="client"): 16,
            labels(fleet="world", ceiling="server"): 320,
            labels(fleet="fused", ceiling="client"): 48,
        }),
        Value(rec.NATURAL_BOUND, 8, {labels(fleet="world"): 32, labels(fleet="fused"): 32}),
        Value(rec.CEILING_MARGIN, 8, {
            labels(fleet="world", ceiling="client"): 0.5,
            labels(fleet="world", ceiling="server"): 10,
            labels(fleet="fused", ceiling="client"): 1.5,
        }),
        Value(rec.CLIPPED, 8, {
            labels(fleet="world", ceiling="client"): 0.9,
            labels(fleet="fused", ceiling="client"): 0,
        }),
        Value(rec.CEILING_VERDICT, 8, {
            labels(fleet="world", ceiling="client", state="clips"): 1,
            labels(fleet="world", ceiling="client", state="inert"): 0,
            labels(fleet="world", ceiling="client", state="unmeasured"): 0,
            labels(fleet="fused", ceiling="client", state="inert"): 1,
        }),
    ],
)  # fmt: skip

CAUSES = Group(
    "seconds waited per second, by cause",
    [
        exporter(ex.WAITING_SECONDS, "0+60x20", backend="a:8000", cause="prefill_budget"),
        exporter(ex.WAITING_SECONDS, "0+57x20", TWO[0], backend="a:8000", cause="prefill_budget"),
        exporter(ex.WAITING_SECONDS, "0+3x20", backend="a:8000", cause="kv_cache"),
        exporter(ex.WAITING_SECONDS, "0x20", backend="b:8000", cause="sequence_slots"),
        exporter(ex.WAITING_SECONDS, "0+240x20", fleet="world", cause="caller"),
        exporter(ex.WAITING_SECONDS, "0+30x20", fleet="chat", cause="caller"),
    ],
    [
        Value(rec.FLEET_WAITING_CAUSE, 8, {
            labels(fleet="world", cause="caller"): 8,
            labels(fleet="chat", cause="caller"): 1,
        }),
        Value(rec.WAITING_CAUSE, 8, {
            labels(backend="a:8000", cause="prefill_budget"): 2,
            labels(backend="a:8000", cause="kv_cache"): 0.1,
            labels(backend="b:8000", cause="sequence_slots"): 0,
        }),
    ],
)  # fmt: skip

GROUPS = [FACTS, CAUSES]
