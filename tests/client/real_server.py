"""The real gateway and machine in this process, in a thread, before a cluster of one node in memory.

Time stands still there unless the test lets it pass.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from devcluster.ports import free_ports
from sockpqd.core import Request
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.server.doors import Doors
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.server import Server
from tests.gateway.helpers.fake_cluster import FakeCluster

T = TypeVar("T")


class RealServer:
    """One server; `address` is where it listens."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """`port`: to listen on; 0: any that is free."""
        self._host, self._port = host, port or free_ports(1)[0]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.cluster: FakeCluster
        self.address = ""
        self._hub: Hub
        self._server: Server
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(60)

    async def _start(self) -> None:
        hub = self._hub = Hub(Limits(), Path("unused"), offline_close=True, shut_down=lambda reason: None, verbs=VERBS)
        self.cluster = FakeCluster()
        hub.attach(self.cluster)
        self._server = Server(hub, Doors(hub.connection_manager))
        self.cluster.start(hub)
        host, port = (await self._server.start(self._host, self._port))[:2]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def _close(self) -> None:
        await self._server.close()
        await asyncio.sleep(0)          # a connection may have been accepted meanwhile
        for connection in [*self._hub.connections, *self._hub.refused]:
            connection.abort()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)

    def do(self, action: Callable[[FakeCluster], T]) -> T:
        """Call a function with the cluster, between two turns of its loop."""
        async def turn() -> T:
            return action(self.cluster)
        return asyncio.run_coroutine_threadsafe(turn(), self._loop).result(60)

    def ready_and_running(self, queue: str) -> tuple[int, int]:
        """Return how many jobs of the queue are READY, and how many RUNNING; there must be one."""
        counts = self.do(lambda cluster: cluster.machine.counts(queue))
        assert counts is not None
        return counts.ready, counts.running

    def awaiting(self) -> int:
        """Return how many commands wait for the end of a job."""
        return self.do(lambda cluster: len(self._hub.end_waiters))

    def pass_time(self, seconds: float) -> None:
        """Let replicated time go by; ends leases."""
        self.do(lambda cluster: cluster.pass_time(seconds))

    def entries(self) -> list[list[str]]:
        """Return the kinds of the operations of each committed entry."""
        def kinds(cluster: FakeCluster) -> list[list[str]]:
            return [[_kind(operation) for operation in entry] for entry in cluster.log]
        return self.do(kinds)

    def __enter__(self) -> RealServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


def _kind(operation: Any) -> str:
    return type(operation.operation if isinstance(operation, Request) else operation).__name__
