"""The wire format of callers: what is read, and which field a refusal names."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegauge.parsing.events import (
    BadEvent,
    BarrierClosed,
    BarrierOpened,
    Batch,
    Ceiling,
    Healthy,
    Wait,
    read_events,
)

NOW = 1_800_000_000.0
OPENED = {"type": "barrier_opened", "id": "b-1", "at": NOW, "fan_out": 29}


def body(*events, **top):
    return json.dumps({"caller": "sim-1", "fleet": "agents", "events": list(events)} | top).encode()


def refusal(data):
    with pytest.raises(BadEvent) as caught:
        read_events(data, NOW)
    return str(caught.value)


class TestRead:
    def test_every_kind(self):
        """Each kind of event becomes its value, in the order sent."""
        batch = read_events(
            body(
                OPENED,
                {"type": "ceiling", "at": NOW - 1, "value": 16},
                {"type": "healthy", "at": NOW - 2, "value": 2},
                {"type": "wait", "at": NOW - 3, "seconds": 0.7},
                {"type": "wait", "at": NOW - 4, "seconds": [0, 1.5, 86400]},
                {"type": "barrier_closed", "id": "b-1", "at": NOW + 5},
            ),
            NOW,
        )

        assert (
            Batch(
                "sim-1",
                "agents",
                (
                    BarrierOpened(NOW, "b-1", 29),
                    Ceiling(NOW - 1, 16),
                    Healthy(NOW - 2, 2),
                    Wait(NOW - 3, (0.7,)),
                    Wait(NOW - 4, (0.0, 1.5, 86400.0)),
                    BarrierClosed(NOW + 5, "b-1"),
                ),
            )
            == batch
        )

    def test_bounds_are_inclusive(self):
        """The oldest, the furthest, the largest and the longest that may be sent are taken."""
        name = "Qwen/Qwen3:8B_x.y-" + "z" * 46
        opened = OPENED | {"id": name, "fan_out": 100_000}
        batch = read_events(body(opened | {"at": NOW + 60}, opened | {"at": NOW - 3600}, caller=name, fleet=name), NOW)

        assert (64, 2) == (len(batch.fleet), len(batch.events))

    def test_instance_is_optional(self):
        """It tells processes of one name apart."""
        assert ["", "4f1c"] == [read_events(body(**more), NOW).instance for more in ({}, {"instance": "4f1c"})]

    def test_no_events(self):
        """A batch without events is a valid one."""
        assert () == read_events(body(), NOW).events

    def test_a_thousand_events(self):
        """A thousand events fit into a batch, one more does not."""
        assert 1000 == len(read_events(body(*[OPENED] * 1000), NOW).events)
        assert "events: expected a list of at most 1000 events, found 1001" == refusal(body(*[OPENED] * 1001))


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"fan_out": -4}, "fan_out: expected an integer from 1 to 100000, found -4"),
            ({"fan_out": 0}, "fan_out: expected an integer from 1 to 100000, found 0"),
            ({"fan_out": 10_000_000}, "fan_out: expected an integer from 1 to 100000, found 10000000"),
            ({"fan_out": 29.0}, "fan_out: expected an integer from 1 to 100000, found 29.0"),
            ({"fan_out": True}, "fan_out: expected an integer from 1 to 100000, found true"),
            ({"fan_out": "29"}, "fan_out: expected an integer from 1 to 100000, found '29'"),
            ({"fan_out": float("nan")}, "fan_out: expected an integer from 1 to 100000, found NaN"),
            ({"fan_out": 10**400}, "fan_out: expected an integer from 1 to 100000, found an integer beyond all bounds"),
            ({"at": float("nan")}, "at: expected unix time in seconds, found NaN"),
            ({"at": float("inf")}, "at: expected unix time in seconds, found inf"),
            ({"at": 10**400}, "at: expected unix time in seconds, found an integer beyond all bounds"),
            ({"at": None}, "at: expected unix time in seconds, found null"),
            (
                {"at": NOW + 61},
                "at: expected a time from 3600 s ago to 60 s ahead, found 1800000061.0 (61 s ahead)",
            ),
            (
                {"at": NOW - 3601},
                "at: expected a time from 3600 s ago to 60 s ahead, found 1799996399.0 (3601 s ago)",
            ),
            ({"id": "x" * 65}, f"id: expected 1 to 64 characters of A-Z a-z 0-9 . _ : / -, found '{'x' * 55}...'"),
            ({"id": "a b"}, "id: expected 1 to 64 characters of A-Z a-z 0-9 . _ : / -, found 'a b'"),
            ({"id": "\ud800\n"}, r"id: expected 1 to 64 characters of A-Z a-z 0-9 . _ : / -, found '\ud800\n'"),
            ({"id": ["b"]}, "id: expected 1 to 64 characters of A-Z a-z 0-9 . _ : / -, found a list"),
            ({"prompt": "hi"}, "prompt: unknown field; expected type, at, id, fan_out"),
            (
                {"type": "barrier"},
                "type: expected one of barrier_opened, barrier_closed, wait, ceiling, healthy, found 'barrier'",
            ),
            (
                {"type": {}},
                "type: expected one of barrier_opened, barrier_closed, wait, ceiling, healthy, found an object",
            ),
        ],
    )
    def test_field_of_an_event(self, change, message):
        """A bad field is named with the number of its event, what was expected and what was found."""
        assert f"events[1].{message}" == refusal(body(OPENED, OPENED | change))

    @pytest.mark.parametrize("field", ["at", "id", "fan_out"])
    def test_missing_field(self, field):
        """A missing field is named."""
        assert f"events[0].{field}: missing" == refusal(body({k: v for k, v in OPENED.items() if k != field}))

    @pytest.mark.parametrize(
        ("seconds", "message"),
        [
            (-0.1, ": expected seconds from 0 to 86400, found -0.1"),
            (86401, ": expected seconds from 0 to 86400, found 86401"),
            ([0.5, float("nan")], "[1]: expected seconds from 0 to 86400, found NaN"),
            ([0.5, "1"], "[1]: expected seconds from 0 to 86400, found '1'"),
            ([False], "[0]: expected seconds from 0 to 86400, found false"),
            ([], ": expected 1 to 1000 numbers, found 0"),
            ([0] * 1001, ": expected 1 to 1000 numbers, found 1001"),
        ],
    )
    def test_waits(self, seconds, message):
        """A bad wait is named, in a list with its place."""
        assert f"events[0].seconds{message}" == refusal(body({"type": "wait", "at": NOW, "seconds": seconds}))

    @pytest.mark.parametrize("kind", ["ceiling", "healthy"])
    def test_counts(self, kind):
        """A ceiling and a healthy count may be zero, not less."""
        assert 0 == read_events(body({"type": kind, "at": NOW, "value": 0}), NOW).events[0].value
        assert "events[0].value: expected an integer from 0 to 100000, found -1" == refusal(
            body({"type": kind, "at": NOW, "value": -1})
        )

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "body: expected JSON, found: Expecting value at character 0"),
            (b"[]", "body: expected an object, found a list"),
            (b"\xff", "body: expected UTF-8, found an invalid byte at 0"),
            (b"[" * 100_000, "body: expected JSON, found nesting or a number beyond all bounds"),
            (b"1" * 10_000, "body: expected JSON, found nesting or a number beyond all bounds"),
            (b'{"caller": "a", "caller": "b"}', "body: expected each key once, found 'caller' twice"),
            (b'{"caller": "a", "fleet": "b"}', "events: missing"),
            (body(fleet=""), "fleet: expected 1 to 64 characters of A-Z a-z 0-9 . _ : / -, found ''"),
            (body(caller=7), "caller: expected 1 to 64 characters of A-Z a-z 0-9 . _ : / -, found 7"),
            (body(events={}), "events: expected a list of at most 1000 events, found an object"),
            (body(7), "events[0]: expected an object, found 7"),
            (body(instance=""), "instance: expected 1 to 64 characters of A-Z a-z 0-9 . _ : / -, found ''"),
            (
                body(*[{"type": "wait", "at": NOW, "seconds": [0] * 1000}] * 11),
                "events[10].seconds: expected at most 10000 waits in a batch",
            ),
            (body(labels={}), "labels: unknown field; expected caller, fleet, events, instance"),
        ],
    )
    def test_body(self, data, message):
        """A body that is no batch is refused with the reason."""
        assert message == refusal(data)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=80), inner, max_size=4),
    max_leaves=8,
)
KINDS = st.sampled_from(["barrier_opened", "barrier_closed", "wait", "ceiling", "healthy"])
EVENT = st.fixed_dictionaries(
    {"type": KINDS | ANY_JSON},
    optional={
        "at": st.floats(NOW - 4000, NOW + 100) | ANY_JSON,
        "id": st.text(alphabet="ab/ ", max_size=4) | ANY_JSON,
        "fan_out": st.integers(-2, 40) | ANY_JSON,
        "value": st.integers(-2, 40) | ANY_JSON,
        "seconds": st.floats(-1, 10) | st.lists(st.floats(-1, 10), max_size=3) | ANY_JSON,
    },
)


class TestProperties:
    def outcome(self, data):
        try:
            return read_events(data, NOW)
        except BadEvent as error:
            return str(error)

    @settings(deadline=None)
    @given(st.binary(max_size=200))
    def test_any_bytes(self, data):
        """Whatever the body, the outcome is a batch or a BadEvent."""
        assert isinstance(self.outcome(data), Batch | str)

    @settings(deadline=None)
    @given(ANY_JSON | st.lists(EVENT, max_size=3).map(lambda e: {"caller": "a", "fleet": "b", "events": e}))
    def test_any_json(self, value):
        """A refusal of JSON is short, printable, and begins with a field."""
        outcome = self.outcome(json.dumps(value).encode())

        if isinstance(outcome, str):
            assert re.match(r"[^ ]*[^:]*: (expected|missing|unknown)", outcome)
            assert outcome.isprintable()
            assert len(outcome) < 300

    @settings(deadline=None)
    @given(st.lists(EVENT, min_size=1, max_size=3))
    def test_what_is_taken_is_within_bounds(self, events):
        """Nothing outside the documented bounds gets through."""
        outcome = self.outcome(body(*events))

        for event in outcome.events if isinstance(outcome, Batch) else ():
            assert NOW - 3600 <= event.at <= NOW + 60
            if isinstance(event, BarrierOpened):
                assert 1 <= event.fan_out <= 100_000
            if isinstance(event, Wait):
                assert all(0 <= wait <= 86400 for wait in event.seconds)
