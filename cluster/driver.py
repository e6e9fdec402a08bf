"""One turn of a node's loop, without sockets: messages in, operations in, Raft, replies and messages out, disk.

Durability depends on the order within a turn. A promise (a vote, or an acknowledgement to the leader) is sent only
after the journal is synced. A leader may send entries before its own sync: it counts its own copy no earlier than in
the turn after the one that synced it, because a turn commits before it appends. So the leader's disk works in parallel
with its followers'. Replies to clients report committed entries, which are durable on a majority, so they need not wait
for the sync of later entries.

A turn does as little as possible, because with few clients there is one turn for every command or two. Entries take the
steady lane (raft/steady_lane.py). All other work, including the library's tick, is housekeeping: it is done
every HOUSEKEEPING_S, or at once after an unusual event. A follower answers its leader first and then executes what was
committed.

A turn that finds no room on the disk for its changes does not complete: the node pauses, as if its network were cut,
and retries every second. Nothing of the turn was written, and no message that depends on it was sent.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Protocol

from sockpqd.cluster import limits
from sockpqd.cluster.api import Channels, ClusterListener, HostFigures
from sockpqd.cluster.capacity import Capacity
from sockpqd.cluster.damage.repair import Repair
from sockpqd.cluster.errors import EntryTooNew, FailStop, OutOfMemory, RejoinFailed
from sockpqd.cluster.execution import Execution, decoded
from sockpqd.cluster.forwarding.notices import Notices
from sockpqd.cluster.forwarding.recording import Recording
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.leader.clock import Clock, ReplicatedTime
from sockpqd.cluster.leader.compaction import Compaction
from sockpqd.cluster.leader.leadership import Leadership
from sockpqd.cluster.leader.membership import Members
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.leader.state_for_entries import StateForEntries
from sockpqd.cluster.mirror.mirroring import Mirroring
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.paging.paging import Paging
from sockpqd.cluster.raft.peer import Network
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode, Replica, check_version
from sockpqd.cluster.raft.replica_check import ReplicaCheck
from sockpqd.cluster.raft.transport import RaftTransport
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore
from sockpqd.cluster.storage.ballast import Ballast
from sockpqd.cluster.storage.errors import START_EMPTY, JournalDamaged, NoRoom
from sockpqd.cluster.syncing import Syncing
from sockpqd.cluster.wire.messages import (
    WIRE_FORMAT,
    Ack,
    Append,
    Heard,
    Hello,
    Info,
    Listening,
    Message,
    Notice,
    is_news,
)
from sockpqd.core import Effects, Machine

log = logging.getLogger("sockpqd.cluster")

AT_ONCE = float("-inf")
ROUTINE = (Append, Ack, Notice)     # messages that need no housekeeping


class Outbox(Network, Protocol):
    """A network that sends when the driver flushes it, and connects to the peers named by the driver."""

    def add_peer(self, name: str, address: str) -> None:
        """Keep up a connection to this node from now on. `address`: "host:port", "" when it is unknown."""

    def drop_peer(self, name: str) -> None:
        """Close the connection to this node and do not connect again."""

    def flush_appends(self) -> None:
        """Send the queued Append, Heartbeat, SnapshotChunk and TimeoutNow messages."""

    def hold(self) -> None:
        """Keep all other queued messages until release(): what they promise is still being synced."""

    def release(self) -> None:
        """Send the messages kept by hold()."""

    def flush(self) -> None:
        """Send all queued messages."""


class Driver:
    """A whole node except for its sockets and timers; the simulation runs the same code.

    `pages`: the jobs and records outside memory.
    """

    host: Callable[[], HostFigures] = HostFigures      # its memory and disk, for the other nodes
    _in_order = False           # at the last housekeeping this node led, and had nothing else to do
    _recover_to = 0             # the last entry that the journal knew to be committed at the start

    def __init__(
        self,
        settings: NodeSettings,
        journal: Journal,
        store: SnapshotStore,
        machine: Machine,
        network: Outbox,
        listener: ClusterListener,
        clock: Clock,
        rng: random.Random,
        pages: PageFiles,
    ) -> None:
        check_version()
        self.settings = settings
        self.machine = machine
        self.journal = journal
        self.store = store
        self.chain = store.chain
        self.members = Members(settings, machine)
        self._compaction = Compaction(settings.name, self.members, journal, store, pages)
        self.repair = Repair(journal, store)
        self._stale = True                      # the transport does not have these members yet
        self._linked: dict[str, str] = {}       # peers of the network and their addresses
        self._network = network
        self._listener = listener
        self._clock = clock
        self._housekeeping_at = AT_ONCE
        self._level_at = float("-inf")          # when this node last had all that was committed
        self._led, self._online = False, True   # the last known values of what _changed() compares
        self._led_at = clock.monotonic()        # when there was a leader last, or the start
        self._info_at, self._info_sent = float("-inf"), ("", False, False)
        self.full, self._term_seen = False, 0
        self.leader_changes = 0                 # leaderships that began since the start
        self._sent_commit = 0                   # the commit index that was sent for the sake of subscribers
        self.inbox: list[tuple[str, Hello | Message | None]] = []
        self.transport = transport = RaftTransport(settings, journal, store, network, rng)
        self.peers = transport.peers
        execution = Execution(machine, store.chain, store.mirror_chain, listener, clock.monotonic)
        self.replica = Replica(
            PeerNode(settings.name), transport=self.transport, journal=journal, snapshots=store,
            dump_path=store.newest_path(), monotonic=clock.monotonic, heartbeat_s=settings.heartbeat_ms / 1000,
            step_down_s=settings.election_min_ms / 1000,    # after its lease it must not keep others from leading
            apply=execution.apply, enough=self._applied_enough,
        )
        self.transport.bind(self.replica, clock.monotonic())
        self.recording = Recording(machine, self._recording_changed)
        self.notices = Notices(settings.name, network, self.peers, self.leader, listener)
        ballast, reserve = (Ballast(store.disk, settings.data_dir / name) for name in ("ballast", "reserve"))
        self.capacity = Capacity(journal, store, transport.quorum, ballast, reserve, pages, lambda: machine.hot_bytes)
        self.paging = Paging(machine, pages, clock.monotonic)
        self._state_for_entries = StateForEntries(self.capacity.state_bytes, journal, store, transport, pages)
        self._comparison = ReplicaCheck(store.chain, transport.quorum)
        time = ReplicatedTime(clock)
        self.proposer = Proposer(self.replica.propose, time.now_ms, self._effects, clock.monotonic,
                                 machine.known_work, lambda: execution.took_s, lambda: machine.level)
        self.syncing = Syncing(journal, self.proposer, network, clock.monotonic, settings.election_min_ms / 1000)
        self.leadership = Leadership(settings, machine, self.members, self.replica, self.transport, clock, time,
                                     self.proposer, listener.serving_changed)
        if settings.bootstrap:
            self.transport.admission.bootstrap()

    def recover(self) -> None:
        """Load the snapshot and begin to apply the journal, before connecting; turns continue that while `recovering`.

        Raises an error if this node cannot run.
        """
        self.journal.feed_bytes = self.settings.feed_keep_bytes
        self.transport.use_room(self.capacity)
        self.replica.tick()
        self._recover_to = self.replica.commit_index
        if self.store.load_error is not None:
            raise self.store.load_error
        self._follow_membership(self._clock.monotonic())
        if self.replica.applied_index < self.journal.first_index:
            raise JournalDamaged(f"the journal does not reach back to the snapshot. {START_EMPTY}")
        for index, data in self.replica.uncommitted():
            with suppress(EntryTooNew):         # it may never be committed
                decoded(index, data)            # or this node could append to a log that no version reads as a whole
        self._term_seen = self.machine.term
        try:
            self.journal.sync()
        except NoRoom as error:
            self.capacity.pause(self._clock.monotonic(), error)

    @cached_property
    def mirroring(self) -> Mirroring:
        """The leader's part in following an origin."""
        return Mirroring(self.machine, self.store.mirror_chain, self.leadership)

    @property
    def recovering(self) -> bool:
        """True if committed entries from the journal, as it was at the start, still have to be applied."""
        return self.replica.behind and self.replica.applied_index < self._recover_to

    def _applied_enough(self) -> bool:
        """Return whether a turn has applied entries for so long that peers and clients should be served first."""
        return self._clock.monotonic() >= self.transport.context.now + limits.APPLYING_S

    def turn(self, *, propose: bool = True) -> None:
        """Run one turn; without `propose` queued operations keep waiting. Raises any error that must stop this node."""
        now = self._clock.monotonic()
        self.transport.begin_turn(now)
        try:
            if self.capacity.stuck:
                self.capacity.try_again(now)    # a turn of its own: what is durable counts from the next one on
            else:
                self._turn(now, propose=propose)
        except NoRoom as error:
            self.capacity.pause(now, error)
            self._turn_without_room()

    def _turn_without_room(self) -> None:
        """Drop messages and only track connections: changes are not on disk yet, so nothing may depend on them."""
        self.full = True
        self.leadership.halt()
        inbox, self.inbox = self.inbox, []
        for name, event in inbox:
            if (event is None or isinstance(event, Hello)) and name in self.peers:
                self._handle(name, event)
        self._listener.turn_ended()

    def _turn(self, now: float, *, propose: bool) -> None:
        heard = bool(self.inbox)
        unusual = self._handle_inbox()
        journal, replica, transport = self.journal, self.replica, self.transport
        if journal.syncing is not None:
            self.syncing.poll()
        if not replica.is_leader:
            # The leader waits for a follower's acknowledgement; applying entries on the follower is not urgent.
            self.syncing.sync(now, leads=False)
        # Nothing that _changed() compares changes before the tick, unless the library received something.
        housekeeping = unusual or transport.attention or (
            now >= self._housekeeping_at and not self._put_off(now, heard=heard))
        if housekeeping:
            self._housekeeping_at = now + limits.HOUSEKEEPING_S
            self._housekeeping_before_tick(now)
        if self.syncing.pace.stalled or self.proposer.paused:
            self.leadership.disk_handover.doubt(now, serving=self.leadership.serving)
        if propose:
            self.proposer.overlaps = self.syncing.pipelining.overlaps(now)
            self.proposer.flush(now)
        if housekeeping or not transport.lane.turn():
            transport.quorum.tick()
            replica.tick()
        failure = self.proposer.failure
        if failure is not None:
            if isinstance(failure, MemoryError):
                raise OutOfMemory("no memory to give out replies: start this node again") from failure
            raise FailStop("a listener failed") from failure
        self.syncing.pipelining.committed(now)
        heard_at = now if self._heads() else transport.elections.heard_at
        if heard_at > self._level_at and transport.leader_commit <= replica.applied_index:
            self._level_at = heard_at
        if self.recording.active:
            self._tell_commit_index()
        if housekeeping or self._changed():
            self._housekeeping_after_tick(now)
        if replica.is_leader:
            self._network.flush_appends()
            self.syncing.pipelining.sent()
        self._listener.turn_ended()
        self.syncing.hands_over = self.leadership.handover.wanted
        self.syncing.sync(now, leads=replica.is_leader)
        self.paging.between_turns()

    def _put_off(self, now: float, *, heard: bool) -> bool:
        """Return whether due housekeeping waits a little longer, because entries and their answers go first.

        This holds only while all is in order: a node that has nothing else to do is then just as late (idle.py).
        """
        if self.transport.lane.followed_at == now:
            return now < self._housekeeping_at + limits.FOLLOWING_S
        proposer = self.proposer
        return self._in_order and now < self._housekeeping_at + limits.LEADING_S and (
            proposer.ready or (heard and proposer.entries_in_flight > 0))

    def _recording_changed(self, types: frozenset[str]) -> None:
        self.transport.lane.prompt = bool(types)        # subscribers of a follower hear of entries when it applies them
        self._listener.recording(types)

    def _tell_commit_index(self) -> None:
        """Leader: send the commit index at once if no further entry will bring it.

        Subscribers on other nodes receive their events that way.
        """
        commit = self.replica.commit_index
        if self.replica.is_leader and commit > self._sent_commit and self.proposer.idle:
            self._sent_commit = commit
            self.transport.send_commit_index()

    def _handle_inbox(self) -> bool:
        """Handle received events; returns whether any of them calls for housekeeping."""
        if not self.inbox:
            return False
        inbox, self.inbox = self.inbox, []
        unusual = False
        for name, event in inbox:
            if name not in self.peers:
                unusual = unusual or type(event) not in ROUTINE
            elif type(event) is Ack or type(event) is Append:
                self.transport.receive(name, event)
            else:
                if isinstance(event, Info):
                    unusual = unusual or is_news(self.peers[name].info, event)
                else:
                    unusual = unusual or type(event) is not Notice
                self._handle(name, event)
        return unusual

    def _changed(self) -> bool:
        """Return whether leadership, members or the service's switch have changed, which needs housekeeping at once."""
        return (
            self.replica.is_leader is not self._led
            or self.machine.term != self._term_seen
            or self.machine.online is not self._online
            or self.members.changed
        )

    def _housekeeping_before_tick(self, now: float) -> None:
        """Do the housekeeping that precedes the library's tick."""
        if self.members.changed or self._stale or self.transport.members_leaving:
            self._follow_membership(now)        # a snapshot may have brought a new one
        self.capacity.update(now, recovering=self.recovering)
        self.leadership.update_capacity(halted=self.capacity.halted(), exhausted=self.capacity.exhausted)
        if self.replica.is_leader:
            disk = self.leadership.disk_handover
            disk.no_room, disk.lags = self.capacity.displaced(), self.syncing.lags(now)
        self.leadership.update_serving(now)
        self.transport.tick(now)

    def _housekeeping_after_tick(self, now: float) -> None:
        """Do the housekeeping that follows the tick: act on changes, expire proposals, inform the others, compact."""
        if self._changed():
            self._housekeeping_at = AT_ONCE           # in the next turn, without waiting for a message
        if self.members.changed:
            self._follow_membership(now)
        self._led, self._online = self.replica.is_leader, self.machine.online
        if self.machine.term != self._term_seen:
            self._term_seen = self.machine.term
            self.leader_changes += not self.recovering
        self.proposer.expire(now)
        self.recording.update(now)
        self.notices.tick()
        self._check_rejoining(now)
        if self.store.load_error is not None:
            raise self.store.load_error
        self._send_info(now)
        self.full = self.capacity.full()
        if self.replica.is_leader:
            self._state_for_entries.look(now)
        mending = self.repair.due(now, self.replica.applied_index)
        capacity = self.capacity
        if mending or (
            not self.recovering         # a snapshot of a part would soon be followed by another
            and self._compaction.begins(now, no_room=capacity.lacking, short=capacity.short)
        ):
            capacity.release_ballast()
            self.replica.compact()
        self._in_order = (
            self.replica.is_leader and self.leadership.serving and self.leadership.settled
            and not self.transport.unsettled and not self.store.busy
        )

    def urgent(self, event: Hello | Message | None) -> bool:
        """Return whether this event needs a turn at once.

        An acknowledgement that commits nothing can wait for the next one, unless the lease would expire.
        """
        return not (
            type(event) is Ack
            # Nothing is committed unless this node has it on its own disk; the end of a sync is an event of its own.
            and min(event.next_index - 1, self.journal.durable_index) <= self.replica.commit_index
            and event.success
            and event.snapshot is None
            and not self.transport.lapsed(self._clock.monotonic())
        )

    def sync_ended(self) -> bool:
        """Complete a sync in the thread that has ended; returns whether it gives work to the next turn.

        Raises OSError, which must stop this node.
        """
        self.syncing.poll()
        # Acknowledgements that came before this node's own copy was durable wait in the inbox (urgent()).
        commits = self.replica.is_leader and self.transport.quorum.match() > self.replica.commit_index
        return commits or bool(self.inbox) or self.journal.unsynced

    @property
    def busy(self) -> bool:
        """True if there is work that must not wait for the next message or timer."""
        if self.capacity.stuck:
            return False
        if self.inbox or self.proposer.ready or self._housekeeping_at == AT_ONCE or self.paging.behind:
            return True
        if self.leadership.disk_handover.probe_due:
            return True
        if self.replica.behind:
            return True
        if len(self.transport.quorum.voters) > 1:
            return False
        # A single node commits in the turn after the one that synced; no acknowledgement of a peer starts that turn.
        alone = self.replica.is_leader and self.transport.quorum.voters == {self.settings.name}
        return alone and self.journal.syncing is None and self.replica.applied_index < self.journal.last_index

    def _follow_membership(self, now: float) -> None:
        """Count the voters of the applied membership and keep connections to all its members."""
        transport, members = self.transport, self.members
        for name in transport.remove_departed():
            self._unlink(name)
        if members.changed:
            members.follow()
            self.journal.keep_commit()          # an operator who got the answer that a node was removed may rely on it,
            self.syncing.hurry()                # at once
            self._stale = True
        if not self._stale or (self.replica.is_leader and not members.belongs):
            return                              # a removed leader keeps counting the old voters (membership.py)
        self._stale = False
        peers = [name for name in members.names if name != self.settings.name]
        transport.change_members(members.voters, peers, now, learns=members.learner == self.settings.name)
        for name in peers:
            address = members.peer_address(name)
            if self._linked.get(name) != address:
                self._unlink(name)
                self._linked[name] = address
                self._network.add_peer(name, address)

    def _unlink(self, name: str) -> None:
        if self._linked.pop(name, None) is not None:
            self._network.drop_peer(name)

    def _handle(self, name: str, event: Hello | Message | None) -> None:
        if event is None:
            self.transport.link_down(name)
            self.notices.link_changed(name)
        elif isinstance(event, Hello):
            self._check_end_of_log(name, event)
            if event.cluster_id == self.machine.cluster_id:
                self.members.hear(name, event.client)
            self.transport.link_up(name, event)
            self.notices.link_changed(name)
            self._info_at = float("-inf")       # introduce ourselves at once
        elif isinstance(event, Notice | Listening | Heard):
            self.notices.received(name, event)
        else:
            taken_over = self.store.taken_over
            self.transport.receive(name, event)
            if self.store.taken_over != taken_over:
                self._listener.state_replaced()
            if isinstance(event, Info):
                self.recording.heard(event.subscribed or (), self._clock.monotonic())
                self.leadership.heard(event)
                if event.checkpoint:
                    self._comparison.claimed(name, event.checkpoint, event.chain)

    def _check_end_of_log(self, name: str, hello: Hello) -> None:
        """Check that this node has all that another node knows was on its disk. Raises JournalDamaged.

        A log that was cut between two frames, or replaced by an older copy, looks whole. The check is omitted on a node
        without the right to vote, which counts for nothing before it is admitted, and with --bootstrap, which is an
        operator's decision.
        """
        last = self.journal.last_index
        if hello.acknowledged > last and self.journal.voter and not self.settings.bootstrap:
            raise JournalDamaged(
                f"the journal ends with entry {last}, but {name} knows that entry {hello.acknowledged} was on its own"
                f" disk: the journal was cut, or an older copy was put in its place. {START_EMPTY}"
            )

    def _check_rejoining(self, now: float) -> None:
        """Give up if this node has set its damaged files aside and no other node can bring it up to date."""
        journal = self.journal
        aside = journal.forgetful and not journal.deleted
        if not aside or journal.voter or self.transport.elections.leader_alive():
            self._led_at = now
        elif now - self._led_at > limits.REJOIN_S:
            raise RejoinFailed(
                f"this node has set its damaged files aside and found no leader within {limits.REJOIN_S:.0f} s, so it"
                " cannot rejoin. Start the other nodes, then this one. If they are damaged as well, acknowledged jobs"
                " may be in the files set aside only: docs/OPERATIONS.md says how to go on after losing a majority."
            )

    def _effects(self, effects: Effects) -> None:
        if self.leadership.serving:
            self._listener.effects(effects)

    def subscribed(self, types: frozenset[str]) -> None:
        """Record events of these types, which are subscribed on this node, and make the other nodes record them."""
        if types != self.recording.own:
            self.recording.subscribed(types, self._clock.monotonic())
            self._info_at = float("-inf")
            self._housekeeping_at = AT_ONCE

    def listen(self, channels: list[Channels]) -> None:
        """Set the channels of NOTIFY that subscribers of this node listen to."""
        self.notices.listen(channels)
        self._housekeeping_at = AT_ONCE

    def holds_lease(self) -> bool:
        """Return whether this node serves and no other can at this moment."""
        return self.leadership.holds_lease() or (self._note_promises() and self.leadership.holds_lease())

    def is_sole_leader(self) -> bool:
        """Return whether this node leads and certainly no other does.

        It may not be serving, because the whole service is switched off.
        """
        leadership = self.leadership
        return leadership.online and (
            leadership.is_sole_leader() or (self._note_promises() and leadership.is_sole_leader()))

    def _note_promises(self) -> bool:
        """Count the promises in the inbox: an acknowledgement that commits nothing waits there for the next turn.

        Returns whether there were any. Promises after any other message must wait, as that message may invalidate them.
        """
        noted = False
        for name, event in self.inbox:
            if type(event) is not Ack:
                break
            self.transport.note_promise(name, event)
            noted = True
        return noted

    def role(self) -> str:
        """The role of this node by its own view: LEADER, FOLLOWER or CANDIDATE."""
        if self.replica.is_leader:
            return "LEADER"
        return "FOLLOWER" if self.transport.elections.leader_alive() else "CANDIDATE"

    def age_s(self) -> float:
        """Return the seconds since this node last knew that it had applied all committed entries; inf if it never knew.

        A leader knows it while it serves or heads a replica, a follower whenever it has applied what its leader
        reported as committed.
        """
        return 0.0 if self._heads() else max(0.0, self._clock.monotonic() - self._level_at)

    def _heads(self) -> bool:
        """Return whether this node serves, or leads a replica."""
        return self.leadership.serving or self.leadership.heads_replica()

    def lag(self) -> int:
        """The number of entries that the leader has committed and this node has not applied."""
        committed = max(self.transport.leader_commit, self.replica.commit_index)
        return max(0, committed - self.replica.applied_index)

    def info(self) -> Info:
        """The message in which this node describes itself to the others."""
        preference, now = self.leadership.preference, self._clock.monotonic()
        return Info(
            self.role(), self.replica.term, self.replica.applied_index, self.lag(), self.leadership.online,
            self.transport.right.held, self.journal.empty, self.capacity.lacking, self._clock.wall_ms(),
            self.settings.version,
            *self.chain.checkpoint(), time_ms=self.leadership.time_ms(), exhausted=self.capacity.exhausted,
            subscribed=tuple(sorted(self.recording.own)), level=self.machine.known_level,
            raise_to=self.leadership.feature_level.raise_to, cluster_level=self.machine.level,
            host=self.host(), prefer=preference.own, sync_us=preference.sync_us(now), losses=preference.losses(now),
        )

    def hello(self, receiver: str) -> Hello:
        """The greeting for a new connection to `receiver`."""
        journal = self.journal
        return Hello(
            WIRE_FORMAT, self.settings.name, receiver, self.machine.cluster_id or b"", self.settings.version,
            self.transport.right.held, journal.empty, configuration=self.machine.membership.configuration,
            address=self.members.peer_address(self.settings.name), wall_ms=self._clock.wall_ms(),
            time_ms=self.leadership.time_ms(), level=self.machine.known_level,
            raise_to=self.leadership.feature_level.raise_to, cluster_level=self.machine.level,
            acknowledged=journal.acknowledged(receiver), journal=journal.identity, term=self.replica.term,
            last_term=journal.last_term, last_index=journal.last_index,
            client=self.members.client_address(self.settings.name),
        )

    def add_unknown_peer(self, hello: Hello) -> None:
        """Make a node that greets us a peer, although it is not a member here, if it knows a later membership.

        Others joined while this node was away or not yet part of the cluster, and one of them may lead. It becomes a
        member here through the log that it sends, and does not count before that. It may receive our vote, which it
        counts according to the membership that it knows.
        """
        name = hello.sender
        known = name == self.settings.name or hello.configuration <= self.machine.membership.configuration
        if not known and hello.address:
            log.info("%s knows a later membership than this node", name)
            self.transport.meet(name)
            self._linked[name] = hello.address
            self._network.add_peer(name, hello.address)

    def leader(self) -> str | None:
        """The name of the leader, None when this node knows none."""
        if self.replica.is_leader:
            return self.settings.name
        node = self.replica.leader_node
        return str(node.id) if node is not None and self.transport.elections.leader_alive() else None

    def _send_info(self, now: float) -> None:
        urgent = self.role(), self.transport.right.held, self.capacity.lacking
        if now - self._info_at < limits.INFO_S and urgent == self._info_sent:
            return
        self._info_at, self._info_sent = now, urgent
        self.transport.broadcast(self.info())
