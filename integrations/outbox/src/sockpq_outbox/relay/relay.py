"""The relay as a loop: in a program of its own (`pqoutbox relay`), or in a thread of another one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from sockpq import Client, ClusterMap

from sockpq_outbox.databases.sources import Listener, Opened, source_of
from sockpq_outbox.errors import OtherDatabase, TablesMissing, UnknownDatabase
from sockpq_outbox.relay.lane import Lane, Settings
from sockpq_outbox.relay.ledger import queue_of
from sockpq_outbox.relay.statistics import Statistics
from sockpq_outbox.rows import Namespace, transaction
from sockpq_outbox.tables import tables_are_missing

LOG = logging.getLogger("sockpq.outbox")

SLICE_S = 0.5               # how long a stop may have to wait for an idle relay
ERROR_FIRST_S, ERROR_MAX_S = 0.2, 15.0
COUNT_S = 5.0               # how often the rows are counted
PRUNE_S = 60.0
MAP_S = 60.0                # how often the map of clusters is looked at
CLUSTER_S = 10.0            # of a command of the cluster: with a leader it takes a fraction of that


class Relay:
    """Moves the committed rows of an outbox into a cluster. Several may run: one works, the others wait to take over.

        with Relay("postgresql:///shop", "db1:11361"):      # in a thread, until the end of the block
            serve()
    """

    def __init__(
        self, database: Any, servers: str | Iterable[str] | Client | None = None, *, name: str = "default",
        lease: float = 15.0, poll: float = 1.0, rows_max: int = 500, keep_failed: float = 30 * 86_400.0,
        keep_inbox: float = 7 * 86_400.0, adopt: bool = False, **client: Any,
    ) -> None:
        """`database`: a URL, a SQLAlchemy engine, or the alias of a Django database.

        `servers` and further arguments as those of sockpq.Client; or a client, which is not closed. `name`: of the
        outbox; two databases that use one cluster need two names. Times in seconds: after `lease` without a sign of
        life another relay takes over; `poll`: how often to look for rows where the database does not notify;
        `keep_failed` and `keep_inbox`: how long refused rows and marks of the inbox are kept. `rows_max`: of a batch.
        `adopt`: use the ledger of another database, which this one has replaced.

        Raises UnknownDatabase.
        """
        if not 1 <= rows_max <= 900:
            raise ValueError("rows_max: a batch has 1 to 900 rows, as a transaction of the cluster has at most 1000")
        if lease < 1 or poll <= 0:
            raise ValueError("a relay needs a lease of a second or more, and polls after more than 0 seconds")
        self.settings = Settings(name, lease, poll, rows_max, keep_failed, keep_inbox, adopt)
        self.statistics = Statistics()
        self._source = source_of(database)
        self._servers = servers
        self._options = client
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._client: Client | None = None
        self._opened: Opened | None = None
        self._listener: Listener | None = None
        self._lanes: list[Lane] = []
        self._map_at_s = self._count_at_s = self._prune_at_s = 0.0
        self._prunes_inbox = True

    # as a thread

    def start(self) -> None:
        """Run in a thread of this process."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run_logged, name="sockpq outbox relay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let run() return after the batch in progress; waits for the thread of start(). Safe in a signal handler."""
        self._stop.set()
        thread, self._thread = self._thread, None
        if thread and thread is not threading.current_thread():
            thread.join()

    def __enter__(self) -> Relay:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _run_logged(self) -> None:
        try:
            self.run()
        except Exception:
            LOG.exception("the relay has ended")

    # the loop

    def run(self) -> None:
        """Relay until stop(). Errors of the database and the cluster are logged, and it tries again.

        Raises OtherDatabase, and UnknownDatabase when a driver is not installed or a file of SQLite does not exist.
        """
        pause_s = ERROR_FIRST_S
        try:
            while not self._stop.is_set():
                try:
                    busy = self._turn()
                    pause_s = ERROR_FIRST_S
                except (OtherDatabase, UnknownDatabase):
                    raise
                except Exception as error:
                    self.statistics.count(errors=1)
                    LOG.warning("the relay begins again in %.1f s: %s: %s", pause_s, type(error).__name__, error)
                    self._close_database()
                    self._stop.wait(pause_s)
                    pause_s = min(2 * pause_s, ERROR_MAX_S)
                    continue
                if not busy:
                    self._wait()
        finally:
            self._close_database()
            if self._client and self._client is not self._servers:
                self._client.close()
            self._client = None

    def _turn(self) -> bool:
        """Give each lane a turn; returns whether one of them may have more to do at once."""
        client = self._connected()
        opened = self._opened
        if opened is None:
            opened = self._opened = self._source.open(self.settings.lease)
            if missing := tables_are_missing(opened.database):
                raise TablesMissing(missing)
            self._listener = self._source.listen()
        if not self._lanes or time.monotonic() > self._map_at_s:
            self._use_map(client, opened)
        busy = False
        for lane in self._lanes:
            if self._wanted(lane, opened):
                busy = lane.turn(opened.database, SLICE_S if len(self._lanes) == 1 else 0) or busy
            if self._stop.is_set():
                break
        self._look_around(opened)
        return busy

    def _wanted(self, lane: Lane, opened: Opened) -> bool:
        """Return whether a lane is needed: one for a prefix of the map only if there are rows for it."""
        if lane.holds or len(self._lanes) == 1:
            return True
        with transaction(opened.database) as rows:
            return rows.waits(lane.namespace) or rows.claimed_by(lane.queue)

    def _connected(self) -> Client:
        if self._client is None:
            given = self._servers
            options = {"timeout": min(CLUSTER_S, self.settings.lease), **self._options}
            self._client = given if isinstance(given, Client) else Client(given, **options)
        return self._client

    def _use_map(self, client: Client, opened: Opened) -> None:
        """Have a lane for each prefix of the map of clusters; existing ones stay.

        A ledger whose prefix is no longer in the map has a lane as long as rows are in a batch of it.
        """
        with transaction(opened.database) as rows:
            begun = [ledger for ledger, _, _ in rows.ledgers() if rows.claimed_by(ledger)]
        own = queue_of(self.settings.name)
        prefixes = {ledger.removesuffix(own) for ledger in begun if ledger.endswith(own) and ledger != own}
        wanted = namespaces(client.cluster_map(), prefixes)
        lanes = {lane.namespace: lane for lane in self._lanes}
        for gone in lanes.keys() - set(wanted):
            lanes[gone].drop()
        self._lanes = [
            lanes.get(one) or Lane(one, client, self.settings, self.statistics) for one in wanted
        ]
        self._map_at_s = time.monotonic() + MAP_S

    def _wait(self) -> None:
        """Wait for rows: until a notification if the database sends any, and no longer than until the next check."""
        seconds = self.settings.poll if self._listener is None else max(self.settings.poll, self.settings.lease / 4)
        until = time.monotonic() + self._until_retry(seconds)
        while (left := until - time.monotonic()) > 0 and not self._stop.is_set():
            if self._listener is None:
                self._stop.wait(min(left, SLICE_S))
                continue
            try:
                if self._listener.wait(min(left, SLICE_S)):
                    return
            except Exception as error:
                LOG.warning("the connection that hears of new rows is lost: %s", error)
                self._close_database()      # the next turn opens both again
                return

    def _until_retry(self, seconds: float) -> float:
        """Return the seconds until the next blocked queue is tried again, at most `seconds`."""
        now = time.monotonic()
        due = [blocked.until - now for lane in self._lanes for blocked in lane.blocked.values()]
        return max(min([seconds, *(one for one in due if one > 0)]), 0.01)

    # what is done now and then

    def _look_around(self, opened: Opened) -> None:
        now = time.monotonic()
        self.statistics.holds = any(lane.holds for lane in self._lanes)
        self.statistics.blocked = tuple(queue for lane in self._lanes for queue in lane.blocked)
        if now > self._count_at_s:
            with transaction(opened.database) as rows:
                self.statistics.counts = rows.counts()
            self._count_at_s = now + COUNT_S
        if now > self._prune_at_s and self.statistics.holds:
            self._prune(opened)
            self._prune_at_s = now + PRUNE_S

    def _prune(self, opened: Opened) -> None:
        with transaction(opened.database) as rows:
            rows.prune_failed(time.time() - self.settings.keep_failed)
        more = self._prunes_inbox
        while more and not self._stop.is_set():
            try:
                with transaction(opened.database) as rows:
                    more = rows.prune_inbox(time.time() - self.settings.keep_inbox)
            except Exception as error:
                LOG.info("marks of an inbox are not removed here: %s", error)
                self._prunes_inbox = more = False

    def _close_database(self) -> None:
        for lane in self._lanes:
            lane.drop()
        self._lanes = []            # the next turn looks at the map again
        for one in (self._listener, self._opened):
            if one is not None:
                try:
                    one.close()
                except Exception as error:
                    LOG.debug("a connection of the database ended with %s", error)
        self._listener = self._opened = None
        self.statistics.holds = False


def namespaces(clusters: ClusterMap, more: Iterable[str] = ()) -> list[Namespace]:
    """Return the names that have a ledger of their own, as the map of clusters and `more` prefixes divide them."""
    prefixes = sorted({*clusters.rules, *clusters.moving, *more})
    return [Namespace("", tuple(prefixes))] + [
        Namespace(prefix, tuple(other for other in prefixes if other != prefix and other.startswith(prefix)))
        for prefix in prefixes
    ]
