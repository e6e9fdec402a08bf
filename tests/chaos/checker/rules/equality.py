"""Checks that all nodes hold the same state at the end."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.checker.facts import Facts
from tests.chaos.checker.violation import Violation


def equality(facts: Facts) -> Iterator[Violation]:
    """Check that each node has the same position, hash and TOTAL as the first."""
    for node in facts.nodes[1:]:
        first = facts.nodes[0]
        if (node.applied, node.hash, node.total) != (first.applied, first.hash, first.total):
            yield Violation(
                "equality",
                f"{node.name} is at {node.applied} with hash {node.hash} and TOTAL {node.total}, "
                f"{first.name} is at {first.applied} with {first.hash} and {first.total}",
                (),
            )
