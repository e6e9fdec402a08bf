"""Checks an outbox and its cluster, and says what is wrong and what to do about it."""

from __future__ import annotations

import time
from typing import NamedTuple

from sockpq import Client, SockpqError

from sockpq_outbox.databases.base import Database
from sockpq_outbox.relay.ledger import holder_of, queue_of
from sockpq_outbox.rows import transaction
from sockpq_outbox.words import rows_counted, rows_wait

LATE_S = 30.0               # a relay at work puts a row within a second or so
QUEUES_MAX = 20


class Finding(NamedTuple):
    """The result of one check; `bad`: somebody has to do something."""

    bad: bool
    text: str


def examine(database: Database, client: Client, name: str) -> list[Finding]:
    """Return the findings about the outbox of this name. Raises errors of the database."""
    with transaction(database) as rows:
        counts = rows.counts()
        queues = rows.queues(QUEUES_MAX)
        identities = {ledger: identity for ledger, _, identity in rows.ledgers()}
    found = _ledger(client, queue_of(name), identities)
    lag_s = 0.0 if counts.oldest is None else time.time() - counts.oldest
    found.append(Finding(
        lag_s > LATE_S, rows_wait(counts.waiting) + (f", the oldest for {lag_s:.0f} s" if counts.waiting else "")))
    if lag_s > LATE_S:
        found += _queues(client, queues)
    if counts.failed:
        found.append(Finding(True, f"the cluster has refused {rows_counted(counts.failed)} for good: `pqoutbox status` "
                                   "has the reasons; when they are removed, `pqoutbox retry-failed`"))
    return found


def _ledger(client: Client, queue: str, identities: dict[str, str]) -> list[Finding]:
    try:
        holder = holder_of(client, queue)
    except SockpqError as error:
        return [Finding(True, f"the cluster does not answer: {error}")]
    if holder is None:
        return [Finding(True, f"there is no ledger {queue}: no relay has run yet, or it has another --name")]
    held, identity = holder
    if identity and identities.get(queue) not in (None, identity):
        return [Finding(True, f"the ledger {queue} is of the outbox of another database: give each of them a --name "
                              "of its own, or start the relay with --adopt if this one has taken its place")]
    if not held:
        return [Finding(True, f"no relay holds the ledger {queue}: start `pqoutbox relay`")]
    return [Finding(False, f"a relay holds the ledger {queue}")]


def _queues(client: Client, queues: list[tuple[str, int]]) -> list[Finding]:
    """Look at the queues for which rows wait."""
    found = []
    for queue, number in queues:
        try:
            stat = client.queue_stat(queue)
        except SockpqError as error:
            found.append(Finding(True, f"{rows_wait(number)} for {queue}: {error}"))
            continue
        paused = bool(stat.get("paused_in"))
        found.append(Finding(
            True, f"{rows_wait(number)} for {queue}" + (": it is paused (`pqctl queue resume`)" if paused else "")))
    return found
