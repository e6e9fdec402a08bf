"""A small cluster of scripted servers on real sockets: one queue state, one leader, and faults that fire once.

It speaks as much of the protocol as the client needs, in threads, with no lease clock: what the client does when a
server misbehaves is the subject here, not the queue.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
import struct
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from types import TracebackType

from devcluster.ports import HOST, free_ports
from tests.client.fake_execution import Execution
from tests.client.fake_faults import WITHOUT_EXECUTING, Fault, misbehave
from tests.client.fake_sessions import FakeSession, FakeSessions
from tests.client.fake_users import FakeUsers

TOGETHER_S = 0.01       # a command that is read so soon after an answer came with the one before


class FakeCluster:
    """Three servers with one state; `lead` chooses who serves."""

    def __init__(
        self, size: int = 3, sessions: bool = True, tls: ssl.SSLContext | None = None, users: FakeUsers | None = None,
        ports: Sequence[int] = (),
    ) -> None:
        """`ports`: to listen on; by default on any that are free."""
        self.id: str | None = secrets.token_hex(8)      # "-": it knows no leader; None: it is too old
        self.lock = threading.Condition()
        self.tls = tls
        self.users = users
        self.sessions = FakeSessions() if sessions else None
        self.waiting: dict[str, deque[tuple[int, bytes, str | None]]] = defaultdict(deque)
        self.running: dict[int, tuple[str, int, bytes, str | None]] = {}
        self.last_id = 0
        self.last_item = 0
        self.executed: list[str] = []       # command lines that changed something
        self.leader: FakeServer | None = None
        self.online = True                  # CLUSTER OFFLINE, CLUSTER ONLINE
        self.features = ["delay"]           # in CAPS: a server of an older version than this client, see fake_batches
        self.finite = False                 # GETBE finds the queues finished when they are empty
        self.snapshot = b"snapshot"         # the answer to SNAPSHOT, and what CLONE takes
        self.learners: list[str] = []       # their lines in CLUSTER STATUS
        self.servers = [
            FakeServer(self, number + 1, ports[number] if ports else 0) for number in range(size)
        ]
        self.lead(self.servers[0])
        for server in self.servers:         # a client may wait for a port, and a server looks at the others
            server.start()

    def lead(self, server: FakeServer | None) -> None:
        """Make this server the leader; the former one gets max + 1 (spec/cluster 5)."""
        with self.lock:
            self.leader = server
            if server:
                for other in sorted(self.servers, key=lambda one: one.id):
                    if other.id < server.id:
                        other.id = max(one.id for one in self.servers) + 1
            self.lock.notify_all()

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    def bodies(self, queue: str) -> list[bytes]:
        """Return the waiting jobs of a queue, in order."""
        with self.lock:
            return [data for _, data, _ in self.waiting[queue]]

    def end_leases(self) -> None:
        """Return every running job to its queue."""
        with self.lock:
            for queue, priority, data, item in self.running.values():
                self.waiting[queue].append((priority, data, item))
            self.running.clear()
            self.lock.notify_all()

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for server in self.servers:
            server.stop()


class FakeServer(Execution):
    """One server of a FakeCluster."""

    def __init__(self, cluster: FakeCluster, server_id: int, port: int) -> None:
        self.cluster = cluster
        self.id = server_id
        self.name = f"n{server_id}"
        self.received: list[str] = []           # command lines, without their REQ and without CLUSTER ID
        self.asked_id = 0                       # how often that was answered
        self.numbers: list[int] = []            # of the requests among them, 0 for the others
        self.accepted = 0
        self.status_lines: list[str] | None = None      # instead of the true ones
        self.delay_s = 0.0                              # of every answer, once for commands that come together
        self._answered: dict[socket.socket, float] = {}     # when each connection got its last answer
        self.reset_after_line = False                   # instead of reading a body
        self.faults: dict[str, deque[Fault | None]] = defaultdict(deque)
        self._connections: set[socket.socket] = set()
        self.attached: dict[socket.socket, FakeSession] = {}
        self._threads: list[threading.Thread] = []
        self.stopped = False
        self._listener = socket.create_server((HOST, port or free_ports(1)[0]))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"{HOST}:{self.port}"

    def start(self) -> None:
        """Accept connections."""
        self._spawn(self._accept)

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    def fail(self, verb: str, *faults: Fault | None) -> None:
        """Let the next commands of this verb meet these faults, one each; None: no fault."""
        self.faults[verb].extend(faults)

    def stop(self) -> None:
        """Stop as if the process had been killed."""
        self.stopped = True
        if self.leads:
            self.cluster.lead(None)
        for end in [self._listener, *self._connections]:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(end, socket.SHUT_RDWR)       # that of TLS would let a thread read raw bytes
        with self.cluster.lock:
            self.cluster.lock.notify_all()
        for thread in self._threads:
            thread.join(60)
        self._listener.close()

    def _spawn(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            self._connections.add(connection)
            if self.stopped:
                connection.close()
                return
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self.cluster.tls:
                self._connections.discard(connection)
                connection = self.cluster.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                self._connections.add(connection)
                connection.do_handshake()
            with connection, connection.makefile("rb") as stream:
                while (line := stream.readline())[:1].isalpha():     # TLS, where none is expected, begins otherwise
                    if not self._command(connection, stream, line.decode().rstrip("\r\n")):
                        break
                if isinstance(connection, ssl.SSLSocket):
                    connection.unwrap()
        except OSError:
            pass
        finally:
            self._connections.discard(connection)
            self.attached.pop(connection, None)
            if self.cluster.users:
                self.cluster.users.forget(connection)
            connection.close()

    def _command(self, connection: socket.socket, stream: object, line: str) -> bool:
        """Execute one command; False ends the connection."""
        words = line.split()
        if words == ["CLUSTER", "ID"]:
            self.asked_id += 1
            old = b"401 Auth Required\r\n" if self.cluster.users else b"400 Bad Command\r\n"
            connection.sendall(f"200 OK {self.cluster.id} -\r\n".encode() if self.cluster.id else old)
            return True
        number = 0
        if words[0] == "REQ" and self.cluster.sessions:
            number, words = int(words[1]), words[2:]
        self.received.append(" ".join(words))
        self.numbers.append(number)
        length = int(words[3]) if words[0] == "PUT" else int(words[1]) if words[0] == "CLONE" else 0
        if length and self.reset_after_line:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        data = stream.read(length)  # type: ignore[attr-defined]
        if len(data) < length:
            return False
        refusal = self.cluster.users.refuse(connection, words) if self.cluster.users else None
        if refusal:
            connection.sendall(refusal)
            return True
        fault = self.faults[words[0]].popleft() if self.faults[words[0]] else None
        if fault in WITHOUT_EXECUTING:
            return misbehave(connection, fault, b"", lambda: self.stopped)
        answer = self.request(connection, number, words, data) if number else self.execute(connection, words, data)
        if answer is None:
            return False
        if fault is Fault.FORGET and self.cluster.sessions:
            self.cluster.sessions.end_all()
        if fault:
            return misbehave(connection, fault, answer, lambda: self.stopped)
        if time.monotonic() - self._answered.get(connection, 0.0) > TOGETHER_S:
            time.sleep(self.delay_s)
        connection.sendall(answer)
        self._answered[connection] = time.monotonic()
        return True
