"""Mistakes with changes of the members: see mistakes.py."""

from __future__ import annotations

from tests.model.invariants import ALWAYS
from tests.model.members import Members
from tests.model.mistakes import Mistake
from tests.model.rules import Label
from tests.model.state import Node, voters_of


class ChangeTwoVotersAtOnce(Members):
    """A change is made whatever voters it was proposed for, and proposed while another one is not executed."""

    def may_change(self, node: Node, one: int) -> bool:
        return self.announced(node) and bool(self.in_force(node.log, node.commit) >> one & 1)

    def covers(self, commit: int, change: int) -> bool:
        return True

    def takes_effect(self, voters: int, change: int) -> bool:
        return True

    def changed(self, voters: int, change: int) -> int:
        return voters & change      # both remove a voter of the same set


class ChangeOnWhenRemoved(Members):
    """A leader that was removed, and counts as before, proposes further changes."""

    def may_change(self, node: Node, one: int) -> bool:
        pending = any(voters_of(entry) for entry in node.log[node.commit:])
        return self.announced(node) and not pending


class ForgetAnExecutedChange(Members):
    """A node that is started again counts by the founders, until it executes its log once more."""

    def saved(self, node: Node) -> int:
        return 1


# Node 0 leads three or five nodes, and serves.
SERVES: tuple[Label, ...] = (
    ("stand", 0, 1), ("vote", 1, 0, 1), ("vote", 2, 0, 1), ("lead", 0), ("receive", 1, 1, 2, 1),
    ("receive", 2, 1, 2, 1), ("commit", 0, 2),
)
# Nodes 3 and 4 were removed of five, at once; node 2 has not executed that, and stands.
TWO_REMOVED: tuple[Label, ...] = (
    *SERVES, ("change", 0, 3), ("change", 0, 4), ("receive", 1, 1, 4, 2), ("receive", 2, 1, 4, 2), ("commit", 0, 4),
    ("propose", 0), ("receive", 1, 1, 5, 2), ("stand", 2, 2), ("vote", 3, 2, 2),
)
# Node 0 has removed itself, and node 1.
GOES_ON: tuple[Label, ...] = (
    *SERVES, ("change", 0, 0), ("receive", 1, 1, 3, 2), ("commit", 0, 3), ("change", 0, 1), ("receive", 1, 1, 4, 3),
    ("receive", 2, 1, 4, 3), ("commit", 0, 4),
)
# Node 0 has removed node 2, and then node 1, which was started again.
ALONE: tuple[Label, ...] = (
    *SERVES, ("change", 0, 2), ("receive", 1, 1, 3, 2), ("commit", 0, 3), ("change", 0, 1), ("receive", 1, 1, 4, 3),
    ("commit", 0, 4), ("propose", 0), ("crash", 1),
)
CHANGES = {"terms": 2, "entries": 1, "changes": 2}

MISTAKES_OF_MEMBERS = (
    Mistake(ChangeTwoVotersAtOnce, "H10a, NATS #7545", {"nodes": 5, "voters": 31, **CHANGES}, ALWAYS, TWO_REMOVED),
    Mistake(ChangeOnWhenRemoved, "H10b", {"voters": 7, **CHANGES}, ALWAYS, GOES_ON),
    Mistake(ForgetAnExecutedChange, "H10c", {"voters": 7, "crashes": 1, **CHANGES}, ALWAYS, ALONE),
)
