"""Changes of the members, one voter at a time (spec/cluster 7)."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.rules import Rules, Step
from tests.model.state import Disk, Log, Node, State, voters_of


class Members(Rules):
    """The rules with changes of the voters. A change takes effect where it is executed, which is when it is committed.

    A change names the voters that it brings. It was made for those of which it takes one away, or to which it adds one;
    where others are in force when it is executed, it changes nothing.
    """

    def _of_node(self, state: State, one: int) -> Iterator[Step]:
        yield from super()._of_node(state, one)
        if state.changes and state.nodes[one].leads:
            for other in range(len(state.nodes)):
                yield from self._tried(("change", one, other), self.change(state, one, other))

    def noted(self, node: Node) -> Node:
        """Return the node as it is: a commit index alone is not written at once."""
        return node

    def written(self, node: Node) -> Node:
        return node._replace(disk=Disk(node.term, node.vote, node.log, self.saved(node), node.first, node.voter))

    def saved(self, node: Node) -> int:
        """Return the commit index that a frame of the journal has (spec/cluster 7.1)."""
        return node.commit

    def restarted(self, node: Node) -> Node:
        node = super().restarted(node)
        return node._replace(counted=self.in_force(node.log, node.commit))

    def in_force(self, log: Log, commit: int) -> int:
        """Return the voters after these entries were executed."""
        voters = 0
        for one in log[:commit]:
            if voters_of(one) and (not voters or self.takes_effect(voters, voters_of(one))):
                voters = self.changed(voters, voters_of(one)) if voters else voters_of(one)
        return voters

    def takes_effect(self, voters: int, change: int) -> bool:
        """Return whether a change was made for the voters that are in force."""
        return (voters ^ change).bit_count() == 1

    def changed(self, voters: int, change: int) -> int:
        """Return the voters after a change."""
        return change

    def counting(self, node: Node, one: int) -> Node:
        """Return a node that counts by the voters in force; a leader that was removed counts as before."""
        voters = self.in_force(node.log, node.commit)
        return node if node.leads and not voters >> one & 1 else node._replace(counted=voters)

    def may_change(self, node: Node, one: int) -> bool:
        """Return whether a leader may propose a change: it serves, was not removed, and has executed the one before."""
        pending = any(voters_of(entry) for entry in node.log[node.commit:])
        return self.announced(node) and not pending and bool(self.in_force(node.log, node.commit) >> one & 1)

    def change(self, state: State, one: int, other: int) -> State | None:
        """Propose to remove a voter, or to add a node that has caught up."""
        node = state.nodes[one]
        voters = self.in_force(node.log, node.commit) ^ 1 << other
        joins = bool(voters >> other & 1)
        if not voters or not self.may_change(node, one):
            return None
        if joins and state.nodes[other].sent[node.term].match < node.commit:
            return None
        after = self.propose(state, one, voters)
        return None if after is None else after._replace(changes=state.changes - 1)

    def covers(self, commit: int, change: int) -> bool:
        """Return whether a commit index shows that a change was executed."""
        return commit >= change

    def receive(self, state: State, one: int, term: int, end: int, commit: int) -> State | None:
        """Take in a piece of a log. The message with a change has a commit index that covers the change before."""
        changes = [index for index, entry in enumerate(state.terms[term].log[:end], start=1) if voters_of(entry)]
        appends = len(state.nodes[one].log) < end
        if len(changes) > 1 and appends and not self.covers(commit, changes[-2]):
            return None
        return super().receive(state, one, term, end, commit)
