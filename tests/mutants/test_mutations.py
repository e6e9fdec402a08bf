"""The mutants of a module: which there are, what they are called, and what they change."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import ROOT, SURVIVORS
from tests.mutants.modules import MODULES
from tests.mutants.mutations import mutants
from tests.mutants.results import read_survivors


def changes(source: str) -> dict[str, str]:
    """Each mutant's key, and its source."""
    return {mutant.key: mutant.applied(source.encode()).decode() for mutant in mutants(source.encode())}


@pytest.mark.parametrize(("before", "after"), [
    ("a < b", {"a >= b", "a <= b"}), ("a <= b", {"a > b", "a < b"}), ("a > b", {"a <= b", "a >= b"}),
    ("a >= b", {"a < b", "a > b"}), ("a == b", {"a != b"}), ("a != b", {"a == b"}),
    ("a is b", {"a is not b"}), ("a is not b", {"a is b"}), ("a in b", {"a not in b"}), ("a not in b", {"a in b"}),
    ("(a + b)<(c)", {"(a + b)>=(c)", "(a + b)<=(c)"}),
    ("0 <= a == b", {"0 > a == b", "0 < a == b", "0 <= a != b"}),
    ("not a", {"a"}), ("x(not (a + b))", {"x((a + b))"}),
    ("a and b", {"((a) or True) and b", "a and ((b) or True)"}),
    ("a or f(b)", {"((a) and False) or f(b)", "a or ((f(b)) and False)"}),
    ("a or 0", {"((a) and False) or 0"}),
    ("file.sync()", {"pass"}), ("x = file.sync(1)", {"x = True"}), ("self._end_sync()", {"pass"}), ("print(a)", set()),
])
def test_what_an_expression_becomes(before: str, after: set[str]) -> None:
    assert set(changes(before).values()) == after


def test_an_early_return_is_taken_never_and_always() -> None:
    source = "def f(a):\n    if a:\n        return 1\n    return 2\n"
    assert changes(source) == {
        "f: if a => if False": source.replace("if a:", "if ((a) and False):"),
        "f: if a => if True": source.replace("if a:", "if ((a) or True):"),
    }
    assert len(changes("def f(a):\n    if a:\n        self.damaged(1)\n")) == 2
    assert not changes("def f(a):\n    if a:\n        print()\n")
    assert not changes("def f(a):\n    if a:\n        return 1\n    else:\n        return 2\n")


def test_a_key_names_the_function_and_does_not_depend_on_lines() -> None:
    source = "class A:\n    def f(self, a, b):\n        x = a == b\n        y = (a ==\n             b)\n"
    assert list(changes(source)) == ["A.f: a == b => a != b", "A.f: a == b => a != b #2"]
    assert list(changes(f"# ä\n\n{source}")) == list(changes(source))


def test_letters_of_several_bytes_are_no_obstacle() -> None:
    assert changes("x = 'ä' == a") == {": 'ä' == a => 'ä' != a": "x = 'ä' != a"}


@pytest.mark.parametrize("module", MODULES)
def test_each_mutant_is_another_text_with_a_name_of_its_own(module: str) -> None:
    source = (ROOT / module).read_bytes()
    found = mutants(source)
    assert len({source, *(mutant.applied(source) for mutant in found)}) == len(found) + 1
    assert len({mutant.key for mutant in found}) == len(found)


def test_every_module_is_listed_with_tests_that_exist() -> None:
    for folder in ("raft", "journal"):
        files = {f"cluster/{folder}/{path.name}" for path in (ROOT / "cluster" / folder).glob("*.py")}
        assert files - {f"cluster/{folder}/__init__.py"} <= set(MODULES)
    listed = {*MODULES, *(test for tests in MODULES.values() for test in tests)}
    assert [file for file in listed if not (ROOT / file).is_file()] == []


def test_every_survivor_that_is_listed_is_a_mutant_with_a_reason() -> None:
    survivors = read_survivors(SURVIVORS)
    known = {(module, mutant.key) for module in MODULES for mutant in mutants((ROOT / module).read_bytes())}
    assert [name for name in survivors if name not in known] == [], "correct survivors.toml, as the code has changed"
    assert all(survivors.values())
