"""Reports of captures: of real servers, held against an independent sum, and of the case, end to end."""

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.builders import LENGTH_EDGES, exposition, histogram, page, requests, spread
from tests.golden import reference
from tidegauge import cli, vllm
from tidegauge.derive.settings import Settings
from tidegauge.parsing.exposition import PageReader
from tidegauge.report import replay
from tidegauge.report.document import document
from tidegauge.sources import captures

RUNS = Path(__file__).parent.parent / "fixtures" / "runs"
CAPTURES = sorted(RUNS.glob("*.scrapes.gz"))
TRUTH = json.loads((RUNS / "truth.json").read_text(encoding="utf-8"))
FAMILIES = {"e2e": vllm.E2E, "queue": vllm.QUEUE, "prefill": vllm.PREFILL, "decode": vllm.DECODE}


def named(path):
    run, backend = path.name.split(".")[:2]
    return run, backend


def report(paths, settings=None, **logs):
    loaded = replay.load(paths, logs, {}, "captures")
    return document(replay.replay(loaded, settings or Settings()))


def one_backend(path, **more):
    return report({"a": path}, **more)["backends"][0]


def pages(path):
    """By page: the process start, and sum and count per family over the engines, read by prometheus_client."""
    for taken in captures.read(path):
        if taken.body is None:
            continue
        found = reference.figures(taken.body)
        starts = [line.split()[1] for line in taken.body.splitlines() if line.startswith(vllm.PROCESS_START)]
        totals = dict.fromkeys(FAMILIES, (0.0, 0.0))
        for stage, family in FAMILIES.items():
            parts = [
                [value for (key, part), value in found.items() if key.family == family and part == name]
                for name in ("sum", "count")
            ]
            totals[stage] = tuple(sum(part) for part in parts)
        yield starts, totals  # data parallelism: several processes, no start


def expected(path):
    """Sum and count by stage over the whole capture: differences within a process, all of a later one."""
    everything = list(pages(path))
    rises = dict.fromkeys(FAMILIES, (0.0, 0.0))
    for (old, before), (new, after) in pairwise(everything):
        for stage in FAMILIES:
            base = before[stage] if old == new else (0.0, 0.0)
            rises[stage] = tuple(rises[stage][part] + after[stage][part] - base[part] for part in (0, 1))
    return rises


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


LOG = """\
INFO 11-29 23:50:01 [utils.py:253] non-default args: {'model': '/models/agent', 'max_num_seqs': 160}
INFO 11-29 23:50:02 [core.py:58] Initializing a V1 LLM engine (v0.12.0) with config: model='/models/agent', \
max_seq_len=131072, tensor_parallel_size=1
(EngineCore_DP0 pid=71) INFO 11-29 23:50:05 [kv_cache_utils.py:1229] GPU KV cache size: 1,490,818 tokens
(EngineCore_DP0 pid=71) INFO 11-29 23:50:05 [kv_cache_utils.py:1234] Maximum concurrency for 131,072 tokens per \
request: 11.37x
INFO 11-29 23:50:09 [api_server.py:1100] Application startup complete.
"""


def case_page(count=528, e2e=20.47, start=1000.0):
    """A page with the case's sums and counts; p90 of the prompts is 100,000 tokens."""
    late = round(count * 53 / 528)
    waits = [0.05] * (count - late - 11) + [25.0] * 11 + [32.0] * late
    queue = histogram(waits)
    queue = type(queue)(queue.edges, queue.cumulative, 3.75 * count, queue.count)
    latencies = {
        "queue": queue,
        "prefill": spread(count, 2.78 * count),
        "decode": spread(count, 13.72 * count),
        "e2e": spread(count, e2e * count),
        # A tenth lies beyond the last finite edge, 100,000: that edge is what the quantile gives.
        vllm.PROMPT_LENGTH: histogram([90_000.0] * (count - 53) + [120_000.0] * 53, LENGTH_EDGES),
    }
    values = {vllm.RUNNING: 0.0, vllm.WAITING: 0.0, vllm.PREFIX_QUERIES: 1000.0, vllm.PREFIX_HITS: 583.0}
    return exposition(latencies, values=values, start=start)


def write(folder, name, *bodies):
    """A plain capture of the bodies, one second apart."""
    path = folder / f"{name}.scrapes"
    path.write_text(
        "".join(f"# SCRAPE ts={1000 + at} dur_ms=2.0 status=200\n{body}" for at, body in enumerate(bodies)),
        encoding="utf-8",
    )
    return path


@pytest.fixture
def run(capsys):
    """Run the command and return its exit code and its JSON."""

    def command(*arguments):
        code = cli.main(["report", *map(str, arguments), "--json"])
        return code, json.loads(capsys.readouterr().out)

    return command


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


class TestWindows:
    def test_one_page_is_the_life_of_the_server(self, tmp_path):
        """A page as saved by hand."""
        path = tmp_path / "saved.prom"
        path.write_text(exposition(requests((1.0, 2.0, 3.0, 0.5), (3.0, 2.0, 3.0, 0.5))), encoding="utf-8")
        found = report({"a": path})

        assert 0 == found["window_seconds"]
        assert 2.0 == found["backends"][0]["models"][0]["stages"]["seconds"]["queue"]

    def test_several_pages_are_the_time_between_them(self, tmp_path):
        """What was before the first page does not count."""
        before, after = requests(*[(9.0, 9.0, 9.0, 9.0)] * 30), requests(*[(9.0, 9.0, 9.0, 9.0)] * 30, (1, 2, 3, 4))
        path = write(tmp_path, "a", exposition(before, start=10.0), exposition(after, start=10.0))
        found = report({"a": path})

        assert 1 == found["window_seconds"]
        assert (1, 10.0) == tuple(
            found["backends"][0]["models"][0]["stages"][key] for key in ("requests", "e2e_seconds")
        )

    def test_server_that_began_during_the_capture_counts_from_zero(self, tmp_path):
        """The first polls found nobody; then everything it did lies within the capture."""
        body = exposition(requests(*[(1.0, 2.0, 3.0, 4.0)] * 5), start=1010.0)
        path = tmp_path / "a.scrapes"
        path.write_text(
            '# SCRAPE ts=1000 dur_ms=1 status=ERR reason=refused error="nobody"\n'
            f"# SCRAPE ts=1060 dur_ms=1 status=200\n{body}# SCRAPE ts=1061 dur_ms=1 status=200\n{body}",
            encoding="utf-8",
        )
        backend = one_backend(path)

        assert 5 == backend["models"][0]["stages"]["requests"]
        assert {"refused": 1} == backend["failed_polls"]

    def test_captures_are_read_as_they_are_replayed(self, tmp_path):
        """An hour of pages is not held in memory, and a capture with a restart in it can be read again."""
        path = write(tmp_path, "a", *[exposition(requests())] * 3)
        (loaded,) = replay.load({"a": path}, {}, {}, "captures")
        polls = iter(loaded.polls)

        assert iter(polls) is polls
        assert [3, 3] == [len(list(polls)), len(list(loaded.polls))]

    def test_server_that_died_at_the_end_still_has_a_report(self, run, tmp_path):
        """The last poll failed: exit 0, as there is something to report."""
        body = exposition(requests(*[(1.0, 2.0, 3.0, 4.0)] * 5))
        path = write(tmp_path, "a", exposition(requests()), body)
        with path.open("a", encoding="utf-8") as stream:
            stream.write('# SCRAPE ts=1005 dur_ms=1 status=ERR reason=timeout error="late"\n')
        code, found = run("--capture", path)

        assert (0, False) == (code, found["backends"][0]["up"])
        assert 5 == found["backends"][0]["models"][0]["stages"]["requests"]

    def test_poll_that_gave_something_else_is_counted(self, tmp_path):
        """An HTML page in between."""
        path = write(tmp_path, "a", exposition(requests()), "<html></html>\n", exposition(requests((1, 2, 3, 4))))
        backend = one_backend(path)

        assert {"not_metrics": 1} == backend["failed_polls"]
        assert 1 == backend["models"][0]["stages"]["requests"]


class TestLogs:
    LATER = (
        LOG.replace("1,490,818", "745,409")
        .replace("'max_num_seqs': 160", "'max_num_seqs': 80")
        .replace("11.37x", "5.69x")
    )

    def test_facts_are_those_of_the_process_at_the_end(self, tmp_path):
        """The capture has a restart in it, the log both starts: the second holds."""
        path = tmp_path / "a.log"
        path.write_text(LOG + self.LATER, encoding="utf-8")
        capture = write(tmp_path, "a", case_page(start=10.0), case_page(start=1000.5))
        backend = one_backend(capture, a=path)

        assert 1 == backend["restarts"]
        assert (745_409, 80) == (backend["kv_cache_capacity_tokens"]["value"], backend["max_num_seqs"]["value"])

    def test_long_log_is_scanned_to_the_same_facts(self, tmp_path, monkeypatch):
        """Gigabytes are not read into memory; an unfinished last line counts."""
        path = tmp_path / "a.log"
        path.write_text(LOG + "INFO 11-29 23:51:00 nothing\n" * 2000 + self.LATER.rstrip("\n"), encoding="utf-8")
        capture = write(tmp_path, "a", case_page())
        short = one_backend(capture, a=path)
        monkeypatch.setattr(replay, "_SHORT_LOG", 10)

        assert short == one_backend(capture, a=path)
        assert 745_409 == short["kv_cache_capacity_tokens"]["value"]

    def test_log_that_is_not_there_is_an_error_of_the_file(self, tmp_path, capsys):
        """One line that names it."""
        capture = write(tmp_path, "a", case_page())

        assert 1 == cli.main(["report", "--capture", str(capture), "--log", f"a={tmp_path}/none.log"])
        assert "none.log" in capsys.readouterr().err


class TestCommand:
    def test_nothing_usable_is_exit_1(self, run, tmp_path):
        """A capture in which nobody ever answered."""
        path = tmp_path / "a.scrapes"
        path.write_text('# SCRAPE ts=1000 dur_ms=1 status=ERR reason=refused error="nobody"\n', encoding="utf-8")

        assert 1 == run("--capture", path)[0]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--capture", "DIR/none.scrapes"], "none.scrapes: cannot be read"),
            (["--capture", "DIR/bad.scrapes"], "bad.scrapes:1: expected '# SCRAPE ts="),
            (["--capture", "DIR/a.x", "--capture", "DIR/a.y"], "two captures have the same name"),
            (["--capture", "DIR/a.x", "--log", "b=DIR/a.x"], "--log b="),
            (["--capture", "DIR/a.x", "--fleet", "f=b"], "no capture is named b"),
            (["--capture", "DIR/a.x", "--fleet", "f"], "expected NAME=BACKEND"),
            (["--capture", "DIR/a.x", "--for", "5"], "--for goes with --backend only"),
            (["--backend", "http://127.0.0.1:9", "--log", "a=DIR/a.x"], "--log goes with --capture only"),
            (["--exporter", "http://127.0.0.1:9", "--fleet", "f=a"], "--fleet goes with --capture or --backend only"),
        ],
    )
    def test_wrong_calls_name_what_is_wrong(self, tmp_path, capsys, arguments, message):
        """Exit 2 and one line, no traceback."""
        (tmp_path / "bad.scrapes").write_text("# SCRAPE at=5\n", encoding="utf-8")
        for name in ("a.x", "a.y"):
            (tmp_path / name).write_text(exposition(requests()), encoding="utf-8")
        code = cli.main(["report", *(argument.replace("DIR", str(tmp_path)) for argument in arguments)])
        complaint = capsys.readouterr().err

        assert 2 == code
        assert message in complaint
        assert 1 == complaint.count("\n")

    def test_backends_can_be_put_into_fleets(self, run, tmp_path):
        """Those that are not named stay together."""
        paths = [write(tmp_path, name, exposition(requests(), start=float(at))) for at, name in enumerate("abc")]
        _, found = run(*(text for path in paths for text in ("--capture", path)), "--fleet", "blue=a,c")

        assert {"blue": ["a", "c"], "captures": ["b"]} == {one["name"]: one["backends"] for one in found["fleets"]}

    def test_gzip_is_recognised_by_its_content(self, tmp_path):
        """Whatever the file is called."""
        path = tmp_path / "a.txt"
        path.write_bytes(gzip.compress(exposition(requests((1, 2, 3, 4))).encode()))

        assert 10.0 == one_backend(path)["models"][0]["stages"]["e2e_seconds"]

    def test_page_builder_and_page_text_agree(self, tmp_path):
        """The builders of these tests say the same in both shapes."""
        rows = requests((1, 2, 3, 4), (0.1, 0.2, 0.3, 0.4))
        path = tmp_path / "a.prom"
        path.write_text(exposition(rows), encoding="utf-8")
        (loaded,) = replay.load({"a": path}, {}, {}, "captures")
        body = next(iter(loaded.polls)).body

        assert page(rows).histograms == PageReader().read(body).histograms
