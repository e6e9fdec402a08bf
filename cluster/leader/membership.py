"""The members as this node knows them, and the promotion of learners to voters.

The replicated membership decides which nodes belong to the cluster. It changes by one voter at a time, takes effect
when it is applied, and a leader proposes a change only after applying the one before, which a compare-and-swap on the
number of the configuration ensures. So a node with the next change in its log knows that the change before it is
committed, and applies that before it campaigns; and majorities of neighbouring configurations have a node in common. A
removed leader keeps counting the old voters until another node leads.

Until there is a replicated membership, the configuration file's applies. Addresses in the file take precedence over
replicated ones, because a node may need another route. Clients find a member that has moved at the address that it
announces.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sockpqd.cluster.api import Pending
from sockpqd.cluster.raft.peer import Context
from sockpqd.cluster.settings import NodeSettings
from sockpqd.core import ChangeMember, Machine, MemberChange, Membership, Operation, Reply

log = logging.getLogger("sockpqd.cluster")


class Members:
    """Names and addresses of the members. `names`: all; `voters`: all but the learner; both sorted."""

    def __init__(self, settings: NodeSettings, machine: Machine) -> None:
        self._settings = settings
        self._machine = machine
        self._configured = {member.name: member for member in settings.members}
        self._moved: dict[str, str] = {}                    # where clients dial members that are not where they were
        self._followed = Membership()
        self.names: tuple[str, ...] = ()
        self.voters: tuple[str, ...] = ()
        self.belongs = False        # this node is a voter: it has joined and was not removed
        self._take(self._followed)

    @property
    def changed(self) -> bool:
        """True if the replicated membership has changed since the last call of follow()."""
        return self._machine.membership is not self._followed

    def follow(self) -> None:
        before, membership = self._followed, self._machine.membership
        self._followed = membership
        self._take(membership)
        log.info("members: %s%s", " ".join(self.voters), f", learner: {self.learner}" if self.learner else "")
        if self._settings.name in before.addresses and self._settings.name not in membership.addresses:
            log.warning("this node is no longer a member of the cluster: it can be stopped")

    def _take(self, membership: Membership) -> None:
        self.names = tuple(sorted(membership.addresses or self._configured))
        self.voters = tuple(name for name in self.names if name != membership.learner)
        self.belongs = self._settings.name in self.voters

    @property
    def learner(self) -> str | None:
        """The node that is joining, None if there is none."""
        return self._machine.membership.learner

    def peer_address(self, name: str) -> str:
        """The address this node dials to reach `name`: "host:port", "" if unknown."""
        if name in self._configured:
            return self._configured[name].peer
        return self._replicated(name)[0]

    def client_address(self, name: str) -> str:
        """The address clients dial to reach `name`: "host:port", ":0" if unknown."""
        if name in self._moved:
            return self._moved[name]
        if name in self._configured:
            return self._configured[name].client
        return self._replicated(name)[1] or ":0"

    def hear(self, name: str, client: str) -> None:
        """Record the address at which clients dial a member that has moved; "": it has not moved, or does not know."""
        if client:
            self._moved[name] = client
        else:
            self._moved.pop(name, None)

    def _replicated(self, name: str) -> tuple[str, str]:
        address = self._machine.membership.addresses.get(name)
        return ("", "") if address is None else (address.peer, address.client)


class Promotion(Pending):
    """Leader: makes the learner a voter once it has caught up.

    Progress is measured in rounds (Ongaro's thesis, 4.2.1): a round ends when the learner has everything the leader had
    at its start. A learner that needs less than an election timeout for a round will not delay the others as a voter.
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
        """Check the learner's progress. `leading`: this node leads and its Lead entry is applied."""
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
            self._propose(ChangeMember(peer.name, MemberChange.PROMOTE, membership.configuration), self)

    def _begin_round(self) -> None:
        self._target, self._since = self._context.journal.last_index, self._context.now

    def applied(self, reply: Reply) -> None:
        self._proposed = False

    def refused(self) -> None:
        self._proposed = False

    def unknown(self) -> None:
        """Allow another proposal; the number of the configuration makes a second one harmless."""
        self._proposed = False
