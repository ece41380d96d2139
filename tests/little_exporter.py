"""A real little exporter that takes callers' batches, and answers as it is told."""

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tidegauge.caller import Reporter
from tidegauge.parsing.events import read_events

DEADLINE = 20


class Exporter:
    """Takes batches as the exporter does; *answer* says with which status, *hold* keeps every answer back."""

    def __init__(self, answer=lambda _batch: 204, *, port=0, tls=None):
        self.answer = answer
        self.headers = {}
        self.hold = threading.Event()
        self.hold.set()
        self.asked = threading.Semaphore(0)
        self.requests = []
        self.taken = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.serve(self)

            def log_message(self, *_args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = False
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def serve(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"]))
        batch = read_events(body, time.time())
        self.requests.append((request.path, dict(request.headers), batch))
        self.asked.release()
        self.hold.wait(DEADLINE)
        status = self.answer(batch)
        if status == 204:
            self.taken.append(batch)
        try:
            request.send_response(status)
            request.send_header("Content-Length", "0")
            for name, value in self.headers.items():
                request.send_header(name, value)
            request.end_headers()
        except OSError:
            pass  # the caller has left

    @property
    def events(self):
        return [event for batch in self.taken for event in batch.events]

    def close(self):
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextmanager
def reporting(url, **options):
    reporter = Reporter(url, **{"fleet": "agents", "caller": "sim-1", "batch_seconds": 0.005} | options)
    try:
        yield reporter
    finally:
        reporter.close(DEADLINE)


def until(condition):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)
