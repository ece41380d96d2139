"""The types of each Grafana and the TypeScript compiler: found in one place, missed for one reason.

stack/types.sh installs them with npm. Where there is no npm, the tests that need them are skipped, each with the
command that brings them, and the summary of the run says so.
"""

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "tests" / "types"
INSTALLED = ROOT / "build" / "types"
GRAFANAS = {
    name: wanted.rpartition("@")[2]
    for name, wanted in json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))["dependencies"].items()
    if name.startswith("grafana-")
}
"""The packages with a Grafana's types and their versions, the oldest Grafana first."""
COMPILER = INSTALLED / "node_modules" / ".bin" / "tsc"
MISSING = (
    "BOARDS NOT CHECKED AGAINST GRAFANA'S TYPES: nothing in build/types; run `bash stack/types.sh` with npm on PATH"
)


def is_there() -> bool:
    """Whether boards can be checked."""
    return COMPILER.exists() and shutil.which("node") is not None


def compiler() -> Path:
    """The compiler's path. Skips the test where it is missing."""
    if not is_there():
        pytest.skip(MISSING)
    return COMPILER
