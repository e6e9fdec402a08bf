"""A small cluster of scripted servers on real sockets: one queue state, one leader, and faults that fire once.

It speaks as much of the protocol as the client needs, in threads, with no lease clock: what the client does when a
server misbehaves is the subject here, not the queue.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections import defaultdict, deque
from enum import Enum
from types import TracebackType


class Fault(Enum):
    """What to do with the next command of a verb instead of answering it."""

    CLOSE = "close without executing it"
    EXECUTE_AND_CLOSE = "execute it, then close without an answer"
    HALF_ANSWER = "execute it, send half of the answer, then close"
    HALF_AND_STALL = "execute it, send half of the answer, keep the connection open"
    STALL = "neither execute nor answer it, keep the connection open"
    EXECUTE_AND_STALL = "execute it, do not answer"
    RUBBISH = "answer something that is not the protocol"
    ENDLESS = "answer without ever ending the line"
    TWICE = "answer it, and once more"
    REFUSE = "500 Offline Mode"
    BUSY = "503 Busy"
    TOO_LARGE = "413 Data Too Large"
    TRICKLE = "announce a body and send one byte of it each 20 ms"


class FakeCluster:
    """Three servers with one state; `lead` chooses who serves."""

    def __init__(self, size: int = 3) -> None:
        self.lock = threading.Condition()
        self.waiting: dict[str, deque[tuple[int, bytes, str | None]]] = defaultdict(deque)
        self.running: dict[int, tuple[str, int, bytes, str | None]] = {}
        self.last_id = 0
        self.last_item = 0
        self.executed: list[str] = []       # command lines that changed something
        self.leader: FakeServer | None = None
        self.online = True                  # CLUSTER OFFLINE, CLUSTER ONLINE
        self.learners: list[str] = []       # their lines in CLUSTER STATUS
        self.servers = [FakeServer(self, number + 1) for number in range(size)]
        self.lead(self.servers[0])

    def lead(self, server: FakeServer | None) -> None:
        """Make this server the leader; the former one gets max + 1 (CLUSTER.md 4)."""
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
        """The waiting jobs of a queue, in order."""
        with self.lock:
            return [data for _, data, _ in self.waiting[queue]]

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for server in self.servers:
            server.stop()


class FakeServer:
    """One server of a FakeCluster."""

    def __init__(self, cluster: FakeCluster, server_id: int) -> None:
        self.cluster = cluster
        self.id = server_id
        self.name = f"n{server_id}"
        self.received: list[str] = []
        self.accepted = 0
        self.status_lines: list[str] | None = None      # instead of the true ones
        self.delay_s = 0.0                              # of every answer
        self.reset_after_line = False                   # instead of reading a body
        self._faults: dict[str, deque[Fault | None]] = defaultdict(deque)
        self._connections: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._stopped = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._spawn(self._accept)

    @property
    def leads(self) -> bool:
        return self.cluster.leader is self

    @property
    def serving(self) -> bool:
        return self.leads and self.cluster.online

    @property
    def connections(self) -> int:
        """Open ones."""
        return len(self._connections)

    def fail(self, verb: str, *faults: Fault | None) -> None:
        """The next commands of this verb meet these faults, one each; None: no fault."""
        self._faults[verb].extend(faults)

    def stop(self) -> None:
        """As if the process had been killed."""
        self._stopped = True
        if self.leads:
            self.cluster.lead(None)
        for end in [self._listener, *self._connections]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self.cluster.lock:
            self.cluster.lock.notify_all()
        for thread in self._threads:
            thread.join(10)
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
            self.accepted += 1
            self._connections.add(connection)
            if self._stopped:
                connection.close()
                return
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while line := stream.readline():
                    if not self._command(connection, stream, line.decode().rstrip("\r\n")):
                        return
        except OSError:
            pass
        finally:
            self._connections.discard(connection)

    def _command(self, connection: socket.socket, stream: object, line: str) -> bool:
        """Execute one command; False ends the connection."""
        self.received.append(line)
        words = line.split()
        length = int(words[3]) if words[0] == "PUT" else int(words[1]) if words[0] == "CLONE" else 0
        if length and self.reset_after_line:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        data = stream.read(length)  # type: ignore[attr-defined]
        if len(data) < length:
            return False
        fault = self._faults[words[0]].popleft() if self._faults[words[0]] else None
        if fault in _WITHOUT_EXECUTING:
            return self._misbehave(connection, fault, b"")
        answer = self._execute(connection, words, data)
        if answer is None:
            return False
        if fault:
            return self._misbehave(connection, fault, answer)
        time.sleep(self.delay_s)
        connection.sendall(answer)
        return True

    def _misbehave(self, connection: socket.socket, fault: Fault, answer: bytes) -> bool:
        if fault in (Fault.STALL, Fault.EXECUTE_AND_STALL):
            self._stall(connection)
        elif fault is Fault.TRICKLE:
            connection.sendall(b"200 OK q 1 0 100000\r\n")
            while not self._stopped:
                connection.sendall(b"x")
                time.sleep(0.02)
        elif fault in (Fault.HALF_ANSWER, Fault.HALF_AND_STALL):
            connection.sendall(answer[: len(answer) // 2])
            if fault is Fault.HALF_AND_STALL:
                self._stall(connection)
        elif fault is Fault.TWICE:
            connection.sendall(answer * 2)
            self._stall(connection)
        elif fault is Fault.RUBBISH:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        elif fault is Fault.ENDLESS:
            connection.sendall(b"2" * 100_000)
            self._stall(connection)
        elif fault in (Fault.REFUSE, Fault.BUSY, Fault.TOO_LARGE):
            connection.sendall(f"{fault.value}\r\n".encode())
            return True
        return False

    def _stall(self, connection: socket.socket) -> None:
        while not self._stopped and not _hung_up(connection):
            time.sleep(0.01)

    def _execute(self, connection: socket.socket, words: list[str], data: bytes) -> bytes | None:
        """The answer; None ends the connection without one."""
        verb = words[0]
        if verb == "INTERCONNECT":
            sure = self.serving or not self.leads
            return b"200 OK %d\r\n" % (self.id if sure else max(one.id for one in self.cluster.servers) + 1)
        if verb == "PING":
            return b"200 OK\r\n"
        if verb == "CAPS":
            return b"200 OK 12\r\nbatch\ndelay\n"
        if verb == "CLUSTER":
            return self._cluster(words[1:])
        if verb == "SHUTDOWN":
            return b"221 Shutting Down\r\n"
        if verb in ("ONLINE", "OFFLINE"):
            return f"200 OK Switched to {verb.capitalize()} Mode\r\n".encode()
        if verb in ("TOTAL", "RUNLIST", "SNAPSHOT"):
            return self._read(words)
        if not self.serving:
            return b"500 Offline Mode\r\n"
        if verb == "PUT":
            return self._put(connection, words, data)
        if verb in ("GET", "GETB", "GETBE"):
            names = words[1].split("|") if len(words) > 1 and words[1] != "EXPIRE" else None
            return self._get(connection, names, None, block=verb != "GET")
        if verb in ("DONE", "LATER"):
            return self._end(words)
        if verb == "CLONE":
            return b"200 OK\r\n" if data == b"snapshot" else b"500 Invalid Snapshot\r\n"
        return b"400 Bad Command\r\n"

    def _put(self, connection: socket.socket, words: list[str], data: bytes) -> bytes | None:
        cluster = self.cluster
        with cluster.lock:
            item = words[5] if words[4:5] == ["IS"] else None
            told = ""
            if "NEW" in words[4:5]:
                cluster.last_item += 1
                item = f"i{cluster.last_item}"
                told = f" IS {item}"
            cluster.waiting[words[1]].append((int(words[2]), data, item))
            cluster.executed.append(" ".join(words))
            cluster.lock.notify_all()
        if "WAIT" not in words:
            return f"200 OK{told}\r\n".encode()
        connection.sendall(f"206 Wait for output{told}\r\n".encode())
        if self._faults["WAIT"]:
            self._misbehave(connection, self._faults["WAIT"].popleft() or Fault.CLOSE, b"")
            return None
        return self._get(connection, [words[words.index("WAIT") + 1]], item, block=True)

    def _get(self, connection: socket.socket, names: list[str] | None, item: str | None, block: bool) -> bytes | None:
        cluster = self.cluster
        with cluster.lock:
            while True:
                for queue in sorted(cluster.waiting) if names is None else names:
                    jobs = cluster.waiting[queue]
                    found = max((job for job in jobs if item in (None, job[2])), key=lambda job: job[0], default=None)
                    if found:
                        jobs.remove(found)
                        return self._hand_out(queue, found)
                if not block:
                    return b"404 Queue Empty\r\n"
                if not self.serving:
                    return b"500 Offline Mode\r\n"
                if self._stopped or _hung_up(connection):
                    return None
                cluster.lock.wait(0.01)

    def _hand_out(self, queue: str, job: tuple[int, bytes, str | None]) -> bytes:
        priority, data, item = job
        self.cluster.last_id += 1
        self.cluster.running[self.cluster.last_id] = (queue, priority, data, item)
        self.cluster.executed.append(f"GET {queue}")
        line = f"200 OK {queue} {self.cluster.last_id} {priority} {len(data)}" + (f" IS {item}" if item else "")
        return line.encode() + b"\r\n" + data

    def _end(self, words: list[str]) -> bytes:
        cluster = self.cluster
        with cluster.lock:
            job = cluster.running.pop(int(words[1]), None)
            if job is None:
                return b"404 Job Not Found\r\n"
            cluster.executed.append(" ".join(words))
            queue, priority, data, item = job
            if words[0] == "LATER":
                cluster.waiting[queue].append((priority, data, item))
                cluster.lock.notify_all()
                return b"200 OK\r\n"
            last = not cluster.waiting[queue] and not any(other[0] == queue for other in cluster.running.values())
            return b"200 OK FINQ\r\n" if last else b"200 OK\r\n"

    def _read(self, words: list[str]) -> bytes:
        cluster = self.cluster
        with cluster.lock:
            if words[0] == "SNAPSHOT":
                return b"200 OK 8\r\nsnapshot"
            if words[0] == "TOTAL":
                jobs = sum(len(queue) for name, queue in cluster.waiting.items() if words[1:] in ([], [name]))
                return f"200 OK 1 1 {jobs} {len(cluster.running)}\r\n".encode()
            lines, bodies = b"", b""
            for number, (queue, priority, data, _) in sorted(cluster.running.items()):
                length = f" {len(data)}" if words[1:] == ["DATA"] else ""
                limit = " EXPIRE 1700000000" if number % 2 else ""
                lines += f"{number} {queue} {priority}{length}{limit}\r\n".encode()
                bodies += data if length else b""
            return b"200 OK %d\r\n" % len(cluster.running) + lines + bodies

    def _cluster(self, words: list[str]) -> bytes:
        leader = self.cluster.leader
        if words[0] == "LEADER":
            return f"200 OK {leader.id} 127.0.0.1 {leader.port}\r\n".encode() if leader else b"404 No Leader\r\n"
        if words[0] == "STATUS":
            lines = self.status_lines
            if lines is None:
                servers = sorted(self.cluster.servers, key=lambda one: one.id)
                lines = [*(self.status_line(server) for server in servers), *self.cluster.learners]
            return "".join(f"{line}\r\n" for line in [f"200 OK {len(lines)}", *lines]).encode()
        if words[0] == "HASH":
            return b"200 OK 100 0123456789abcdef\r\n"
        if words[0] == "SNAPSHOT":
            self.cluster.executed.append(f"{self.name} CLUSTER SNAPSHOT")
            return b"200 OK 100\r\n"
        if not self.leads:
            return b"500 Offline Mode\r\n"
        return f"{self._change(words)}\r\n".encode()

    def _change(self, words: list[str]) -> str:
        """What the leader answers to an operator."""
        cluster = self.cluster
        servers = {server.name: server for server in cluster.servers}
        match words:
            case ["ADD", name, *_] if name in servers:
                return "409 Node Exists"
            case ["REMOVE", name] if name not in servers:
                return "404 Node Not Found"
            case ["TRANSFER", name] if name not in servers:
                return "409 Not Possible unknown"
        cluster.executed.append(" ".join(["CLUSTER", *words]))
        match words[0]:
            case "ADD":
                return f"200 OK {max(server.id for server in cluster.servers) + 1}"
            case "TRANSFER":
                heir = servers[words[1]] if words[1:] else cluster.servers[-1]
                cluster.lead(heir)
                return f"200 OK {heir.id} 127.0.0.1 {heir.port}"
            case "OFFLINE" | "ONLINE":
                cluster.online = words[0] == "ONLINE"
                return f"200 OK Switched to {words[0].capitalize()} Mode"
        return "200 OK"

    @staticmethod
    def status_line(server: FakeServer) -> str:
        if server._stopped:
            return f"{server.id} {server.name} 127.0.0.1 {server.port} DOWN - - - - -"
        role = "LEADER" if server.leads else "FOLLOWER"
        online = "ONLINE" if server.cluster.online else "OFFLINE"
        return f"{server.id} {server.name} 127.0.0.1 {server.port} {role} {online} 7 100 0 0.1.0"


_WITHOUT_EXECUTING = (
    Fault.CLOSE,
    Fault.STALL,
    Fault.RUBBISH,
    Fault.ENDLESS,
    Fault.REFUSE,
    Fault.BUSY,
    Fault.TOO_LARGE,
    Fault.TRICKLE,
)


def _hung_up(connection: socket.socket) -> bool:
    """Has the client closed or half-closed?"""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
