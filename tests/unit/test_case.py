"""The case's figures, from a page with its sums and counts to the printed report."""

import pytest

from tests.builders import exposition, spread
from tests.recordings import LOG, case_page, write


class TestTheCase:
    @pytest.fixture
    def log(self, tmp_path):
        path = tmp_path / "server.log"
        path.write_text(LOG, encoding="utf-8")
        return path

    def test_table_from_a_page_through_the_command(self, run, tmp_path):
        """528 requests; means, both shares, the gain ceiling of halving prefill, and the split."""
        code, found = run("--capture", write(tmp_path, "a", case_page()))
        stages = found["fleets"][0]["stages"]

        assert 0 == code
        assert 528 == stages["requests"]
        assert ["3.75", "2.78", "13.72", "0.22"] == [f"{value:.2f}" for value in stages["seconds"].values()]
        assert "20.47" == f"{stages['e2e_seconds']:.2f}"
        assert ["18.3", "13.6", "67.0", "1.1"] == [f"{value * 100:.1f}" for value in stages["share"].values()]
        assert ["18.5", "13.7", "67.8"] == [f"{value * 100:.1f}" for value in stages["engine_share"].values()]
        assert "6.8" == f"{stages['gain_ceiling']['prefill']['0.5'] * 100:.1f}"
        queue = found["backends"][0]["models"][0]["queue"]
        assert ("0.3", "30", "100") == (
            f"{queue['quantiles']['0.5']:.1f}",
            f"{queue['quantiles']['0.9']:.0f}",
            f"{queue['p90_p50_ratio']:.0f}",
        )
        assert queue["bimodal"]
        assert "58.3" == f"{found['backends'][0]['prefix_hit'] * 100:.1f}"

    def test_capacity_of_one_and_of_two_backends(self, run, tmp_path, log):
        """14 and 28 at the p90 prompt; 11.37 and 22.7 at the full context; from the log's 1,490,818 tokens."""
        one, two = write(tmp_path, "a", case_page()), write(tmp_path, "b", case_page(start=1001.0))
        _, single = run("--capture", one, "--log", f"a={log}")
        _, double = run("--capture", one, "--capture", two, "--log", f"a={log}", "--log", f"b={log}")
        backend, fleet, both = single["backends"][0], single["fleets"][0], double["fleets"][0]

        assert {"value": 1_490_818, "source": "log"} == backend["kv_cache_capacity_tokens"]
        assert {"value": 160, "source": "log"} == backend["max_num_seqs"]
        assert 100_000 == backend["p90_prompt_tokens"]
        assert 14 == backend["request_capacity"]["p90_prompt"] == fleet["request_capacity"]["p90_prompt"]
        assert "11.37" == f"{backend['request_capacity']['context_window']:.2f}"
        assert 28 == both["request_capacity"]["p90_prompt"]
        assert "22.7" == f"{both['request_capacity']['context_window']:.1f}"
        assert 14 == both["narrowest_request_capacity"]["p90_prompt"]

    @pytest.mark.parametrize(
        ("left", "right", "expected"), [(32.91, 20.60, None), (32.91, 12.18, "2.70"), (17.9, 17.05, "1.05")]
    )
    def test_skew(self, run, tmp_path, left, right, expected):
        """Cap 16 and cap 28; the slowest backend is named."""
        paths = [
            write(tmp_path, name, exposition({"e2e": spread(264, 264 * mean)}, start=start))
            for name, mean, start in (("fast", right, 1000.0), ("slow", left, 1001.0))
        ]
        _, found = run("--capture", paths[0], "--capture", paths[1])
        skew = found["fleets"][0]["skew"]

        assert ("slow", "fast") == (skew["highest"], skew["lowest"])
        assert (expected or "1.60") == f"{skew['ratio']:.2f}"

    def test_two_names_of_one_server_are_counted_once(self, run, tmp_path, log):
        """The fault that counted 2 machines as 4."""
        one, two = write(tmp_path, "a", case_page()), write(tmp_path, "b", case_page())
        _, found = run("--capture", one, "--capture", two, "--log", f"a={log}", "--log", f"b={log}")

        assert [None, "a"] == [backend["twin_of"] for backend in found["backends"]]
        assert (1, 14) == (found["fleets"][0]["distinct"], found["fleets"][0]["request_capacity"]["p90_prompt"])
        assert 528 == found["fleets"][0]["stages"]["requests"]
