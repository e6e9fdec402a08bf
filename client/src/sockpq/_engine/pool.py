"""Slots for calls, reused by later calls: each has a connection and a session. No IO except closing.

A slot belongs to one call at a time, so the requests of a session are strictly sequential, and a session outlives its
connections. Thread-safe, so that it serves threads and asyncio's tasks alike.
"""

from __future__ import annotations

import threading
from weakref import WeakSet

from sockpq._engine.connection import Connection
from sockpq._protocol.addresses import Address
from sockpq._protocol.session import Session
from sockpq.errors import ClientClosed

IDLE_S = 60.0       # an idle connection is closed after this time


class Slot:
    """Belongs to one call at a time."""

    __slots__ = ("__weakref__", "connection", "idle_since", "leaving", "session", "session_ttl")

    def __init__(self) -> None:
        self.session_ttl: float | None = None       # of its own, in seconds, instead of the client's
        self.connection: Connection | None = None
        self.session: Session | None = None
        self.idle_since = 0.0
        self.leaving = False        # its call is interrupted and gives back what it has: it may connect to the last

    def drop_connection(self) -> None:
        """Close the connection; the session stays."""
        if self.connection:
            self.connection.close()
            self.connection = None

    def end(self) -> None:
        """Close the connection and the session."""
        if self.connection:
            self.connection.close(session=True)
            self.connection = None


class Pool:
    """The slots of one client."""

    def __init__(self, idle_max: int) -> None:
        """`idle_max`: the number of idle slots to keep."""
        self._idle_max = idle_max
        self._lock = threading.Lock()
        self._idle: list[Slot] = []         # the one used last at the end
        self._slots: WeakSet[Slot] = WeakSet()      # all; a call that is interrupted by a signal may not give its back
        self._closed = False

    def take(self, new: bool = False) -> Slot:
        """Return a slot for one call: the one used last, or a new one. Raises ClientClosed."""
        with self._lock:
            if self._closed:
                raise ClientClosed("the client was closed")
            if self._idle and not new:
                return self._idle.pop()
            slot = Slot()
            self._slots.add(slot)
        return slot

    def connected(self, slot: Slot, connection: Connection) -> None:
        """Record the new connection of this call. Raises ClientClosed if the client has been closed."""
        with self._lock:
            if not self._closed or slot.leaving:
                slot.connection = connection
                return
        connection.close()
        raise ClientClosed("the client was closed")

    def give_back(self, slot: Slot, now: float) -> None:
        """Take the slot back after a call. `now` in seconds on the monotonic clock.

        A connection with an unanswered command is closed: its late answer must never be mistaken for the answer to
        another one. So is a connection whose end the server has announced.
        """
        if slot.connection and not slot.connection.at_rest:
            slot.drop_connection()
        slot.idle_since = now
        slot.leaving = False
        gone = []
        with self._lock:
            if slot.connection or slot.session:
                self._idle.append(slot)
            while self._idle and (
                self._closed or len(self._idle) > self._idle_max or self._idle[0].idle_since < now - IDLE_S
            ):
                gone.append(self._idle.pop(0))
        for one in gone:
            one.end()

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server that has failed."""
        with self._lock:
            connections = []
            for slot in self._idle:
                if slot.connection and slot.connection.address == address:
                    connections.append(slot.connection)
                    slot.connection = None
        for connection in connections:
            connection.close()

    def close(self) -> None:
        """Close everything; calls of other threads end with an error."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for slot in self._slots.difference(idle):
                if slot.connection:
                    slot.connection.abort()
        for slot in idle:
            slot.end()

    def forget_all(self) -> None:
        """Forget all connections and sessions in a child process: they are the parent's and cannot be shared."""
        self._lock = threading.Lock()
        for slot in list(self._slots):
            slot.drop_connection()        # this process's descriptor only, see _process.py
            slot.session = None
        self._idle, self._slots = [], WeakSet()
