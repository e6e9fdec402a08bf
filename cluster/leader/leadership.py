"""Leadership as clients see it: announce it, decide whether this node serves, steer replicated time.

A node leads iff its own Lead entry of this term has been applied here (so every earlier committed change is in) and a
majority has answered it a short time ago. It serves iff it leads, is a member, and neither it nor the service has been
switched offline (spec/cluster 1.2). The library's own idea of "leader" is never enough (H8). What a serving node
answers without the log rests on its lease, which is shorter (1.3).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from sockpqd.cluster import limits
from sockpqd.cluster.api import Pending
from sockpqd.cluster.leader.clock import Clock, ReplicatedTime, median
from sockpqd.cluster.leader.disk_handover import DiskHandover
from sockpqd.cluster.leader.feature_level import FeatureLevel
from sockpqd.cluster.leader.handover import Handover
from sockpqd.cluster.leader.membership import Members, Promotion
from sockpqd.cluster.leader.preference import Preference
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import Replica
from sockpqd.cluster.raft.transport import RaftTransport
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.wire.messages import Info
from sockpqd.core import Address, Lead, Machine, Operation, Reply, Resume, Tick

log = logging.getLogger("sockpqd.cluster")


class _Announced(Pending):
    """The Pending of a Lead entry. Leadership asks the machine whether it was applied, so late calls do no harm."""

    def __init__(self, transport: RaftTransport) -> None:
        self._transport = transport

    def applied(self, reply: Reply) -> None:
        """Send the commit index at once: the entry changes the numbers by which clients find the leader."""
        self._transport.send_commit_index()

    def refused(self) -> None:
        """Do nothing: another leader was elected first."""

    def unknown(self) -> None:
        """Do nothing: the entry may still be applied."""


class _Ticked(Pending):
    """The Pending of a Tick, so that only one is in flight at a time."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    def applied(self, reply: Reply) -> None:
        self._leadership.tick_in_flight = False

    def refused(self) -> None:
        """Allow the next Tick; a new leader proposes its own."""
        self._leadership.tick_in_flight = False

    def unknown(self) -> None:
        """Allow the next Tick; executing two is harmless."""
        self._leadership.tick_in_flight = False


class _Probed(Pending):
    """The Pending of a probe of the disk: whatever its outcome, clients' operations are proposed again."""

    def __init__(self, disk_handover: DiskHandover) -> None:
        self._disk_handover = disk_handover

    def applied(self, reply: Reply) -> None:
        self._disk_handover.probed()

    def refused(self) -> None:
        self._disk_handover.probed()

    def unknown(self) -> None:
        self._disk_handover.probed()


class _Resumed(Pending):
    """The Pending of a Resume, which extends the leases and sessions that clients could not renew."""

    def __init__(self, leadership: Leadership) -> None:
        self._leadership = leadership

    def applied(self, reply: Reply) -> None:
        """Record that leases and sessions have been extended, unless logging is halted again."""
        self._leadership.grace_due = self._leadership.halted

    def refused(self) -> None:
        """Do nothing: the next leader grants a grace of its own."""

    def unknown(self) -> None:
        """Do nothing: granting it twice is harmless."""


class Leadership:
    """Updated by the housekeeping of a turn (driver.py); calls `serving_changed` on each change."""

    def __init__(
        self,
        settings: NodeSettings,
        machine: Machine,
        members: Members,
        replica: Replica,
        transport: RaftTransport,
        clock: Clock,
        time: ReplicatedTime,
        proposer: Proposer,
        serving_changed: Callable[[bool], None],
    ) -> None:
        self._settings = settings
        self._machine = machine
        self._members = members
        self._replica = replica
        self._transport = transport
        self._clock = clock
        self._serving_changed = serving_changed
        self._time = time
        self._proposer = proposer
        self._promotion = Promotion(transport.context, machine, self.propose_alone, settings.election_min_ms / 1000)
        self.handover = Handover(transport, members, proposer)
        self.preference = Preference(settings.prefer, transport, members, self.handover)
        self.disk_handover = DiskHandover(transport, members, self.handover, proposer, self._propose_probe)
        self._leader_before: str | None = None  # the node that this one followed last
        self.feature_level = FeatureLevel(settings, machine, transport.peers, proposer, self.propose_alone)
        self._lead_term = -1                    # the term in which we proposed our Lead entry
        self.tick_in_flight = False
        self._steer_at = 0.0
        self._served_at = clock.monotonic()     # when this node was known to serve last, or its start
        self._followed_ms = 0                   # replicated time of the last entry seen as a follower
        self.serving = False
        self.online = True
        self.halted = False                     # full disks: clients' commands cannot be logged, here or on too many
        self._exhausted = False                 # they cannot be logged here
        self.grace_due = False                  # logging was halted since leases and sessions had their last grace

    def halt(self) -> None:
        """Stop serving, because nothing can be logged here."""
        now = self._clock.monotonic()
        self.halted = self.grace_due = True
        if self.serving:
            self._change(False, now)
        self._proposer.expire(now)

    def update_capacity(self, *, halted: bool, exhausted: bool) -> None:
        """Record whether clients' commands cannot be logged: here or on too many others (`halted`), or just here."""
        self.halted, self._exhausted, self.grace_due = halted, exhausted, halted or self.grace_due

    def update_serving(self, now: float) -> None:
        """Before the library's tick: announce a new leadership, decide whether this node serves, propose due Ticks."""
        if self._replica.is_leader:
            if self._lead_term != self._replica.term:
                self._announce()
            belongs = self._members.belongs
            if not self.online or self.handover.wanted or self._exhausted or (self.announced and not belongs):
                self.handover.tick(now)
            self._promotion.tick(self.announced and belongs)
            if now >= self._steer_at and self._lead_term == self._replica.term:
                self._steer_at = now + limits.STEER_S
                self._time.steer(self.clocks_ms())
        else:
            self._follow()
        self.feature_level.tick(self.leading())
        serving = self._may_serve(now)
        if serving:
            self._served_at = now
        if serving and self._transport.elections.offered:
            self._transport.elections.stand_again()
            serving = False
        if serving != self.serving:
            self._change(serving, now)
        self.disk_handover.tick(now, serving=serving)
        self.preference.tick(now, serving=serving and self.settled)
        if serving and not self.tick_in_flight:
            due_ms = self._machine.next_due_ms()
            if due_ms is not None and due_ms <= self._time.now_ms():
                self.tick_in_flight = True
                self._proposer.propose(Tick(), _Ticked(self))

    def _follow(self) -> None:
        """Adopt replicated time and the leader's name, as far as this node knows them."""
        self.preference.ended()
        self.disk_handover.ended()
        leader = self._replica.leader_node
        if leader is not None:
            self._leader_before = str(leader.id)
            if self._leader_before != self._settings.name:
                self.disk_handover.followed()
        if self._machine.clock_ms > self._followed_ms:
            self._followed_ms = self._machine.clock_ms
            self._time.follow(self._followed_ms)

    def due_s(self) -> float | None:
        """Seconds of replicated time until a Tick is due, negative when it is overdue; None: no Tick is needed."""
        due_ms = None if self.tick_in_flight else self._machine.next_due_ms()
        return None if due_ms is None else (due_ms - self._time.now_ms()) / 1000

    @property
    def settled(self) -> bool:
        """True if this leadership is stable: announced, with no learner to promote and no handover."""
        return (
            self.announced and self.online and self._members.belongs and not self.handover.wanted and not self.halted
            and not self._exhausted and self._members.learner is None
        )

    def leading(self) -> bool:
        """Return whether this node can execute operators' commands; it may not be serving clients.

        A removed leader cannot: it still counts the old voters, among whom no further change may be decided.
        """
        return self._members.belongs and self._in_contact(self._clock.monotonic())

    def holds_lease(self) -> bool:
        """Return whether this node serves and no other can at this moment."""
        return self.serving and self.is_sole_leader()

    def is_sole_leader(self) -> bool:
        """Return whether this node leads and certainly no other does."""
        now = self._clock.monotonic()
        return self._replica.is_leader and self.announced and now < self._transport.lease_until()

    @property
    def is_replica(self) -> bool:
        """True if this cluster serves nobody because it follows an origin, or is going to."""
        machine = self._machine
        return machine.mirrored is not None or (self._settings.replica and not machine.promoted)

    def heads_replica(self) -> bool:
        """Return whether this node leads a replica, and can log what its origin has executed."""
        return (
            self.is_replica and self.online and not self.handover.wanted and not self.halted and not self._exhausted
            and self.leading()
        )

    def _in_contact(self, now: float) -> bool:
        """Return whether this node believes that it leads and a majority has answered it recently."""
        return self._replica.is_leader and self.announced and now < self._transport.in_contact_until()

    def _may_serve(self, now: float) -> bool:
        return (
            self.online
            and self._machine.online
            and not self.is_replica
            and not self.handover.wanted
            and not self.halted
            and self._members.belongs
            and self._in_contact(now)
        )

    def propose_alone(self, operation: Operation, pending: Pending) -> None:
        """Propose an operation of the cluster itself as an entry of its own, even while this node does not serve."""
        if self.grace_due and type(operation) not in (Lead, Resume):
            log.info("the log was unavailable for a while: leases and sessions were extended")
            self._resume()
        self._proposer.propose_alone(operation, pending, self._clock.monotonic())

    @property
    def announced(self) -> bool:
        """True if our Lead entry of this term has been applied here."""
        return self._machine.term == self._replica.term and self._machine.leader == self._settings.name

    def _change(self, serving: bool, now: float) -> None:
        self.serving = serving
        log.info("serving in term %d" if serving else "not serving any more (term %d)", self._replica.term)
        if serving:
            self._time.reach(self._machine.clock_ms)
            if self.grace_due:
                log.info("the log was unavailable for a while: leases and sessions were extended")
                self._resume()
            self._proposer.accepting = True
        else:
            self._proposer.stop_accepting(now, lost=not self._in_contact(now))
        self._serving_changed(serving)

    def _propose_probe(self) -> None:
        """Propose an entry without clients' operations, to see how long the disk takes; it ends only what is due."""
        self.propose_alone(Tick(), _Probed(self.disk_handover))

    def _resume(self) -> None:
        """Extend leases and sessions by the grace of a failover before any can expire: clients could not renew them."""
        self.propose_alone(Resume(self._settings.failover_grace_ms), _Resumed(self))

    def _announce(self) -> None:
        """Propose our Lead entry, the first entry of this leadership."""
        term = self._replica.term
        clocks_ms = self.clocks_ms()
        if not clocks_ms:
            return                  # without a majority the entry could not be committed either
        self._lead_term = term
        before = None if self._leader_before == self._settings.name else self._leader_before
        self.preference.began(self._clock.monotonic(), before, handed_over=self._transport.elections.asked)
        self._leader_before = self._settings.name
        self.tick_in_flight = False
        heard = [peer.info.time_ms + age_ms for peer, age_ms in self._recently_heard() if peer.info is not None]
        known_ms = [self._machine.clock_ms, *heard]
        self._time.begin(known_ms, clocks_ms)
        settings = self._settings
        configured = sorted(settings.members, key=lambda member: member.name)
        lead = Lead(
            settings.name, term, tuple(member.name for member in configured), os.urandom(16),
            settings.failover_grace_ms, settings.expire_default,
            tuple(Address(member.name, member.peer, member.client) for member in configured),
            self._silence_ms(),
        )
        self.propose_alone(lead, _Announced(self._transport))

    def _silence_ms(self) -> int:
        """Return for how long this node has neither heard a leader nor served, in ms; at most since its start."""
        return int((self._clock.monotonic() - max(self._served_at, self._transport.elections.last_heard_at)) * 1000)

    # Time

    def heard(self, info: Info) -> None:
        """Adopt the replicated time in another node's Info, if that node leads."""
        if info.role == "LEADER" and info.term >= self._replica.term and not self._replica.is_leader:
            self.preference.heard(self._clock.monotonic(), info.losses)
            if info.time_ms:
                self._time.follow(info.time_ms)

    def time_ms(self) -> int:
        """Replicated time as this node knows it, 0 if unknown."""
        return self._time.now_ms() if self._time.known else 0

    def clocks_ms(self) -> list[int]:
        """The current wall clocks of the voters in contact with this node; empty without a majority."""
        quorum = self._transport.quorum
        clocks_ms = [
            peer.info.wall_ms + age_ms for peer, age_ms in self._recently_heard()
            if peer.info is not None and peer.info.wall_ms and peer.name in quorum.voters
        ]
        if quorum.member:
            clocks_ms.append(self._clock.wall_ms())
        return clocks_ms if len(clocks_ms) >= quorum.majority else []

    def _recently_heard(self) -> list[tuple[Peer, int]]:
        """Return the peers whose last Info is recent, with its age in milliseconds."""
        now, peers = self._clock.monotonic(), self._transport.peers.values()
        return [
            (peer, int((now - peer.info_at) * 1000)) for peer in peers
            if peer.up and now - peer.info_at < limits.CLOCK_AGE_S_MAX
        ]

    def ahead_ms(self, peer: Peer) -> int | None:
        """Return by how much the peer's wall clock is ahead of ours, None if unknown. Delayed messages blur it."""
        if peer.info is None or not peer.info.wall_ms:
            return None
        age_ms = int((self._clock.monotonic() - peer.info_at) * 1000)
        return peer.info.wall_ms + age_ms - self._clock.wall_ms()

    def errors_ms(self) -> tuple[int, int] | None:
        """Return by how much this node's wall clock and replicated time are ahead of the voters' median wall clock.

        None while the median or replicated time is unknown.
        """
        clocks_ms = self.clocks_ms()
        if not clocks_ms or not self._time.known:
            return None
        return self._clock.wall_ms() - median(clocks_ms)[0], self._time.ahead_ms(clocks_ms)
