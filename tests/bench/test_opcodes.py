"""Counts instructions of a node for each job, by function."""

from __future__ import annotations

from bench.opcodes.__main__ import Counts, count, table, total
from bench.revisions import HERE

PUT = "core/handlers/jobs/put.py", "put"


def test_a_node_counts_what_it_executes_for_each_job() -> None:
    counted = count(HERE, ("PUT",), connections=2, jobs=50, nodes=1)
    assert counted[PUT].calls == 1
    assert 50 < counted[PUT].opcodes < 500
    assert counted["gateway/protocol/parser.py", "Parser.next"].calls >= 1
    everything = total(counted)
    assert everything.opcodes > counted[PUT].opcodes + 100
    assert everything.calls > 10


def test_the_functions_that_differ_most_come_first() -> None:
    before = {("a.py", "f"): Counts(100, 1), ("a.py", "g"): Counts(10, 1)}
    here = {("a.py", "f"): Counts(101, 1), ("b.py", "h"): Counts(30, 2)}
    assert table(here, before, 2) == [
        "| function | opcodes before | opcodes | calls before | calls |", "|---|--:|--:|--:|--:|",
        "| all | 110.0 | 131.0 | 2.00 | 3.00 |", "| b.py h | 0.0 | 30.0 | 0.00 | 2.00 |",
        "| a.py g | 10.0 | 0.0 | 1.00 | 0.00 |",
    ]
    assert table(here, None, 1)[2:] == ["| all | 131.0 | 3.00 |", "| a.py f | 101.0 | 1.00 |"]
