"""A client of beanstalkd that writes down what it does, and makes a new connection when one ends."""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import struct
import threading
import time
from collections.abc import Sequence

from tests.beanstalk.helpers.client import BeanstalkClient
from tests.chaos.beanstalkd.deeds import Deed, Deeds

AGAIN_S = 0.1               # before it is tried again to connect


class RecordingClient:
    """Has one connection at a time. Commands return their deed, or None if there was no answer: then there is no
    connection.
    """

    def __init__(self, name: str, via: str, address: str, deeds: Deeds) -> None:
        self.name, self.via = name, via
        self._address, self._deeds, self._stopping = address, deeds, threading.Event()
        self._client: BeanstalkClient | None = None
        self._number = 0
        self._answered_ns = 0                   # until when the connection surely stood
        self._bodies = itertools.count(1)
        self._tubes: tuple[str, ...] = ()

    def connect(self, tubes: Sequence[str]) -> bool:
        """Make a connection that watches these tubes, unless there is one."""
        if self._client is not None:
            return True
        try:
            self._client = BeanstalkClient(self._address, *tubes)
        except (OSError, EOFError):
            self._stopping.wait(AGAIN_S)
            return False
        self._tubes, self._number, self._answered_ns = tuple(tubes), self._deeds.connection(), time.monotonic_ns()
        return True

    def stop(self) -> None:
        """Stop waiting for a connection."""
        self._stopping.set()

    def close(self) -> None:
        """End the connection, if there is one."""
        self.abort()

    def abort(self) -> None:
        """End the connection as the death of the process ends it, when it may hold jobs."""
        if self._client is not None:
            now_ns = time.monotonic_ns()
            if not select.select([self._client.socket], [], [], 0)[0]:      # else the server has ended it before
                self._answered_ns = now_ns
            with contextlib.suppress(OSError):
                self._client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._lose()

    def _lose(self) -> None:
        client, self._client = self._client, None
        assert client is not None
        client.close()
        self._deeds.end(self._number, self._answered_ns)

    def put(self, tube: str, priority: int, delay_s: int, ttr_s: int) -> Deed | None:
        """Put a job with a unique body."""
        body = f"{self.name}-{next(self._bodies)}"
        if self._say("use", f"use {tube}") is None:
            return None
        line = f"put {priority} {delay_s} {ttr_s} {len(body)}\r\n{body}"
        return self._say("put", line, tubes=(tube,), body=body, priority=priority, delay_s=delay_s, ttr_s=ttr_s)

    def reserve(self, wait_s: int) -> Deed | None:
        """Wait for a job for this long."""
        return self._say("reserve", f"reserve-with-timeout {wait_s}", tubes=self._tubes)

    def end(self, verb: str, job: int, priority: int = 0, delay_s: int = 0) -> Deed | None:
        """Release a reserved job by `delete`, `release` or `bury`."""
        words = {"delete": "", "release": f" {priority} {delay_s}", "bury": f" {priority}"}[verb]
        return self._say(verb, f"{verb} {job}{words}", job=job, priority=priority, delay_s=delay_s)

    def touch(self, job: int) -> Deed | None:
        """Restart the job's time to run."""
        return self._say("touch", f"touch {job}", job=job)

    def kick_job(self, job: int) -> Deed | None:
        """Bring a buried job back."""
        return self._say("kick-job", f"kick-job {job}", job=job)

    def kick(self, tube: str) -> Deed | None:
        """Bring all buried jobs back."""
        self._say("use", f"use {tube}")
        return self._say("kick", f"kick {2**31 - 1}", tubes=(tube,))

    def current(self, tube: str) -> int | None:
        """Return the number of jobs in any state; None if it is unknown."""
        if self._client is None:
            return None
        try:
            self._client.send(f"stats-tube {tube}")
            line = self._client.line()
            if line == "NOT_FOUND":
                return 0
            figures = self._client.figures(line)
        except (OSError, EOFError):
            self._lose()
            return None
        return sum(int(figures[f"current-jobs-{state}"]) for state in ("ready", "reserved", "delayed", "buried"))

    def _say(
        self, verb: str, line: str, tubes: tuple[str, ...] = (), job: int | None = None, body: str | None = None,
        priority: int = 0, delay_s: int = 0, ttr_s: int = 0,
    ) -> Deed | None:
        if self._client is None:
            return None
        start_ns, answer = time.monotonic_ns(), None
        try:
            self._client.send(line)
            words = (said := self._client.line()).split()
            if words[0] == "RESERVED":
                job, body = self._client.rest(said)
            elif words[0] == "INSERTED":
                job = int(words[1])
            answer = words[0]
        except (OSError, EOFError):
            pass
        deed = Deed(
            client=self.name, via=self.via, connection=self._number, verb=verb, start_ns=start_ns,
            end_ns=time.monotonic_ns(), answer=answer, tubes=tubes, job=job, body=body,
            priority=priority, delay_s=delay_s, ttr_s=ttr_s,
        )
        if verb != "use":
            self._deeds.add(deed)
        if answer is None:
            self._lose()
            return None
        self._answered_ns = deed.end_ns
        return deed
