"""The rules of the house: who may know whom, what is pure, how long modules and functions get."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tidegauge import process

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "exporter" / "tidegauge"
MODULES = sorted(PACKAGE.rglob("*.py"))
IMPURE = frozenset(
    {"aiohttp", "asyncio", "io", "logging", "os", "pathlib", "requests", "shutil", "socket", "sqlite3", "subprocess"}
    | {"tempfile", "threading", "time", "urllib", "random", "gzip", "rich"}
)
MAY_KNOW = {
    # room: the rooms that it may import from; itself is understood
    "arguments": {"catalogue"},
    "catalogue": set(),
    "process": {"catalogue"},
    "vllm": {"process"},
    "model": set(),
    "clock": set(),
    "shipped": set(),
    "parsing": {"model", "vllm"},
    "state": {"catalogue", "model", "parsing", "vllm"},
    "derive": {"catalogue", "model", "state", "vllm"},
    "collectors": {"catalogue", "derive", "model", "state"},
    "watch": {"derive", "model", "parsing", "state", "vllm"},
    "sources": {"clock", "model", "parsing"},
    "grafana": {"shipped", "sources"},
    "config": {"catalogue", "parsing", "sources"},
    "web": {"clock", "collectors", "derive", "parsing", "report", "shipped", "sources"},
}
"""What is not listed (app, exporter, cli, report, caller, demo) wires, or stands beside the exporter."""
PURE = ("arguments", "catalogue", "process", "vllm", "model", "parsing", "state", "derive", "watch")
WIRES = {"app", "cli", "report", "demo"}
LONGEST_MODULE = 400
LONGEST_FUNCTION = 60


def room(path):
    """The room that a module is in: the folder, or the module's own name at the top."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0].removesuffix(".py")


def imports(path):
    """(top-level name, dotted name) of everything a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def ours(path):
    """The rooms that a module imports from."""
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("tidegauge.")}
    return {name for name in rooms if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()}


def says_pure(path):
    """Whether the module's own words call it so, as in `boards for the sidecar: pure.`"""
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.search(r"[:;,] pure[.,]", said) is not None


def shown(path):
    return str(path.relative_to(PACKAGE))


def functions(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.end_lineno - node.lineno + 1


def test_there_is_something_to_check():
    """All the rooms of the table exist, each with code in it."""
    rooms = defaultdict(int)
    for path in MODULES:
        rooms[room(path)] += 1

    assert set(MAY_KNOW) | WIRES <= set(rooms)
    assert {"grafana/configmaps.py", "grafana/plan.py"} <= {shown(path) for path in MODULES if says_pure(path)}
    assert len(MODULES) > 60


@pytest.mark.parametrize("path", [path for path in MODULES if room(path) in MAY_KNOW], ids=shown)
def test_imports_run_one_way(path):
    """A room knows the rooms before it, and no other."""
    here = room(path)

    assert ours(path) - {here} <= MAY_KNOW[here]


@pytest.mark.parametrize("path", [path for path in MODULES if room(path) in PURE or says_pure(path)], ids=shown)
def test_core_is_pure(path):
    """Values in, values out: no I/O, no clock, no loop, no log; so is every module that calls itself pure."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}

    assert not {name.split(".")[0] for name in imports(path)} & IMPURE
    assert not called & {"open", "print", "input", "exec", "eval", "__import__"}
    asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not asked & {"now", "utcnow", "today", "stdout", "stderr", "stdin", "environ", "argv"}


def test_nobody_but_the_wiring_knows_the_wiring():
    """`app` and `cli` know all the others, and none of the others knows them."""
    knows = {shown(path) for path in MODULES if ours(path) & {"app", "cli"}}

    assert knows <= {"cli.py", "__main__.py"} | {shown(path) for path in MODULES if room(path) == "demo"}


@pytest.mark.parametrize("path", MODULES, ids=shown)
def test_modules_and_functions_are_short(path):
    """A module has 400 lines at most, a function 60."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    long = {name: length for name, length in functions(path) if length > LONGEST_FUNCTION}

    assert lines <= LONGEST_MODULE
    assert {} == long


def test_test_modules_are_short():
    """Tests are split by what they are about, as modules are: 400 lines at most."""
    long = {path.name for path in (ROOT / "tests").rglob("*.py") if path.read_text().count("\n") > LONGEST_MODULE}

    assert set() == long


def test_functions_are_short_in_general():
    """Half of them within ten lines, nine out of ten within 35."""
    lengths = sorted(length for path in MODULES for _, length in functions(path))

    assert lengths[len(lengths) // 2] <= 10
    assert lengths[len(lengths) * 9 // 10] <= 35


def test_there_are_no_corridors():
    """A name says what a module is about."""
    names = {part.removesuffix(".py") for path in MODULES for part in path.relative_to(PACKAGE).parts}

    assert not names & {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc", "tools"}


def test_foreign_names_are_spelt_in_one_place_only():
    """Nobody but the catalogue writes a name of ours, nobody but `vllm` (and the simulated vLLM) one of vLLM's.

    What prometheus_client calls its series about a process stands in `process`.
    """
    of_process = {series.name for series in process.SERIES}
    for path in MODULES:
        if room(path) in {"catalogue", "vllm", "demo"}:
            continue
        texts = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
        }
        assert not {text for text in texts if text.startswith(("tidegauge_", "vllm:"))}, path
        assert not texts & of_process, path


def test_no_two_test_files_share_a_name():
    """Tests are no package: pytest could not tell two modules of one name apart, and would run neither."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]

    assert len(names) > 50
    assert [] == sorted(name for name in set(names) if names.count(name) > 1)
