"""Style as a test: which package may know which, what core must stay away from, and that nothing grows out of sight."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Where each package lives, and which others it may know. What lives at the top is imported from `sockpqd`.
PACKAGES = {
    "core": ("core", ()),
    "cluster": ("cluster", ("core",)),
    "beanstalk": ("beanstalk", ()),
    "connections": ("connections", ()),
    "gateway": ("gateway", ("core", "cluster", "beanstalk", "connections")),
    "beanstalk_proxy": ("beanstalk_proxy", ("beanstalk", "sockpq", "connections")),
    "sockpq": ("client/src/sockpq", ()),
    "sockpq_kombu": ("integrations/kombu/src/sockpq_kombu", ("sockpq",)),
    "pqctl": ("pqctl", ("sockpq",)),
    "devcluster": ("devcluster", ("sockpq",)),
    "bench": ("bench", ("core", "sockpq", "devcluster")),
}
SERVER = {name for name, (folder, _) in PACKAGES.items() if name == folder} - {"devcluster", "bench"}
# Other packages import the face of a package, its __init__; these modules belong to a face as well.
FACES = (
    "cluster.api", "sockpq.aio", "sockpq.interpreter", "sockpq.worker", "devcluster.cluster", "devcluster.node",
)

# Everything core needs. There is no clock, no randomness and no input or output in any of these.
CORE_IMPORTS = {
    "__future__", "array", "bisect", "collections", "enum", "hashlib", "heapq", "itertools", "msgspec", "re",
    "sortedcontainers", "typing",
}
# The first two differ between two processes, the others reach out of the machine or are not exact.
CORE_BUILTINS_FORBIDDEN = {"hash", "id", "open", "print", "input", "exec", "eval", "__import__", "float", "round"}

LIBRARY_MODULES = ("cluster/raft/pysyncobj_adapter.py",)      # all that may know pysyncobj

# What workers may import besides (the extra sockpq[worker]), and only within functions: App needs none of it.
WORKER_EXTRA = {"cronsim", "prometheus_client", "rich"}
WORKER = "client/src/sockpq/worker/"

FUNCTION_LINES_MAX = 60
LEFTOVERS = ("TODO", "FIXME", "XXX")


def findings(path: str, source: str, faces: dict[str, set[str]]) -> list[str]:
    """Return what is wrong with the file `path` (from the root) of a package. `faces`: the names each exports."""
    package = next(name for name, (folder, _) in PACKAGES.items() if path.startswith(f"{folder}/"))
    tree = ast.parse(source)
    found = [*_size(source, tree), *_imports(path, package, tree, faces)]
    if package == "core":
        found += _impurities(tree)
    return [f"{path}: {finding}" for finding in found]


def _size(source: str, tree: ast.AST) -> Iterator[str]:
    lines = source.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield f"{node.name} has {length} lines"
    for number, line in enumerate(lines, start=1):
        for leftover in LEFTOVERS:
            if leftover in line:
                yield f"{leftover} in line {number}"


def _imports(path: str, package: str, tree: ast.AST, faces: dict[str, set[str]]) -> Iterator[str]:
    for name, names in _imported(tree):
        module = name.removeprefix("sockpqd.")
        top = module.partition(".")[0]
        if module == name and top in SERVER:
            yield f"imports {module} instead of sockpqd.{module}"
        if top == "pysyncobj" and path not in LIBRARY_MODULES:
            yield "imports pysyncobj"
        if package == "core" and top not in CORE_IMPORTS | {"core"}:
            yield f"core imports {module}"
        if package == "sockpq" and top != "sockpq" and top not in sys.stdlib_module_names:
            if not (path.startswith(WORKER) and top in WORKER_EXTRA):
                yield f"the client library imports {module}"
            elif module in set(_imported_at_the_top(tree)):
                yield f"imports {module} of the extra outside of functions"
        if top not in PACKAGES or top == package:
            continue
        if top not in PACKAGES[package][1]:
            yield f"{package} imports {module}"
        elif module in FACES:
            continue
        elif module != top:
            yield f"imports {module} behind the face of {top}"
        else:
            yield from (f"imports {name}, which {top} does not export" for name in names if name not in faces[top])


def _imported(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Each module imported, with the names taken from it. Our own imports are all absolute (ruff's TID sees to it)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "sockpqd":
            yield from ((f"sockpqd.{alias.name}", []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or "", [alias.name for alias in node.names]


def _imported_at_the_top(tree: ast.AST) -> Iterator[str]:
    """The modules that are imported by importing this one."""
    within = {
        id(node) for function in ast.walk(tree) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if id(node) not in within:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""


def _impurities(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in CORE_BUILTINS_FORBIDDEN:
            yield f"{node.id} in line {node.lineno}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield f"float in line {node.lineno}"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div):
            yield f"division that makes a float in line {node.lineno}"
        elif isinstance(node, ast.For | ast.comprehension) and _is_set(node.iter):
            yield f"iteration over a set in line {node.iter.lineno}"


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("set", "frozenset")
    return isinstance(node, ast.Set | ast.SetComp)


def exported(source: str) -> set[str]:
    """The names in __all__."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets):
            return set(ast.literal_eval(node.value))
    return set()


@pytest.fixture(scope="module")
def faces() -> dict[str, set[str]]:
    """Return what each package exports."""
    inits = {name: ROOT / folder / "__init__.py" for name, (folder, _) in PACKAGES.items()}
    return {name: exported(init.read_text()) for name, init in inits.items() if init.exists()}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_tidy(package: str, faces: dict[str, set[str]]) -> None:
    found = []
    for path in sorted((ROOT / PACKAGES[package][0]).rglob("*.py")):
        found += findings(path.relative_to(ROOT).as_posix(), path.read_text(), faces)
    assert not found, "\n".join(found)


def test_core_is_there_to_be_looked_at() -> None:
    assert len(list((ROOT / "core").rglob("*.py"))) > 10


@pytest.mark.parametrize(
    ("path", "source", "finding"),
    [
        ("core/a.py", "import sockpqd.cluster", "core imports cluster"),
        ("core/a.py", "from sockpqd import cluster", "core imports cluster"),
        ("cluster/a.py", "from core import Machine", "imports core instead of sockpqd.core"),
        ("gateway/a.py", "import gateway.main", "imports gateway.main instead of sockpqd.gateway.main"),
        ("core/a.py", "from sockpqd.gateway import main", "core imports gateway"),
        ("cluster/a.py", "from sockpqd.gateway import main", "cluster imports gateway"),
        ("gateway/a.py", "from sockpq import Client", "gateway imports sockpq"),
        ("client/src/sockpq/a.py", "from sockpqd.core import Machine", "sockpq imports core"),
        ("client/src/sockpq/a.py", "import msgspec", "the client library imports msgspec"),
        ("client/src/sockpq/a.py", "import rich", "the client library imports rich"),
        ("client/src/sockpq/worker/a.py", "import click", "the client library imports click"),
        ("client/src/sockpq/worker/a.py", "import rich.live", "imports rich.live of the extra outside of functions"),
        ("pqctl/a.py", "from sockpqd.cluster import ClusterNode", "pqctl imports cluster"),
        ("bench/a.py", "import sockpqd.gateway.main", "bench imports gateway.main"),
        ("gateway/a.py", "from sockpqd.core.machine import Machine", "imports core.machine behind the face of core"),
        ("gateway/a.py", "import sockpqd.core.machine", "imports core.machine behind the face of core"),
        ("gateway/a.py", "from sockpqd.core import machine", "imports machine, which core does not export"),
        ("gateway/a.py", "def f():\n    import sockpqd.core.state", "imports core.state behind the face of core"),
        ("gateway/a.py", "import pysyncobj", "imports pysyncobj"),
        ("cluster/raft/transport.py", "from pysyncobj.node import Node", "imports pysyncobj"),
        *(
            ("core/a.py", f"import {module}", f"core imports {module}")
            for module in ("time", "datetime", "random", "secrets", "uuid", "os", "socket", "asyncio", "logging")
        ),
        ("core/a.py", "x = hash('q')", "hash in line 1"),
        ("core/a.py", "x = sorted([], key=id)", "id in line 1"),
        ("core/a.py", "x = 0.5", "float in line 1"),
        ("core/a.py", "x = 1 / 2", "division that makes a float in line 1"),
        ("core/a.py", "x = 1\nx /= 2", "division that makes a float in line 2"),
        ("core/a.py", "for x in {1, 2}: pass", "iteration over a set in line 1"),
        ("core/a.py", "y = [x for x in set('ab')]", "iteration over a set in line 1"),
        ("pqctl/a.py", "def f():\n" + "    pass\n" * 60, "f has 61 lines"),
        ("pqctl/a.py", "async def f():\n" + "    pass\n" * 60, "f has 61 lines"),
        ("pqctl/a.py", "x = 1\n# TO" "DO: more", "TO" "DO in line 2"),
        ("pqctl/a.py", "x = 1   # FIX" "ME", "FIX" "ME in line 1"),
    ],
)
def test_what_is_not_tidy_is_found(path: str, source: str, finding: str) -> None:
    assert f"{path}: {finding}" in findings(path, source, {"core": {"Machine"}, "cluster": {"ClusterNode"}})


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/a.py", "from sockpqd.core.machine import Machine\nfrom collections.abc import Iterator\nimport msgspec"),
        ("core/a.py", "x = 7 // 2\nfor y in sorted({1, 2}): pass\ntype(x)"),
        ("cluster/raft/pysyncobj_adapter.py", "import pysyncobj"),
        ("gateway/a.py", "from sockpqd.core import Machine\nfrom sockpqd.cluster.api import Cluster\nimport os"),
        ("pqctl/a.py", "from sockpq import Client\nimport click"),
        ("client/src/sockpq/worker/a.py", "def f():\n    from cronsim import CronSim"),
        ("pqctl/a.py", "def f():\n" + "    pass\n" * 59),
    ],
)
def test_what_is_tidy_is_not_found(path: str, source: str) -> None:
    assert findings(path, source, {"core": {"Machine"}, "sockpq": {"Client"}}) == []
