"""The command's doors against what does not belong there: an exit code and one line that names it, no traceback."""

import asyncio
import gzip
import json
import os
import re
import subprocess
import sys

import pytest
from aiohttp import web

from tests.builders import exposition, requests
from tests.golden.everything import everything
from tests.unit.little_servers import DEADLINE, answering, serving
from tidegauge import cli
from tidegauge.report.document import document

PAGE = exposition(requests(*[(1.0, 2.0, 3.0, 4.0)] * 3), start=1000.0)
CAPTURE = f"# SCRAPE ts=2000 status=200\n{PAGE}# SCRAPE ts=2001 status=200\n{PAGE}"
BACKENDS = 'backends: [{url: "http://127.0.0.1:8000"}]\n'


@pytest.fixture
def folder(tmp_path):
    """A folder with one good capture and everything that is none."""
    (tmp_path / "good").write_text(CAPTURE)
    (tmp_path / "empty").write_text("")
    (tmp_path / "html").write_text("<html></html>")
    (tmp_path / "picture").write_bytes(b"\x89PNG\0\0" * 100)
    (tmp_path / "nan").write_text(CAPTURE.replace("2001", "nan"))
    (tmp_path / "milliseconds").write_text(CAPTURE.replace("2001", "2001000000000"))
    (tmp_path / "duration").write_text(CAPTURE.replace("ts=2001", "ts=2001 dur_ms=inf"))
    (tmp_path / "errors").write_text('# SCRAPE ts=1 status=ERR reason=refused error="x"\n' * 3)
    (tmp_path / "cut").write_bytes(gzip.compress(CAPTURE.encode())[:90])
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def run(capsys, *argv):
    """Exit code, and what was said on standard error."""
    try:
        code = cli.main([str(one) for one in argv])
    except SystemExit as stop:
        code = stop.code
    return code, capsys.readouterr().err


class TestCaptures:
    @pytest.mark.parametrize(
        ("name", "code", "says"),
        [
            ("empty", 1, "expected pages of vLLM's metrics, found none (no poll)"),
            ("html", 1, "expected pages of vLLM's metrics, found none (not_metrics 1 times)"),
            ("picture", 1, "expected pages of vLLM's metrics, found none (not_metrics 1 times)"),
            ("errors", 1, "expected pages of vLLM's metrics, found none (refused 3 times)"),
            ("nan", 2, "expected '# SCRAPE ts=<unix seconds>"),
            ("milliseconds", 2, "expected '# SCRAPE ts=<unix seconds>"),
            ("duration", 2, "expected '# SCRAPE ts=<unix seconds>"),
            ("cut", 2, "cannot be read"),
            ("folder", 2, "expected a regular file, found a directory"),
            ("pipe", 2, "expected a regular file, found a named pipe"),
            ("missing", 2, "expected a file, found: No such file or directory"),
        ],
    )
    def test_what_is_no_capture_is_named(self, folder, capsys, name, code, says):
        """One line on standard error has the file and what was found."""
        found, said = run(capsys, "report", "--capture", folder / name)

        assert (code, 1) == (found, said.count("\n"))
        assert said.startswith(f"tidegauge: {folder / name}:")
        assert says in said

    def test_recordings_keep_the_names_of_their_servers(self, folder, capsys):
        """Two unnamed recordings of one subnet are told apart: an address has dots of its own."""
        paths = [folder / f"10.0.0.{number}_8000.scrapes.gz" for number in (1, 2)]
        for path in paths:
            path.write_bytes(gzip.compress(CAPTURE.encode()))
        code = cli.main(["report", "--json", "--capture", str(paths[0]), "--capture", str(paths[1])])
        report = json.loads(capsys.readouterr().out)

        assert 0 == code
        assert ["10.0.0.1_8000", "10.0.0.2_8000"] == [one["name"] for one in report["backends"]]

    def test_a_bad_capture_beside_a_good_one(self, folder, capsys):
        """The good one is reported, the bad one named."""
        code, said = run(capsys, "report", "--json", "--capture", folder / "html", "--capture", folder / "good")

        assert 0 == code
        assert said.startswith(f"tidegauge: {folder / 'html'}: expected pages")


class TestLogs:
    @pytest.mark.parametrize(
        ("name", "says"),
        [
            ("missing", "No such file"),
            ("folder", "found a directory"),
            ("pipe", "found a named pipe"),
            ("picture", "expected a log, found compressed or binary data"),
        ],
    )
    def test_what_is_no_log_is_named(self, folder, capsys, name, says):
        """A log that was asked for and cannot be had is not left out in silence."""
        code, said = run(capsys, "report", "--capture", f"a={folder / 'good'}", "--log", f"a={folder / name}")

        assert 2 == code
        assert said.startswith(f"tidegauge: {folder / name}: cannot be read: ")
        assert says in said


INTO = [
    ("rules", "render", "-o"),
    ("dashboards", "render", "-o"),
    ("record", "--backend", "http://127.0.0.1:1", "--for", "0", "--out"),
]
"""Commands that write into a folder, which comes last."""


class TestFiles:
    @pytest.mark.parametrize(
        "argv",
        [
            ("report", "--capture", "MISSING"),
            ("report", "--capture", "a=good", "--log", "a=MISSING"),
            ("report", "--capture", "good", "--config", "MISSING"),
            ("check", "--config", "MISSING"),
            ("serve", "--config", "MISSING"),
            ("rules", "render", "--values", "MISSING", "-o", "out"),
            ("dashboards", "push", "--grafana", "http://127.0.0.1:1", "--token-file", "MISSING"),
            ("dashboards", "push", "--grafana", "http://127.0.0.1:1", "--token-file", "token", "--ca-file", "MISSING"),
        ],
        ids=" ".join,
    )
    def test_a_missing_file_is_the_same_fault_everywhere(self, folder, capsys, monkeypatch, argv):
        """Whatever it was to be: one exit code, one form of message."""
        monkeypatch.chdir(folder)
        (folder / "token").write_text("glsa_0")

        expected = "tidegauge: MISSING: cannot be read: expected a file, found: No such file or directory\n"
        assert (2, expected) == run(capsys, *argv)

    @pytest.mark.parametrize("argv", INTO, ids=" ".join)
    @pytest.mark.parametrize("given", ["empty", "empty/below", "nowhere", "nowhere/below"])
    def test_what_can_be_no_folder_is_refused(self, folder, capsys, monkeypatch, argv, given):
        """A file, or a link that leads nowhere, at the place or above it."""
        monkeypatch.chdir(folder)
        (folder / "nowhere").symlink_to("gone")

        found = given.partition("/")[0]
        expected = f"tidegauge: {given}: expected a folder to write into, found {found}, which is none\n"
        assert (2, expected) == run(capsys, *argv, given)

    @pytest.mark.parametrize("argv", INTO, ids=" ".join)
    def test_where_none_can_be_made_is_refused_alike(self, capsys, argv):
        """Nothing is in the way there; the system makes no folder all the same, whoever asks."""
        code, said = run(capsys, *argv, "/proc/x")

        why = "(No such file or directory|Permission denied)"
        assert 2 == code
        assert re.fullmatch(f"tidegauge: /proc/x: expected a folder to write into, found: {why}\n", said)

    @pytest.mark.parametrize("argv", INTO[:2], ids=" ".join)
    def test_a_file_that_cannot_be_written_is_named(self, folder, capsys, argv):
        """With the reason in words; something else has the name of a file."""
        for name in ("rules.yaml", "capacity.json"):
            (folder / "out" / name).mkdir(parents=True)
        code, said = run(capsys, *argv, folder / "out")

        assert (1, 1) == (code, said.count("\n"))
        assert re.fullmatch(rf"tidegauge: {folder}/out/\S+: cannot be written: Is a directory\n", said)


class TestArguments:
    @pytest.mark.parametrize(
        ("more", "says"),
        [
            (("--fleet", "x="), "--fleet x=: expected NAME=BACKEND"),
            (("--fleet", "=a"), "--fleet =a: expected NAME=BACKEND"),
            (("--fleet", "x=a,"), "--fleet x=a,: expected NAME=BACKEND"),
            (("--fleet", "x=a", "--fleet", "y=a"), "--fleet y=a: expected each backend in one fleet, found a in x too"),
            (("--capture", "b="), "--capture b=: expected FILE or NAME=FILE"),
            (("--capture", "=b"), "--capture =b: expected FILE or NAME=FILE"),
            (("--for", "nan"), "expected seconds of at least 0, found 'nan'"),
            (("--for", "-5"), "expected seconds of at least 0, found '-5'"),
            (("--for", "soon"), "expected seconds of at least 0, found 'soon'"),
        ],
    )
    def test_nonsense_is_refused_by_name(self, folder, capsys, more, says):
        """Exit code 2; nothing is guessed or left out."""
        code, said = run(capsys, "report", "--capture", f"a={folder / 'good'}", *more)

        assert 2 == code
        assert says in said

    @pytest.mark.parametrize(
        ("argv", "says"),
        [
            (("report", "--backend", "http://127.0.0.1:1", "--log", "a=b"), "--log goes with --capture only"),
            (("report", "--exporter", "http://127.0.0.1:1", "--fleet", "a=b"), "--fleet goes with"),
            (
                ("report", "--exporter", "http://127.0.0.1:1", "--config", "a"),
                "--config goes with --capture or --backend",
            ),
            (("report", "--backend", "http://127.0.0.1:1", "--fleet", "a=b"), "no backend is named b (127.0.0.1:1)"),
            (("report", "--exporter", ""), "expected a URL"),
            (("report", "--exporter", "nonsense"), "expected a URL"),
            (("record", "--backend", "../x=http://127.0.0.1:1"), "expected a name that can be a file's, found '../x'"),
            (("report", "--exporter", "a=http://127.0.0.1:1"), "expected a URL"),
            (("record", "--backend", "http://127.0.0.1:1", "--interval", "0"), "expected at least 0.05 seconds"),
            (("record", "--backend", "http://127.0.0.1:1", "--for", "inf"), "expected seconds of at least 0"),
        ],
    )
    def test_what_does_not_go_together_is_refused(self, capsys, argv, says):
        """Before anything is asked or written."""
        code, said = run(capsys, *argv)

        assert 2 == code
        assert says in said


class TestConfigurations:
    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (None, "expected a regular file, found a named pipe"),
            (b"backends: \xff\n", "expected UTF-8 text, found byte 0xff at offset 10"),
            (BACKENDS.encode() + b"#" * 1024 * 1024, "expected at most 1048576 bytes, found more"),
        ],
    )
    def test_a_file_that_cannot_be_one(self, tmp_path, capsys, content, says):
        """Neither waited for nor read without end."""
        path = tmp_path / "tidegauge.yml"
        os.mkfifo(path) if content is None else path.write_bytes(content)

        assert (2, f"tidegauge: {path}: cannot be read: {says}\n") == run(capsys, "check", "--config", path)

    def test_an_endless_device(self, capsys):
        """A device that never ends is refused."""
        assert (2, "tidegauge: /dev/zero: cannot be read: expected a regular file, found a device\n") == run(
            capsys, "check", "--config", "/dev/zero"
        )


def beside(handler, question):
    """The answer to a question that blocks, asked while a server runs."""

    async def go():
        async with serving(handler) as url:
            return await asyncio.to_thread(question, url)

    return asyncio.run(go())


class TestServers:
    @pytest.mark.parametrize(
        "answer",
        [
            "<html></html>",
            "[]",
            '{"format": 7}',
            '{"format": 1}',
            '{"format": 1, "window_seconds": 3, "fleets": [{}], "backends": []}',
            '{"format": 1, "window_seconds": 3, "fleets": 7, "backends": null}',
        ],
    )
    def test_an_exporter_that_is_something_else(self, capsys, answer):
        """Another program's answer is no traceback, whatever it calls itself: no report was to be had."""
        code, said = beside(answering(answer), lambda url: run(capsys, "report", "--exporter", url))

        assert (1, 1) == (code, said.count("\n"))
        assert "expected a tidegauge's report" in said

    @pytest.mark.parametrize("key", ["thresholds", "skew"])
    def test_an_exporter_that_is_older(self, capsys, key):
        """What it does not tell is not made up: the text is refused by the key, the JSON passed on as it came."""
        report = document(everything())
        del (report if key in report else report["thresholds"])[key]
        answer = answering(json.dumps(report))
        code, said = beside(answer, lambda url: run(capsys, "report", "--exporter", url))
        passed = beside(answer, lambda url: (cli.main(["report", "--json", "--exporter", url]), capsys.readouterr()))

        assert (1, 1) == (code, said.count("\n"))
        assert f"found one without the key '{key}': is the exporter older? --json prints what it tells" in said
        assert (0, "", report) == (passed[0], passed[1].err, json.loads(passed[1].out))

    def test_a_server_that_is_down(self, capsys):
        """The report says so, and of which server, before anything else; the exit code too."""
        code = cli.main(["report", "--backend", "http://127.0.0.1:9"])
        meaning = capsys.readouterr().out.partition("what it means\n")[2]

        told = "127.0.0.1:9 is down: no page of vLLM's metrics in 1 poll; the last one failed with refused."
        assert (1, told) == (code, meaning.strip())

    def test_a_server_that_is_something_else(self, capsys, caplog):
        """The URL and what it answered are told beside the report without figures."""

        async def page(_request):
            return web.Response(text="<html><title>Login</title></html>")

        code, _ = beside(page, lambda url: run(capsys, "report", "--backend", f"{url}/x"))

        assert 1 == code
        assert ["an HTML or XML document titled 'Login'"] == [
            record.getMessage().rpartition("found ")[2] for record in caplog.records
        ]
        assert "/x: expected a page of vLLM's metrics" in caplog.records[0].getMessage()


class TestStandardOutput:
    def start(self, folder, **streams):
        command = [sys.executable, "-m", "tidegauge.cli", "report", "--json", "--capture", str(folder / "good")]
        path = os.pathsep.join(one for one in sys.path if one)
        return subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": path}, **streams
        )

    def test_a_reader_that_has_enough(self, folder):
        """`| head` ends the command as it ends others: quietly, as if by SIGPIPE."""
        reading, writing = os.pipe()
        os.close(reading)
        process = self.start(folder, stdout=writing)
        os.close(writing)

        assert ("", 141) == (process.communicate(timeout=DEADLINE)[1], process.returncode)

    def test_no_standard_output_at_all(self, folder):
        """A closed one is named."""
        process = self.start(folder, preexec_fn=lambda: os.close(1))
        said = process.communicate(timeout=DEADLINE)[1]

        assert (1, "tidegauge: expected an open standard output, found it closed\n") == (process.returncode, said)

    def test_a_reader_that_reads_on(self, folder):
        """And the same command is whole for one that reads all."""
        process = self.start(folder, stdout=subprocess.PIPE)
        out, said = process.communicate(timeout=DEADLINE)

        assert (0, "", 1) == (process.returncode, said, json.loads(out)["format"])
