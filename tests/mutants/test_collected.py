"""Collected tests are run in forks with changed functions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mutants.collected import codes, extent, same
from tests.mutants.judging import Workshop
from tests.mutants.mutations import mutants

MODULE = """
LIMIT = 3 == 4

def small(x):
    return x < 10

class Account:
    def takes(self, x):
        def inner():
            return x == 5
        return inner()

def never(x):
    return x == 1
"""
TESTS = """
from cluster import bank

def test_slow():
    for _ in range(30000):
        bank.small(3)

def test_small(tmp_path):
    assert bank.small(3) and not bank.small(10)

def test_takes():
    assert bank.Account().takes(5)

def test_limit():
    assert not bank.LIMIT
"""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    root = tmp_path_factory.mktemp("tree") / "copy"
    (root / "cluster").mkdir(parents=True)
    (root / "cluster" / "__init__.py").write_text("")
    (root / "cluster" / "bank.py").write_text(MODULE)
    (root / "test_bank.py").write_text(TESTS)
    (root / "conftest.py").write_text(
        "import gc\nimport cluster.bank\nfrom hypothesis import settings\n"
        "settings.register_profile('gate')\ngc.freeze()\n")
    found = Workshop(root, 0, ["test_bank.py"])
    yield found
    found.close()


@pytest.mark.parametrize(("key", "test"), [
    ("small: x < 10 => x >= 10", "FAILED test_bank.py::test_s"),
    ("small: x < 10 => x <= 10", "FAILED test_bank.py::test_small"),
    ("Account.takes.inner: x == 5 => x != 5", "FAILED test_bank.py::test_takes"),
    (": 3 == 4 => 3 != 4", "FAILED test_bank.py::test_limit"),         # a new import
    ("never: x == 1 => x != 1", None),
])
def test_a_mutant_is_seen_by_the_tests(key: str, test: str | None, workshop: Workshop) -> None:
    mutant = next(mutant for mutant in mutants(MODULE.encode()) if mutant.key == key)
    by, said = workshop.judge("cluster/bank.py", mutant, ["test_bank.py"])
    assert (by, said.startswith(test or "tests and 0 seeds")) == ("tests" if test else "nothing", True), said


def test_codes_are_compared_by_what_they_do() -> None:
    one, moved, other = (
        codes(compile(source, "a", "exec"))["f"]
        for source in ("def f(a):\n    return a", "\n\ndef f(a):\n    return a", "def f(a):\n    return 1"))
    assert same(one, moved)
    assert not same(one, other)


def test_the_outermost_function_around_a_line() -> None:
    source = "@x\ndef f():\n    def g():\n        pass\n    g()\n\ny = 1\n"
    assert [extent(source, line) for line in (1, 4, 5, 7)] == [range(1, 6)] * 3 + [range(7, 8)]
