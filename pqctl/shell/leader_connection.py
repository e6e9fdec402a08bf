"""A conversation with the current leader: when a server stops leading, the command goes to its successor.

`500 Offline Mode` means "not executed", so sending it again is safe. If a connection closes without an answer the
outcome is unknown; that is reported, and nothing is sent again.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable

from sockpq import AuthError, ForeignCluster, Unavailable

from sockpqd.pqctl.connect import find
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.shell.connection import Line
from sockpqd.pqctl.shell.input import Typed

OFFLINE = b"500 Offline Mode\r\n"
PAUSE_S = 0.1
ANSWER_BYTES_KEPT = 256         # of the beginning of an answer

_CLUSTER = re.compile(rb"200 OK ([0-9a-f]+) ")
_SESSION = re.compile(rb"200 OK SESSION (\S+) ")


class LeaderConnection:
    """Sends commands and receives answers.

    `show` gets every byte of the answers; `tell` messages about the connection.
    """

    def __init__(self, call: Call, show: Callable[[bytes], None], tell: Callable[[str], None]) -> None:
        self._call = call
        self._show = show
        self._tell = tell
        self._line: Line | None = None
        self._lock = threading.Lock()
        self._answer = b""              # the beginning of the present one
        self._hidden = False            # it is not the user's: AUTH and SESSION when we connect
        self._held = b""                # what may become OFFLINE, and is not shown yet
        self._session: bytes | None = None
        self._cluster: bytes | None = None      # the id of the one we began with
        self._in_transaction = False

    @property
    def server(self) -> str:
        """The server of the current connection, empty if there is none."""
        return self._line.server if self._line is not None and not self._line.closed else ""

    def connect(self) -> None:
        """Connect to the leader, or to any server if there is none. Raises Unavailable, AuthError, ForeignCluster."""
        until = time.monotonic() + self._call.timeout
        while True:
            servers = find(self._call)      # raises Unavailable
            if servers.serving or time.monotonic() > until:
                break
            time.sleep(PAUSE_S)
        self.close()
        try:
            self._line = Line(servers.addresses[0], self._call.access, self._call.timeout, self._got)
        except OSError as error:
            raise Unavailable(f"{servers.addresses[0]}: {error}") from error
        self._stay()
        user, secret = self._call.access.user, self._call.access.present_secret
        if user is not None and not self._ask(f"AUTH {user} {secret}".encode()).startswith(b"200"):
            raise AuthError(f"{servers.addresses[0]} does not accept user {user}")
        if self._session is not None:
            self._ask(b"SESSION " + self._session)

    def _stay(self) -> None:
        """Raise ForeignCluster if this is not the cluster of the first connection; an old server does not report it."""
        assert self._line is not None
        found = _CLUSTER.match(self._ask(b"CLUSTER ID"))
        if found is None:
            return
        self._cluster = self._cluster or found[1]
        if found[1] != self._cluster:
            self.close()
            raise ForeignCluster(
                f"{self._line.server} is of cluster {found[1].decode()}, but this shell began with "
                f"{self._cluster.decode()}: QUIT, and begin a new one")

    def execute(self, typed: Typed, rest: bytes = b"") -> bool:
        """Send a command with its data, `rest` behind it, and wait for the answer. Returns False if it ended us (QUIT).

        Raises Unavailable if there is no server.
        """
        data = typed.sent + rest
        until = time.monotonic() + self._call.timeout
        while True:
            if not self.server:
                self.connect()
            assert self._line is not None
            with contextlib.suppress(OSError):
                self._begin(hidden=False)
                self._line.send(data)
                self._line.wait()
            if self._answer == OFFLINE and not self._in_transaction and time.monotonic() < until:
                old = self.server or self._line.server
                self._held = b""
                self.connect()
                if self.server != old:
                    self._tell(f"{old} does not lead; now at {self.server}")
                    continue
                self._begin(hidden=False)
                self._got(OFFLINE)          # there is no leader, or this one is switched offline: so be it
            self._flush()
            break
        self._notice(typed)
        if self._line.closed and typed.verb not in ("QUIT", "SHUTDOWN"):
            self._lost()
        return not (self._line.closed and typed.verb == "QUIT")

    def interrupt(self) -> None:
        """Stop waiting for an answer, which takes another connection. Raises Unavailable."""
        self._in_transaction = False
        self._tell("gave up waiting; reconnecting")
        self.connect()

    def finish(self) -> None:
        """Wait for all answers, and close."""
        if self._line is not None:
            self._line.finish()
        self._flush()

    def close(self) -> None:
        """Close the connection to the leader."""
        if self._line is not None:
            self._line.close()

    def _ask(self, command: bytes) -> bytes:
        """Send a command of the shell itself, whose answer is not shown; returns its beginning."""
        assert self._line is not None
        with contextlib.suppress(OSError):
            self._begin(hidden=True)
            self._line.send(command + b"\r\n")
            self._line.wait()
        answer, self._answer, self._hidden = self._answer, b"", False
        return answer

    def _begin(self, *, hidden: bool) -> None:
        with self._lock:
            self._answer, self._held, self._hidden = b"", b"", hidden

    def _got(self, data: bytes) -> None:
        """Process received bytes, in the thread of the connection."""
        with self._lock:
            begins = not self._answer
            if len(self._answer) < ANSWER_BYTES_KEPT:
                self._answer += data[:ANSWER_BYTES_KEPT]
            if self._hidden:
                return
            if begins and data == OFFLINE:
                self._held = data
                return
            data, self._held = self._held + data, b""
        self._show(data)

    def _flush(self) -> None:
        with self._lock:
            data, self._held = self._held, b""
        if data:
            self._show(data)

    def _notice(self, typed: Typed) -> None:
        """Remember the commands that a new connection must repeat."""
        if found := _SESSION.match(self._answer):
            self._session = found[1]
        if self._answer.startswith(b"200"):
            if typed.verb == "SESSION" and typed.line.split()[1:] == ["CLOSE"]:
                self._session = None
            self._in_transaction = typed.verb == "BEGIN" or (
                self._in_transaction and typed.verb not in ("COMMIT", "ROLLBACK"))

    def _lost(self) -> None:
        answered = "" if self._answer else " without an answer: nobody knows whether that was executed"
        assert self._line is not None
        self._tell(f"{self._line.server} has closed the connection{answered}"
                   + ("; the transaction is gone" if self._in_transaction else ""))
        self._in_transaction = False
