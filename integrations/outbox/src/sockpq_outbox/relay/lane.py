"""One ledger's part of a relay: takes the ledger, and moves the rows of its names batch by batch.

A round is two transactions. In the database: lock the row of the ledger, remove the rows of the last batch, give the
next rows to a new batch. In the cluster: note the batch in the ledger and put its jobs. A relay that takes over after a
crash in between reads in the ledger which batch was put: its rows are removed, the rows of any other batch wait again.
"""

from __future__ import annotations

import logging
import time
from typing import NamedTuple
from uuid import uuid4

from sockpq import Aborted, Client, CrossCluster, JobNotFound

from sockpq_outbox.databases.base import Database
from sockpq_outbox.errors import Superseded
from sockpq_outbox.jobs import Row
from sockpq_outbox.relay.ledger import Ledger, RowRefused, queue_of, take
from sockpq_outbox.relay.refusals import Refusal, across_clusters, refusal_of
from sockpq_outbox.relay.statistics import Statistics
from sockpq_outbox.rows import Namespace, transaction

LOG = logging.getLogger("sockpq.outbox")

BATCH_BYTES_MAX = 12 * 1024 * 1024      # of the 16 MiB of a transaction of the cluster, which also has its lines
BLOCKED_FIRST_S, BLOCKED_MAX_S = 1.0, 30.0
MAKE_S = 30.0                           # how often a relay that waits makes sure that there is a ledger
BLOCKED_QUEUES_MAX = 500                # they are named in a statement


class Settings(NamedTuple):
    """The settings of a relay; times in seconds. See Relay."""

    name: str = "default"
    lease: float = 15.0
    poll: float = 1.0
    rows_max: int = 500
    keep_failed: float = 30 * 86_400.0
    keep_inbox: float = 7 * 86_400.0
    adopt: bool = False


class Blocked(NamedTuple):
    """A queue that takes no jobs now, with the time of the next try and the pause before it."""

    until: float
    pause_s: float


class MapStale(Exception):
    """The names of a batch are in several clusters by now. Internal."""


class Lane:
    """The names that begin with a prefix of the map of clusters; without a map, all names."""

    def __init__(self, namespace: Namespace, client: Client, settings: Settings, statistics: Statistics) -> None:
        self.namespace = namespace
        self.queue = queue_of(settings.name, namespace.prefix)
        self.blocked: dict[str, Blocked] = {}
        self._client = client
        self._settings = settings
        self._statistics = statistics
        self._ledger: Ledger | None = None
        self._holder = ""
        self._number = 0
        self._last: str | None = None       # the batch that was put and whose rows are still there
        self._touched_s = 0.0
        self._make_at_s = 0.0

    @property
    def holds(self) -> bool:
        """True if this relay has the ledger, as far as it knows."""
        return self._ledger is not None

    def turn(self, database: Database, wait: float) -> bool:
        """Move one batch; returns whether there may be more at once.

        `wait`: how long to wait for the ledger, if another relay has it. Raises errors of the database and of the
        client, after which its state is unknown: drop() it then.
        """
        try:
            if self._ledger is None:
                return self._take_over(database, wait)
            return self._move(database, self._ledger)
        except (Superseded, JobNotFound) as error:
            LOG.info("another relay has the ledger %s now: %s", self.queue, error)
            self._ledger = None
            return False

    def drop(self) -> None:
        """Give the ledger back, if there is one; the next turn begins with a takeover."""
        ledger, self._ledger = self._ledger, None
        if ledger:
            ledger.give_back()

    def _take_over(self, database: Database, wait: float) -> bool:
        make = time.monotonic() > self._make_at_s
        ledger = take(self._client, self.queue, self._settings.lease, wait, make=make)
        if make:
            self._make_at_s = time.monotonic() + MAKE_S
        if ledger is None:
            return False
        holder = uuid4().hex
        try:
            with transaction(database) as rows:
                rows.add_ledger(self.queue)
            with transaction(database) as rows:
                rows.fence(self.queue, holder, lambda identity: ledger.check(identity, self._settings.adopt))
        except BaseException:
            ledger.give_back()
            raise
        self._ledger, self._holder, self._number, self._last = ledger, holder, 0, None
        self._touched_s = time.monotonic()
        self._statistics.count(takeovers=1)
        LOG.info("relaying with the ledger %s", self.queue)
        return True

    def _move(self, database: Database, ledger: Ledger) -> bool:
        without = self._blocked_now()
        batch = f"{self._holder}.{self._number + 1}"
        claimed: list[Row] = []
        with transaction(database) as rows:
            if self._last is not None or rows.waits(self.namespace, without):
                rows.hold(self.queue, self._holder)
                if self._last is not None:
                    rows.forget(self._last)
                claimed = rows.claim(batch, self._settings.rows_max, BATCH_BYTES_MAX, self.namespace, without)
        self._last = None
        if claimed:
            self._number += 1
            self._put(database, ledger, batch, claimed)
            return True
        self._renew(ledger)
        return False

    def _put(self, database: Database, ledger: Ledger, batch: str, rows: list[Row]) -> None:
        """Put the rows of a batch, without those that are refused."""
        before = dict(self.blocked)
        while rows:
            refusal = self._attempt(ledger, batch, rows)
            if refusal is None:
                break
            self._leave_out(database, refusal)
            left_out = {row.id for row in refusal.rows}
            rows = [row for row in rows if row.id not in left_out]
        else:
            return
        self._last = batch
        self._touched_s = time.monotonic()
        self._statistics.count(put=len(rows), batches=1)
        for queue in {row.queue for row in rows} & self.blocked.keys():     # it had room
            if self.blocked[queue] is before.get(queue):
                del self.blocked[queue]
            else:
                self.blocked[queue] = Blocked(time.monotonic() + BLOCKED_FIRST_S, BLOCKED_FIRST_S)

    def _attempt(self, ledger: Ledger, batch: str, rows: list[Row]) -> Refusal | None:
        """Put the rows, all or none; returns what has to be left out if none was. Raises JobNotFound, MapStale."""
        try:
            ledger.put(batch, rows)
        except (Aborted, RowRefused) as error:
            refusal = refusal_of(error, rows)
            if refusal is None:
                raise JobNotFound("the lease of the ledger has ended") from error
            return refusal
        except CrossCluster as error:
            refusal = across_clusters(rows, self.queue, self._client.cluster_map())
            if refusal is None:
                raise MapStale(str(error)) from error
            return refusal
        return None

    def _leave_out(self, database: Database, refusal: Refusal) -> None:
        """Take refused rows out of the batch before it is put: rows with its name are removed afterwards."""
        ids = [row.id for row in refusal.rows]
        with transaction(database) as rows:
            rows.hold(self.queue, self._holder)
            if refusal.waits:
                rows.release(ids)
            else:
                rows.fail(ids, refusal.reason)
        for queue in {row.queue for row in refusal.rows}:
            if refusal.waits:
                self._block(queue, refusal.reason)
            else:
                LOG.error("the cluster refuses %d jobs of %s for good: %s", len(ids), queue, refusal.reason)
        if not refusal.waits:
            self._statistics.count(failed=len(ids))

    def _block(self, queue: str, reason: str) -> None:
        before = self.blocked.get(queue)
        if before is None:
            LOG.warning("the jobs of %s wait: %s", queue, reason)
        pause_s = BLOCKED_FIRST_S if before is None else min(2 * before.pause_s, BLOCKED_MAX_S)
        self.blocked[queue] = Blocked(time.monotonic() + pause_s, pause_s)

    def _blocked_now(self) -> list[str]:
        now = time.monotonic()
        return [queue for queue, blocked in self.blocked.items() if blocked.until > now][:BLOCKED_QUEUES_MAX]

    def _renew(self, ledger: Ledger) -> None:
        if time.monotonic() > self._touched_s + self._settings.lease / 3:
            ledger.touch()
            self._touched_s = time.monotonic()
