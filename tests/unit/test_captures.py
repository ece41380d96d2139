"""Captures: what is written is what is read, and damage is named."""

import gzip
import io
import os

import pytest

from tidegauge.sources.captures import BadCaptureError, Taken, read, write
from tidegauge.sources.scrape import REASONS, Failed, Fetched

BODY = 'vllm:num_requests_running{engine="0"} 3.0\n'


def written(*outcomes):
    stream = io.StringIO()
    for outcome in outcomes:
        write(stream, outcome)
    return stream.getvalue()


def saved(folder, text, name="a.scrapes"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


class TestRoundTrip:
    def test_pages_and_failures_come_back_in_order(self, tmp_path):
        """Times, durations, bodies and reasons."""
        text = written(
            Fetched(1000.25, 0.0125, BODY),
            Failed(1001.5, 5.0, "timeout", 'http://a/metrics: expected "a whole answer", found none\nat all'),
            Fetched(1002.0, 0.5, BODY * 2),
        )

        assert [
            Taken(1000.25, 0.0125, BODY),
            Taken(1001.5, 5.0, None, "timeout"),
            Taken(1002.0, 0.5, BODY * 2),
        ] == list(read(saved(tmp_path, text)))

    @pytest.mark.parametrize("reason", REASONS)
    def test_every_reason_of_the_poller_survives(self, tmp_path, reason):
        """A replay counts failures as the live exporter does."""
        text = written(Failed(1000.0, 0.1, reason, "message"))

        assert [reason] == [taken.reason for taken in read(saved(tmp_path, text))]

    def test_a_page_cannot_forge_a_header(self, tmp_path):
        """Lines that look like one stay comments, wherever they stand in the page."""
        forged = "# SCRAPE ts=1 status=ERR\n"
        text = written(Fetched(1000.0, 0.1, forged + BODY + forged), Fetched(1001.0, 0.1, BODY))
        found = list(read(saved(tmp_path, text)))

        assert [1000.0, 1001.0] == [taken.at for taken in found]
        assert BODY in found[0].body

    def test_a_body_without_its_last_line_end_does_not_swallow_the_next_header(self, tmp_path):
        """The page is cut; the next poll is not."""
        text = written(Fetched(1000.0, 0.1, BODY + "vllm:num_req"), Fetched(1001.0, 0.1, BODY))

        assert [1000.0, 1001.0] == [taken.at for taken in read(saved(tmp_path, text))]

    def test_gzip_and_plain_read_the_same(self, tmp_path):
        """By content, not by name."""
        text = written(Fetched(1000.0, 0.1, BODY))
        zipped = tmp_path / "zipped.scrapes"
        zipped.write_bytes(gzip.compress(text.encode()))

        assert list(read(saved(tmp_path, text))) == list(read(zipped))


class TestForeignFiles:
    def test_page_saved_by_hand_is_one_poll(self, tmp_path):
        """Taken when the file was written."""
        path = saved(tmp_path, BODY)
        os.utime(path, (5000.0, 5000.0))

        assert [Taken(5000.0, 0.0, BODY)] == list(read(path))

    @pytest.mark.parametrize("preface", ["\n", "# captured on a Tuesday\n", "some words\n"])
    def test_what_stands_before_the_first_header_is_no_poll(self, tmp_path, preface):
        """Its time would be the file's, far from the others."""
        text = preface + written(Fetched(1000.0, 0.1, BODY))

        assert [1000.0] == [taken.at for taken in read(saved(tmp_path, text))]

    def test_other_fields_and_statuses_are_read(self, tmp_path):
        """Order does not matter, unknown fields neither; a status is a reason."""
        text = (
            f'# SCRAPE status=200 bytes=9 ctype="text/plain; version=0.0.4" ts=1000.5\n{BODY}'
            '# SCRAPE ts=1001 status=503\nnot a page\n# SCRAPE ts=1002 status=ERR error="Cannot \\"connect\\" now"\n'
        )

        assert [(1000.5, 0.0, BODY, ""), (1001.0, 0.0, None, "http_503"), (1002.0, 0.0, None, "connection")] == [
            (taken.at, taken.seconds, taken.body, taken.reason) for taken in read(saved(tmp_path, text))
        ]

    def test_empty_file_has_no_polls(self, tmp_path):
        """Nor an error: nothing was recorded."""
        assert [] == list(read(saved(tmp_path, "")))

    def test_invalid_utf8_costs_the_character(self, tmp_path):
        """The rest of the page is as good as ever."""
        path = tmp_path / "a.scrapes"
        path.write_bytes(b"# SCRAPE ts=1000 status=200\n# HELP x caf\xe9\n" + BODY.encode())

        assert [True] == [BODY in taken.body for taken in read(path)]


class TestDamage:
    @pytest.mark.parametrize(
        "header", ["# SCRAPE ts=1000", "# SCRAPE status=200", "# SCRAPE ts=noon status=200", "# SCRAPE nothing"]
    )
    def test_bad_header_is_named_with_file_and_line(self, tmp_path, header):
        """And nothing after it is guessed at."""
        path = saved(tmp_path, f"# SCRAPE ts=1 status=200\n{BODY}{header}\n")

        with pytest.raises(BadCaptureError, match=r"a\.scrapes:3: expected '# SCRAPE ts="):
            list(read(path))

    def test_gzip_cut_short_gives_the_whole_pages(self, tmp_path):
        """The last one is a poll without a page: half a page would be half an increase."""
        noise = "".join(f"# {os.urandom(30).hex()}\n" for _ in range(3000))
        text = written(Fetched(1000.0, 0.1, noise + BODY), Fetched(1001.0, 0.1, noise[::-1].strip() + "\n" + BODY))
        path = tmp_path / "a.scrapes.gz"
        path.write_bytes(gzip.compress(text.encode())[:-20_000])
        first, second = read(path)

        assert first.body.endswith(BODY)
        assert (1001.0, None, "cut") == (second.at, second.body, second.reason)

    @pytest.mark.parametrize(
        "content",
        [b"\x1f\x8bnot gzip at all", gzip.compress(b"x" * 5000, mtime=0)[:18] + b"\xff" * 40],
        ids=["only the mark", "a damaged body"],
    )
    def test_gzip_that_is_none_is_named(self, tmp_path, content):
        """No traceback."""
        path = tmp_path / "a.gz"
        path.write_bytes(content)

        with pytest.raises(BadCaptureError, match=r"a\.gz: cannot be read"):
            list(read(path))

    def test_gzip_cut_within_a_saved_page_is_named(self, tmp_path):
        """There is no whole page to give."""
        path = tmp_path / "a.gz"
        path.write_bytes(gzip.compress(os.urandom(900).hex().encode())[:-200])

        with pytest.raises(BadCaptureError, match=r"a\.gz: cannot be read: cut short"):
            list(read(path))

    def test_missing_file_and_folder_are_named(self, tmp_path):
        """As any unreadable file."""
        for path in (tmp_path / "none.scrapes", tmp_path):
            with pytest.raises(BadCaptureError, match=f"{path.name}: cannot be read"):
                list(read(path))
