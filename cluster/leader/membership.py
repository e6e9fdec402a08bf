"""The members as this node knows them, and how a learner becomes a voter.

The replicated membership decides who belongs to the cluster. It is changed by one voter at a time, takes effect where
it is applied, and the next change is proposed by a leader that has applied the one before: a compare-and-swap on the
number of the configuration sees to that. So whoever has an entry of the next change in its log also knows that the
change before is committed, and applies it before it campaigns; and majorities of neighbouring configurations have a
node in common. A leader that is removed counts as before until another leads.

Before there is a replicated membership, that of the configuration file holds. Addresses in the file come before
replicated ones: a node may reach another in its own way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cluster.api import Pending
from cluster.raft.peer import Context
from cluster.settings import Settings
from core import Machine, Membership, Operation, PromoteLearner, Reply

log = logging.getLogger("sockpqd.cluster")


class Members:
    """Names and addresses. `names`: all members; `voters`: without the learner; both sorted."""

    def __init__(self, settings: Settings, machine: Machine) -> None:
        self._settings = settings
        self._machine = machine
        self._configured = {member.name: member for member in settings.members}
        self._followed = Membership()
        self.names: tuple[str, ...] = ()
        self.voters: tuple[str, ...] = ()
        self.belongs = False        # this node is a voter: not before it has joined, nor after it was removed
        self._take(self._followed)

    @property
    def changed(self) -> bool:
        """Is the replicated membership another than the one that was followed last?"""
        return self._machine.membership is not self._followed

    def follow(self) -> None:
        """Take over the replicated membership."""
        before, membership = self._followed, self._machine.membership
        self._followed = membership
        self._take(membership)
        log.info("members: %s%s", " ".join(self.voters), f", and {self.learner} learns" if self.learner else "")
        if self._settings.name in before.addresses and self._settings.name not in membership.addresses:
            log.warning("this node is not a member of the cluster any more: it can be stopped")

    def _take(self, membership: Membership) -> None:
        self.names = tuple(sorted(membership.addresses or self._configured))
        self.voters = tuple(name for name in self.names if name != membership.learner)
        self.belongs = self._settings.name in self.voters

    @property
    def learner(self) -> str | None:
        """The node that is joining."""
        return self._machine.membership.learner

    def peer_address(self, name: str) -> str:
        """What this node dials to reach `name`: "host:port", "" when unknown."""
        if name in self._configured:
            return self._configured[name].peer
        return self._replicated(name)[0]

    def client_address(self, name: str) -> str:
        """What clients dial to reach `name`: "host:port", ":0" when unknown."""
        if name in self._configured:
            return self._configured[name].client
        return self._replicated(name)[1] or ":0"

    def _replicated(self, name: str) -> tuple[str, str]:
        address = self._machine.membership.addresses.get(name)
        return ("", "") if address is None else (address.peer, address.client)


class Promotion(Pending):
    """Leader: makes the learner a voter when it has caught up.

    That is measured in rounds (Ongaro's thesis, 4.2.1): a round ends when the learner has everything that the leader
    had at its beginning. Whoever needs less than an election timeout for one does not hold up the others as a voter.
    """

    def __init__(
        self, context: Context, machine: Machine, propose: Callable[[Operation, Pending], None], round_s: float,
    ) -> None:
        self._context = context
        self._machine = machine
        self._propose = propose
        self._round_s = round_s
        self._target: int | None = None
        self._since = 0.0
        self._proposed = False

    def tick(self, leading: bool) -> None:
        """Now and then. `leading`: this node leads, and its Lead entry is applied."""
        context, membership = self._context, self._machine.membership
        peer = None if membership.learner is None else context.peers.get(membership.learner)
        if not leading or peer is None or not peer.up or peer.choked or peer.term != context.replica.term:
            self._target = None
        elif self._target is None:
            self._begin_round()
        elif peer.match >= self._target and not self._proposed and peer.info is not None and peer.info.voter:
            if context.now - self._since > self._round_s:
                self._begin_round()
                return
            self._target, self._proposed = None, True
            self._propose(PromoteLearner(peer.name, membership.configuration), self)

    def _begin_round(self) -> None:
        self._target, self._since = self._context.journal.last_index, self._context.now

    def applied(self, reply: Reply) -> None:
        """See Pending."""
        self._proposed = False

    def refused(self) -> None:
        """See Pending."""
        self._proposed = False

    def unknown(self) -> None:
        """Harmless when doubled: the configuration's number decides."""
        self._proposed = False
