"""The board of the exporter: who sees which backend, and what is unknown rather than well."""

import pytest

from dashboards.boards import exporter
from tests.unit.board_queries import column_of, evaluated, panel_of, plain, shown
from tidegauge import process
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import labels as lb
from tidegauge.catalogue import recorded as rc

UP, FAILING, LOGS, EXPORTERS, BACKENDS, FAILED, DURATION = 1, 2, 4, 7, 9, 10, 11
PROCESSOR, MEMORY, FILES = 19, 20, 21
SCRAPE = 'job="any", instance="e:1"'


@pytest.fixture(scope="module")
def board():
    return exporter.board()


def expr_of(board, id_, query=0):
    return spelt(panel_of(board, id_)["targets"][query]["expr"])


def expr_of_column(board, title):
    return spelt(column_of(panel_of(board, BACKENDS), title))


def spelt(expr):
    expr = plain(expr)
    for name, value in {"$__rate_interval": "2m", "$__range": "2m", "@ end()": "@ 120"}.items():
        expr = expr.replace(name, value)
    return expr


def native(backend):
    return {f'{rc.RUNNING.name}{{backend="{backend}", model_name="m"}}': 0, **reached(backend, 1)}


def polled(backend, up=1):
    return {f'{ex.BACKEND_UP.name}{{backend="{backend}", {SCRAPE}}}': up, **reached(backend, up)}


def reached(backend, up):
    return {f'{rc.BACKEND_UP.name}{{backend="{backend}"}}': up}


class TestCoverage:
    def seen(self, board, tmp_path, series):
        """Who sees each backend, in words."""
        found = evaluated(tmp_path, series, expr_of(board, BACKENDS))
        return {labels: shown(panel_of(board, BACKENDS), value, "seen by")[0] for labels, value in found.items()}

    def test_both_sides_are_told_apart(self, board, tmp_path):
        """Whoever is seen by one alone shows, on both sides, failing or not; so does a page that is not vLLM's."""
        series = {
            **native("both"),
            **polled("both"),
            **native("native"),
            **polled("polled"),
            **polled("failing", 0),
            **reached("router", 1),
            **reached("gone", 0),
        }
        expected = {
            "both": "both",
            "native": "Prometheus only",
            "polled": "exporter only",
            "failing": "exporter only",
            "router": "no series of vLLM",
            "gone": "down",
        }
        assert {f"backend={name}": words for name, words in expected.items()} == self.seen(board, tmp_path, series)

    def test_without_an_exporter_nothing_is_amiss(self, board, tmp_path):
        """Rules alone are a way to run: what only Prometheus sees is then no warning."""
        assert {"backend=a": "Prometheus"} == self.seen(board, tmp_path, native("a"))


class TestUnknown:
    def test_exporter_is_found_by_what_it_exports(self, board, tmp_path):
        """Whatever its job is called; one that is down was an exporter before; a vLLM target is none."""
        down = {f"up{{{SCRAPE}}}": "1 0 0", f'{ex.BUILD_INFO.name}{{{SCRAPE}, version="1"}}': "1 stale"}
        vllm = {'up{job="vllm", instance="a:1"}': "0 0 0"}
        assert {"": 0} == evaluated(tmp_path, {**down, **vllm}, expr_of(board, UP), "2m")
        well = dict.fromkeys(down, "1 1 1")
        assert {"": 1} == evaluated(tmp_path, {**well, **vllm}, expr_of(board, UP), "2m")
        assert {} == evaluated(tmp_path, vllm, expr_of(board, UP), "2m")

    def test_each_exporter_has_its_version_or_none(self, board, tmp_path):
        """One that is gone keeps a row without one."""
        other = SCRAPE.replace("e:1", "f:1")
        series = {
            f"up{{{SCRAPE}}}": "1 0 0",
            f'{ex.BUILD_INFO.name}{{{SCRAPE}, version="1"}}': "1 stale",
            f"up{{{other}}}": "1 1 1",
            f'{ex.BUILD_INFO.name}{{{other}, version="2"}}': "1 1 1",
        }
        found = evaluated(tmp_path, series, expr_of(board, EXPORTERS, 1), "2m")
        assert {"instance=e:1, version=-": 0, "instance=f:1, version=2": 1} == found

    @pytest.mark.parametrize("title", ["polls failed", "restarts", "page faults", "dropped"])
    def test_what_never_counted_is_none(self, board, tmp_path, title):
        """Of a backend that the exporter polls; of one that it does not poll nothing is known."""
        found = evaluated(tmp_path, {**polled("a"), **native("b")}, expr_of_column(board, title))
        assert {"backend=a": 0} == found

    def test_a_log_of_which_nothing_was_parsed_says_so(self, board, tmp_path):
        """Another pattern than a log that is not configured."""
        series = {f'{ex.LOG_UP.name}{{backend="a"}}': 1, f'{ex.LOG_LINES.name}{{backend="a", result="ignored"}}': 9}
        assert {"backend=a": 0} == evaluated(tmp_path, series, expr_of_column(board, "lines parsed"))

    @pytest.mark.parametrize("id_", [FAILING, LOGS])
    def test_nothing_known_is_not_none(self, board, tmp_path, id_):
        """Zero needs something that was looked at."""
        assert {} == evaluated(tmp_path, {"up": 1}, expr_of(board, id_))

    def test_unread_logs_of_both_kinds_count(self, board, tmp_path):
        """A backend's and a limiter's; those that are read do not."""
        series = {
            f'{ex.LOG_UP.name}{{{lb.BACKEND}="a"}}': 1,
            f'{ex.LOG_UP.name}{{{lb.BACKEND}="b"}}': 0,
            f'{ex.LIMITER_LOG_UP.name}{{{lb.FLEET}="f"}}': 0,
        }
        assert {"": 2} == evaluated(tmp_path, series, expr_of(board, LOGS))
        read = dict.fromkeys(series, 1)
        assert {"": 0} == evaluated(tmp_path, read, expr_of(board, LOGS))


class TestPolls:
    def test_failures_are_a_share_of_all_polls(self, board, tmp_path):
        """Two backends, polled every second and every two: 90 polls a minute, of which 9 time out."""
        series = {
            f'{ex.POLL_INTERVAL.name}{{backend="a"}}': 1,
            f'{ex.POLL_INTERVAL.name}{{backend="b"}}': 2,
            f'{ex.SCRAPE_FAILURES.name}{{backend="a", reason="timeout"}}': "0+9x3",
        }
        found = evaluated(tmp_path, series, expr_of(board, FAILED), "2m")
        assert {"reason=timeout": pytest.approx(0.1)} == found

    def test_backends_share_of_failures_is_of_its_own_polls(self, board, tmp_path):
        """Thirty polls a minute, of which 9 fail for two reasons."""
        series = {
            f'{ex.POLL_INTERVAL.name}{{backend="b"}}': 2,
            f'{ex.SCRAPE_FAILURES.name}{{backend="b", reason="timeout"}}': "0+6x3",
            f'{ex.SCRAPE_FAILURES.name}{{backend="b", reason="refused"}}': "0+3x3",
        }
        assert {"backend=b": pytest.approx(0.3)} == evaluated(tmp_path, series, expr_of(board, BACKENDS, 3), "2m")

    def test_duration_is_held_against_the_backends_own_interval(self, board, tmp_path):
        """A second is all of one interval and a tenth of another."""
        series = {
            **{f'{ex.SCRAPE_DURATION.name}{{backend="{name}"}}': 1 for name in "ab"},
            f'{ex.POLL_INTERVAL.name}{{backend="a"}}': 1,
            f'{ex.POLL_INTERVAL.name}{{backend="b"}}': 10,
        }
        found = evaluated(tmp_path, series, expr_of(board, DURATION, 1), "2m")
        assert {"backend=a": 1, "backend=b": 0.1} == found


class TestFootprint:
    @pytest.fixture
    def series(self):
        """An exporter that uses 15 of 60 s of a core, and a vLLM server with more under the same names."""
        found = {f'{ex.BUILD_INFO.name}{{{SCRAPE}, version="1"}}': 1}
        for scrape, times in ((SCRAPE, 1), ('job="vllm", instance="a:1"', 3)):
            found |= {
                f"{process.CPU.name}{{{scrape}}}": f"100+{15 * times}x3",
                f"{process.RESIDENT_MEMORY.name}{{{scrape}}}": 6e7 * times,
                f"{process.OPEN_FILES.name}{{{scrape}}}": 256 * times,
                f"{process.MOST_FILES.name}{{{scrape}}}": 1024,
            }
        return found

    @pytest.mark.parametrize(("id_", "value"), [(PROCESSOR, 0.25), (MEMORY, 6e7), (FILES, 0.25)])
    def test_it_is_that_of_the_exporter(self, board, tmp_path, series, id_, value):
        """Whatever its job is called, and of no other program in Python."""
        found = evaluated(tmp_path, series, expr_of(board, id_), "2m")
        assert {"instance=e:1": pytest.approx(value)} == found

    @pytest.mark.parametrize("id_", [PROCESSOR, MEMORY, FILES])
    def test_without_an_exporter_there_is_none(self, board, tmp_path, series, id_):
        """Servers' own processes fill no panel."""
        servers = {name: value for name, value in series.items() if "vllm" in name}
        assert {} == evaluated(tmp_path, servers, expr_of(board, id_), "2m")

    def test_an_exporter_that_is_scraped_twice_is_one(self, board, tmp_path, series):
        """Two jobs that scrape it draw one line."""
        again = {name.replace('job="any"', 'job="other"'): value for name, value in series.items()}
        assert {"instance=e:1": 6e7} == evaluated(tmp_path, series | again, expr_of(board, MEMORY), "2m")
