"""Compares replicas by their chains of hashes (spec/cluster 10.3).

Nodes send each other the hash at the last checkpoint they passed. Two nodes whose hashes at the same index differ have
executed the same log differently, or have read other bytes than they wrote. A node that a majority contradicts is wrong
and must stop; a node that differs from the only other one it hears cannot know which of the two is wrong, and logs it.
"""

from __future__ import annotations

import logging
from collections import Counter

from sockpqd.cluster import limits
from sockpqd.cluster.errors import FailStop
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.storage.state_hash import Chain

log = logging.getLogger("sockpqd.cluster")


class Diverged(FailStop):
    """The state of this node differs from the state of a majority of the others."""


class ReplicaCheck:
    """Compares the checkpoints of the other nodes with ours."""

    def __init__(self, chain: Chain, quorum: Quorum) -> None:
        self._chain = chain
        self._quorum = quorum
        self._claims: dict[int, dict[str, bytes]] = {}      # index -> node -> value
        self._complained = 0

    def claimed(self, name: str, index: int, value: bytes) -> None:
        """Compare the hash of another node at this index with ours. Raises Diverged if a majority contradicts us."""
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
                           "its data directory for the developers, empty the directory and start the node again")
        if index != self._complained:
            self._complained = index
            log.error("%s and this node differ at entry %d; the one that a majority contradicts will stop: empty its "
                      "data directory then, and report it", name, index)
