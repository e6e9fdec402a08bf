"""sockpqd as one of the systems, with which the other two are compared."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sockpq import Client
from sockpq._version import __version__
from sockpq.errors import JobNotFound, NotExecuted, SockpqError

from tests.proof.peers.system import CALL_S, LEASE_S, QUEUE, Hand, Lost, Refused, Server, System, Taken

CLIENT_PORT, PEER_PORT = 11361, 11362


class Sockpqd(System):
    """Three nodes; the client fails over to the leader, as it usually does."""

    name = "sockpqd"

    def __init__(self) -> None:
        self._addresses: list[str] = []

    def version(self) -> str:
        return __version__

    def prepare(self, server: Server, servers: Sequence[Server]) -> None:
        self._addresses = [f"{one.address}:{CLIENT_PORT}" for one in servers]
        lines = [
            "[node]", f"name = {json.dumps(server.name)}", f"data_dir = {json.dumps(str(server.disk / 'data'))}",
            "rejoins_per_hour = 0", "[listen]", f'client = "{server.address}:{CLIENT_PORT}"',
            f'peer = "{server.address}:{PEER_PORT}"', "insecure = true", "[limits]", "disk_free_bytes_min = 0",
        ]
        for one in servers:
            lines += ["[[cluster.members]]", f'name = "{one.name}"', f'client = "{one.address}:{CLIENT_PORT}"',
                      f'peer = "{one.address}:{PEER_PORT}"']
        (server.disk / "sockpqd.toml").write_text("\n".join(lines) + "\n", "utf-8")

    def command(self, server: Server) -> tuple[Sequence[str], Mapping[str, str]]:
        program = Path(sys.executable).parent / "sockpqd"
        return [str(program), "--config", str(server.disk / "sockpqd.toml")], {"SOCKPQD_LOG_FORMAT": "text"}

    def form(self, servers: Sequence[Server]) -> bool:
        return all(self.serves(server) for server in servers)

    def hand(self, server: Server) -> Hand:
        first = f"{server.address}:{CLIENT_PORT}"
        return _Client([first, *(one for one in self._addresses if one != first)])

    def is_level(self, hand: Hand) -> bool:
        assert isinstance(hand, _Client)
        return hand.is_level()

    def files(self, server: Server) -> Iterable[Path]:
        data = server.disk / "data"
        return [*data.glob("journal/journal-*"), *data.glob("snapshots/snapshot-*")]


class _Client:
    def __init__(self, servers: list[str]) -> None:
        self._servers = servers
        self._client = Client(servers, timeout=CALL_S)

    def put(self, job: str) -> None:
        try:
            self._client.put(QUEUE, job.encode())
        except NotExecuted as error:
            raise Refused from error
        except SockpqError as error:
            raise Lost from error

    def take(self, wait_s: float) -> Taken | None:
        try:
            job = self._client.get(QUEUE, expire=LEASE_S, wait=wait_s)
        except SockpqError as error:
            raise Lost from error
        return None if job is None else Taken(job.data.decode(), job)

    def end(self, taken: Taken) -> None:
        try:
            self._client.done(taken.token)
        except JobNotFound as error:            # its lease has ended
            raise Refused from error
        except SockpqError as error:
            raise Lost from error

    def is_level(self) -> bool:
        """Return whether all nodes lead or follow, as the first one knows it."""
        with contextlib.suppress(SockpqError), Client(self._servers[:1], timeout=CALL_S) as client:
            return all(node.role in ("LEADER", "FOLLOWER") for node in client.cluster_status())
        return False

    def left(self) -> int:
        try:
            return self._client.total().jobs
        except SockpqError as error:
            raise Lost from error

    def close(self) -> None:
        self._client.close()
