"""The rules and alerts rendered for other labels than `instance`, held against tables of their own."""

import functools

import attrs
import pytest

from mixin import generate
from tests.generations import GENERATIONS, program
from tests.rules import cases_health
from tests.rules.promtool import Alert, Firing, Group, Series, Value, labels, needed, run, series
from tests.rules.servers import Phase, Server, exporter, polled
from tests.rules.steady import RAY
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue import recorded as rec

BUSY = Phase(50, [(20, 0.1)], running=12)
IDLE = Phase(50)


def relabelled(server: Server, phases_end: int | None = None, **names: str) -> list[Series]:
    """The server's series with other labels; its last sample is at step *phases_end*, where one is given."""
    found = []
    for one in server.series():
        name, _, rest = one["series"].partition("{")
        own = dict(part.split("=", 1) for part in rest.rstrip("}").split(","))
        kept = {key: value.strip('"') for key, value in own.items()} | names
        values = one["values"].split()
        told = one["values"] if phases_end is None else " ".join([*values[:phases_end], "stale"])
        found.append(series(name, told, **kept))
    return found


def replica(name: str, node: str, phase: Phase, end: int | None = None) -> list[Series]:
    """A Ray replica on a node, whose agent is the target of all of them."""
    ray = {key: value for key, value in RAY.items() if key not in {"model_name", "engine"}}
    return relabelled(Server("", "qwen", [phase]), end, **ray | {"ReplicaId": name, "instance": f"{node}:8080"})


def agent(node: str, values: str) -> Series:
    """What Prometheus says of a node's agent: it names no replica."""
    return series("up", values, instance=f"{node}:8080", job=RAY["job"])


def qwen(name: str) -> dict[str, str]:
    """The labels of a replica in recorded series and alerts."""
    return {"backend": name, "model_name": "qwen"}


def level(name: str, which: str) -> dict[str, float]:
    """The row of a backend without GPU figures."""
    return {labels(backend=name, level=which, gpu="unseen"): 1}


REPLICAS = Group(
    "a Ray replica is up while its own gauges are there, whatever becomes of another node's agent",
    [
        agent("10.0.0.4", "1x100"),
        agent("10.0.0.5", "1x59 0x40"),
        *replica("a", "10.0.0.4", BUSY),
        *replica("b", "10.0.0.4", IDLE),
        *replica("c", "10.0.0.5", BUSY, 60),
        # A router's page has no replica, and is nobody's.
        agent("10.0.0.6", "1x100"),
        *relabelled(Server("", "qwen", [BUSY]), job=RAY["job"], instance="10.0.0.6:8080"),
    ],
    [
        Value(rec.BACKEND_UP, 20, {labels(backend=name): 1 for name in "abc"}),
        Value(rec.BACKEND_UP, 40, {labels(backend=name): 1 for name in "ab"}),
        Value(rec.RUNNING, 40, {labels(**qwen("a")): 12, labels(**qwen("b")): 0}),
        Value(rec.BOTTLENECK, 20, level("a", "unknown") | level("b", "none") | level("c", "unknown")),
        Value(rec.BOTTLENECK, 40, level("a", "unknown") | level("b", "none")),
    ],
    [
        Alert("healthy", "VllmBackendDown", 20),
        Alert("healthy", "VllmBackendDown", 45),
        Alert("healthy", "TidegaugeNativeMetricsMissing", 45),
        Alert("healthy", "TidegaugeNativeMetricsEscaped", 45),
        Alert("healthy", "VllmAdmissionStalled", 45),
        Alert(
            "fires",
            "VllmServesNothing",
            45,
            [
                Firing(
                    {"severity": "warning", "fleet": "qwen", **qwen("b")},
                    "qwen on b is up and serves nothing, while fleet qwen finished 600 requests.",
                    "For 15m it held no request and computed no token; the others carry its share. Look first at the "
                    "list of backends of the router or caller, then at the health check that decides who gets "
                    "requests, then whether the server was put to sleep.",
                )
            ],
        ),
    ],
)

BLIND = Group(
    "a Prometheus that reaches no agent says that it is blind, and of no replica that it is down",
    [agent("10.0.0.4", "1x29 0x40"), *replica("a", "10.0.0.4", BUSY, 30)],
    [Value(rec.BACKEND_UP, 25, {})],
    [
        Alert("healthy", "VllmBackendDown", 14.5),
        Alert("just_short", "VllmBackendDown", 15.5),
        Alert(
            "no_data",
            "VllmBackendDown",
            16,
            [
                Firing(
                    {"severity": "critical"},
                    "Prometheus knows no vLLM server.",
                    "No target of a vLLM job has the label ReplicaId, no series of one has it, and no exporter knows "
                    "a backend, so every other alert on vLLM is blind. Look first whether the targets can be scraped, "
                    "then at the service discovery and at the job names, which must match job=~'.*vllm.*'.",
                )
            ],
        ),
        Alert("no_data", "TidegaugeNativeMetricsMissing", 34),
    ],
)

WITNESSES = Group(
    "gauges speak where no target does: a page that Prometheus still gets outweighs an exporter that is cut off",
    [
        agent("10.0.0.4", "1x40"),
        *replica("a", "10.0.0.4", BUSY),
        polled("a", 40, up=0),
        *replica("b", "10.0.0.4", BUSY, 20),
        polled("b", 40, up=0),
    ],
    [
        Value(rec.BACKEND_UP, 8, {labels(backend="a"): 1, labels(backend="b"): 1}),
        Value(rec.BACKEND_UP, 12, {labels(backend="a"): 1, labels(backend="b"): 0}),
    ],
    [Alert("fires", "VllmBackendDown", 12, [cases_health.down("b")])],
)


def pod(name: str, values: str, **more: str) -> list[Series]:
    """A pod that is a target with its name as a label, and its series, which outlive it: no staleness is told."""
    names = {"pod": name, "instance": f"{name}:8000", "job": "vllm", **more}
    return [series("up", values, **names), *relabelled(Server("", "sim", [BUSY]), **names)]


PODS = Group(
    "where targets have the label, they alone say who is up, not gauges that linger",
    [*pod("vllm-0", "1x19 0x40"), *pod("vllm-1", "1x59")],
    [Value(rec.BACKEND_UP, 12, {labels(backend="vllm-0"): 0, labels(backend="vllm-1"): 1})],
    [
        Alert("healthy", "VllmBackendDown", 9.5),
        Alert("fires", "VllmBackendDown", 12, [cases_health.down("vllm-0")]),
    ],
)


def down_in(namespace: str, name: str) -> Firing:
    """A pod of a namespace that cannot be reached."""
    firing = cases_health.down(name)
    return attrs.evolve(firing, labels={**firing.labels, "namespace": namespace})


NAMESPACES = Group(
    "pods of one name in two namespaces are two, one is missed, and an exporter speaks for those of its own namespace",
    [
        *pod("vllm-0", "1x19 0x40", namespace="prod"),
        *pod("vllm-0", "1x59", namespace="staging"),
        *pod("vllm-1", "1x19 0x40", namespace="prod"),
        *pod("vllm-1", "1x19 0x40", namespace="staging"),
        exporter(ex.BACKEND_UP, "1x59", backend="vllm-1", namespace="staging"),
    ],
    [
        Value(rec.BACKEND_UP, 12, {
            labels(backend="vllm-0", namespace="prod"): 0,
            labels(backend="vllm-0", namespace="staging"): 1,
            labels(backend="vllm-1", namespace="prod"): 0,
            labels(backend="vllm-1", namespace="staging"): 1,
        }),
        Value(rec.RUNNING, 8, {
            labels(backend=name, model_name="sim", namespace=namespace): 12
            for name in ("vllm-0", "vllm-1") for namespace in ("prod", "staging")
        }),
    ],
    [Alert("fires", "VllmBackendDown", 12, [down_in("prod", "vllm-0"), down_in("prod", "vllm-1")])],
)  # fmt: skip


def in_job(job: str, instance: str, phase: Phase) -> list[Series]:
    """A server of a job."""
    return relabelled(Server(instance, "sim", [phase]), job=job)


JOBS = Group(
    "jobs of one model are fleets of their own: a slow server of one is not held against another's",
    [
        *in_job("vllm-prod", "a:8000", BUSY),
        *in_job("vllm-prod", "b:8000", BUSY),
        *in_job("vllm-staging", "c:8000", attrs.evolve(BUSY, decode=20)),
    ],
    [
        Value(rec.FLEET_MEMBER, 20, {
            labels(job=job, fleet="sim", backend=name, model_name="sim"): 1
            for job, name in (("vllm-prod", "a:8000"), ("vllm-prod", "b:8000"), ("vllm-staging", "c:8000"))
        }),
        Value(rec.FLEET_SKEW, 20, {labels(job="vllm-prod", fleet="sim"): 1}),
    ],
    [Alert("healthy", "VllmBackendSkew", 40)],
)  # fmt: skip

CASES = [
    ("{ backendLabel: 'pod', clusterLabel: 'namespace' }", NAMESPACES),
    ("{ clusterLabel: 'job' }", JOBS),
    ("{ backendLabel: 'ReplicaId' }", REPLICAS),
    ("{ backendLabel: 'ReplicaId' }", BLIND),
    ("{ backendLabel: 'ReplicaId' }", WITNESSES),
    ("{ backendLabel: 'pod' }", PODS),
]


@functools.cache
def rendered(config):
    """Rules and alerts with the jsonnet *config*, in one file's shape."""
    text = (generate.ROOT / generate.CATALOGUE).read_text(encoding="utf-8")
    made = [generate.render_jsonnet(name, text, config) for name in ("prometheusRules", "prometheusAlerts")]
    return {"groups": [group for file in made for group in file["groups"]]}


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(("config", "group"), CASES, ids=lambda value: getattr(value, "name", None))
def test_group_holds_with_its_labels(generation, config, group, tmp_path):
    """Each group of series yields exactly the values and alerts of its table, under the labels of its own."""
    complaint = run(program("promtool", generation), needed(rendered(config), [group]), [group], tmp_path)

    if complaint:
        pytest.fail(complaint, pytrace=False)


@pytest.mark.parametrize("label", ["ReplicaId", "pod"])
def test_no_series_without_the_label_is_read(label):
    """Whatever has no such label would be a backend without a name."""
    read = [rule["expr"] for group in rendered(f"{{ backendLabel: '{label}' }}")["groups"] for rule in group["rules"]]
    native = [expr for expr in read if "vllm:" in expr or "up{job=~" in expr]

    assert len(native) > 30
    assert all(expr.count('{job=~".*vllm.*"') == expr.count(f'{{job=~".*vllm.*",{label}!=""') for expr in native)
