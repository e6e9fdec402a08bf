"""Cures of the product, taken out one at a time: each must make some seed go red."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from cluster import proposer
from cluster.appending import Receiver, Sender
from cluster.context import Peer
from cluster.driver import Driver
from cluster.elections import Elections
from cluster.journal import Journal
from cluster.messages import Ack, Append, PreVote, RequestVote
from cluster.snapshots import SnapshotStore


def compare_nothing(patch: pytest.MonkeyPatch) -> None:
    """H1: a follower cuts its log wherever the leader sends something; H3: which it does again and again."""
    send = Sender._send_new

    def send_all(self: Sender, peer: Peer, message: dict[str, Any]) -> None:
        peer.high = None
        send(self, peer, message)

    def raw(self: Receiver, peer: Peer, message: Append) -> None:
        self._context.deliver(peer.node, {
            "type": "append_entries", "term": message.term, "commit_index": message.commit,
            "entries": message.entries, "prevLogIdx": message.prev_index, "prevLogTerm": message.prev_term,
        })
    patch.setattr(Receiver, "_append", raw)
    patch.setattr(Sender, "_send_new", send_all)


def believe_stale_answers(patch: pytest.MonkeyPatch) -> None:
    """H2: a leader counts answers of its earlier leaderships."""
    real = Sender.acknowledged

    def believe(self: Sender, peer: Peer, ack: Ack) -> None:
        term = self._context.replica.term
        if ack.term != term:
            ack = Ack(term, peer.epoch, ack.sent, ack.next_index, ack.reset, ack.success, ack.snapshot)
        real(self, peer, ack)
    patch.setattr(Sender, "acknowledged", believe)


def send_before_sync(patch: pytest.MonkeyPatch) -> None:
    """H4: votes and answers leave before what they vouch for is on disk."""
    real = Driver.turn

    def turn(self: Driver) -> None:
        self.journal.sync = lambda: None        # type: ignore[method-assign]
        try:
            real(self)
        finally:
            del self.journal.sync
        self.journal.sync()
    patch.setattr(Driver, "turn", turn)


def vote_with_an_empty_disk(patch: pytest.MonkeyPatch) -> None:
    """A wiped node votes as if it knew what it promised."""
    patch.setattr(Journal, "voter", property(lambda self: True))


def believe_commit_indexes(patch: pytest.MonkeyPatch) -> None:
    """H9a: a heartbeat moves the commit index over entries that nobody compared."""
    real = Receiver.contact

    def contact(self: Receiver, peer: Peer, term: int, commit: int, known: int | None = None) -> None:
        real(self, peer, term, commit, 1 << 60)
    patch.setattr(Receiver, "contact", contact)


def leave_the_journal_unaligned(patch: pytest.MonkeyPatch) -> None:
    """H9b: the library wipes a log that does not begin with the snapshot's entries."""
    patch.setattr(SnapshotStore, "_align", lambda self, contents: None)


def vote_for_anybody(patch: pytest.MonkeyPatch) -> None:
    """Candidates whose logs are older get votes."""
    asked, asked_before = Elections.asked, Elections.asked_before

    def as_new_as_ours(self: Elections, peer: Peer, message: RequestVote) -> None:
        journal = self._context.journal
        asked(self, peer, RequestVote(message.term, journal.last_index, journal.last_term, message.handover))

    def before(self: Elections, peer: Peer, message: PreVote) -> None:
        journal = self._context.journal
        asked_before(self, peer, PreVote(message.round, message.term, journal.last_index, journal.last_term))
    patch.setattr(Elections, "asked", as_new_as_ours)
    patch.setattr(Elections, "asked_before", before)


@dataclass(frozen=True)
class Cure:
    """How to take a cure out, and the runs in which that shows: fields of the plan that are not drawn."""

    remove: Callable[[pytest.MonkeyPatch], None]
    fixed: dict[str, Any]


def _only(*kinds: str) -> dict[str, float]:
    return dict.fromkeys(kinds, 1.0)


LOSSY = {"nodes": 3, "weights": _only("wiped disk", "crash", "isolated leader", "one-way", "slow link", "pause")}
DISKS = {"nodes": 3, "weights": _only("slow disk", "crash at a step", "power loss", "isolated leader")}
CUTS = {
    "nodes": 3,
   "weights": _only("connection lost", "isolated leader", "one-way", "slow link", "narrow link", "crash", "pause")}
DEPOSED = {
    "nodes": 5, "weights": _only("deposed leader"), "fault_s": 3.0, "calm_s": 1.0, "drift": 0.0, "clients": 5,
    "pipeline": (8,), "think_s": 0.1, "constants": [(proposer, "IN_FLIGHT_MAX", 40), (proposer, "OPERATIONS_MAX", 1)],
}

CURES = {
    cure.remove.__name__: cure for cure in (
        Cure(compare_nothing, CUTS),
        Cure(believe_stale_answers, DEPOSED),
        Cure(send_before_sync, DISKS),
        Cure(vote_with_an_empty_disk, LOSSY),
        Cure(believe_commit_indexes, CUTS),
        Cure(leave_the_journal_unaligned, {}),
        Cure(vote_for_anybody, CUTS),
    )
}
