"""Cures of the product, taken out one at a time: each must make some seed go red."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.admission import Admission
from cluster.appending import Receiver, Sender
from cluster.context import Peer
from cluster.driver import Driver
from cluster.elections import Elections
from cluster.journal import Journal
from cluster.messages import Ack, Admit, Append
from cluster.snapshots import SnapshotStore


def compare_nothing(patch: pytest.MonkeyPatch) -> None:
    """H1: a follower cuts its log wherever the leader sends something."""
    def raw(self: Receiver, peer: Peer, message: Append) -> None:
        self._context.deliver(peer.node, {
            "type": "append_entries", "term": message.term, "commit_index": message.commit,
            "entries": message.entries, "prevLogIdx": message.prev_index, "prevLogTerm": message.prev_term,
        })
    patch.setattr(Receiver, "_append", raw)


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
            del self.journal.sync               # type: ignore[method-assign]
        self.journal.sync()
    patch.setattr(Driver, "turn", turn)


def vote_with_an_empty_disk(patch: pytest.MonkeyPatch) -> None:
    """A wiped node votes as if it knew what it promised."""
    patch.setattr(Journal, "voter", property(lambda self: True))


def admit_at_once(patch: pytest.MonkeyPatch) -> None:
    """A leader lets a wiped node vote before it is brought up to date."""
    def tick(self: Admission) -> None:
        context = self._context
        for peer in context.peers.values():
            if context.leads() and peer.up and peer.info is not None and not peer.info.voter:
                context.send(peer, Admit(context.replica.term))
    patch.setattr(Admission, "tick", tick)


def believe_commit_indexes(patch: pytest.MonkeyPatch) -> None:
    """H9a: a heartbeat moves the commit index over entries that nobody compared."""
    real = Receiver.contact

    def contact(self: Receiver, peer: Peer, term: int, commit: int, known: int | None = None) -> None:
        real(self, peer, term, commit, 1 << 60)
    patch.setattr(Receiver, "contact", contact)


def leave_the_journal_unaligned(patch: pytest.MonkeyPatch) -> None:
    """H9b: the library wipes a log that does not begin with the snapshot's entries."""
    patch.setattr(SnapshotStore, "_align", lambda self, contents: None)


def forget_what_was_asked_for(patch: pytest.MonkeyPatch) -> None:
    """Candidates with older logs get votes."""
    real = Elections.asked

    def asked(self: Elections, peer: Peer, message: Any) -> None:
        journal = self._context.journal
        real(self, peer, type(message)(message.term, journal.last_index, journal.last_term, message.handover))
    patch.setattr(Elections, "asked", asked)
    patch.setattr(Elections, "asked_before", _always_grant)


def _always_grant(self: Elections, peer: Peer, message: Any) -> None:
    from cluster.messages import PreVoteAnswer
    self._context.send(peer, PreVoteAnswer(message.round, self._context.replica.term, True))


CURES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    cure.__name__: cure for cure in (
        compare_nothing, believe_stale_answers, send_before_sync, vote_with_an_empty_disk, admit_at_once,
        believe_commit_indexes, leave_the_journal_unaligned, forget_what_was_asked_for,
    )
}
