"""Where the time of finished requests went."""

import pytest

from tests.builders import histogram, requests, spread, totals
from tidegauge import vllm
from tidegauge.catalogue.labels import SERVER_STAGES
from tidegauge.derive.stages import Stages, combine, decompose, mean

# The case's window: 528 requests, means of 3.75, 2.78, 13.72 and 20.47 s.
CASE = {"queue": 3.75, "prefill": 2.78, "decode": 13.72, "e2e": 20.47}


def case(count=528, **other):
    means = CASE | other
    return decompose(totals({stage: spread(count, value * count) for stage, value in means.items()}), "m")


class TestTheCase:
    @pytest.mark.parametrize(
        ("stage", "seconds", "share", "engine_share"),
        [
            ("queue", "3.75", "18.3", "18.5"),
            ("prefill", "2.78", "13.6", "13.7"),
            ("decode", "13.72", "67.0", "67.8"),
            ("other", "0.22", "1.1", None),
        ],
    )
    def test_table_prints_as_published(self, stage, seconds, share, engine_share):
        """Mean, share of end-to-end and share of the three engine stages."""
        found = case()

        assert seconds == f"{found.seconds[stage]:.2f}"
        assert share == f"{found.share(stage) * 100:.1f}"
        shown = found.engine_share(stage)
        assert engine_share == (f"{shown * 100:.1f}" if shown is not None else None)
        assert (528, "20.47") == (found.requests, f"{found.e2e:.2f}")

    def test_gain_ceiling_of_halving_prefill(self):
        """6.8 % of end-to-end; 6.9 % by the share of the three."""
        found = case()

        assert "6.8" == f"{found.gain_ceiling('prefill', 0.5) * 100:.1f}"
        assert "6.9" == f"{found.engine_share('prefill') * 0.5 * 100:.1f}"
        assert found.share("prefill") == found.gain_ceiling("prefill", 1.0)

    def test_server_stages_add_up_to_one(self):
        """No time is left unaccounted for."""
        assert 1.0 == pytest.approx(sum(case().share(stage) for stage in SERVER_STAGES))


class TestDecompose:
    def test_mean_is_sum_over_count_and_does_not_grow_with_load(self):
        """Twice the requests, the same means."""
        assert case(528).seconds == pytest.approx(case(1056).seconds)

    def test_other_is_never_below_zero(self):
        """Two clocks may disagree by a little."""
        found = case(e2e=20.2)

        assert 0.0 == found.seconds["other"]

    def test_nothing_finished_is_none(self):
        """An idle window has no latency."""
        assert None is decompose(totals({}), "m")
        assert None is decompose(totals({"e2e": histogram([])}), "m")

    def test_models_are_kept_apart(self):
        """Another model's requests do not count."""
        assert None is decompose(totals(requests((1.0, 1.0, 1.0, 0.0)), model="n"), "m")

    def test_version_without_a_stage_lacks_it_and_other(self):
        """What is not exported is absent, never 0."""
        found = decompose(totals({"e2e": spread(4, 8.0), "decode": spread(4, 6.0)}), "m")

        assert {"decode": 1.5} == found.seconds
        assert (None, 0.75, None) == (found.share("queue"), found.share("decode"), found.engine_share("decode"))

    def test_version_without_end_to_end_has_means_and_engine_shares_only(self):
        """The request count comes from a stage."""
        found = decompose(totals({"queue": spread(4, 2.0), "prefill": spread(4, 2.0), "decode": spread(4, 4.0)}), "m")

        assert (4.0, None, None) == (found.requests, found.e2e, found.share("queue"))
        assert 0.25 == found.engine_share("queue")

    def test_histogram_without_a_sum_has_no_mean(self):
        """Buckets alone say nothing exact."""
        one = histogram([1.0, 2.0])
        broken = type(one)(one.edges, one.cumulative, None, one.count)

        assert None is mean(totals({"e2e": broken}), vllm.E2E, "m")


class TestHiddenQueue:
    def test_wait_before_the_queue_stamp_is_estimated(self):
        """Mean TTFT - queue - prefill, here 0.4 s."""
        latencies = requests((3.0, 2.0, 5.0, 0.5), (1.0, 2.0, 5.0, 0.5)) | {vllm.TTFT: spread(2, 2 * 4.4)}

        assert 0.4 == pytest.approx(decompose(totals(latencies), "m").hidden_queue)

    @pytest.mark.parametrize("count", [1, 3])
    def test_aborts_make_the_estimate_meaningless(self, count):
        """TTFT counts requests that the other histograms never see."""
        latencies = requests((3.0, 2.0, 5.0, 0.5), (1.0, 2.0, 5.0, 0.5)) | {vllm.TTFT: spread(count, 5.0 * count)}

        assert None is decompose(totals(latencies), "m").hidden_queue


class TestCombine:
    def test_backends_are_weighted_by_their_requests(self):
        """300 requests of 10 s and 100 of 30 s: 15 s, not 20."""
        parts = [
            Stages(300.0, 10.0, {"queue": 1.0, "prefill": 2.0, "decode": 6.0, "other": 1.0}),
            Stages(100.0, 30.0, {"queue": 9.0, "prefill": 4.0, "decode": 14.0, "other": 3.0}),
        ]
        found = combine(parts)

        assert (400.0, 15.0) == (found.requests, found.e2e)
        assert {"queue": 3.0, "prefill": 2.5, "decode": 8.0, "other": 1.5} == found.seconds

    def test_stage_that_one_backend_lacks_is_left_out(self):
        """A mean over half of the fleet would pass for the fleet's."""
        found = combine([Stages(3.0, 5.0, {"queue": 1.0, "decode": 2.0}), Stages(1.0, 9.0, {"decode": 6.0})])

        assert {"decode": 3.0} == found.seconds
        assert 6.0 == found.e2e

    def test_end_to_end_that_one_backend_lacks_is_unknown(self):
        """Likewise."""
        assert None is combine([Stages(3.0, 5.0, {"decode": 2.0}), Stages(1.0, None, {"decode": 6.0})]).e2e

    def test_backends_without_requests_do_not_count(self):
        """None if there is nothing else."""
        idle = Stages(0.0, None, {})

        assert 5.0 == combine([idle, Stages(3.0, 5.0, {})]).e2e
        assert None is combine([idle])
