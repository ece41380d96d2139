"""`tidegauge serve` as a process that is sent SIGHUP: good, bad and unreadable files."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.little_exporter import until
from tests.unit.answered import body
from tests.unit.little_servers import DEADLINE

LOADED = "tidegauge_config_last_reload_successful"
LOADED_AT = "tidegauge_config_last_reload_success_timestamp_seconds"


@pytest.fixture(name="servers")
def _servers():
    """A server of many backends, one a folder; each finishes a request with every poll."""
    polls = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.strip("/").split("/")[0]
            polls[name] += self.path.endswith("/metrics")
            page = body(polls[name], 9e9 + ord(name[0])) if self.path.endswith("/metrics") else ""
            self.send_response(200 if page else 404)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class Service:
    """The process, what it says, and what its page says."""

    def __init__(self, folder, servers):
        self.file = folder / "tidegauge.yml"
        self.state = folder / "state.json"
        self.servers = servers
        self.lines = []

    def write(self, *names, more="", listen="127.0.0.1:0"):
        listed = "".join(f"  - {{url: {self.servers}/{name}/metrics, name: {name}}}\n" for name in names)
        text = f"listen: {listen}\nstate_file: {self.state}\npoll_interval: 50ms\n{more}backends:\n{listed}"
        self.file.write_text(text, encoding="utf-8")

    def __enter__(self):
        command = [sys.executable, "-m", "tidegauge.cli", "serve", "--config", str(self.file)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.reader = threading.Thread(target=lambda: self.lines.extend(iter(self.process.stderr.readline, "")))
        self.reader.start()
        self.said("listening on ")
        self.url = "http://" + self.lines[-1].split("listening on ")[1].split(",")[0]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(DEADLINE)
        self.reader.join()
        self.process.stderr.close()

    def said(self, text):
        """Wait for a line with *text* in it, and return it."""
        until(lambda: self.process.poll() is not None or any(text in line for line in self.lines))
        return next(line for line in self.lines if text in line)

    def hangup(self, text):
        """Send SIGHUP; the line with *text* in it that follows."""
        self.lines.clear()
        self.process.send_signal(signal.SIGHUP)
        return self.said(text)

    def page(self):
        """{series as written: value}."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=DEADLINE) as answer:
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (x.rpartition(" ") for x in lines if not x.startswith("#"))}

    def up(self):
        """The backends that answer."""
        return {key.split('"')[1] for key, value in self.page().items() if "backend_up{" in key and value}

    def finished(self, name):
        return self.page().get(f'tidegauge_window_requests{{backend="{name}",model_name="m"}}', 0.0)


@pytest.fixture(name="service")
def _service(tmp_path, servers):
    found = Service(tmp_path, servers)
    found.write("a", "b")
    with found:
        yield found


def test_good_file_is_taken_over(service):
    """One backend goes, one comes, one goes on counting; then the process ends as ever, and keeps its state."""
    until(lambda: service.up() == {"a", "b"} and service.finished("a") >= 3)
    before, started = service.finished("a"), service.page()[LOADED_AT]
    service.write("c", "a", listen="127.0.0.1:9")
    service.hangup("backends: 1 go on, 0 changed, 1 new, 1 gone")
    after = service.finished("a")
    until(lambda: service.up() == {"a", "c"})
    page = service.page()

    assert 3 <= before <= after
    assert (1.0, 2.0) == (page[LOADED], page["tidegauge_backends_configured"])
    assert started < page[LOADED_AT] <= time.time()
    assert not [series for series in page if 'backend="b"' in series]
    assert "listen: stays 127.0.0.1:0 until a restart, found 127.0.0.1:9" in service.said("listen:")

    service.process.terminate()
    assert 0 == service.process.wait(DEADLINE)
    assert 1 == json.loads(service.state.read_text(encoding="utf-8"))["format"]


def test_file_that_cannot_be_used_changes_nothing(service):
    """Each is named with its file, its line and its key; the next good one is taken."""
    until(lambda: service.up() == {"a", "b"})
    started = service.page()[LOADED_AT]

    def refused(says):
        said = service.hangup("configuration not reloaded, the one in force stays: ")
        assert f"{service.file}{says}" in said
        assert " ERROR " in said
        page = service.page()
        assert (0.0, started, {"a", "b"}) == (page[LOADED], page[LOADED_AT], service.up())

    service.write("c", more="windwo: 5m\n")
    refused(":4: windwo: unknown key; did you mean `window`?")
    service.file.write_bytes(b"backends: \xff\n")
    refused(": cannot be read: expected UTF-8 text, found byte 0xff at offset 10")
    service.file.unlink()
    refused(": cannot be read: expected a file, found: No such file or directory")
    service.file.mkdir()
    refused(": cannot be read: expected a regular file, found a directory")
    service.file.rmdir()
    os.mkfifo(service.file)
    refused(": cannot be read: expected a regular file, found a named pipe")
    service.file.unlink()
    service.file.symlink_to("/proc/self/mem")
    refused(": cannot be read: Input/output error")

    service.file.unlink()
    service.write("a", "b")
    service.hangup("backends: 2 go on, 0 changed, 0 new, 0 gone")
    assert 1.0 == service.page()[LOADED]


def test_callers_are_held_to_the_file_in_force(service, tmp_path):
    """The token and the largest body of the new one, at once."""
    (tmp_path / "token").write_text("s3cret\n", encoding="utf-8")

    def post(body, token=""):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        asked = urllib.request.Request(f"{service.url}/api/v1/events", body.encode(), headers)
        try:
            with urllib.request.urlopen(asked, timeout=DEADLINE) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    batch = json.dumps({"caller": "c", "fleet": "m", "events": []})
    assert (204, 204) == (post(batch), post(batch + " " * 2000))
    service.write("a", "b", more="callers: {token_file: token, max_body: 1kB}\n")
    service.hangup("configuration reloaded")
    assert (401, 204, 413) == (post(batch), post(batch, "s3cret"), post(batch + " " * 2000, "s3cret"))
    service.write("a", "b", more="callers: {max_body: 4MiB}\n")
    service.hangup("configuration reloaded")

    assert (204, 413) == (post(batch + " " * 3_000_000), post(batch + " " * 5_000_000))
