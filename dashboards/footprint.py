"""What each exporter takes of its machine, as a row of its board: processor, memory, open files."""

from typing import Final

from dashboards import charts as c
from dashboards import panels as p
from dashboards.absent import NO_EXPORTER
from dashboards.fields import UNFILLED, VERMILION, Json, Panel, Query, marks
from dashboards.queries import INSTANCE, ON_TARGET, STEP, by, reads, select
from tidegauge import process
from tidegauge.catalogue import Series
from tidegauge.catalogue import exported as ex

_ALL_OF_IT: Final = marks((1, VERMILION))


def row() -> p.Row:
    """How much of a core, of memory and of its files each exporter has in use; folded."""
    panels = ((_processor(), 8), (_memory(), 8), (_files(), 8))
    return p.Row("Each exporter: what it takes of its machine", 8, panels, folded=True)


def _processor() -> Panel:
    return _each(
        19,
        "Processor",
        "Processor time of the exporter's process, as a share of one core. Polls, figures and pages take turns on one: "
        "near the dashed line polls are late. Poll less often, or divide the backends among exporters.",
        "percentunit",
        f"rate({select(process.CPU)}{STEP})",
        process.CPU,
        bound=_ALL_OF_IT,
    )


def _memory() -> Panel:
    return _each(
        20,
        "Resident memory",
        "Memory of the exporter's process. It grows with the backends and until the windows are full, then it stays: "
        "what climbs for days is a fault of the exporter.",
        "bytes",
        select(process.RESIDENT_MEMORY),
        process.RESIDENT_MEMORY,
    )


def _files() -> Panel:
    return _each(
        21,
        "Open files over limit",
        "File descriptors of the exporter's process, as a share of the most that it may have: connections to backends "
        "and from callers, logs. At the dashed line nothing more can be opened, and polls fail.",
        "percentunit",
        f"{select(process.OPEN_FILES)} / {select(process.MOST_FILES)}",
        process.OPEN_FILES,
        process.MOST_FILES,
        bound=_ALL_OF_IT,
    )


def _each(  # noqa: PLR0913  # a panel has this many independent properties
    id_: int, title: str, description: str, unit: str, value: str, *read: Series, bound: Json | None = None
) -> Panel:
    """The value of each exporter's process, told by what else is on its page: other programs expose the same names."""
    own = f"{value} and {ON_TARGET} {select(ex.BUILD_INFO)}"
    return c.graph(
        id_,
        title,
        f"{description} {reads(*read, ex.BUILD_INFO)}",
        unit,
        [Query(by("max", own, INSTANCE), f"{{{{{INSTANCE}}}}}")],
        overrides=[UNFILLED],
        marks=bound,
        legend="list",
        no_value=f"{NO_EXPORTER} on Linux",
    )
