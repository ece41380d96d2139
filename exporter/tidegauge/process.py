"""Names of the series about a process that prometheus_client exposes where the system has /proc.

The exporter's page has them, and so have pages of vLLM's servers and of most programs in Python: a query says whose.
"""

from typing import Final

from tidegauge.catalogue.series import Kind, Series


def _series(key: str, kind: Kind, help_: str) -> Series:
    return Series(f"process_{key}", f"process_{key}{'_total' if kind == 'counter' else ''}", kind, help_)


VIRTUAL_MEMORY: Final = _series("virtual_memory_bytes", "gauge", "Virtual memory size in bytes.")
RESIDENT_MEMORY: Final = _series("resident_memory_bytes", "gauge", "Resident memory size in bytes.")
START_TIME: Final = _series("start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")
CPU: Final = _series("cpu_seconds", "counter", "Total user and system CPU time spent in seconds.")
OPEN_FILES: Final = _series("open_fds", "gauge", "Number of open file descriptors.")
MOST_FILES: Final = _series("max_fds", "gauge", "Maximum number of open file descriptors.")

SERIES: Final = (VIRTUAL_MEMORY, RESIDENT_MEMORY, START_TIME, CPU, OPEN_FILES, MOST_FILES)
"""In the order of a page."""
