"""Do all replicas hold the same? Their chains of hashes tell (spec/cluster 10.3).

Nodes tell each other the value of the last checkpoint they passed; two that differ at the same index have executed the
same log differently, or read back other bytes than they wrote. A node that is contradicted by a majority is wrong and
must leave service; one that can only hear one other that differs cannot know which of them is wrong, and says so.
"""

from __future__ import annotations

import logging
from collections import Counter

from cluster import limits
from cluster.errors import FailStop
from cluster.raft.quorum import Quorum
from cluster.storage.state_hash import Chain

log = logging.getLogger("sockpqd.cluster")


class Diverged(FailStop):
    """This node holds something else than a majority of the others."""


class ReplicaCheck:
    """What the others say of their chains, held against ours."""

    def __init__(self, chain: Chain, quorum: Quorum) -> None:
        self._chain = chain
        self._quorum = quorum
        self._claims: dict[int, dict[str, bytes]] = {}      # index -> node -> value
        self._complained = 0

    def claimed(self, name: str, index: int, value: bytes) -> None:
        """A node says that its chain has this value at this index. Raises Diverged when we are the one who is wrong."""
        mine = self._chain.at(index)
        if mine is None:
            return
        claims = self._claims.setdefault(index, {})
        claims[name] = value
        while len(self._claims) > limits.CHECKPOINTS_KEPT:
            del self._claims[min(self._claims)]
        if value == mine:
            return
        voters = self._quorum.voters
        against = Counter(claim for name, claim in claims.items() if claim != mine and name in voters)
        if max(against.values(), default=0) >= self._quorum.majority:
            raise Diverged(f"this node differs from a majority of the others at entry {index}: stop it, keep a copy of "
                           "its data directory for the developers, empty it and start the node again")
        if index != self._complained:
            self._complained = index
            log.error("%s and this node differ at entry %d; whom a majority contradicts will stop: empty its data "
                      "directory then, and report it", name, index)
