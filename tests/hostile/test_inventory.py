"""The states of nodes are compared after the same entry, whatever they execute meanwhile."""

from __future__ import annotations

import pytest

from tests.hostile import inventory
from tests.hostile.inventory import disagreement


class Nodes:
    """Answers for each node with one line after the other, repeating the last one."""

    def __init__(self, **lines: list[str | None]) -> None:
        self.names = list(lines)
        self._lines = lines

    def say(self, name: str, command: str, timeout: float = 0) -> str | None:
        """Return the next prepared answer of this node; the last one is repeated."""
        assert command == "CLUSTER HASH"
        lines = self._lines[name]
        return lines.pop(0) if len(lines) > 1 else lines[0]


def test_nodes_that_never_stand_at_the_same_entry_at_once_agree() -> None:
    assert disagreement(Nodes(
        n1=["200 OK 1 a", "200 OK 3 c", "200 OK 5 e"],
        n2=["200 OK 2 b", None, "200 OK 3 c", "200 OK 6 f"],
        n3=["200 OK 3 c", "200 OK 4 d"])) == ""


def test_two_states_after_the_same_entry_differ() -> None:
    told = disagreement(Nodes(n1=["200 OK 1 a", "200 OK 2 b"], n2=["200 OK 2 c"], n3=["200 OK 9 z"]))
    assert told == "the nodes do not agree: n2 2 c, n1 2 b"


def test_so_do_nodes_without_an_entry_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "EQUAL_S", 0.0)
    assert "n2 None" in disagreement(Nodes(n1=["200 OK 1 a"], n2=[None], n3=["500 Offline Mode"]))
