"""NATS JetStream: a work queue with three copies in files, each write synced before it is confirmed.

NATS_SERVER names the program, when it is not in the path.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nats.errors
import nats.js.api
import nats.js.errors

from tests.proof.peers.system import CALL_S, LEASE_S, QUEUE, Hand, Lost, Refused, Server, System, Taken

PROGRAM = os.environ.get("NATS_SERVER", "nats-server")
CLIENT_PORT, ROUTE_PORT = 4222, 6222
WORKERS = "workers"                             # the durable consumer


class Nats(System):
    """Three servers, each of which serves all clients."""

    name = "NATS"

    def version(self) -> str:
        return subprocess.run(
            [PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1].lstrip("v")

    def prepare(self, server: Server, servers: Sequence[Server]) -> None:
        routes = ", ".join(f'"nats://{one.address}:{ROUTE_PORT}"' for one in servers if one.name != server.name)
        (server.disk / "nats.conf").write_text(
            f"server_name: {server.name}\nlisten: {server.address}:{CLIENT_PORT}\n"
            f"jetstream {{ store_dir: {server.disk / 'data'}, sync_interval: always, max_file: 512MB }}\n"
            f"cluster {{ name: proof, listen: {server.address}:{ROUTE_PORT}, routes: [{routes}] }}\n", "utf-8")

    def command(self, server: Server) -> tuple[Sequence[str], Mapping[str, str]]:
        return [PROGRAM, "-c", str(server.disk / "nats.conf")], {}

    def form(self, servers: Sequence[Server]) -> bool:
        try:
            hand = self.hand(servers[0])
        except Lost:
            return False
        assert isinstance(hand, _Connection)
        try:
            hand.declare(len(servers))
        except (Lost, Refused):
            return False                        # there is no leader yet, or not all servers are known
        finally:
            hand.close()
        return all(map(self.serves, servers))

    def hand(self, server: Server) -> Hand:
        return _Connection(server.address)

    def is_level(self, hand: Hand) -> bool:
        assert isinstance(hand, _Connection)
        return hand.copies_are_there()

    def files(self, server: Server) -> Iterable[Path]:
        return [path for path in (server.disk / "data").rglob("*") if path.is_file()]


class _Connection:
    def __init__(self, address: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._subscription: Any = None
        self._connection: Any = nats.NATS()
        try:
            self._run(self._connection.connect(
                f"nats://{address}:{CLIENT_PORT}", allow_reconnect=False, connect_timeout=CALL_S, error_cb=_ignore))
        except Refused as error:
            self.close()
            raise Lost from error
        except Lost:
            self.close()
            raise
        self._stream = self._connection.jetstream(timeout=CALL_S)

    def declare(self, copies: int) -> None:
        """Create the stream and its consumer."""
        self._run(self._stream.add_stream(nats.js.api.StreamConfig(
            name=QUEUE, subjects=[QUEUE], retention=nats.js.api.RetentionPolicy.WORK_QUEUE, num_replicas=copies,
            storage=nats.js.api.StorageType.FILE)))
        self._run(self._stream.add_consumer(QUEUE, nats.js.api.ConsumerConfig(
            durable_name=WORKERS, ack_policy=nats.js.api.AckPolicy.EXPLICIT, ack_wait=LEASE_S)))

    def copies_are_there(self) -> bool:
        """Return whether the stream has a leader, which hears its followers."""
        cluster = self._run(self._stream.stream_info(QUEUE)).cluster
        return bool(cluster and cluster.leader and cluster.replicas) and all(
            not one.offline for one in cluster.replicas)

    def put(self, job: str) -> None:
        self._run(self._stream.publish(QUEUE, job.encode(), timeout=CALL_S))

    def take(self, wait_s: float) -> Taken | None:
        if self._subscription is None:
            self._subscription = self._run(self._stream.pull_subscribe_bind(durable=WORKERS, stream=QUEUE))
        try:
            messages = self._loop.run_until_complete(self._subscription.fetch(1, timeout=wait_s))
        except nats.errors.TimeoutError:
            if not self._connection.is_connected:
                raise Lost from None
            return None
        except (nats.errors.Error, OSError) as error:
            raise Lost from error
        (message,) = messages
        return Taken(message.data.decode(), message)

    def end(self, taken: Taken) -> None:
        self._run(taken.token.ack_sync(timeout=CALL_S))

    def left(self) -> int:
        return int(self._run(self._stream.stream_info(QUEUE)).state.messages)

    def close(self) -> None:
        with contextlib.suppress(Lost, Refused):
            self._run(asyncio.wait_for(self._connection.close(), CALL_S))
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        try:
            return self._loop.run_until_complete(coroutine)
        except (nats.js.errors.APIError, nats.js.errors.NoStreamResponseError) as error:
            raise Refused(str(error)) from error
        except (TimeoutError, nats.errors.Error, OSError) as error:
            raise Lost(str(error)) from error


async def _ignore(_: Exception) -> None:
    """Say nothing: each call has its own error."""
