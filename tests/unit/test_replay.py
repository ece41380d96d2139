"""Reports of captures: windows, logs, and the command."""

import gzip

import pytest

from tests.builders import exposition, page, requests
from tests.recordings import LOG, case_page, one_backend, report, write
from tidegauge import cli
from tidegauge.parsing.exposition import PageReader
from tidegauge.report import replay


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

    def test_each_capture_covers_its_own_time(self, tmp_path):
        """The window is that of all; one of a single page covers the life of its server."""
        body = exposition(requests(*[(1.0, 2.0, 3.0, 4.0)] * 5))
        paths = {name: write(tmp_path, name, *[body] * count) for name, count in (("a", 8), ("b", 4), ("c", 1))}
        found = report(paths)

        assert 7 == found["window_seconds"]
        assert [7, 3, None] == [one["covered_seconds"] for one in found["backends"]]

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

        assert 2 == cli.main(["report", "--capture", str(capture), "--log", f"a={tmp_path}/none.log"])
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
