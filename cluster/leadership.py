"""What a leader does beyond replicating: announce itself, judge whether it serves, keep time, hand over.

A node serves iff it leads, its own Lead entry of this term has been applied here (so every earlier committed change is
in), a majority answered it within the lease, and nobody has switched it offline (CLUSTER.md 0). The library's own word
"leader" is never enough (H8).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

from cluster.api import Pending
from cluster.clock import Clock, ReplicatedTime
from cluster.context import Peer
from cluster.guard import Guard
from cluster.library import Replica
from cluster.proposer import Proposer
from cluster.settings import Settings
from core import Effects, Lead, Machine, Reply, Tick

log = logging.getLogger("sockpqd.cluster")

CLOCK_JUMP_MS = 600_000         # a clock this much ahead of the others' would end every lease: do not lead with it
HAND_OVER_RETRY_S = 0.2


class _Announced(Pending):
    """For the Lead entry. Whether it is applied is read from the machine, so that a late callback is no loss."""

    def __init__(self, peers: Iterable[Peer]) -> None:
        self._peers = peers

    def applied(self, reply: Reply) -> None:
        """Let the others know at once: it changes the numbers by which clients find the leader."""
        for peer in self._peers:
            peer.told_at = float("-inf")

    def refused(self) -> None:
        """Another leader came first."""

    def unknown(self) -> None:
        """It may still be applied later."""


class _Ticked(Pending):
    """Waits for a Tick, so that one is in flight at a time."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    def applied(self, reply: Reply) -> None:
        """The clock went on."""
        self._leadership.tick_in_flight = False

    def refused(self) -> None:
        """The next leader proposes its own."""
        self._leadership.tick_in_flight = False

    def unknown(self) -> None:
        """Harmless when doubled."""
        self._leadership.tick_in_flight = False


class Leadership:
    """Judged once a turn. `serving_changed` is called on each change."""

    def __init__(
        self,
        settings: Settings,
        machine: Machine,
        replica: Replica,
        guard: Guard,
        clock: Clock,
        effects: Callable[[Effects], None],
        serving_changed: Callable[[bool], None],
    ) -> None:
        self._settings = settings
        self._machine = machine
        self._replica = replica
        self._guard = guard
        self._clock = clock
        self._serving_changed = serving_changed
        self._time = ReplicatedTime(clock)
        self.proposer = Proposer(replica.propose, self._time.now_ms, effects)
        self._lead_term = -1                    # the term in which we proposed our Lead entry
        self.tick_in_flight = False
        self._hand_over_at = 0.0
        self._offered = ""                      # to whom leadership was offered last
        self._clock_complaint = -1
        self.serving = False
        self.online = True

    def judge(self, now: float) -> None:
        """Before the library's tick: announce a new leadership, propose what time demands, change what has changed."""
        if self._replica.is_leader:
            if self._lead_term != self._replica.term:
                self._announce()
            if not self.online:
                self._hand_over(now)
        serving = self._may_serve(now)
        if serving != self.serving:
            self._change(serving, now)
        if serving and not self.tick_in_flight:
            due_ms = self._machine.next_due_ms()
            if due_ms is not None and due_ms <= self._time.now_ms():
                self.tick_in_flight = True
                self.proposer.propose(Tick(), _Ticked(self))
        self.proposer.flush(now)

    def _may_serve(self, now: float) -> bool:
        return (
            self.online
            and self._replica.is_leader
            and self.announced
            and now < self._guard.lease_until()
        )

    @property
    def announced(self) -> bool:
        """Is our Lead entry of this term applied here?"""
        return self._machine.term == self._replica.term and self._machine.leader == self._settings.name

    def _change(self, serving: bool, now: float) -> None:
        self.serving = serving
        log.info("serving in term %d" if serving else "not serving any more (term %d)", self._replica.term)
        if serving:
            self._time.reach(self._machine.clock_ms)
            self.proposer.accepting = True
        else:
            self.proposer.stop_accepting(now, lost=self.online)
        self._serving_changed(serving)

    def _announce(self) -> None:
        """Propose our Lead entry, the first of this leadership."""
        term = self._replica.term
        if self._clock_is_wrong():
            if self._clock_complaint != term:
                self._clock_complaint = term
                log.error("the clock of this node is more than ten minutes ahead of the other nodes': set it right. "
                          "Until then it does not serve; leadership goes to another node.")
            self._hand_over(self._clock.monotonic())
            return
        self._lead_term = term
        self.tick_in_flight = False
        self._time.begin()
        members = tuple(sorted(member.name for member in self._settings.members))
        lead = Lead(
            self._settings.name, term, members, os.urandom(16), self._settings.failover_grace_ms,
            self._settings.expire_default,
        )
        self.proposer.propose_first(lead, _Announced(self._guard.context.peers.values()), self._clock.monotonic())

    def _clock_is_wrong(self) -> bool:
        """Is our clock far ahead of most others'? Compared with nodes, never with replicated time (DECISIONS 2)."""
        return self._far_ahead(self._clock.wall_ms(), [self._wall_ms(peer) for peer in self._heard()])

    def _heard(self) -> list[Peer]:
        return [peer for peer in self._guard.context.peers.values() if peer.up and peer.info and peer.info.wall_ms]

    def _wall_ms(self, peer: Peer) -> int:
        """What the peer's clock shows now."""
        assert peer.info is not None
        return peer.info.wall_ms + int((self._guard.context.now - peer.info_at) * 1000)

    @staticmethod
    def _far_ahead(wall_ms: int, others: list[int]) -> bool:
        return 2 * sum(wall_ms - other > CLOCK_JUMP_MS for other in others) > len(others)

    def _hand_over(self, now: float) -> None:
        """Give leadership to a node that has the whole log, once everything proposed has its outcome."""
        if not self.proposer.idle or now < self._hand_over_at:
            return
        heir = self.heir()
        if heir is not None:
            self._hand_over_at = now + HAND_OVER_RETRY_S
            self._offered = heir.name
            log.info("handing leadership over to %s", heir.name)
            self._replica.hand_over(heir.node, lambda result, reason: None)

    def heir(self) -> Peer | None:
        """A node that could take over now; if there are several, not the one it was offered to last."""
        last = self._guard.context.journal.last_index
        heirs = []
        for peer in self._heard():
            ready = not peer.choked and peer.match == last and peer.info is not None and peer.info.online
            if ready and peer.info is not None and peer.info.voter and not self._leads_into_the_future(peer):
                heirs.append(peer)
        return min(heirs, key=lambda peer: peer.name == self._offered, default=None)

    def _leads_into_the_future(self, heir: Peer) -> bool:
        """Would the heir have to hand over again because of its clock?"""
        others = [self._wall_ms(peer) for peer in self._heard() if peer is not heir]
        return self._far_ahead(self._wall_ms(heir), [self._clock.wall_ms(), *others])

    def successors(self) -> bool:
        """Is there any node that could take over, now or soon?"""
        peers = self._guard.context.peers.values()
        return any(peer.up and peer.info is not None and peer.info.online for peer in peers)
