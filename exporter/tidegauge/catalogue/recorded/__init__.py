"""Series that recording rules write, `level:metric:operations`, one module per subject.

The level is the subject: `backend`, `backend_model`, `model`, `fleet`, `fleet_backend`, or `where` for the queue
split, whose subject is a backend and model (`where="server"`) or a fleet (`where="caller"`). The last part says over
what: `5m` is that window of vLLM's own series; `mean` and `window` are the exporter's figure where it covers the
backend, else the native one. Whatever comes after the rules reads the latter.
"""

# ruff: noqa: F403  the names of the package are those of its subjects
from tidegauge.catalogue.recorded import (
    bottleneck,
    capacity,
    counts,
    fleet,
    health,
    latency,
    load,
    members,
    memory,
    queue,
    slo,
    split,
    stages,
)
from tidegauge.catalogue.recorded.bottleneck import *
from tidegauge.catalogue.recorded.capacity import *
from tidegauge.catalogue.recorded.counts import *
from tidegauge.catalogue.recorded.fleet import *
from tidegauge.catalogue.recorded.health import *
from tidegauge.catalogue.recorded.latency import *
from tidegauge.catalogue.recorded.load import *
from tidegauge.catalogue.recorded.members import *
from tidegauge.catalogue.recorded.memory import *
from tidegauge.catalogue.recorded.queue import *
from tidegauge.catalogue.recorded.slo import *
from tidegauge.catalogue.recorded.split import *
from tidegauge.catalogue.recorded.stages import *
from tidegauge.catalogue.series import Recorded

_SUBJECTS = (health, stages, queue, split, latency, load, memory, members, fleet, counts, capacity, bottleneck, slo)

RECORDED: tuple[Recorded, ...] = tuple(
    entry for subject in _SUBJECTS for entry in vars(subject).values() if isinstance(entry, Recorded)
)
