"""Takes out of the product what keeps the log and the membership right."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sockpqd.cluster import limits
from sockpqd.cluster.damage.rejoin import Rejoin
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.leader.leadership import Leadership
from sockpqd.cluster.leader.membership import Members, Promotion
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.raft.append_entries import Receiver, Sender
from sockpqd.cluster.raft.elections import Elections
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.raft.steady_lane import SteadyLane
from sockpqd.cluster.raft.transport import RaftTransport
from sockpqd.cluster.raft.voter_admission import Admission
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.syncing import Syncing
from sockpqd.cluster.wire.messages import Ack, Admit, Append, PreVote, RequestVote
from sockpqd.core import ChangeMember, MemberChange, Membership, Reply
from sockpqd.core.handlers.dispatch import EXECUTE
from sockpqd.core.state import State
from tests.core.model.model import Model
from tests.sim.cures.cure import TABLE, Cure, only, scripted
from tests.sim.scenarios import disks, leases, members
from tests.sim.scenarios.members import SCRIPTED
from tests.sim.world.plan import overlapping, spent_constants


def compare_nothing(patch: pytest.MonkeyPatch) -> None:
    """H1: let a follower cut its log wherever the leader sends something; H3: which it does repeatedly."""
    send = Sender._send_new

    def send_all(self: Sender, peer: Peer, message: dict[str, Any]) -> None:
        peer.sent_up_to = None
        send(self, peer, message)

    def raw(self: Receiver, peer: Peer, message: Append) -> None:
        self._context.deliver(peer.node, {
            "type": "append_entries", "term": message.term, "commit_index": message.commit,
            "entries": message.entries, "prevLogIdx": message.prev_index, "prevLogTerm": message.prev_term,
        })
    patch.setattr(Receiver, "_append", raw)
    patch.setattr(Sender, "_send_new", send_all)


def append_behind_any_entry(patch: pytest.MonkeyPatch) -> None:
    """Let the steady lane check only where a follower's log ends, not the entry there."""
    def continues(self: SteadyLane, message: Append) -> bool:
        return message.prev_index == self._context.journal.last_index
    patch.setattr(SteadyLane, "_continues", continues)


def believe_stale_answers(patch: pytest.MonkeyPatch) -> None:
    """H2: let a leader count answers of its earlier leaderships."""
    real = Sender.acknowledged

    def believe(self: Sender, peer: Peer, ack: Ack) -> None:
        term = self._context.replica.term
        if ack.term != term:
            ack = Ack(term, peer.epoch, ack.sent, ack.next_index, ack.reset, ack.success, ack.snapshot)
        real(self, peer, ack)
    patch.setattr(Sender, "acknowledged", believe)


def send_before_sync(patch: pytest.MonkeyPatch) -> None:
    """H4: send votes and answers before what they promise is on disk."""
    real = Syncing.sync

    def sync(self: Syncing, now: float, *, leads: bool) -> None:
        self._network.flush()
        real(self, now, leads=leads)
    patch.setattr(Syncing, "sync", sync)


def release_before_sync(patch: pytest.MonkeyPatch) -> None:
    """Send messages while a thread syncs what they promise."""
    real = Syncing.sync

    def sync(self: Syncing, now: float, *, leads: bool) -> None:
        real(self, now, leads=leads)
        self._network.release()
    patch.setattr(Syncing, "sync", sync)


def release_with_the_sync_before(patch: pytest.MonkeyPatch) -> None:
    """Send messages when the sync ends that had begun before what they promise was written."""
    real = Syncing.poll

    def poll(self: Syncing) -> None:
        if self._journal.syncing is not None and self._journal.syncing.done():
            self._network.hold()
        real(self)
    patch.setattr(Syncing, "poll", poll)


def lead_in_a_term_that_may_be_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Let a single node lead while a thread syncs its vote."""
    patch.setattr(Journal, "binds", property(lambda self: False, lambda self, binds: None), raising=False)


def vote_with_an_empty_disk(patch: pytest.MonkeyPatch) -> None:
    """Let a wiped node vote as if it knew its promises."""
    patch.setattr(Journal, "voter", property(lambda self: True))


def vote_after_damage(patch: pytest.MonkeyPatch) -> None:
    """Let a node that has set its damaged files aside keep its right to vote."""
    real = Rejoin.tell

    def tell(self: Rejoin, journal: Journal) -> None:
        if self.waiting:
            journal.set_voter()
        real(self, journal)
    patch.setattr(Rejoin, "tell", tell)
    patch.setattr(Driver, "_check_end_of_log", lambda self, name, hello: None)     # which would find it out


def believe_commit_indexes(patch: pytest.MonkeyPatch) -> None:
    """H9a: let a heartbeat move the commit index over entries that were not compared."""
    real = Receiver.contact

    def contact(self: Receiver, peer: Peer, term: int, commit: int, known: int | None = None) -> None:
        real(self, peer, term, commit, 1 << 60)
    patch.setattr(Receiver, "contact", contact)


def leave_the_journal_unaligned(patch: pytest.MonkeyPatch) -> None:
    """H9b: let the library wipe a log that does not begin with the snapshot's entries."""
    patch.setattr(SnapshotStore, "_align", lambda self, contents: None)


def vote_for_anybody(patch: pytest.MonkeyPatch) -> None:
    """Vote for candidates whose logs are older."""
    asked, pre_vote_requested = Elections.vote_requested, Elections.pre_vote_requested

    def as_new_as_ours(self: Elections, peer: Peer, message: RequestVote) -> None:
        journal = self._context.journal
        asked(self, peer, RequestVote(message.term, journal.last_index, journal.last_term, message.handover))

    def before(self: Elections, peer: Peer, message: PreVote) -> None:
        journal = self._context.journal
        pre_vote_requested(self, peer, PreVote(message.round, message.term, journal.last_index, journal.last_term))
    patch.setattr(Elections, "vote_requested", as_new_as_ours)
    patch.setattr(Elections, "pre_vote_requested", before)


def forget_the_promise(patch: pytest.MonkeyPatch) -> None:
    """Let a follower that sees the leader's connection end take its process, and so its lease, for ended."""
    real = Elections.leader_lost

    def lost(self: Elections) -> None:
        self._promised_until = float("-inf")
        real(self)
    patch.setattr(Elections, "leader_lost", lost)


def vote_again(patch: pytest.MonkeyPatch) -> None:
    """Give a vote to every node that asks, whichever got it in this term before."""
    real = Elections.vote_requested

    def asked(self: Elections, peer: Peer, message: RequestVote) -> None:
        self._context.replica._SyncObj__votedForNodeId = None
        real(self, peer, message)
    patch.setattr(Elections, "vote_requested", asked)


def write_no_term(patch: pytest.MonkeyPatch) -> None:
    """Let a node that is started again forget its term and vote, and the journal record neither."""
    patch.setattr(Journal, "setCurrentTerm", lambda self, term, vote: None)


def admit_at_once(patch: pytest.MonkeyPatch) -> None:
    """Let a voter that lost its disk vote as soon as a leader sees it."""
    def tick(self: Admission) -> None:
        context = self._context
        for peer in context.peers.values():
            if context.leads() and peer.up and peer.info is not None and not peer.info.voter:
                context.send(peer, Admit(context.replica.term))
    patch.setattr(Admission, "tick", tick)


def count_answers_of_the_forgetful(patch: pytest.MonkeyPatch) -> None:
    """Count every acknowledgement, also one from a voter that lost its disk and was not admitted since."""
    def match(self: Quorum) -> int:
        term = self._context.replica.term
        matches = [peer.match if peer.term == term else 0 for peer in self.peers]
        return int(min(self._context.journal.durable_index, self._reached(matches)))
    patch.setattr(Quorum, "match", match)


def believe_the_page_cache(patch: pytest.MonkeyPatch) -> None:
    """Let a node that is started again sync what it can read, and take it for durable."""
    def sync_only(self: Disk, directory: Path, names: Iterable[str]) -> None:
        self.sync_directory(directory)
        for name in names:
            file = self.open(directory / name)
            self.sync(file)
            self.close(file)
    patch.setattr(Disk, "trust", sync_only)


def count_what_is_being_synced(patch: pytest.MonkeyPatch) -> None:
    """Let a leader count its own copy of a large entry before it is on disk."""
    whole = property(lambda self: self.last_index, lambda self, index: None)
    patch.setattr(Journal, "durable_index", whole, raising=False)


def count_learners(patch: pytest.MonkeyPatch) -> None:
    """Count a node that is to become a voter as one."""
    real = Members._take

    def take(self: Members, membership: Membership) -> None:
        real(self, membership)
        self.voters = self.names
    patch.setattr(Members, "_take", take)


def change_two_voters_at_once(patch: pytest.MonkeyPatch) -> None:
    """Make a change whatever configuration it was proposed for."""
    real, model = EXECUTE[ChangeMember], Model.change

    def remove(state: State, operation: ChangeMember, seed: int) -> Reply:
        if operation.change is MemberChange.REMOVE:
            operation = replace(operation, configuration=state.membership.configuration)
        return real(state, operation, seed)

    def change(self: Model, operation: ChangeMember) -> Reply:
        if operation.change is MemberChange.REMOVE:
            operation = replace(operation, configuration=self.configuration)
        return model(self, operation)
    patch.setitem(TABLE, ChangeMember, remove)
    patch.setattr(Model, "change", change)


def promote_at_once(patch: pytest.MonkeyPatch) -> None:
    """Make a learner a voter before it has caught up."""
    def tick(self: Promotion, leading: bool) -> None:
        membership = self._machine.membership
        if leading and membership.learner in self._context.peers and not self._proposed:
            self._proposed = True
            self._propose(ChangeMember(membership.learner, MemberChange.PROMOTE, membership.configuration), self)
    patch.setattr(Promotion, "tick", tick)


def change_on_when_removed(patch: pytest.MonkeyPatch) -> None:
    """Let a removed leader, which counts by the configuration before, execute further changes."""
    def leading(self: Leadership) -> bool:
        return self._in_contact(self._clock.monotonic())
    patch.setattr(Leadership, "leading", leading)


def overtake_what_was_left_out(patch: pytest.MonkeyPatch) -> None:
    """Let another entry follow one that may leave operations out, which are then put behind it."""
    real = Proposer._launch

    def launch(self: Proposer, batch: Any) -> None:
        batch.whole = True
        for earlier in self._flying:
            earlier.overtaken = False
        real(self, batch)
    patch.setattr(Proposer, "_launch", launch)


def talk_to_the_removed(patch: pytest.MonkeyPatch) -> None:
    """Treat a removed node as a member."""
    real = RaftTransport.change_members

    def change(self: RaftTransport, voters: Any, peers: Any, now: float, *, learns: bool) -> None:
        real(self, voters, peers, now, learns=learns)
        for peer in self.context.peers.values():
            peer.leaving = False
        self.members_leaving = False
    patch.setattr(RaftTransport, "change_members", change)


def queue_at_the_end_what_was_left_out(patch: pytest.MonkeyPatch) -> None:
    """Put operations left over from an entry behind those proposed since."""
    def behind(self: Proposer, operations: Any, pendings: Any, begun: float) -> None:
        for operation, pending in zip(operations, pendings, strict=True):
            self.propose(operation, pending)
    patch.setattr(Proposer, "_put_back", behind)


DAMAGED = {"nodes": 3, "weights": only("damage", "crash", "isolated leader", "one-way", "slow link", "pause")}
LOSSY = {"nodes": 3, "weights": only("wiped disk", "crash", "isolated leader", "one-way", "slow link", "pause")}
DISKS = {"nodes": 3, "weights": only("slow disk", "crash at a step", "power loss", "isolated leader")}
ALONE = {"nodes": 1, "spares": 0, "weights": only("slow disk", "power loss", "offline")}
LARGE = {**DISKS, "constants": [(limits, "BACKGROUND_SYNC_BYTES", 0)]}
CUTS = {
    "nodes": 3,
   "weights": only("connection lost", "isolated leader", "one-way", "slow link", "narrow link", "crash", "pause")}
FAILING = {"nodes": 3, "weights": only("failed fsync", "power loss")}
ELECTED = {"nodes": 3, "heartbeat_ms": 50, "weights": only("crash", "isolated leader", "connection lost")}
DEPOSED = {
    "nodes": 5, "weights": only("deposed leader"), "fault_s": 3.0, "calm_s": 1.0, "drift": 0.0, "clients": 5,
    "pipeline": (8,), "think_s": 0.1,
    "constants": [(limits, "ENTRIES_IN_FLIGHT_MAX", 40), (limits, "ENTRY_OPERATIONS_MAX", 1)],
}

ADDED = {"nodes": 2, "spares": 2, "weights": only("add node", "isolated leader", "one-way", "pause", "narrow link")}

LEFT_OUT = {
    "nodes": 3, "clients": 5, "pipeline": (8,), "think_s": 0.05,
    "constants": [*spent_constants(40), (limits, "ENTRIES_IN_FLIGHT_MAX", 1)],
}

OVERTAKEN = {**LEFT_OUT, "constants": [*LEFT_OUT["constants"], *overlapping(True)]}     # type: ignore[misc]
LARGE_AND_TWO = {**LARGE, "constants": [*LARGE["constants"], *overlapping(True)]}       # type: ignore[misc]

CURES = (
    Cure(compare_nothing, CUTS, red=11),
    Cure(append_behind_any_entry, {**CUTS, "steady": 1.0}, red=34),
    Cure(believe_stale_answers, DEPOSED, red=200),
    Cure(send_before_sync, DISKS, red=0),
    Cure(release_before_sync, LARGE, red=0),
    Cure(release_with_the_sync_before, LARGE, red=0),
    Cure(lead_in_a_term_that_may_be_forgotten, ALONE, red=5),
    Cure(count_what_is_being_synced, LARGE, red=7),
    Cure(believe_the_page_cache, scripted(disks.SCRIPTED, disks.a_sync_fails_and_its_bytes_stay_visible), red=0),
    Cure(believe_the_page_cache, FAILING, red=8),
    Cure(vote_with_an_empty_disk, LOSSY, red=0),
    Cure(vote_after_damage, DAMAGED, red=56),
    Cure(believe_commit_indexes, CUTS, red=44),
    Cure(leave_the_journal_unaligned, {}, red=0),
    Cure(vote_for_anybody, CUTS, red=41),
    Cure(forget_the_promise, scripted(SCRIPTED, leases.the_followers_connections_to_the_leader_end), red=0),
    Cure(vote_again, ELECTED, red=19),
    Cure(write_no_term, ELECTED, red=0),
    Cure(admit_at_once, scripted(SCRIPTED, members.a_wiped_voter_votes_before_it_has_caught_up), red=0),
    Cure(count_answers_of_the_forgetful, scripted(SCRIPTED, members.a_wiped_voter_meets_a_deposed_leader), red=0),
    Cure(count_learners, ADDED, red=0),
    Cure(promote_at_once, ADDED, red=6),
    Cure(change_two_voters_at_once, scripted(SCRIPTED, members.two_operators_remove_a_node_each, nodes=5), red=2),
    Cure(change_on_when_removed, scripted(SCRIPTED, members.a_removed_leader_is_asked_for_more), red=0),
    Cure(queue_at_the_end_what_was_left_out, LEFT_OUT, red=0),
    Cure(overtake_what_was_left_out, OVERTAKEN, red=4),
    Cure(count_what_is_being_synced, LARGE_AND_TWO, red=0),
    Cure(talk_to_the_removed, scripted(SCRIPTED, members.a_removed_node_asks_for_votes, nodes=5), red=0),
)
