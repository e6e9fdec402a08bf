"""`pqctl import beanstalkd`: moves all jobs of a running beanstalkd, with their tubes, states, priorities and delays.

Each job is put here, and then deleted there. Until then it is reserved there, so that no other client gets it. Its key
here contains its id there, so that a job which was put but not deleted, because the command was interrupted in between,
is not put again.
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

from sockpq import Client, Key

from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED, Failure
from sockpqd.pqctl.output.text import counted

WAIT_S = 30.0               # for an answer of beanstalkd
BODY_BYTES_MAX = 1 << 30
BURIED_S = 3600.0           # for which a job is held back before it is buried
TAKEN_S = 60.0              # for which it is taken meanwhile
STATES = ("ready", "delayed", "buried")


class Beanstalkd:
    """A connection to a beanstalkd from which jobs are imported."""

    def __init__(self, address: str) -> None:
        """`address`: "host:port". Raises OSError and ValueError."""
        host, _, port = address.rpartition(":")
        if not port.isdigit():
            raise ValueError("this is not HOST:PORT")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), WAIT_S)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None,
    ) -> None:
        self._file.close()
        self._socket.close()

    def say(self, command: str) -> tuple[list[str], bytes]:
        """Send a command; returns the words of the answer, and its data. Raises OSError when there is none."""
        self._socket.sendall(f"{command}\r\n".encode())
        line = self._file.readline(300)
        if not line.endswith(b"\r\n"):
            raise OSError("it has closed the connection, or is not beanstalkd")
        words = line[:-2].decode("ascii", "replace").split(" ")
        if words[0] not in ("OK", "RESERVED", "FOUND"):
            return words, b""
        length = int(words[-1]) if words[-1].isdigit() else -1
        if not 0 <= length <= BODY_BYTES_MAX:
            raise OSError("this is not beanstalkd")
        data = self._file.read(length + 2)
        if len(data) != length + 2:
            raise OSError("it has closed the connection")
        return words, data[:-2]

    def tubes(self) -> list[str]:
        """The names of all tubes."""
        _, data = self.say("list-tubes")
        return [line.removeprefix("- ").strip('"') for line in data.decode().splitlines() if line.startswith("- ")]

    def stats(self, command: str) -> dict[str, str] | None:
        """The figures of a stats command, None if its subject does not exist."""
        words, data = self.say(command)
        if words[0] != "OK":
            return None
        rows = (line.partition(": ") for line in data.decode().splitlines() if ": " in line)
        return {key: value.strip('"') for key, _, value in rows}


def import_jobs(call: Call, address: str) -> int:
    """Move all jobs that are not reserved."""
    moved: Counter[str] = Counter()
    try:
        with cluster_of(call, serving=True) as (client, _), Beanstalkd(address) as source:
            about = source.stats("stats")
            if about is None:
                raise OSError("this is not beanstalkd")
            version, instance = about.get("version", "?"), about.get("id", "0")[:64]
            for tube in source.tubes():
                for state in STATES:
                    moved.update(_move(source, client, instance, tube, state))
            left = {tube: int((source.stats(f"stats-tube {tube}") or {}).get("current-jobs-reserved", 0))
                    for tube in source.tubes()}
    except (OSError, ValueError) as error:
        done = f"; {counted(sum(moved.values()), 'job')} moved before: run it again to continue" if moved else ""
        refused = "nobody listens there (connection refused)" if isinstance(error, ConnectionRefusedError) else None
        why = refused or getattr(error, "strerror", None) or error
        raise Failure(UNREACHED, f"{address}: {why}{done}") from error
    return _tell(call, f"beanstalkd {version} at {address}", moved, sum(left.values()))


def _tell(call: Call, source: str, moved: Mapping[str, int], reserved: int) -> int:
    states = ", ".join(f"{moved[state]} {state}" for state in STATES if moved.get(state))
    lines = [f"{counted(sum(moved.values()), 'job')} of {source} moved{f': {states}' if states else ''}"]
    if reserved:
        lines.append(f"{counted(reserved, 'job')} reserved there stay: run it again when their workers have ended")
    call.answer("\n".join(lines), {"moved": dict(moved), "reserved": reserved})
    return REFUSED if reserved else DONE


def _move(source: Beanstalkd, client: Client, instance: str, tube: str, state: str) -> Iterator[str]:
    """Move the jobs of a tube that are in this state; yields the state for each."""
    source.say(f"use {tube}")
    while True:
        words, body = source.say(f"peek-{state}")
        if words[0] != "FOUND":
            return
        number = words[1]
        figures = source.stats(f"stats-job {number}")
        if figures is None or source.say(f"reserve-job {number}")[0][0] != "RESERVED":
            continue                        # somebody was faster
        delay_s = int(figures["time-left"]) if state == "delayed" else 0
        try:
            _put(client, Key(tube, f"beanstalkd.{instance}.{number}"), figures, body, delay_s, buried=state == "buried")
        except BaseException:
            pri = figures["pri"]
            source.say(f"bury {number} {pri}" if state == "buried" else f"release {number} {pri} {delay_s}")
            raise
        if source.say(f"delete {number}")[0][0] != "DELETED":
            raise OSError(f"it did not delete job {number}")
        yield state


def _put(client: Client, key: Key, figures: Mapping[str, str], body: bytes, delay_s: int, *, buried: bool) -> None:
    priority = -int(figures["pri"])
    client.put(
        key.queue, body, priority, delay=BURIED_S if buried else delay_s or None, key=key.key, on_duplicate="ignore",
        number=True, lease=int(figures["ttr"]),
    )
    if buried:
        job = client.peek(key)              # perhaps put before, and not buried then
        if job is not None and job.number is not None and job.state != "buried":
            client.bury(client.get_number(job.number, expire=TAKEN_S).id, priority=priority, here=True)
