"""Three real gateways and machines in this process, in one thread, which execute the same log in memory.

Time stands still there unless the test lets it pass, and a fault of a server fires once.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TypeVar

from devcluster.ports import HOST, free_ports
from sockpqd.cluster.api import NodeStatus, NotLeader, NotPossible, Pending
from sockpqd.core import (
    Address,
    CloseSession,
    JobState,
    Lead,
    Machine,
    Operation,
    QueueFlow,
    SwitchService,
    User,
    flow_of,
)
from sockpqd.gateway import rights
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.server.doors import NATIVE, Door, Doors
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.port import Port
from tests.client.faults import Fault, FaultyConnection, Script
from tests.gateway.helpers.fake_cluster import FakeCluster
from tests.gateway.helpers.memory import access_of

T = TypeVar("T")
START_S = 60.0
GRACE_MS = 10_000
NOT_KNOWN = b"400 Bad Command\r\n"


class Replica(FakeCluster):
    """One of several nodes with the same log: what one of them applies, all apply."""

    def __init__(self, name: str, group: Group) -> None:
        super().__init__()
        self.name = name
        self._group = group

    def lead(self) -> None:
        self._group.elect(self.name)

    def follow(self, leader: str | None) -> None:
        self._group.elect(leader)

    def learn(self, leader: str | None, term: int) -> None:
        """Follow this leader, which may be this node, from now on."""
        self._leader, self._term = leader, term
        self._judge()

    def execute(self, operations: list[Operation], now_ms: int) -> None:
        """Apply an entry of another node."""
        self.now_ms = now_ms
        super()._apply(operations)

    def _apply(self, operations: list[Operation], pendings: list[Pending] | None = None) -> None:
        for other in self._group.replicas.values():
            if other is not self:
                other.execute(operations, self.now_ms)
        super()._apply(operations, pendings)

    async def transfer(self, name: str | None) -> NodeStatus | NotPossible:
        addresses = self.machine.membership.addresses
        if self._leader != self.name:
            raise NotLeader
        if name is not None and name not in addresses:
            return NotPossible("unknown")
        heir = name or next(other for other in reversed(addresses) if other != self.name)
        self._group.elect(heir)
        return self._status(addresses[heir])

    def _status(self, address: Address) -> NodeStatus:
        server_id = self.machine.server_ids[address.name]
        learns = address.name == self.machine.membership.learner
        if address.name not in self._group.running:
            role = "LEARNER" if learns else "DOWN"
            return NodeStatus(server_id, address.name, address.client, role, None, None, None, None, None, None)
        return NodeStatus(
            server_id=server_id, name=address.name, client=address.client,
            role="LEADER" if address.name == self._leader else "FOLLOWER", online=self.machine.online, term=self._term,
            applied=self._index, lag=0, version="1.0.0", ahead_ms=0, level=1, cluster_level=1,
        )


class Group:
    """The nodes of one cluster."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = tuple(addresses)
        self.id = secrets.token_bytes(16)
        self.term = 0
        self.replicas = {address.name: Replica(address.name, self) for address in addresses}
        self.running = set(self.replicas)
        self.leader: str | None = None

    def elect(self, name: str | None) -> None:
        """Let this node lead, or none; what is in flight at its predecessor is not executed."""
        before = self.leader
        self.leader = name
        if name is not None:
            self.term += 1
            names = tuple(self.replicas)
            lead = Lead(name, self.term, names, self.id, GRACE_MS, addresses=self._addresses)
            for replica in self.replicas.values():
                replica.execute([lead], self.now_ms)
        for replica in self.replicas.values():
            replica.learn(name, self.term)
        if before is not None and before != name:
            self.replicas[before].refuse()

    @property
    def now_ms(self) -> int:
        """Return the latest replicated time."""
        return max(replica.now_ms for replica in self.replicas.values())


class MemoryServer:
    """One server of a MemoryCluster. `script` has its faults."""

    def __init__(self, cluster: MemoryCluster, replica: Replica, port: int) -> None:
        self.cluster = cluster
        self.replica = replica
        self.name = replica.name
        self.port = port
        self.address = f"{HOST}:{port}"
        self.stopped = False
        self.script = Script()
        self.script.forget = cluster._forget
        self._hub: Hub
        self._doors: Doors
        self._door: Door

    async def start(self, users: Mapping[str, Account] | None, tls: ssl.SSLContext | None) -> None:
        """Accept clients, with these users (None: no AUTH) and over TLS if a context is given."""
        self._hub = hub = Hub(
            self.cluster.limits, self.cluster.folder, offline_close=True, shut_down=lambda reason: None,
            access=access_of(users), verbs=VERBS,
        )
        hub.attach(self.replica)
        self.replica._listener = hub
        self._doors = Doors(hub.connection_manager)

        await self.open(tls)

    async def open(self, tls: ssl.SSLContext | None) -> None:
        """Open the port, with TLS if a context is given."""
        def connection() -> FaultyConnection:
            return FaultyConnection(self._hub, Port(), self._doors.complaints, self.script)

        self._door = await self._doors.open(NATIVE, HOST, self.port, connection, tls)

    async def change_tls(self, tls: ssl.SSLContext) -> None:
        """Use this context for the next connections."""
        self._door.close()
        await self.open(tls)

    def change_users(self, users: Mapping[str, Account]) -> None:
        """Replace the users of the file, in the loop."""
        self._hub.access.file_users = users

    def show_status(self, lines: Sequence[str]) -> None:
        """Answer CLUSTER STATUS with these lines."""
        answer = "".join(f"{line}\r\n" for line in [f"200 OK {len(lines)}", *lines])
        self.script.answers["CLUSTER STATUS"] = answer.encode()

    def kill(self) -> None:
        """Close the port and all connections, in the loop."""
        self.stopped = True
        self._door.close()
        self._doors.close()
        for connection in [*self._hub.connections, *self._hub.refused]:
            connection.abort()

    def close_connections(self) -> None:
        """Close all connections, as a process that ends does."""
        def close() -> None:
            for connection in list(self._hub.connections):
                connection.abort()
        self.cluster.do(close)

    def stop(self) -> None:
        """Stop as if the process had been killed."""
        if not self.stopped:
            self.cluster._stop(self)

    @property
    def id(self) -> int:
        """Its id in CLUSTER STATUS."""
        return self.replica.machine.server_ids[self.name]

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._hub.connections)

    @property
    def received(self) -> list[str]:
        """The command lines so far, without their REQ and without CLUSTER ID."""
        return self.script.received

    @property
    def accepted(self) -> int:
        """The number of connections so far."""
        return self.script.accepted

    def fail(self, verb: str, *faults: Fault | None) -> None:
        """Apply these faults to the next commands of this verb, one each; None: no fault."""
        self.script.fail(verb, *faults)


class MemoryCluster:
    """Servers n1, n2 .. with one state; `lead` chooses who serves."""

    def __init__(
        self, size: int = 3, *, tls: ssl.SSLContext | None = None, users: Mapping[str, str] | None = None,
        ports: Sequence[int] = (), features: Sequence[str] = (), limits: Limits | None = None,
    ) -> None:
        """`users`: administrators and their keys; `ports`: to listen on, by default any; `features`: of an
        earlier version, instead of this one's.
        """
        self.limits = limits or Limits()
        self.executed: list[str] = []       # command lines that changed something, apart from those of sessions
        self._gone: dict[str, list[QueueFlow]] = defaultdict(list)
        self._folder = TemporaryDirectory(prefix="sockpqd-memory-")
        self.folder = Path(self._folder.name)
        self.accounts = None if users is None else accounts(users)
        ports = ports or free_ports(size)
        addresses = [
            Address(f"n{number}", f"{HOST}:{port + 1}", f"{HOST}:{port}") for number, port in enumerate(ports, 1)
        ]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._group = Group(addresses)
        self.servers = [
            MemoryServer(self, replica, port)
            for replica, port in zip(self._group.replicas.values(), ports, strict=True)
        ]
        self._run(self._start(tls))
        if features:
            self.be_old(*features)

    async def _start(self, tls: ssl.SSLContext | None) -> None:
        for server in self.servers:
            server.script.executed = self.executed
            await server.start(self.accounts, tls)
        self._group.elect("n1")
        self.machine.take_gone()            # from now on it keeps the counters of queues that go

    def _run(self, coroutine: object) -> object:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(START_S)  # type: ignore[arg-type]

    def do(self, action: Callable[[], T]) -> T:
        """Call a function between two turns of the servers' loop, or after their end."""
        if self._loop.is_closed():
            return action()

        async def turn() -> T:
            return action()
        return asyncio.run_coroutine_threadsafe(turn(), self._loop).result(START_S)

    # ---- Who serves

    @property
    def id(self) -> str:
        """The id of the cluster, as CLUSTER ID gives it."""
        return self._group.id[:8].hex()

    @property
    def leader(self) -> MemoryServer | None:
        """The server that leads; None while there is none."""
        return next((server for server in self.servers if server.name == self._group.leader), None)

    def lead(self, server: MemoryServer | None) -> None:
        """Make this server the leader; the former one gets max + 1 (spec/cluster 5)."""
        self.do(lambda: self._group.elect(server.name if server else None))

    def believe(self, server: MemoryServer) -> None:
        """Let all servers name this one as their leader, although it was stopped."""
        def believe() -> None:
            for replica in self._group.replicas.values():
                replica.learn(server.name, self._group.term)
        self.do(believe)

    def _stop(self, server: MemoryServer) -> None:
        def stop() -> None:
            self._group.running.discard(server.name)
            server.kill()
            if self._group.leader == server.name:
                self._group.elect(None)
        self.do(stop)

    @property
    def addresses(self) -> list[str]:
        return [server.address for server in self.servers]

    # ---- What is in the queues

    @property
    def machine(self) -> Machine:
        """The state, which all servers have."""
        return self.servers[0].replica.machine

    def bodies(self, queue: str) -> list[bytes]:
        """Return the data of the READY jobs of a queue, in order."""
        return self.do(lambda: [job.body() for job in self.machine.peek_queue(queue, JobState.READY, 10_000)])

    @property
    def running(self) -> list[int]:
        """The ids of all running jobs."""
        return self.do(lambda: [job.id for job in self.machine.running()])

    def put(self, queue: str) -> int:
        """Return how many jobs were put into a queue so far."""
        return sum(flow.put for flow in self.do(lambda: self._flows(queue)))

    def done(self, queue: str) -> int:
        """Return how many jobs of a queue were DONE so far."""
        return sum(flow.done for flow in self.do(lambda: self._flows(queue)))

    def _flows(self, queue: str) -> list[QueueFlow]:
        """Return the counters of the queue, and those of earlier ones of the same name."""
        for name, counters in self.machine.take_gone().items():
            self._gone[name].append(flow_of(counters))
        return [*self._gone[queue], *filter(None, self.machine.flows([queue]))]

    def pass_time(self, seconds: float) -> None:
        """Let replicated time go by; ends leases."""
        leader = self.leader or self.servers[0]
        self.do(lambda: leader.replica.pass_time(seconds))

    @property
    def sessions(self) -> int:
        """The number of open sessions."""
        return self.do(lambda: self.machine.session_count)

    @property
    def sessions_so_far(self) -> int:
        """The number of sessions that were opened."""
        return self.do(lambda: self.machine._state.sessions.next_session) - 1

    def end_sessions(self) -> None:
        """End all sessions as if their time had run out."""
        self.do(self._forget)

    def _forget(self) -> None:
        ended: list[Operation] = [CloseSession(session.number, release=False) for session in self.machine.sessions()]
        self.servers[0].replica._apply(ended)

    def say(self, command: str, answer: bytes | None) -> None:
        """Let all servers give this answer to a command or a verb; None: their own again."""
        for server in self.servers:
            if answer is None:
                server.script.answers.pop(command, None)
            else:
                server.script.answers[command] = answer

    def be_old(self, *features: str) -> None:
        """Be servers of an earlier version, with these features, and without sessions if that is not among them."""
        body = "".join(f"{word}\n" for word in features).encode()
        self.say("CAPS", b"200 OK %d\r\n" % len(body) + body)
        self.say("SESSION", None if "session" in features else NOT_KNOWN)

    def say_id(self, id_: str | None) -> None:
        """Let all servers answer CLUSTER ID with this; None: they are too old to know it."""
        self.say("CLUSTER ID", NOT_KNOWN if id_ is None else f"200 OK {id_} -\r\n".encode())

    def users(self) -> dict[str, User]:
        """Return the users of the log, by name."""
        return self.do(lambda: dict(self.machine.users))

    def show_snapshot(self, data: bytes) -> None:
        """Let all servers answer SNAPSHOT with this."""
        self.say("SNAPSHOT", b"200 OK %d\r\n" % len(data) + data)

    def switch(self, *, online: bool) -> None:
        """Switch the service, as CLUSTER OFFLINE and CLUSTER ONLINE do."""
        self.execute(SwitchService(online))

    def status_lines(self) -> list[str]:
        """Return the lines of CLUSTER STATUS."""
        with socket.create_connection((HOST, self.servers[0].port), START_S) as connection:
            connection.sendall(b"CLUSTER STATUS\r\nQUIT\r\n")
            _, *lines, _ = connection.makefile().read().splitlines()
        return lines

    def change_users(self, users: Mapping[str, str], words: str = "admin") -> None:
        """Replace the users of the file by these with their keys, all with the same rights."""
        def change() -> None:
            for server in self.servers:
                server.change_users(accounts(users, words))
        self.do(change)

    def change_tls(self, tls: ssl.SSLContext) -> None:
        """Use this context for the next connections."""
        for server in self.servers:
            if not server.stopped:
                self._run(server.change_tls(tls))

    def execute(self, *operations: Operation) -> None:
        """Let all servers apply an entry with these operations."""
        self.do(lambda: self.servers[0].replica._apply([*operations]))

    # ---- Its end

    def close(self) -> None:
        """Stop all servers, and the thread."""
        for server in self.servers:
            server.stop()
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()
        self._folder.cleanup()

    async def _end(self) -> None:
        await asyncio.sleep(0)          # a connection may have been accepted meanwhile
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)

    def __enter__(self) -> MemoryCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def accounts(users: Mapping[str, str], words: str = "admin") -> dict[str, Account]:
    """Return the accounts of users with these keys, all with the same rights."""
    return {name: Account(rights.of_text(words), key.encode()) for name, key in users.items()}
