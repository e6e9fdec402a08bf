"""Class names of the server's packages: a name stands for one thing.

The client is a distribution of its own and names its mirror images of the server's replies and errors like these.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.statements import statements

ROOT = Path(__file__).parents[1]

PACKAGES = (
    "core", "cluster", "connections", "gateway", "beanstalk", "beanstalk_proxy", "pqctl", "devcluster", "bench",
)


def class_names(root: Path, packages: tuple[str, ...]) -> dict[str, list[str]]:
    """Each class name with the files that define a class of this name."""
    found: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            for node in statements(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(path.relative_to(root).as_posix())
    return found


def doubled(names: dict[str, list[str]]) -> dict[str, list[str]]:
    """The names that several files define."""
    return {name: files for name, files in names.items() if len(files) > 1}


def test_no_two_classes_have_one_name_for_two_things() -> None:
    assert doubled(class_names(ROOT, PACKAGES)) == {}


def test_a_name_for_two_things_is_found(tmp_path: Path) -> None:
    for file, source in {"a/x.py": "class Turns: ...", "b/y.py": "class Turns: ...\nclass Lane: ..."}.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(source)
    assert doubled(class_names(tmp_path, ("a", "b"))) == {"Turns": ["a/x.py", "b/y.py"]}
    assert doubled(class_names(tmp_path, ("a",))) == {}
