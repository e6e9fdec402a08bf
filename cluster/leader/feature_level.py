"""The feature levels of the members: how they are exchanged, and when the leader raises the cluster's level.

core/levels.py defines levels, spec/cluster 12.2 how they are raised. Only the level that a member has reported on its
current connection counts, because a member may have returned with an older program. The entry names the members that
were counted, so it changes nothing if another one has joined in between.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sockpqd.cluster.api import Pending
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.settings import NodeSettings
from sockpqd.core import Machine, Operation, RaiseLevel, Reply, level_of

log = logging.getLogger("sockpqd.cluster")


class FeatureLevel(Pending):
    """The feature levels that this node knows and allows; on the leader also when to raise the cluster's level."""

    def __init__(
        self,
        settings: NodeSettings,
        machine: Machine,
        peers: Mapping[str, Peer],
        proposer: Proposer,
        propose: Callable[[Operation, Pending], None],
    ) -> None:
        """`propose`: proposes an operation of the node itself."""
        self._name = settings.name
        self._max = settings.feature_level_max
        self._machine = machine
        self._peers = peers
        self._proposer = proposer
        self._propose = propose
        self._proposed = False
        self._seen = machine.level              # the level that was logged last
        self._complaint = ""                    # the last one about members that hold the level back

    @property
    def raise_to(self) -> int:
        """The level up to which this node lets the cluster be raised."""
        known = self._machine.known_level
        return min(known, self._max) if self._max else known

    def tick(self, leading: bool) -> None:
        """Refuse operations above the cluster's level; `leading`: raise the level once all members allow that."""
        machine = self._machine
        self._proposer.refuses = self._refuses if machine.level < machine.known_level else None
        if machine.level != self._seen:
            self._seen = machine.level
            log.info("the cluster has feature level %d", machine.level)
            if self._max and self._max < machine.level:
                log.warning("raft.feature_level_max = %d does nothing: a level never goes down. Remove it.", self._max)
        if leading and not self._proposed and self.raise_to > machine.level:
            allowed = min(self._allowed().values())
            if allowed > machine.level:
                log.info("all members allow feature level %d: it is raised from %d", allowed, machine.level)
                self._proposed = True
                self._propose(RaiseLevel(allowed, tuple(machine.membership.addresses)), self)

    def _allowed(self) -> dict[str, int]:
        """Return the level up to which each member lets the cluster be raised; 0: it is not connected."""
        return {name: self._allowed_by(name) for name in self._machine.membership.addresses}

    def _allowed_by(self, name: str) -> int:
        if name == self._name:
            return self.raise_to
        peer = self._peers.get(name)
        return peer.info.raise_to if peer is not None and peer.up and peer.info is not None else 0

    def _refuses(self, operation: Operation) -> bool:
        """Return whether the cluster's level is too low for this operation; logs once which members hold it back."""
        level = level_of(operation)
        if level <= self._machine.level:
            return False
        behind = [
            f"{name} (not connected)" if not allowed else f"{name} ({allowed})"
            for name, allowed in self._allowed().items() if allowed < level
        ]
        complaint = (
            f"commands of feature level {level} are refused, the cluster has level {self._machine.level}. "
            f"Nodes that do not allow more, by their version or raft.feature_level_max: {' '.join(behind)}"
        )
        if behind and complaint != self._complaint:
            self._complaint = complaint
            log.warning("%s", complaint)
        return True

    def applied(self, reply: Reply) -> None:
        """See Pending. If a node has joined in the meantime, the members are counted again."""
        self._proposed = False

    def refused(self) -> None:
        self._proposed = False

    def unknown(self) -> None:
        """Allow another proposal; executing two is harmless."""
        self._proposed = False
