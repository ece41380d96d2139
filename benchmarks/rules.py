"""The rules on a real Prometheus that scrapes 100 backends of native 0.32 series: seconds per group, series added.

Every window is as full as at the usual scrape interval of 15 s or fuller: a scrape a second for 70 s gives the quarter
of an hour its 60 samples, and the five minutes three times theirs. The service levels' three days are written
beforehand.
"""

import asyncio
import gzip
import itertools
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

import yaml
from aiohttp import web

from tidegauge.catalogue import RECORDED
from tidegauge.catalogue import recorded as rec

_ROOT = Path(__file__).parent.parent
_PAGE = _ROOT / "tests" / "fixtures" / "pages" / "vllm-0.32-one-engine.prom.gz"
_COUNTERS = ("_bucket", "_sum", "_count", "_total")
_BACKENDS = 100
_WARM = 70
_EVALUATIONS = 6
_EVERY = 5
_USUAL = 15
_DAYS = 3


def run():
    """The rows of the table."""
    with tempfile.TemporaryDirectory(prefix="tidegauge-rules-") as name:
        folder = Path(name)
        _write_past(folder / "data")
        context = multiprocessing.get_context("spawn")
        port = context.Queue()
        servers = context.Process(target=_serve, args=(port,), daemon=True)
        servers.start()
        try:
            _configure(folder, port.get(timeout=60))
            yield from _measured(folder)
        finally:
            servers.kill()


def _serve(port):
    """All backends, a path each. Every counter of the real page grows by its own value each minute."""
    text = gzip.decompress(_PAGE.read_bytes()).decode()
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    parts = [(head, float(number), head.partition("{")[0].endswith(_COUNTERS)) for head, _, number in lines]
    begun = time.time()

    async def metrics(request):
        grown = 1 + int(request.match_info["backend"]) / _BACKENDS + int(time.time() - begun) / 60
        body = "".join(f"{head} {number * grown if grows else number!r}\n" for head, number, grows in parts)
        return web.Response(text=body)

    async def main():
        application = web.Application()
        application.router.add_get("/{backend}/metrics", metrics)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port.put(runner.addresses[0][1])
        await asyncio.sleep(600)

    asyncio.run(main())


def _write_past(data):
    """Three days of the service levels' own series, as a rule a quarter of a minute leaves them."""
    now = int(time.time()) - 30
    stamps = range(now - _DAYS * 86400, now, _USUAL)
    text = data.parent / "past.txt"
    with text.open("w") as file:
        for one, value in ((rec.SLO_GOOD, 1.9), (rec.SLO_TOTAL, 2)):
            file.write(f"# TYPE {one.name} gauge\n")
            for sli in ("ttft", "tpot", "e2e"):
                file.writelines(f'{one.name}{{model_name="/models/tiny",sli="{sli}"}} {value} {at}\n' for at in stamps)
        file.write("# EOF\n")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)], capture_output=True, check=True
    )


def _configure(folder, port):
    for path in (_ROOT / "recording_rules" / "rules.yaml", _ROOT / "alerts" / "alerts.yaml"):
        shutil.copy(path, folder / path.name)
    targets = [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {"__metrics_path__": f"/{number}/metrics", "instance": f"10.0.0.{number}:8000"},
        }
        for number in range(_BACKENDS)
    ]
    settings = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": f"{_EVERY}s"},
        "rule_files": ["*.yaml"],
        "scrape_configs": [{"job_name": "vllm", "static_configs": targets}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(settings))


def _measured(folder):
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                "--web.listen-address=127.0.0.1:29190",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        time.sleep(_WARM)
        samples = []
        for _ in range(_EVALUATIONS):
            time.sleep(_EVERY)
            samples.append(_get("rules")["groups"])
        yield from _rows(samples)
        yield from _series()
    finally:
        server.kill()
        server.wait()


def _get(path, **query):
    url = f"http://127.0.0.1:29190/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]


def _count(selector):
    found = _get("query", query=f"count({selector})")["result"]
    return int(found[0]["value"][1]) if found else 0


def _rows(samples):
    faults = {rule["lastError"] for group in samples[-1] for rule in group["rules"] if rule.get("lastError")}
    assert not faults, faults
    groups = [
        (statistics.median(group["evaluationTime"] for group in same), same[0]["name"], len(same[0]["rules"]))
        for same in zip(*samples, strict=True)
    ]
    rules = [
        (statistics.median(rule["evaluationTime"] for rule in same), same[0]["name"], same[0].get("labels", {}))
        for groups_at in zip(*samples, strict=True)
        for same in zip(*(group["rules"] for group in groups_at), strict=True)
    ]
    yield f"{'group':28}{'rules':>7}{'seconds per evaluation':>26}"
    for seconds, name, size in groups:
        yield f"{name:28}{size:7}{seconds:26.3f}"
    total = sum(seconds for seconds, *_ in groups)
    size = sum(size for *_, size in groups)
    yield f"{'all':28}{size:7}{total:26.3f}   {total / _USUAL:.1%} of one core at {_USUAL} s"
    yield f"load average meanwhile: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; seconds are wall time"
    seconds, name, labels = max(rules, key=lambda row: row[0])
    yield f"slowest rule: {name} {labels or ''} {seconds:.3f} s"


def _series():
    native = _count('{job="vllm"}') / _BACKENDS
    vllm = _count('{__name__=~"vllm:.+"}') / _BACKENDS
    added = {one.name: _count(one.name) for one in RECORDED}
    per_backend = sum(added.values()) / _BACKENDS
    yield (
        f"series per backend: {native:.0f} scraped ({vllm:.0f} of them vLLM's own), {per_backend:.1f} recorded:"
        f" {per_backend / native:.1%} of what is scraped, {per_backend / vllm:.1%} of vLLM's own"
    )
    largest = sorted(added.items(), key=lambda row: -row[1])
    yield "most series per backend: " + ", ".join(
        f"{name} {count / _BACKENDS:.0f}" for name, count in itertools.islice(largest, 6)
    )
    silent = [name for name, count in added.items() if not count]
    yield f"{len(silent)} of {len(added)} recorded names have no series here (exporter or GPU figures)"
