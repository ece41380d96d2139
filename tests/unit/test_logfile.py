"""What can befall a log file while it is followed; `poll` is driven by hand, nothing waits."""

import os
import tracemalloc

import pytest

from tidegauge.parsing.logs import StartupReader
from tidegauge.sources import logscan
from tidegauge.sources.logfile import LogFollower

ACCESS = 'INFO:     192.0.2.7:40112 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def size(tokens, pid=40):
    return (
        f"(EngineCore pid={pid}) INFO 09-02 05:01:00 [kv_cache_utils.py:2146] GPU KV cache size: {tokens:,} tokens, "
        f"Maximum concurrency for 1,000 tokens per request: {tokens / 1000:.2f}x\n"
    )


def begin(day, seqs, pid=30):
    return (
        f"(APIServer pid={pid}) INFO {day} 05:00:00 [api_utils.py:286] non-default args: {{'max_num_seqs': {seqs}}}\n"
        f"(EngineCore pid=40) INFO {day} 05:00:30 [core.py:133] Initializing a V1 LLM engine (v0.28.0) with config: "
        "model='m', max_seq_len=1000, \n"
    )


class Log:
    """A log file and its follower."""

    def __init__(self, path):
        self.path = path
        self.reader = StartupReader()
        self.follower = LogFollower(path, logscan.BlockScanner(self.reader))

    def append(self, text):
        with self.path.open("ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def poll(self):
        return self.follower.poll()

    def tokens(self):
        return [engine.kv_cache_tokens for engine in self.reader.facts().engines]

    def runs(self):
        return self.reader.facts().run


@pytest.fixture
def log(tmp_path):
    log = Log(tmp_path / "server.log")
    yield log
    log.follower.close()


class TestGrowth:
    def test_appended_lines_are_read_once(self, log):
        """Each poll reads what is new, and says whether the facts changed."""
        log.append(begin("09-02", 7))
        first = log.poll()
        log.append(size(5000) + ACCESS)
        second, third = log.poll(), log.poll()

        assert (2, True, True) == (first.parsed, first.changed, first.caught_up)
        assert (1, True, [5000]) == (second.parsed, second.changed, log.tokens())
        assert (0, 0, False, True) == (third.parsed, third.read_bytes, third.changed, third.caught_up)

    def test_only_lines_with_a_needle_are_looked_at(self, log):
        """Access lines are not even counted; a line that only looks like a fact is ignored."""
        log.append(ACCESS * 50 + "the version of this is 3\n" + size(5000))
        progress = log.poll()

        assert (1, 1, 0) == (progress.parsed, progress.ignored, progress.dropped)

    def test_several_starts_leave_the_last(self, log):
        """A restarted server's facts replace those of the run before."""
        log.append(begin("09-02", 7) + size(5000) + begin("09-03", 9) + size(6000))
        log.poll()

        assert (2, 9, [6000]) == (log.runs(), log.reader.facts().max_num_seqs, log.tokens())


class TestPartialLastLine:
    def test_a_line_counts_when_it_is_complete(self, log):
        """Half a line says nothing, and its completion is not read twice."""
        line = size(5000)
        log.append(ACCESS + line[:100])
        first = log.poll()
        log.append(line[100:-1])
        second = log.poll()
        log.append("\n" + ACCESS)
        third = log.poll()

        assert (0, len(ACCESS), True) == (first.parsed, first.read_bytes, first.caught_up)
        assert 0 == second.parsed
        assert (1, [5000]) == (third.parsed, log.tokens())
        assert 0 == log.poll().parsed

    def test_a_number_cut_by_the_end_of_the_file_is_not_believed(self, log):
        """`45,056` must not be read as 45."""
        log.append("INFO 09-02 05:01:00 [kv_cache_utils.py:1] GPU KV cache size: 45")
        log.poll()
        log.append(",056 tokens\n")
        log.poll()

        assert [45_056] == log.tokens()

    def test_finish_reads_a_last_line_without_an_end(self, log):
        """A file that nobody writes to any more may lack the last line end."""
        log.append(ACCESS + size(5000).rstrip("\n"))
        log.poll()
        progress = log.follower.finish()

        assert (1, True, [5000]) == (progress.parsed, progress.changed, log.tokens())


class TestRotationByRename:
    def test_the_rest_of_the_old_file_is_read_first(self, log):
        """Lines written before the rename, even without a final line end, precede those of the new file."""
        log.append(begin("09-02", 7))
        log.poll()
        log.append(size(5000) + begin("09-03", 8) + size(6000).rstrip("\n"))
        log.path.rename(log.path.with_suffix(".1"))
        log.append(begin("09-04", 9))
        progress = log.poll()

        assert (3, 9, []) == (log.runs(), log.reader.facts().max_num_seqs, [each for each in log.tokens() if each])
        assert (7 - 1, True) == (progress.parsed, progress.caught_up)

    def test_facts_survive_a_rotation(self, log):
        """A new file without startup lines takes nothing away."""
        log.append(begin("09-02", 7) + size(5000))
        log.poll()
        log.path.rename(log.path.with_suffix(".1"))
        log.append(ACCESS)
        progress = log.poll()

        assert (False, [5000], len(ACCESS)) == (progress.changed, log.tokens(), log.follower.position)

    def test_writing_goes_on_in_the_old_file_until_the_new_one_appears(self, log):
        """Between rename and re-creation the old file is still followed."""
        log.append(ACCESS)
        log.poll()
        old = log.path.rename(log.path.with_suffix(".1"))
        with old.open("a") as file:
            file.write(size(5000))
        progress = log.poll()

        assert (1, [5000]) == (progress.parsed, log.tokens())
        assert f"{log.path}: deleted; waiting for a new one" == progress.error

    def test_a_symlink_may_be_swapped(self, log, tmp_path):
        """A link that leads to another file is a rotation."""
        (tmp_path / "a").write_text(size(5000))
        (tmp_path / "b").write_text(begin("09-03", 9))
        log.path.symlink_to(tmp_path / "a")
        log.poll()
        log.path.unlink()
        log.path.symlink_to(tmp_path / "b")
        log.poll()

        assert (2, 9) == (log.runs(), log.reader.facts().max_num_seqs)


class TestCopyTruncate:
    def test_a_shorter_file_is_read_from_its_start(self, log):
        """After truncation the position begins at 0 again."""
        log.append(ACCESS * 100 + size(5000))
        log.poll()
        os.truncate(log.path, 0)
        log.append(begin("09-03", 9) + size(6000))
        progress = log.poll()

        assert (3, [6000], 2) == (progress.parsed, log.tokens(), log.runs())

    def test_a_file_that_has_grown_past_the_old_position_since_is_noticed(self, log):
        """Another beginning betrays the truncation when the size does not."""
        log.append(size(5000))
        log.poll()
        os.truncate(log.path, 0)
        log.append(begin("09-03", 9) + size(6000) + ACCESS * 1000)
        log.poll()

        assert ([6000], 9) == (log.tokens(), log.reader.facts().max_num_seqs)

    def test_zeros_left_by_a_writer_that_keeps_its_offset_are_passed_over(self, log):
        """A writer without append mode leaves a hole of zeros at the start; the line after it still counts."""
        log.append(ACCESS * 100)
        log.poll()
        os.truncate(log.path, 0)
        os.truncate(log.path, 7000)
        log.append(size(6000))
        progress = log.poll()

        assert (1, [6000], None) == (progress.parsed, log.tokens(), progress.error)


class TestDeletion:
    def test_a_file_may_come_late(self, log):
        """Until then the missing file is named, and nothing else happens."""
        early = log.poll()
        log.append(size(5000))
        late = log.poll()

        assert (f"{log.path}: No such file or directory", False) == (early.error, early.caught_up)
        assert (None, True, [5000]) == (late.error, late.caught_up, log.tokens())

    def test_deleted_and_created_anew(self, log):
        """The new file is read from its start, the facts of the old stand until another start is seen."""
        log.append(begin("09-02", 7) + size(5000))
        log.poll()
        log.path.unlink()
        gone = log.poll()
        facts_while_gone = log.tokens()
        log.append(ACCESS)
        log.poll()
        log.append(begin("09-03", 9) + size(6000))
        log.poll()

        assert (f"{log.path}: deleted; waiting for a new one", [5000]) == (gone.error, facts_while_gone)
        assert (2, [6000]) == (log.runs(), log.tokens())


class TestUnreadable:
    def test_a_directory_is_named(self, log):
        """A directory where the log should be is an error, not an exception; a file in its place heals it."""
        log.path.mkdir()
        wrong = log.poll()
        log.path.rmdir()
        log.append(size(5000))

        assert f"{log.path}: not a regular file" == wrong.error
        assert (None, 1) == ((healed := log.poll()).error, healed.parsed)

    def test_a_pipe_does_not_block(self, log):
        """Opening a pipe without a writer must not hang."""
        os.mkfifo(log.path)

        assert f"{log.path}: not a regular file" == log.poll().error

    def test_permission_denied(self, log):
        """A file that may not be read is named, and read once it may be."""
        log.append(size(5000))
        log.path.chmod(0)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65_534)
        try:
            denied = log.poll()
        finally:
            os.seteuid(user)
        log.path.chmod(0o600)

        assert f"{log.path}: Permission denied" == denied.error
        assert 1 == log.poll().parsed

    @pytest.mark.parametrize(
        "content",
        [b"\x1f\x8b\x08\x00\x00abc" + b"x" * 100, "\ufeffINFO: start\n".encode("utf-16-le"), b"\x7fELF\x02\x01\0\0\0"],
    )
    def test_what_is_no_text_is_named(self, log, content):
        """Compressed, UTF-16 and binary files are refused with a reason, even if they hold a needle."""
        log.append(content + size(5000).encode())
        progress = log.poll()

        assert f"{log.path}: not text: compressed, UTF-16 or binary" == progress.error
        assert (0, 0) == (progress.parsed, log.runs())

    def test_binary_lines_in_a_log_are_dropped(self, log):
        """A line with zeros inside is counted as dropped and the next one is read."""
        log.append(ACCESS * 20 + size(4000).replace("GPU", "G\0PU") + size(5000))
        progress = log.poll()

        assert (1, 1, [5000]) == (progress.parsed, progress.dropped, log.tokens())

    def test_invalid_utf8_is_survived(self, log):
        """Bytes that are no UTF-8 harm neither their own line nor the next."""
        log.append(b"\xff\xfe caf\xe9\n" + b"\xe9\xff " + size(5000).encode())
        log.poll()

        assert [5000] == log.tokens()


class TestLongLines:
    def test_a_line_beyond_the_limit_is_dropped_and_the_next_one_read(self, log):
        """However long the line and wherever it ends, one line is lost and counted."""
        for length in (logscan.LONGEST_LINE + 1, logscan.BLOCK, 3 * logscan.BLOCK + 17):
            log.append(b"x" * (length - 17) + b" KV cache size: 9\n" + size(length).encode())
        progress = log.poll()

        assert (3, 3) == (progress.parsed, progress.dropped)

    def test_an_endless_line_needs_no_endless_memory(self, log):
        """A line that never ends is passed over block by block, over several polls."""
        log.append(b"y" * (logscan.BLOCK + 5))
        tracemalloc.start()
        for _ in range(8):
            log.append(b"y" * (4 * logscan.BLOCK))
            log.poll()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        log.append(b"\n" + size(5000).encode())

        assert (1, [5000]) == (log.poll().parsed, log.tokens())
        assert peak < 8 * logscan.BLOCK

    def test_a_progress_bar_without_line_ends_does_not_swallow_the_record_after_it(self, log):
        """Megabytes of redrawings separated by bare carriage returns end with a record."""
        log.append(("Loading:  50%|#####     | 1/2\r" * 60_000 + size(5000)).encode())
        log.poll()

        assert [5000] == log.tokens()

    def test_a_rest_of_a_cut_line_is_not_taken_for_a_record(self, log):
        """Container runtimes cut lines at 16 KiB; a prompt that quotes a log may go on in the next piece."""
        head = "2026-09-30T05:42:21.1Z stdout P INFO 09-25 03:50:48 [logger.py:39] Received request r: prompt: '"
        rest = "2026-09-30T05:42:21.1Z stdout F " + size(7)
        log.append("2026-09-30T05:42:20Z stdout F " + size(5000) + head + "blah " * 3300 + "\n" + rest)
        log.poll()

        assert [5000] == log.tokens()


class TestHistory:
    @pytest.fixture(autouse=True)
    def small_blocks(self, monkeypatch):
        """Blocks of 2 KiB make kilobytes a long history."""
        monkeypatch.setattr("tidegauge.sources.logfile.BLOCK", 2048)
        monkeypatch.setattr("tidegauge.sources.logfile.LONGEST_LINE", 1024)

    def test_a_start_anywhere_in_a_long_history_is_found(self, tmp_path):
        """Wherever the block boundaries fall, the whole last start is read, from its first line to its last."""
        for offset in range(0, 4200, 150):
            log = Log(tmp_path / f"{offset}.log")
            log.append(begin("09-02", 7) + size(5000) + ACCESS * 300 + "z" * offset + "\n")
            log.append(begin("09-03", 9) + size(6000) + ACCESS * 300)
            while not log.poll().caught_up:
                pass
            log.follower.close()

            assert (2, 9, 1000, [6000]) == (
                log.runs(),
                log.reader.facts().max_num_seqs,
                log.reader.facts().max_model_len,
                log.tokens(),
            )

    def test_history_far_from_any_start_is_not_looked_at(self, log):
        """A line with a needle, but no landmark near, costs nothing: it is not parsed."""
        log.append(ACCESS * 300 + "the version of this is 3\n" + ACCESS * 300)

        assert 0 == log.poll().ignored

    def test_a_start_at_the_end_is_read_in_full(self, log):
        """The live end is read in full, with what stands just before it, before a landmark appears."""
        log.append(ACCESS * 300)
        announcement, engine = begin("09-03", 9).splitlines(keepends=True)
        log.append(announcement + ACCESS * 3)
        log.poll()
        early = log.reader.facts().max_num_seqs
        log.append(engine + size(6000))
        log.poll()

        assert (9, 9, [6000]) == (early, log.reader.facts().max_num_seqs, log.tokens())

    def test_a_poll_does_bounded_work(self, log):
        """A poll stops after its budget and the next one goes on where it stopped."""
        log.append(ACCESS * 1000 + size(5000))
        first = log.follower.poll(budget=10_000)
        polls = 1
        while not log.follower.poll(budget=10_000).caught_up:
            polls += 1

        assert 10_000 <= first.read_bytes < 10_000 + 2048
        assert not first.caught_up
        assert len(ACCESS) * 1000 // 12_048 <= polls <= len(ACCESS) * 1000 // 10_000 + 2
        assert [5000] == log.tokens()


class TestGigabytes:
    def test_memory_stays_bounded(self, log):
        """A hundred megabytes of history need a few blocks of memory."""
        part = (ACCESS * 20_000).encode()
        with log.path.open("wb") as file:
            for _ in range(70):
                file.write(part)
            file.write(size(5000).encode())
        tracemalloc.start()
        while not log.poll().caught_up:
            pass
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert [5000] == log.tokens()
        assert peak < 6 * logscan.BLOCK
