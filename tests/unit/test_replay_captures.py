"""Reports of real captures, held against an independent sum and the client's own record."""

import json
from pathlib import Path

import pytest

from tests.recordings import expected, one_backend, report

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"


CAPTURES = sorted(RUNS.glob("*.scrapes.gz"))


TRUTH = json.loads((RUNS / "truth.json").read_text(encoding="utf-8"))


def named(path):
    run, backend = path.name.split(".")[:2]
    return run, backend


class TestRealServers:
    def test_every_run_is_here(self):
        """15 captures of eight runs: the tests below test something."""
        assert 15 == len(CAPTURES)
        assert 8 == len({named(path)[0] for path in CAPTURES})

    @pytest.mark.parametrize("path", CAPTURES, ids=lambda path: ".".join(named(path)))
    def test_stage_means_are_the_sums_over_the_counts(self, path):
        """Of every stage, over every run, restart and data-parallel engines included."""
        sums = expected(path)
        backend = one_backend(path)
        (model,) = backend["models"]

        assert {} == backend["dropped_intervals"]
        if not sums["e2e"][1]:
            assert None is model["stages"]
            return
        stages = model["stages"]
        assert sums["e2e"][1] == stages["requests"]
        assert sums["e2e"][0] / sums["e2e"][1] == pytest.approx(stages["e2e_seconds"])
        for stage in ("queue", "prefill", "decode"):
            assert sums[stage][0] / sums[stage][1] == pytest.approx(stages["seconds"][stage]), stage
        assert 1.0 == pytest.approx(sum(stages["share"].values()))

    @pytest.mark.parametrize("path", CAPTURES, ids=lambda path: ".".join(named(path)))
    def test_stages_agree_with_the_truth_of_each_request(self, path):
        """Where nothing was lost or aborted, to the millisecond of the servers' own timing of each request."""
        run, backend = named(path)
        truth = TRUTH.get(run, {}).get(backend)
        complete = truth is not None and (run, backend) not in {("run05_restart", "a"), ("run09_errors", "a")}
        if not complete:
            return  # requests were lost in the restart, aborted, or never sent
        stages = one_backend(path)["models"][0]["stages"]

        assert truth["timed"] == stages["requests"]
        for stage in ("queue", "prefill", "decode"):
            assert truth[stage] / truth["timed"] == pytest.approx(stages["seconds"][stage], abs=1e-4), stage

    def test_truth_was_compared(self):
        """Eleven of the captures have a complete truth, over 3,000 requests."""
        timed = [one["timed"] for run in TRUTH.values() for one in run.values()]

        assert len(timed) == 13
        assert sum(timed) > 3000

    @pytest.mark.parametrize(
        ("capture", "tokens"),
        [
            ("run01_barrier_nocap.a", 524_288),
            ("run01_barrier_nocap.b", 32_768),
            ("run08_tinykv.a", 6000),
            ("run08_tinykv.b", 2560),
            ("run11_dp2.a", 1_048_576),
        ],
    )
    def test_kv_capacity_is_the_labels_summed_over_engines(self, capture, tokens):
        """With data parallelism each engine tells its own, and the block count is the sum of both."""
        assert {"value": tokens, "source": "metrics"} == one_backend(RUNS / f"{capture}.scrapes.gz")[
            "kv_cache_capacity_tokens"
        ]

    def test_restart_is_counted_and_bridged(self):
        """Eleven polls found nobody; what the new process did counts from zero."""
        backend = one_backend(RUNS / "run05_restart.a.scrapes.gz")

        assert (1, True) == (backend["restarts"], backend["up"])
        assert {"connection"} == backend["failed_polls"].keys()
        assert None is backend["models"][0]["aborted_after_first_token"]

    def test_aborted_requests_are_told(self):
        """62 first tokens, 48 finished."""
        backend = one_backend(RUNS / "run09_errors.a.scrapes.gz")

        assert 14 == backend["models"][0]["aborted_after_first_token"]
        assert None is backend["models"][0]["stages"]["hidden_queue_seconds"]

    def test_preemptions_are_counted(self):
        """Tiny KV caches: 9 and 21."""
        assert [9, 21] == [one_backend(RUNS / f"run08_tinykv.{name}.scrapes.gz")["preemptions"] for name in "ab"]

    def test_client_cap_leaves_no_trace_in_the_servers_queue(self):
        """Callers waited 0.7 s at the median; vLLM saw nothing."""
        found = report({name: RUNS / f"run02_barrier_clientcap.{name}.scrapes.gz" for name in "ab"})

        queues = [one["models"][0]["queue"] for one in found["backends"]]
        assert [False, False] == [queue["bimodal"] for queue in queues]
        assert all(queue["late_ratio"] < 0.05 for queue in queues)
        assert None is found["fleets"][0]["caller_queue"]

    def test_barriers_without_a_cap_show_as_late_requests(self):
        """Half of the requests of backend a waited; eight slots, barriers of up to thirty."""
        queue = one_backend(RUNS / "run01_barrier_nocap.a.scrapes.gz")["models"][0]["queue"]

        assert 0.5 < queue["late_ratio"] < 0.55
        assert 2.0 < queue["effective_waves"] < 2.2

    def test_prefix_hits_are_shares_of_the_queried_tokens(self):
        """Nobody shares a prefix in run01, most do in run07."""
        assert one_backend(RUNS / "run01_barrier_nocap.a.scrapes.gz")["prefix_hit"] < 0.01
        assert one_backend(RUNS / "run07_prefix.a.scrapes.gz")["prefix_hit"] > 0.4
