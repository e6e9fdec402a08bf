"""The imports of each package: which others it may know, and which libraries."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.statements import statements

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
    "sockpq_outbox": ("integrations/outbox/src/sockpq_outbox", ("sockpq",)),
    "sockpq_django": ("integrations/django/src/sockpq_django", ("sockpq", "sockpq_outbox")),
    "sockpq_dramatiq": ("integrations/dramatiq/src/sockpq_dramatiq", ("sockpq",)),
    "sockpq_taskiq": ("integrations/taskiq/src/sockpq_taskiq", ("sockpq",)),
    "sockpq_http": ("integrations/http/src/sockpq_http", ("sockpq",)),
    "sockpq_sqs": ("integrations/sqs/src/sockpq_sqs", ("sockpq",)),
    "pqctl": ("pqctl", ("sockpq",)),
    "devcluster": ("devcluster", ("sockpq",)),
    "bench": ("bench", ("core", "sockpq", "devcluster")),
}
SERVER = {name for name, (folder, _) in PACKAGES.items() if name == folder} - {"devcluster", "bench"}
# Other packages import the face of a package, its __init__; these modules belong to a face as well.
FACES = (
    "cluster.api", "sockpq.aio", "sockpq.interpreter", "sockpq.names", "sockpq.worker",
    "sockpq.worker.program.log_handler", "devcluster.cluster", "devcluster.node", "devcluster.authority",
)

# Everything core needs. There is no clock, no randomness and no input or output in any of these.
CORE_IMPORTS = {
    "__future__", "array", "bisect", "collections", "enum", "hashlib", "heapq", "itertools", "msgspec", "re",
    "sortedcontainers", "typing",
}
LIBRARY_MODULES = ("cluster/raft/pysyncobj_adapter.py",)      # all that may know pysyncobj

# What workers may import besides (the extra sockpq[worker]), and only within functions: App needs none of it.
WORKER_EXTRA = {"cronsim", "prometheus_client", "rich"}
WORKER = "client/src/sockpq/worker/"


def findings(path: str, source: str, faces: dict[str, set[str]]) -> list[str]:
    """Return which imports of the file `path` (from the root) may not be. `faces`: the names each package exports."""
    package = next(name for name, (folder, _) in PACKAGES.items() if path.startswith(f"{folder}/"))
    return [f"{path}: {finding}" for finding in _imports(path, package, ast.parse(source), faces)]


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
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "sockpqd":
            yield from ((f"sockpqd.{alias.name}", []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or "", [alias.name for alias in node.names]


def _imported_at_the_top(tree: ast.AST) -> Iterator[str]:
    """The modules that are imported by importing this one."""
    within = {
        id(node) for function in statements(tree) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in statements(function)
    }
    for node in statements(tree):
        if id(node) not in within:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or ""


def exported(source: str) -> set[str]:
    """Return the names in __all__; none without it."""
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
def test_package_imports_what_it_may(package: str, faces: dict[str, set[str]]) -> None:
    found = []
    for path in sorted((ROOT / PACKAGES[package][0]).rglob("*.py")):
        found += findings(path.relative_to(ROOT).as_posix(), path.read_text(), faces)
    assert not found, "\n".join(found)


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
    ],
)
def test_what_may_not_be_imported_is_found(path: str, source: str, finding: str) -> None:
    assert f"{path}: {finding}" in findings(path, source, {"core": {"Machine"}, "cluster": {"ClusterNode"}})


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/a.py", "from sockpqd.core.machine import Machine\nfrom collections.abc import Iterator\nimport msgspec"),
        ("cluster/raft/pysyncobj_adapter.py", "import pysyncobj"),
        ("gateway/a.py", "from sockpqd.core import Machine\nfrom sockpqd.cluster.api import Cluster\nimport os"),
        ("pqctl/a.py", "from sockpq import Client\nimport click"),
        ("client/src/sockpq/worker/a.py", "def f():\n    from cronsim import CronSim"),
    ],
)
def test_what_may_be_imported_is_not_found(path: str, source: str) -> None:
    assert findings(path, source, {"core": {"Machine"}, "sockpq": {"Client"}}) == []
