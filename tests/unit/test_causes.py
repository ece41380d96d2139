"""Why requests wait: each waiting-second is booked to one cause, and only where somebody looked."""

import pytest

from tests.builders import key
from tidegauge import vllm
from tidegauge.catalogue import labels as lb
from tidegauge.derive.causes import LONGEST_STEP, Pressure, waiting_seconds
from tidegauge.model import Page


def gauges(*, running=0.0, waiting=0.0, deferred=None, kv=0.0, preempted=0.0, engine="0", model="m"):
    """What one engine's page says of its queue."""
    values = {
        key(vllm.RUNNING, model, engine): running,
        key(vllm.WAITING, model, engine): waiting,
        key(vllm.KV_USAGE, model, engine): kv,
        key(vllm.PREEMPTIONS, model, engine): preempted,
    }
    if deferred is not None:
        values[key(vllm.WAITING_BY_REASON, model, engine, "capacity")] = waiting - deferred
        values[key(vllm.WAITING_BY_REASON, model, engine, vllm.DEFERRED)] = deferred
    return Page(values, {})


def engines(*pages):
    return Page({name: value for page in pages for name, value in page.values.items()}, {})


def booked(before, page, seconds=1.0, slots=None, **more):
    return waiting_seconds(before, page, seconds, Pressure(slots, **more))


class TestEachCause:
    """The rows of the table, each where the evidence of the later ones is there too."""

    @pytest.mark.parametrize(
        ("page", "slots", "cause"),
        [
            ({"deferred": 6.0, "kv": 0.95, "running": 16.0, "preempted": 4.0}, 16.0, "deferred"),
            ({"kv": 0.95, "running": 16.0}, 16.0, "kv_cache"),
            ({"kv": 0.9, "running": 3.0}, 16.0, "kv_cache"),
            ({"kv": 0.22, "running": 16.0, "preempted": 4.0}, 16.0, "kv_cache"),
            ({"kv": 0.95, "running": 16.0}, None, "kv_cache"),
            ({"kv": 0.899, "running": 16.0, "preempted": 3.0}, 16.0, "sequence_slots"),
            ({"kv": 0.22, "running": 17.0, "preempted": 3.0}, 16.0, "sequence_slots"),
            ({"kv": 0.22, "running": 15.0, "preempted": 3.0}, 16.0, "prefill_budget"),
            ({"kv": 0.22, "running": 16.0, "preempted": 3.0}, None, "unknown"),
        ],
    )
    def test_first_evidence_wins(self, page, slots, cause):
        """Six requests that waited for half a second are three waiting-seconds of one cause."""
        before = gauges(preempted=page.get("preempted", 3.0) - (page.get("preempted") == 4.0))
        found = booked(before, gauges(waiting=6.0, **{"preempted": 3.0} | page), 0.5, slots)

        assert {cause: 3.0} == found
        assert cause in lb.CAUSES

    def test_the_case(self):
        """KV at 22 %, 160 slots of which few run: they wait for the token budget of a step."""
        page = gauges(running=14.0, waiting=2.0, deferred=0.0, kv=0.22)

        assert {"prefill_budget": 2.0} == booked(gauges(), page, slots=160.0)

    def test_reason_capacity_alone_tells_nothing(self):
        """vLLM says capacity of slots, KV cache and token budget alike."""
        assert {"unknown": 5.0} == booked(gauges(), gauges(running=4.0, waiting=5.0, deferred=0.0))

    def test_kv_threshold_is_configurable(self):
        """0.6 is full for somebody."""
        page = gauges(running=4.0, waiting=5.0, kv=0.6)

        assert {"kv_cache": 5.0} == booked(gauges(), page, slots=16.0, kv_full=0.6)
        assert {"prefill_budget": 5.0} == booked(gauges(), page, slots=16.0)


class TestOnce:
    def test_deferred_part_is_taken_off_the_rest(self):
        """Seven wait, two of them deferred: 2 and 5 requests over 3 s, together no more than there are."""
        found = booked(gauges(), gauges(running=16.0, waiting=7.0, deferred=2.0), 3.0, 16.0)

        assert {"deferred": 6.0, "sequence_slots": 15.0} == found

    def test_more_deferred_than_waiting_is_all_of_them(self):
        """Two gauges of a page may be a moment apart."""
        page = gauges(waiting=3.0, deferred=0.0)
        page.values[key(vllm.WAITING_BY_REASON, extra=vllm.DEFERRED)] = 5.0

        assert {"deferred": 3.0} == booked(gauges(), page)

    def test_nobody_waits(self):
        """Full slots, full KV cache, and no queue: nothing to explain."""
        assert {} == booked(gauges(), gauges(running=16.0, kv=0.97, preempted=9.0), slots=16.0)

    def test_each_engine_has_its_own_cause(self):
        """Rank 0 is out of slots, rank 1 out of KV cache, rank 2 idle, rank 3 busy with prompts."""
        page = engines(
            gauges(engine="0", running=8.0, waiting=3.0, kv=0.3),
            gauges(engine="1", running=5.0, waiting=2.0, kv=0.93),
            gauges(engine="2", kv=0.99, preempted=7.0),
            gauges(engine="3", running=2.0, waiting=4.0, kv=0.1),
        )
        before = engines(*(gauges(engine=str(rank)) for rank in range(4)))

        assert {"sequence_slots": 6.0, "kv_cache": 4.0, "prefill_budget": 8.0} == booked(before, page, 2.0, 8.0)

    def test_preemptions_of_another_engine_are_no_evidence(self):
        """Engine 1 preempts, engine 0 waits."""
        before = engines(gauges(engine="0"), gauges(engine="1"))
        page = engines(gauges(engine="0", running=2.0, waiting=1.0), gauges(engine="1", running=9.0, preempted=5.0))

        assert {"prefill_budget": 1.0} == booked(before, page, slots=8.0)

    def test_models_of_one_engine_share_its_slots(self):
        """Adapters under two names: 5 and 3 running are 8."""
        page = engines(
            gauges(running=5.0, waiting=1.0, model="base"), gauges(running=3.0, waiting=2.0, model="adapter")
        )

        assert {"sequence_slots": 3.0} == booked(gauges(), page, slots=8.0)


class TestGaps:
    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [(1.0, 4.0), (9.5, 38.0), (LONGEST_STEP, 40.0), (600.0, 40.0), (0.0, None), (-3.0, None)],
    )
    def test_gap_is_not_filled_with_what_the_next_page_shows(self, seconds, expected):
        """Ten minutes without a poll are ten minutes that nobody saw, not forty minutes of waiting."""
        found = booked(gauges(), gauges(running=1.0, waiting=4.0), seconds)

        assert (expected or 0.0) == found.get("unknown", 0.0)

    def test_slow_polls_are_no_gap(self):
        """At a poll every 15 s each page stands for all of them."""
        found = waiting_seconds(gauges(), gauges(waiting=4.0), 15.0, Pressure(), longest=30.0)

        assert {"unknown": 60.0} == found

    def test_counter_that_a_damaged_page_lacked_has_not_risen(self):
        """It was left out, not 0."""
        before = Page({key(vllm.RUNNING): 2.0}, {})

        assert {"prefill_budget": 1.0} == booked(before, gauges(running=2.0, waiting=1.0, preempted=250.0), slots=8.0)

    def test_old_server_without_preemptions_or_kv_usage(self):
        """What is not there is no evidence."""
        page = Page({key(vllm.RUNNING): 8.0, key(vllm.WAITING): 2.0}, {})

        assert {"sequence_slots": 2.0} == booked(Page({}, {}), page, slots=8.0)
        assert {"unknown": 2.0} == booked(Page({}, {}), page)
