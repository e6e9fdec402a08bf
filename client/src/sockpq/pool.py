"""Idle connections, kept for the next call. Thread-safe; a connection belongs to one call at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sockpq.addresses import Address
from sockpq.connection import Connection
from sockpq.errors import ClientClosed


class Pool:
    """The connections of one client."""

    def __init__(self, connect_timeout: float, idle_max: int) -> None:
        """`connect_timeout`: seconds for a new connection; `idle_max`: connections kept without work."""
        self._connect_timeout = connect_timeout
        self._idle_max = idle_max
        self._lock = threading.Lock()
        self._idle: list[Connection] = []       # the one used last at the end
        self._busy: set[Connection] = set()
        self._process = os.getpid()
        self.closed = threading.Event()

    @contextmanager
    def connection(self, address: Address) -> Iterator[Connection]:
        """A connection to `address` for the length of the block; raises Lost, ClientClosed.

        It is kept for later when the block ends without an error and every command was answered; otherwise it is
        closed: a late answer must never be taken for the answer to another command.
        """
        connection = self._take(address) or self._connect(address)
        try:
            yield connection
        except BaseException:
            self._drop(connection)
            raise
        if len(connection.protocol):
            self._drop(connection)
        else:
            self._keep(connection)

    def forget(self, address: Address) -> None:
        """Close the idle connections to a server that has failed."""
        with self._lock:
            gone = [connection for connection in self._idle if connection.address == address]
            self._idle = [connection for connection in self._idle if connection.address != address]
        for connection in gone:
            connection.close()

    def close(self) -> None:
        """Close everything; calls under way in other threads end with an error."""
        self.closed.set()
        with self._lock:
            idle, self._idle = self._idle, []
            for connection in self._busy:
                connection.abort()
        for connection in idle:
            connection.close()

    def _take(self, address: Address) -> Connection | None:
        """An idle connection that is still good."""
        if self._process != os.getpid():
            self._forked()
        while True:
            with self._lock:
                self._refuse_when_closed()
                found = next((one for one in reversed(self._idle) if one.address == address), None)
                if found is None:
                    return None
                self._idle.remove(found)
                self._busy.add(found)
            if found.usable():
                return found
            self._drop(found)

    def _connect(self, address: Address) -> Connection:
        connection = Connection(address, self._connect_timeout)
        with self._lock:
            if not self.closed.is_set():
                self._busy.add(connection)
                return connection
        connection.close()
        raise ClientClosed("the client was closed")

    def _keep(self, connection: Connection) -> None:
        with self._lock:
            self._busy.discard(connection)
            if not self.closed.is_set() and len(self._idle) < self._idle_max:
                self._idle.append(connection)
                return
        connection.close()

    def _drop(self, connection: Connection) -> None:
        with self._lock:
            self._busy.discard(connection)
        connection.close()

    def _refuse_when_closed(self) -> None:
        if self.closed.is_set():
            raise ClientClosed("the client was closed")

    def _forked(self) -> None:
        """This is a child process: the connections are the parent's, and two processes must not share one."""
        self._lock = threading.Lock()
        for connection in [*self._idle, *self._busy]:
            connection.close()      # this process's descriptor only
        self._idle, self._busy = [], set()
        self._process = os.getpid()
