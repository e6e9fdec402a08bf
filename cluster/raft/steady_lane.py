"""The steady lane: the path of an entry through leader and followers while everything is in order.

pysyncobj's tick checks for every possible irregularity at every entry. Here an entry takes a direct path:
the leader appends and sends it, counts who has synced it, commits, applies and answers; a follower appends what
continues its log, syncs and acknowledges. Whatever is irregular stays with the library: elections, votes, membership,
snapshots, a peer that lags, a log that differs.

The lane has no state of its own, so nothing is handed over when it changes. The log, the term and the indexes are the
library's fields, and one of the two changes them at a time: the lane by the steps that pysyncobj_adapter.py offers, the
library in its tick and when it is given a message. Which of the two takes a step is decided each time:

    LIBRARY    the library was given something since its last tick (a message, a connection, an order to compact), or it
               is the turn for housekeeping
    LEADING    none of this, and this node is the leader; from here an entry that some connected peer cannot get as its
               next one goes to LIBRARY, in the same turn
    FOLLOWING  none of this, and it is not; a message from the leader that it follows, in its present term, whose
               entries continue its log, is taken here, any other goes to LIBRARY

Invariants, each with a test that goes red without it (tests/cluster/test_steady_lane.py):

    log matching    a follower appends only behind an entry with the index and term that the leader names, and only
                    for the leader of its term; a leader sends only what follows the last entry sent on that connection
    commit          an index is committed only if the entry there is of the leader's own term, and a majority has it on
                    disk, the leader included (Quorum.match)
    durability      an acknowledgement is only queued here; the driver sends it after the journal is synced
    attention       what was given to the library is followed by its tick in the same turn, and at the latest
                    HOUSEKEEPING_S after the last one it has a tick anyway (a leader with entries on their way after
                    LEADING_S more, a follower that hears its leader after FOLLOWING_S more): to step down, or for a
                    heartbeat
"""

from __future__ import annotations

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.raft.peer import Context, Peer
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.wire.messages import Ack, Append

ENTRY_KINDS = (b"\0", b"\1")    # REGULAR and NO_OP; the library mishandles MEMBERSHIP and VERSION (H5c, H10d)


class SteadyLane:
    """One node's lane. `open`: it may be used; while it is closed the library does everything.

    `prompt`: a follower applies each entry as soon as it is known to be committed.
    """

    open = True
    prompt = False

    def __init__(self, context: Context, quorum: Quorum) -> None:
        self._context = context
        self._quorum = quorum
        self.sent_at = float("-inf")            # when entries were last sent, monotonic seconds
        self.followed_at = float("-inf")        # when the leader was last followed here
        self.entries = 0                        # that took this lane, as leader or follower

    def turn(self) -> bool:
        """Commit, apply, append and send in a turn. Returns False if the library's tick is needed as well.

        Commits before it appends, as the library does; what is appended here is synced later in the turn.
        """
        replica = self._context.replica
        if not self.open or replica.attention:
            return False
        if replica.is_leader:
            self._commit()
        if replica.is_leader or not self._postpones():
            replica.apply_committed()
        if replica.proposed and not (replica.is_leader and self._append()):
            return False
        return not self._context.replica.attention

    # Leader

    def _commit(self) -> None:
        """Commit what a majority has on disk."""
        replica = self._context.replica
        if replica.commit_index < self._context.journal.last_index:
            index = self._quorum.match()
            if index > replica.commit_index and self._of_own_term(index):
                replica.commit_to(index)

    def _of_own_term(self, index: int) -> bool:
        """Return whether this entry is of the leader's term.

        An older one may still be replaced, however many nodes have it.
        """
        return self._context.journal.term_at(index) == self._context.replica.term

    def _append(self) -> bool:
        """Append what was proposed and send it to the connected peers; returns False if one of them is out of step."""
        context, replica, journal = self._context, self._context.replica, self._context.journal
        term, commit, now = replica.term, replica.commit_index, context.now
        peers = []
        for peer in context.peers.values():
            if peer.up and not peer.choked:     # a choked one gets its entries later, from the library
                if not self._in_step(peer, journal, term):
                    return False
                peers.append(peer)
        while replica.proposed:
            index, before = journal.last_index, journal.last_term
            entries = [replica.append_proposed()]
            for peer in peers:
                peer.sent_up_to = index + 1, term
                replica.sent(peer.node, index + 1)
                context.network.send(peer.name, Append(
                    term, peer.epoch, now, commit, index, before, entries, context.promise_ms,
                ))
            self.entries += 1
        self.sent_at = now
        replica.beaten(now)
        return True

    def _in_step(self, peer: Peer, journal: Journal, term: int) -> bool:
        """Return whether this peer has received the whole log on this connection and keeps up."""
        return (
            peer.sent_up_to == (journal.last_index, journal.last_term) and peer.term == term and peer.sending is None
            and self._context.network.buffered_bytes(peer.name) <= limits.CHOKE_BYTES
        )

    # Follower

    def follow(self, peer: Peer, message: Append) -> bool:
        """Append the entries of a message and queue the answer; returns False if this is not for the lane.

        A heartbeat is a message without entries.
        """
        context, entries = self._context, message.entries
        replica, journal = context.replica, context.journal
        if not (
            self.open and replica.follows(peer.node, message.term) and self._continues(message)
            and (not entries or journal.has_room_for(entries))
        ):
            return False
        index = message.prev_index
        for command, number, _ in entries:
            index += 1
            if number != index or command[:1] not in ENTRY_KINDS:
                return False                    # Receiver says what is wrong
        replica.extend(entries, message.commit)
        context.send(peer, Ack(
            message.term, message.epoch, message.sent, index + 1, False, True, None, message.promise_ms,
        ))
        self.entries += len(entries)
        self.followed_at = context.now
        return True

    def _postpones(self) -> bool:
        """Return whether committed entries wait, to be applied together in a later turn: few entries of few commands.

        Another message comes soon, as the last entry is not known to be committed.
        """
        replica, journal = self._context.replica, self._context.journal
        commit, following = replica.commit_index, replica.applied_index + 1
        return (
            not self.prompt and not replica.behind
            and commit < journal.last_index and commit - following < limits.POSTPONED_ENTRIES_MAX
            and journal.bytes_from(following) <= limits.POSTPONED_BYTES_MAX * (journal.last_index + 1 - following)
        )

    def _continues(self, message: Append) -> bool:
        """Return whether our log ends where the entries of this message begin."""
        journal = self._context.journal
        return message.prev_index == journal.last_index and message.prev_term == journal.last_term
