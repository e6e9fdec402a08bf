"""The rooms of the packages: in which order they stand, and that no files import each other in a circle.

A module may import modules of its own room and of those before it in the order. Imports for types only count as well:
a circle is one, whether or not it is hidden by TYPE_CHECKING.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.statements import statements

ROOT = Path(__file__).parents[1]

# Modules directly in the package are rooms of their own.
ORDER = {
    "core": (
        "levels", "limits", "dead_letters", "clusters", "ops", "store", "pages", "records", "pulse", "fair", "sessions",
        "members", "state", "undo", "rules", "snapshot", "handlers", "queries", "find", "machine",
    ),
    "cluster": (
        "limits", "metrics", "api", "settings", "errors", "storage", "paging", "journal", "snapshots", "damage", "wire",
        "raft", "capacity", "leader", "mirror", "sync_pace", "syncing", "execution", "forwarding", "feed", "driver",
        "idle", "driven_node", "stats", "administration", "exit_codes", "node",
    ),
    "gateway": (
        "limits", "link", "rights", "audit", "events", "protocol", "config", "process", "replica", "auth", "pulses",
        "waiting", "counters", "commands", "server", "beanstalkd", "monitoring", "samples", "dashboard",
        "dev", "daemon", "main",
    ),
    "beanstalk": (
        "limits", "answers", "commands", "reader", "calls", "turns", "tubes", "reservations", "server",
        "conversation", "connection",
    ),
    "connections": (
        "addresses", "limits", "slots", "timeouts", "memory_account", "tcp", "accepting", "listener", "accepted",
        "manager",
    ),
    "beanstalk_proxy": ("lease_cache", "shared_sums", "backend", "listener", "main"),
    "pqctl": (
        "output", "access", "health", "replicas", "settings", "parameters", "report", "snapshot_file", "invocation",
        "connect", "doctor", "actions", "over_all", "importing", "live", "shell", "commands", "program", "main",
    ),
    "sockpq": (
        "_version", "errors", "names", "_process", "model", "configuration", "interpreter", "_protocol", "_backends",
        "_engine", "_routing", "_streaming", "_async", "_sync", "aio", "worker", "_guardian", "testing",
    ),
    "sockpq_kombu": (
        "_version", "mapping", "client", "background", "transient", "link", "channels", "batch", "transport", "results",
        "features", "hook",
    ),
    "sockpq_outbox": (
        "_version", "errors", "words", "sql", "databases", "jobs", "rows", "tables", "schema", "outbox", "inbox",
        "relay", "metrics", "doctor", "program", "__main__",
    ),
    "sockpq_dramatiq": (
        "_version", "errors", "step", "messages", "results", "cancellation", "consumer", "broker", "groups",
    ),
    "sockpq_taskiq": ("_version", "labels", "held_task", "middleware", "broker", "results", "schedules"),
    "sockpq_django": (
        "_version", "api", "errors", "models", "migrations", "tasks", "configuration", "work", "database", "backend",
        "backends", "operations", "views", "apps", "admin", "worker", "testing", "management",
    ),
    "sockpq_http": (
        "_version", "limits", "values", "problems", "access", "idempotency", "exchange", "routes", "server",
        "push", "main",
    ),
    "sockpq_sqs": (
        "_version", "options", "reasons", "settings", "service_manager", "model", "call", "failures", "queues",
        "messages", "moves", "engine", "auth", "wire", "door", "main",
    ),
    "devcluster": ("ports", "authority", "guardian", "node", "cluster"),
}
ROOM_MODULES_MAX = 16

# Of the others it is their package's name.
FOLDERS = {"sockpq": "client/src/sockpq"} | {
    f"sockpq_{path.name}": f"integrations/{path.name}/src/sockpq_{path.name}" for path in ROOT.glob("integrations/*")
}

Imports = dict[str, set[str]]


@cache            # two tests look at each package
def imports_of(package: str, root: Path = ROOT) -> Imports:
    """Each module of the package (dotted, without the package's name), and the modules of it that it imports."""
    folder = root / FOLDERS.get(package, package)
    modules: dict[str, Path] = {}
    for path in folder.rglob("*.py"):
        words = path.relative_to(folder).with_suffix("").parts
        modules[".".join(words[:-1] if words[-1] == "__init__" else words)] = path
    modules.pop("", None)               # the face may import all of them
    imports: Imports = {}
    for module, path in modules.items():
        imports[module] = set()
        for node in statements(ast.parse(path.read_text())):
            source = node.module.removeprefix("sockpqd.") if isinstance(node, ast.ImportFrom) and node.module else ""
            if source.split(".")[0] == package:
                base = source.partition(".")[2]
                for alias in node.names:
                    name = f"{base}.{alias.name}".lstrip(".")
                    imports[module].add(name if name in modules else base)
    return imports


def upward(imports: Imports, order: tuple[str, ...]) -> list[str]:
    """The imports of rooms that come later in the order."""
    place = {room: number for number, room in enumerate(order)}
    return [
        f"{module} imports {other}" for module in sorted(imports) for other in sorted(imports[module])
        if place[module.split(".")[0]] < place[other.split(".")[0]]
    ]


def circle(imports: Imports) -> list[str]:
    """The modules that are in a circle, or behind one; empty when there is none."""
    left = {module: {other for other in others if other != module} for module, others in imports.items()}
    while free := [module for module, others in left.items() if not others & left.keys()]:
        for module in free:
            del left[module]
    return sorted(left)


@pytest.mark.parametrize("package", ORDER)
def test_rooms_stand_in_their_order(package: str) -> None:
    imports = imports_of(package)
    assert {module.split(".")[0] for module in imports} == set(ORDER[package])
    assert upward(imports, ORDER[package]) == []


def documented(text: str) -> dict[str, tuple[str, ...]]:
    """Return the rooms of each package in a document's table of rooms: the first word of each part between dots."""
    table = text.partition("| package | rooms, in their order |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return {package: tuple(part.split("`")[1] for part in rooms.split(" · ")) for package, rooms in rows}


def test_the_table_of_rooms_has_them_in_their_order() -> None:
    found = documented((ROOT / "docs/ARCHITECTURE.md").read_text())
    assert found.keys() == ORDER.keys()
    for package, rooms in found.items():
        assert rooms == ORDER[package], f"docs/ARCHITECTURE.md, Rooms: {package}"


@pytest.mark.parametrize("package", ORDER)
def test_no_files_import_each_other_in_a_circle(package: str) -> None:
    assert circle(imports_of(package)) == []


@pytest.mark.parametrize("package", [*ORDER, "bench"])
def test_a_room_has_few_modules_and_says_what_it_is(package: str) -> None:
    folder = ROOT / FOLDERS.get(package, package)
    rooms = [path.parent for path in folder.glob("*/__init__.py")]
    for room in [folder, *rooms]:
        modules = [path for path in room.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= ROOM_MODULES_MAX, room
        assert ast.get_docstring(ast.parse((room / "__init__.py").read_text())), room


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    files = {
        "__init__": "from p.high import x", "low/__init__": "", "low/a": "from p.low.b import x\nfrom p.high import y",
        "low/b": "from p.low import a", "high": "from p.low import b",
    }
    for name, source in files.items():
        path = tmp_path / "p" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        imports_for_types = "".join(f"    {line}\n" for line in source.splitlines()) or "    pass\n"
        path.write_text(f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n{imports_for_types}")
    imports = imports_of("p", tmp_path)
    assert upward(imports, ("low", "high")) == ["low.a imports high"]
    assert circle(imports) == ["high", "low.a", "low.b"]
    imports["low.a"] = set()
    assert circle(imports) == []
