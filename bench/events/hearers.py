"""Many subscribers in a process of their own, which counts the events that they receive."""

from __future__ import annotations

import multiprocessing
import os
import select
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

CONNECT_S = 30.0
READ_BYTES = 1 << 16
LOOK_S = 0.01
LINE_END = b"\r\n"           # one for each event: the data of the messages have none


class Hearers:
    """The process, as the benchmark sees it."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def heard(self) -> int:
        """Return the number of events received so far by all of them together."""
        self._pipe.send(None)
        count: int = self._pipe.recv()
        return count


@contextmanager
def hearers(wanted: Sequence[tuple[str, str]], yielding: bool = False) -> Iterator[Hearers]:
    """Subscribers: to each server ("host:port") its SUBSCRIBE line. All of them hear from now on. Raises OSError.

    `yielding`: they get only the processor time that no other process wants.
    """
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_hear, args=(there, list(wanted), yielding), daemon=True,
    )
    process.start()
    there.close()
    try:
        try:
            here.recv()
        except EOFError:
            raise OSError("the subscribers do not hear") from None
        yield Hearers(here)
    finally:
        here.close()
        process.terminate()
        process.join()


def _hear(pipe: Connection, wanted: list[tuple[str, str]], yielding: bool) -> None:
    if yielding:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    poll = select.epoll()
    sockets: dict[int, socket.socket] = {}
    for server, line in wanted:
        host, _, port = server.rpartition(":")
        one = socket.create_connection((host.strip("[]"), int(port)), CONNECT_S)
        one.sendall(f"{line}\r\n".encode())
        answer = one.recv(READ_BYTES)
        if not answer.startswith(b"200 OK"):
            raise SystemExit(f"{line}: {answer.decode('ascii', 'replace')}")
        one.setblocking(False)
        sockets[one.fileno()] = one
        poll.register(one, select.EPOLLIN)
    pipe.send(None)
    count = 0
    while True:
        for number, _ in poll.poll(LOOK_S):
            data = sockets[number].recv(READ_BYTES)
            if not data:
                raise SystemExit("a subscriber was cut")
            count += data.count(LINE_END)
        try:
            while pipe.poll():
                pipe.recv()
                pipe.send(count)
        except (EOFError, OSError):
            return
