"""Executes commands on a FakeCluster."""

from __future__ import annotations

import socket
from collections import deque
from typing import TYPE_CHECKING

from tests.client.fake_faults import Fault, hung_up, misbehave
from tests.client.fake_sessions import FakeSession, Stored

if TYPE_CHECKING:
    from tests.client.fake_server import FakeCluster, FakeServer


class Execution:
    """The half of a FakeServer that executes commands."""

    cluster: FakeCluster
    id: int
    name: str
    port: int
    stopped: bool
    status_lines: list[str] | None
    faults: dict[str, deque[Fault | None]]
    attached: dict[socket.socket, FakeSession]

    @property
    def leads(self) -> bool:
        return self.cluster.leader is self

    @property
    def serving(self) -> bool:
        return self.leads and self.cluster.online

    def request(self, connection: socket.socket, number: int, words: list[str], data: bytes) -> bytes | None:
        """Execute a numbered request, or repeat an earlier answer."""
        session = self.attached.get(connection)
        if not self.serving:
            return b"500 Offline Mode\r\n"
        if session is None:
            return b"404 Session Not Found\r\n"
        with self.cluster.lock:         # re-entrant, and what waits releases it: no repetition comes between these two
            stored = session.request(number, " ".join(words).encode() + b"\r\n" + data, connection)
            if isinstance(stored, bytes):
                return stored
            answer = stored.answer
            if answer and _hands_out(answer) and _id_in(answer) not in self.cluster.running:
                answer = None
            if answer is None and "WAIT" not in words:
                return self._executed(connection, words, data, stored)
        if answer is None:
            return self._executed(connection, words, data, stored)
        if "WAIT" in words:
            connection.sendall(f"206 Wait for output{stored.told}\r\n".encode())
        return answer

    def _executed(self, connection: socket.socket, words: list[str], data: bytes, stored: Stored) -> bytes | None:
        answer = self.execute(connection, words, data, stored)
        if answer and not answer.startswith(b"500") and not (words[0] != "GET" and answer.startswith(b"404 Queue")):
            stored.answer = answer
        return answer

    def execute(
        self, connection: socket.socket, words: list[str], data: bytes, stored: Stored | None = None
    ) -> bytes | None:
        """Return the answer; None ends the connection without one. `stored`: the session's memory of this request."""
        verb = words[0]
        if verb == "INTERCONNECT":
            sure = self.serving or not self.leads
            return b"200 OK %d\r\n" % (self.id if sure else max(one.id for one in self.cluster.servers) + 1)
        if verb == "PING":
            return b"200 OK\r\n"
        if verb == "CAPS":
            words = [*self.cluster.features, *(["session", "bound"] if self.cluster.sessions else [])]
            body = "".join(f"{word}\n" for word in words).encode()
            return b"200 OK %d\r\n" % len(body) + body
        if verb == "CLUSTER":
            return self._cluster(words[1:])
        if verb == "SHUTDOWN":
            return b"221 Shutting Down\r\n"
        if verb in ("ONLINE", "OFFLINE"):
            return f"200 OK Switched to {verb.capitalize()} Mode\r\n".encode()
        if verb in ("TOTAL", "RUNLIST", "SNAPSHOT", "QUEUE"):
            return self._read(words)
        if not self.serving:
            return b"500 Offline Mode\r\n"
        if verb == "USER" and self.cluster.users:
            return self.cluster.users.execute(words[1:])
        if verb == "SESSION" and self.cluster.sessions:
            with self.cluster.lock:
                return self.cluster.sessions.command(
                    words, self.attached.get(connection), lambda session: self.attached.update({connection: session})
                )
        if verb == "PUT":
            return self._put(connection, words, data, stored)
        if verb in ("GET", "GETB", "GETBE"):
            cluster = self.cluster
            names = words[1].split("|") if len(words) > 1 and words[1] != "EXPIRE" else None
            block = verb == "GETB" or (verb == "GETBE" and not cluster.finite)
            return self._get(connection, names, None, stored, block=block)
        if verb in ("DONE", "LATER"):
            return self._end(words)
        if verb == "CLONE":
            return b"200 OK\r\n" if data == self.cluster.snapshot else b"500 Invalid Snapshot\r\n"
        return b"400 Bad Command\r\n"

    def _put(
        self, connection: socket.socket, words: list[str], data: bytes, stored: Stored | None
    ) -> bytes | None:
        cluster = self.cluster
        stored = stored or Stored(b"")
        if stored.item is None:         # else it was put before, and only the wait is repeated
            with cluster.lock:
                stored.item = words[5] if words[4:5] == ["IS"] else None
                if "NEW" in words[4:5]:
                    cluster.last_item += 1
                    stored.item = f"i{cluster.last_item}"
                    stored.told = f" IS {stored.item}"
                cluster.waiting[words[1]].append((int(words[2]), data, stored.item))
                cluster.executed.append(" ".join(words))
                cluster.lock.notify_all()
        if "WAIT" not in words:
            return f"200 OK{stored.told}\r\n".encode()
        connection.sendall(f"206 Wait for output{stored.told}\r\n".encode())
        if self.faults["WAIT"]:
            if self.faults["WAIT"][0] is Fault.FORGET and cluster.sessions:
                cluster.sessions.end_all()
            misbehave(connection, self.faults["WAIT"].popleft() or Fault.CLOSE, b"", lambda: self.stopped)
            return None
        return self._get(connection, [words[words.index("WAIT") + 1]], stored.item, stored, block=True)

    def _get(
        self, connection: socket.socket, names: list[str] | None, item: str | None, stored: Stored | None, block: bool,
    ) -> bytes | None:
        cluster = self.cluster
        with cluster.lock:
            while True:
                if stored and stored.connection not in (connection, None):      # that one gets the job
                    return None
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
                if self.stopped or hung_up(connection):
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
                return b"200 OK %d\r\n%b" % (len(cluster.snapshot), cluster.snapshot)
            if words[0] == "TOTAL":
                jobs = sum(len(queue) for name, queue in cluster.waiting.items() if words[1:] in ([], [name]))
                return f"200 OK 1 1 {jobs} {len(cluster.running)}\r\n".encode()
            if words[0] == "QUEUE":
                rows = [f"{name} {len(jobs)} 0 0 0\r\n" for name, jobs in cluster.waiting.items() if jobs]
                return f"200 OK {len(rows)}\r\n{''.join(rows)}".encode()
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
        """Return the leader's answer to an operator."""
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
        if server.stopped:
            return f"{server.id} {server.name} 127.0.0.1 {server.port} DOWN - - - - -"
        role = "LEADER" if server.leads else "FOLLOWER"
        online = "ONLINE" if server.cluster.online else "OFFLINE"
        return f"{server.id} {server.name} 127.0.0.1 {server.port} {role} {online} 7 100 0 0.1.0"


def _hands_out(answer: bytes) -> bool:
    """Return whether it is the answer to a GET that found a job."""
    return len(answer.split(b"\r\n")[0].split()) >= 6 and answer.startswith(b"200 OK ")


def _id_in(answer: bytes) -> int:
    return int(answer.split()[3])
