"""Decides how to treat a refused job: its row has failed for good, or its queue waits while others go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sockpq import Aborted, Busy, ClusterMap, Elsewhere, JobNotFound, QueueFull, QueuePaused

from sockpq_outbox.jobs import Row
from sockpq_outbox.relay.ledger import LEDGER_COMMANDS, RowRefused

FOR_NOW = QueueFull, QueuePaused, Elsewhere, Busy


class Refusal(NamedTuple):
    """The rows that are not put with this batch; `waits`: later, because the queue takes none now; else never."""

    rows: list[Row]
    waits: bool
    reason: str


def refusal_of(error: Aborted | RowRefused, rows: Sequence[Row]) -> Refusal | None:
    """Return what to leave out of the batch; None if this relay no longer holds the ledger."""
    if isinstance(error, RowRefused):
        return Refusal([error.row], False, described(error.reason))
    position = error.position - 1 - LEDGER_COMMANDS
    if position < 0:
        if isinstance(error.reason, JobNotFound):
            return None
        raise error.reason
    row = rows[position]
    if isinstance(error.reason, FOR_NOW):
        # Earlier rows for the same queue have found room; later ones wait too, which keeps the order.
        return Refusal(
            [other for other in rows[position:] if other.queue == row.queue], True, described(error.reason))
    return Refusal([row], False, described(error.reason))


def across_clusters(rows: Sequence[Row], ledger: str, clusters: ClusterMap) -> Refusal | None:
    """Return what cannot be in one transaction with the ledger; None if the map has changed, so that all wait."""
    # The dead-letter queue of a spread queue is spread with it; ClusterMap.is_spread() is newer than the oldest client.
    spread = [row for row in rows if {row.queue, row.queue.removesuffix("_dead")} & clusters.spread]
    if spread:
        return Refusal(spread, False, "its queue is spread over several clusters: an outbox needs one that owns it")
    if any(clusters.owner(row.queue) != clusters.owner(ledger) for row in rows):
        return None
    return Refusal(list(rows), False, "it is about several clusters: what belongs together needs one prefix in the map")


def described(reason: Exception) -> str:
    """Return the text of an error, with its kind, for operators."""
    return f"{type(reason).__name__}: {reason}"
