"""The members of the reference model's cluster, and their server ids."""

from __future__ import annotations

from sockpqd.core import (
    Accepted,
    ChangeInProgress,
    ChangeMember,
    Joined,
    LastNode,
    Lead,
    MemberChange,
    NodeExists,
    RaiseLevel,
    Reply,
    UnknownNode,
)


class ModelMembers:
    """The voters, the learner, their addresses and server ids."""

    def __init__(self) -> None:
        self.voters: list[str] = []
        self.learner: str | None = None
        self.configuration = 0
        self.addresses: dict[str, tuple[str, str]] = {}     # peer and client, by name
        self.server_ids: dict[str, int] = {}
        self.max_id = 0
        self.level = 1

    def follow(self, lead: Lead) -> None:
        """Apply the part of a Lead that concerns them."""
        if not self.voters:
            self.voters = sorted({*lead.members, lead.node})
            for name in sorted(self.voters, key=lambda name: (name != lead.node, name)):
                self._new_server_id(name)
                self.addresses[name] = ("", "")
        for address in lead.addresses:
            if address.name in self.addresses:
                peer, client = self.addresses[address.name]
                self.addresses[address.name] = (peer or address.peer, client or address.client)
        smallest = self.server_ids.get(lead.node, 0)        # 0: it was removed, and gets no new id
        below = [name for name in self.server_ids if self.server_ids[name] < smallest]
        for name in sorted(below, key=lambda name: self.server_ids[name]):
            self._new_server_id(name)

    def change(self, operation: ChangeMember) -> Reply:
        """Execute one step of a change of the members."""
        node = operation.node
        if operation.change is MemberChange.JOIN:
            if node in self.addresses:
                return NodeExists()
            if self.learner is not None or not self.voters:
                return ChangeInProgress()
            self.learner = node
            self.addresses[node] = (operation.peer, operation.client)
            self._new_server_id(node)
            return Joined(self.max_id)
        right = operation.configuration == self.configuration
        if operation.change is MemberChange.PROMOTE:
            if self.learner is None or node != self.learner or not right:
                return ChangeInProgress()
            self.voters = sorted([*self.voters, node])
            self.learner = None
            self.configuration += 1
            return Accepted()
        if node == self.learner:
            self.learner = None
        elif node not in self.voters:
            return UnknownNode()
        elif self.learner is not None or not right:
            return ChangeInProgress()
        elif self.voters == [node]:
            return LastNode()
        else:
            self.voters.remove(node)
            self.configuration += 1
        del self.addresses[node]
        del self.server_ids[node]
        return Accepted()

    def raise_level(self, operation: RaiseLevel) -> Reply:
        """Raise the feature level, if these are all members."""
        if list(operation.members) != sorted(self.addresses):
            return ChangeInProgress()
        self.level = max(self.level, operation.level)
        return Accepted()

    def _new_server_id(self, name: str) -> None:
        self.max_id += 1
        self.server_ids[name] = self.max_id
