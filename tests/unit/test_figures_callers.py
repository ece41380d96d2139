"""What callers report, among all figures of a moment."""

import pytest

from tests.builders import clipped, lifetime, page
from tests.fleets import backend, callers, fleet_of
from tidegauge import vllm
from tidegauge.derive.capacity import Fact
from tidegauge.derive.inference import FleetInference
from tidegauge.derive.settings import Settings


class TestCallers:
    def test_client_stage_and_split_are_the_fleets(self):
        """60 % got a slot at once, 40 % after 12 s: on vLLM's side nothing shows."""
        found = fleet_of(backend("a"), callers=callers(waits=[0.0] * 60 + [12.0] * 40))

        assert 4.8 == pytest.approx(found.client_seconds)
        assert (True, 0.1) == (found.caller_queue.bimodal, found.caller_queue.edge)
        assert 0.4 == pytest.approx(found.caller_queue.late_share)
        # The wait's share of what the caller sees: wait plus end-to-end.
        assert 4.8 / 14.8 == pytest.approx(found.caller_queue.impact)
        assert found.caller_queue.pages
        assert not found.backends[0].models[0].queue.bimodal

    def test_without_latencies_the_impact_is_unknown(self):
        """And then nothing pages."""
        found = fleet_of(callers=callers(waits=[0.0] * 60 + [12.0] * 40))

        assert None is found.caller_queue.impact
        assert not found.caller_queue.pages

    def test_edge_of_the_callers_wait_is_its_lowest_bucket(self):
        """Waits of 50 ms are none, although there are buckets below."""
        found = fleet_of(backend("a"), callers=callers(waits=[0.05] * 60 + [12.0] * 40))

        assert 0.1 == found.caller_queue.quantiles[0.5]

    @pytest.mark.parametrize(("ceiling", "waves", "state"), [(16, 2, "clips"), (28, 2, "clips"), (48, 1, "inert")])
    def test_the_case_29_calls_through_a_ceiling(self, ceiling, waves, state):
        """16, 28, 48 against a roster of 32: 2, 2 and 1 waves; and 1 through two servers of 160 slots."""
        states = [backend(name, seqs=160.0, start=at) for at, name in ((1.0, "a"), (2.0, "b"))]
        settings = Settings(rosters={"m": 32})
        found = fleet_of(*states, callers=callers(fan_outs=[29] * 5, ceiling=ceiling), settings=settings)
        (barriers,) = found.barriers

        assert ({"client": waves, "server": 1}) == {kind: order.median for kind, order in barriers.waves.items()}
        assert {"client": state, "server": "inert"} == found.states
        assert [("client", ceiling, "reported"), ("server", 320.0, "config")] == [
            (one.kind, one.value, one.source) for one in found.ceilings
        ]
        assert (32.0, "config") == found.natural_bound

    def test_order_statistics_of_barriers_are_exact(self):
        """Median 29 and largest 32 print as 29 and 32; durations likewise."""
        found = fleet_of(backend("a"), callers=callers(fan_outs=[12, 29, 29, 29, 32]))
        (barriers,) = found.barriers

        assert ("reported", 5, 5) == (barriers.source, barriers.total, barriers.count)
        assert (29, 32, 32) == (barriers.fan_out.median, barriers.fan_out.p90, barriers.fan_out.max)
        assert 0.5 == barriers.duration.median
        assert (32.0, "reported") == found.natural_bound

    def test_ceiling_without_a_barrier_is_unmeasured(self):
        """A configured roster alone measures nothing."""
        found = fleet_of(backend("a"), callers=callers(ceiling=16), settings=Settings(rosters={"m": 32}))

        assert {"client": "unmeasured"} == found.states

    @pytest.mark.parametrize(
        ("fan_out", "state", "bound"), [(32, "clips", (32.0, "reported")), (27, "inert", (28.0, "config"))]
    )
    def test_roster_that_a_barrier_exceeds_is_no_bound(self, fan_out, state, bound):
        """A ceiling of 30 over a typed roster of 28 binds all the same where 32 came."""
        told = callers(fan_outs=[fan_out], ceiling=30)
        found = fleet_of(backend("a"), callers=told, settings=Settings(rosters={"m": 28}))

        assert ({"client": state}, bound) == (found.states, found.natural_bound)

    def test_ceiling_of_the_servers_is_that_of_distinct_backends(self):
        """Two machines counted as three: 16 + 100 slots, not 132."""
        states = [backend("a", seqs=16.0), backend("again", seqs=16.0), backend("b", seqs=100.0, start=2.0)]
        found = fleet_of(*states, callers=callers(fan_outs=[29, 120]))

        assert [("server", 116.0)] == [(one.kind, one.value) for one in found.ceilings]
        assert ((1.5, 2), 0.5) == (
            (found.barriers[0].waves["server"].median, found.barriers[0].waves["server"].max),
            found.barriers[0].clipped["server"],
        )

    def test_slots_of_a_backend_that_is_down_are_no_ceiling(self):
        """The server side is what is healthy; unknown slots make it unknown."""
        down = backend("b", seqs=100.0, start=2.0)
        down.failed("refused", 0.1)
        found = fleet_of(backend("a", seqs=16.0, start=1.0), down, callers=callers(fan_outs=[29]))

        assert [("server", 16.0)] == [(one.kind, one.value) for one in found.ceilings]
        unknown = fleet_of(backend("a", seqs=16.0, start=1.0), backend("b", start=2.0))
        assert () == unknown.ceilings

    def test_observed_slots_are_no_ceiling(self):
        """Ten ran while others waited: a lower bound, which would clip what the server takes."""
        values = {vllm.RUNNING: 10.0, vllm.WAITING: 4.0, vllm.KV_USAGE: 0.2}
        found = fleet_of(lifetime("a", *[page({}, values=values)] * 3), callers=callers(fan_outs=[29]))

        assert Fact(10.0, "observed") == found.backends[0].facts.max_num_seqs
        assert ((), {}) == (found.ceilings, found.states)

    @pytest.mark.parametrize(
        ("told", "configured", "plateau", "expected"),
        [
            (16, 24, 8, ("reported", 16.0)),
            (None, 24, 8, ("config", 24.0)),
            (None, None, 8, ("observed", 8.0)),
            (None, None, None, None),
        ],
    )
    def test_ceiling_of_the_caller_is_from_the_surest_source(self, told, configured, plateau, expected):
        """Reported, else configured, else the plateau that barriers run into."""
        seen = FleetInference("m", 900.0, 1.0)
        for reading in clipped(barriers=6, fan_out=21, ceiling=plateau or 99):
            seen.feed(reading)
        found = fleet_of(
            backend("a"),
            callers=callers(ceiling=told),
            inferred=[seen.snapshot(2000.0)],
            settings=Settings(ceilings={"m": configured} if configured else {}),
        )

        assert ([expected] if expected else []) == [(one.source, one.value) for one in found.ceilings]
        assert {"inferred"} == {one.source for one in found.barriers}

    def test_exact_barriers_come_first(self):
        """Both sources are shown; the natural bound is the exact one's."""
        seen = FleetInference("m", 900.0, 1.0)
        for reading in clipped(barriers=6, fan_out=58, ceiling=99):
            seen.feed(reading)
        found = fleet_of(backend("a"), callers=callers(fan_outs=[29, 31]), inferred=[seen.snapshot(2000.0)])

        assert [("reported", 31), ("inferred", 58)] == [(one.source, one.fan_out.max) for one in found.barriers]
        assert (31.0, "reported") == found.natural_bound

    def test_without_callers_nothing_is_made_up(self):
        """The wait before vLLM is unmeasured, not 0."""
        found = fleet_of(backend("a"))

        assert (None, None, None, None) == (
            found.client_seconds,
            found.caller_queue,
            found.callers,
            found.natural_bound,
        )
        assert () == found.barriers
