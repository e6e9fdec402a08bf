"""The members that count, and what a majority of them has reached.

To the library a cluster has two members: this node, and QUORUM, which stands for as many of the others as a majority
needs. What a majority has acknowledged is told to it as QUORUM's acknowledgement, votes of a majority as QUORUM's vote.
So the library's part in Raft stays as it is, while who counts is decided here and can change (membership.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from cluster.context import Context, Peer
from cluster.library import QUORUM

Value = TypeVar("Value", int, float)


class Quorum:
    """Counts. `voters`: the names of all members with a vote, this node's among them if it is one."""

    def __init__(self, context: Context, voters: Iterable[str]) -> None:
        self._context = context
        self.voters = frozenset(voters)
        self._heard = False             # something was acknowledged since the library was told last

    def change(self, voters: Iterable[str]) -> None:
        """Count these from now on."""
        self.voters = frozenset(voters)
        self._heard = True

    def heard(self) -> None:
        """Leader: a peer has acknowledged something."""
        self._heard = True

    @property
    def majority(self) -> int:
        """So many voters are a majority."""
        return len(self.voters) // 2 + 1

    @property
    def member(self) -> bool:
        """Is this node a voter?"""
        return self._context.name in self.voters

    def peers(self) -> list[Peer]:
        """The other voters."""
        return [peer for name, peer in self._context.peers.items() if name in self.voters]

    def reached(self, mine: Value, theirs: Callable[[Peer], Value], nothing: Value) -> Value:
        """The greatest value that a majority has at least; `nothing` is the value of voters nobody knows."""
        values = sorted([theirs(peer) for peer in self.peers()], reverse=True)
        if self.member:
            values.insert(0, mine)          # our own is never below another's
        return values[self.majority - 1] if len(values) >= self.majority else nothing

    def proof(self) -> float:
        """Leader: a majority has answered something that was sent at this moment or later; monotonic seconds."""
        term = self._context.replica.term
        lost = float("-inf")
        return self.reached(float("inf"), lambda peer: peer.proof if peer.up and peer.term == term else lost, lost)

    def match(self) -> int:
        """Leader: the log is equal up to here on a majority."""
        term = self._context.replica.term
        return self.reached(self._context.journal.last_index, lambda peer: peer.match if peer.term == term else 0, 0)

    def tick(self) -> None:
        """Leader: tell the library what a majority has reached since the last time.

        Must come before anything in a turn that appends to the log: this node counts its own copy of an entry as well,
        and that is durable only at the end of the turn.
        """
        if not self._context.leads() or not (self._heard or self.majority == 1):
            return
        self._heard = False
        if self.proof() > float("-inf"):
            self._context.deliver(QUORUM, {
                "type": "next_node_idx", "next_node_idx": self.match() + 1, "reset": False, "success": True,
            })

    def elected(self, term: int) -> None:
        """Candidate: a majority has voted for us."""
        self._context.deliver(QUORUM, {"type": "response_vote", "term": term})
