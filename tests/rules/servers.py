"""Series of a real vLLM 0.32 server, and of the exporter, as Prometheus stores them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import attrs

from tests.rules.promtool import Series, series
from tidegauge import vllm
from tidegauge.catalogue import exported as ex
from tidegauge.catalogue.series import Series as Exported

EDGES = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
JOB = "vllm"


@attrs.frozen
class Phase:
    """Steady traffic for *minutes*: per step of 30 s, `waits` = (requests, seconds in the queue of each).

    The other stages are means in seconds. `running` and `waiting` are the gauges meanwhile.
    """

    minutes: float
    waits: Sequence[tuple[float, float]] = ()
    prefill: float = 0.5
    decode: float = 3.4
    other: float = 0.1
    running: int = 0
    waiting: int = 0

    @property
    def steps(self) -> int:
        return round(self.minutes * 2)

    @property
    def requests(self) -> float:
        return sum(count for count, _ in self.waits)

    @property
    def queued(self) -> float:
        return sum(count * wait for count, wait in self.waits)

    def upto(self, edge: float) -> float:
        return sum(count for count, wait in self.waits if wait <= edge)


@attrs.frozen
class Server:
    """One vLLM endpoint; `restart` is the step at which its counters start again from 0."""

    instance: str
    model: str
    phases: Sequence[Phase]
    engines: Sequence[str] = ("0",)
    edges: Sequence[float] = EDGES
    restart: int | None = None

    def series(self) -> list[Series]:
        return [one for engine in self.engines for one in self._engine(engine)]

    def _engine(self, engine: str) -> Iterator[Series]:
        names = {"engine": engine, "instance": self.instance, "job": JOB, "model_name": self.model}
        steps = [phase for phase in self.phases for _ in range(phase.steps)]

        def counter(name: str, rise: list[float], **extra: str) -> Series:
            return series(f"vllm:{name}", self._cumulated(rise), **names, **extra)

        count = [phase.requests for phase in steps]
        sums = {
            vllm.QUEUE: [p.queued for p in steps],
            vllm.PREFILL: [p.requests * p.prefill for p in steps],
            vllm.DECODE: [p.requests * p.decode for p in steps],
            vllm.E2E: [p.queued + p.requests * (p.prefill + p.decode + p.other) for p in steps],
        }
        for family, rise in sums.items():
            yield counter(f"{family}_sum", rise)
            yield counter(f"{family}_count", count)
        for edge in self.edges:
            yield counter(f"{vllm.QUEUE}_bucket", [p.upto(edge) for p in steps], le=str(float(edge)))
        yield counter(f"{vllm.QUEUE}_bucket", count, le="+Inf")
        yield counter(vllm.PROMPT_TOKENS, [500 * n for n in count])
        yield counter(vllm.OUTPUT_TOKENS, [60 * n for n in count])
        for reason in ("stop", "length", "abort", "error", "repetition"):
            yield counter(vllm.FINISHED, count if reason == "length" else [0] * len(count), finished_reason=reason)
        yield series(f"vllm:{vllm.RUNNING}", [0, *(p.running for p in steps)], **names)
        yield series(f"vllm:{vllm.WAITING}", [0, *(p.waiting for p in steps)], **names)

    def _cumulated(self, rise: list[float]) -> list[float]:
        if self.restart is None:
            return [0, *accumulate(rise)]
        before, after = rise[: self.restart - 1], rise[self.restart :]
        return [0, *accumulate(before), 0, *accumulate(after)]

    def up(self, values: str | None = None) -> Series:
        steps = sum(phase.steps for phase in self.phases)
        return series("up", values or f"1x{steps}", instance=self.instance, job=JOB)


def exporter(
    one: Exported, values: Iterable[float | None] | str, instance: str = "10.0.0.9:10011", **label_values: str
) -> Series:
    """A series of the exporter with the labels that its own scrape adds."""
    return series(one.name, values, instance=instance, job="tidegauge", **label_values)


def split_rows(
    steps: int,
    *,
    late: float,
    late_seconds: float,
    edge: float,
    impact: float,
    p50: float,
    p90: float,
    instance: str = "10.0.0.9:10011",
    **subject: str,
) -> list[Series]:
    """The exporter's whole split of one subject, held for *steps*."""
    rows = [
        (ex.QUEUE_LATE_RATIO, late),
        (ex.QUEUE_LATE_SECONDS, late_seconds),
        (ex.QUEUE_EDGE, edge),
        (ex.QUEUE_IMPACT, impact),
        (ex.QUEUE_WAVES, 1 / (1 - late)),
    ]
    found = [exporter(one, f"{value:.12g}x{steps}", instance, **subject) for one, value in rows]
    quantiles = [("0.5", p50), ("0.9", p90)]
    return found + [exporter(ex.QUEUE_TIME, f"{v:g}x{steps}", instance, quantile=q, **subject) for q, v in quantiles]


def polled(backend: str, steps: int, *, up: int = 1, instance: str = "10.0.0.9:10011") -> Series:
    """The exporter's word that it polls the backend."""
    return exporter(ex.BACKEND_UP, f"{up}x{steps}", instance, backend=backend)
