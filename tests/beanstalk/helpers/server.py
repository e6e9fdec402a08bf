"""A beanstalkd in memory, in a thread of its own, for tests of programs that speak to one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sockpqd.beanstalk import BeanstalkdServer, ClientConnection
from tests.beanstalk.helpers.host import OpenHost
from tests.beanstalk.helpers.memory import MemoryBackend, Queue

LOOK_S = 0.02


@contextmanager
def beanstalkd() -> Iterator[str]:
    """Run the server in a thread; yields its address, "host:port"."""
    ready, ends, ports = threading.Event(), threading.Event(), list[int]()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(ready, ends, ports)))
    thread.start()
    assert ready.wait(60)
    try:
        yield f"127.0.0.1:{ports[0]}"
    finally:
        ends.set()
        thread.join(60)


async def _serve(ready: threading.Event, ends: threading.Event, ports: list[int]) -> None:
    queue = Queue()
    queue.time = time.monotonic()
    server = BeanstalkdServer("memory", now=queue.now)
    listening = await asyncio.get_running_loop().create_server(
        lambda: ClientConnection(server, MemoryBackend(queue), OpenHost()), "127.0.0.1", 0)
    ports.append(listening.sockets[0].getsockname()[1])
    ready.set()
    while not ends.is_set():
        await asyncio.sleep(LOOK_S)
        queue.time = time.monotonic()
        queue.look()
    listening.close()
    server.hang_up()
    await asyncio.sleep(LOOK_S)
