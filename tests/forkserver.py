"""Nodes of the test suite begin as forks of a process that has imported sockpqd already.

A start of Python with all imports costs 0.6 s of processor time, and the suite starts hundreds of nodes. A fork has the
same code, arguments, environment, session, files and exit code as the program that is executed. What must be executed
is: another program, a command around it, or another environment of Python or of the dynamic linker. The tests of
`sockpqd` itself, the demo, the benchmarks and campaigns execute it always.

Nodes of different numbers come from different servers, each with a hash seed of its own: as between real nodes, sets
and dicts of strings do not have the same order.

The server's loop: a request on the control socket is the arguments, the environment and the folder, with the log file
and a socket attached; on that socket the server tells the process id, and the exit code once there is one.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from devcluster.node import NodeError, Process, execute, program

ROOT = Path(__file__).parents[1]
SERVERS = 3                 # a cluster mostly has three nodes
NUMBER = struct.Struct("!q")
REQUEST_BYTES_MAX = 1 << 18
PROGRAM = "import sys; from tests.forkserver import main; sys.exit(main(sys.argv[1]))"   # no "python -m" in messages
EXECUTED = ("PYTHON", "LD_")        # with other variables that begin so, a program is another one


class Forkserver:
    """Servers that are started when they are needed, until `close`."""

    def __init__(self) -> None:
        self._program = program()
        self._environment = _decisive(os.environ)
        self._servers: dict[int, tuple[subprocess.Popen[bytes], socket.socket]] = {}
        self._lock = threading.Lock()

    def launch(self, command: Sequence[str | Path], environment: Mapping[str, str], log: BinaryIO) -> Process:
        """Fork a node if that is the same as to execute it."""
        if command[0] != self._program or _decisive(environment) != self._environment:
            return execute(command, environment, log)
        node = Path(command[-1]).stem           # n2 of .../n2.toml
        number = int("".join(filter(str.isdigit, node)) or 0) % SERVERS
        request = json.dumps([list(map(str, command)), dict(environment), os.getcwd()]).encode()
        mine, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control(number), [request], [log.fileno(), theirs.fileno()])
            except BaseException:
                mine.close()
                raise
        return Forked(mine)

    def close(self) -> None:
        """End the servers."""
        for process, control in self._servers.values():
            control.close()
            process.wait()
        self._servers.clear()

    def _control(self, number: int) -> socket.socket:
        with self._lock:
            if number not in self._servers:
                mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                mine.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES_MAX)
                with theirs:
                    process = subprocess.Popen(
                        [sys.executable, "-c", PROGRAM, str(theirs.fileno())], pass_fds=[theirs.fileno()], cwd=ROOT,
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
                        env={**os.environ, "PYTHONHASHSEED": str(random.SystemRandom().randrange(2**32))},
                    )
                self._servers[number] = process, mine
            return self._servers[number][1]


class Forked:
    """A forked process, with the methods of subprocess.Popen that nodes need."""

    def __init__(self, status: socket.socket) -> None:
        self._status = status
        self._lock = threading.Lock()
        self._code: int | None = None
        self.pid = self._receive()

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        with self._lock:
            if self._code is None and _readable(self._status, 0):
                self._code = self._receive()
                self._status.close()
            return self._code

    def wait(self, timeout: float) -> int:
        """The exit code; raises subprocess.TimeoutExpired."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            left_s = until - time.monotonic()
            if left_s <= 0:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            with contextlib.suppress(ValueError):       # another thread has just read the code
                _readable(self._status, left_s)
        return code

    def send_signal(self, sig: int) -> None:
        """Send it if the process still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def _receive(self) -> int:
        data = self._status.recv(NUMBER.size, socket.MSG_WAITALL)
        if len(data) < NUMBER.size:
            self._status.close()
            raise NodeError("the forkserver of the tests has ended")
        return int(NUMBER.unpack(data)[0])


def _readable(source: socket.socket, timeout_s: float) -> bool:
    waiting = select.poll()
    waiting.register(source, select.POLLIN)
    return bool(waiting.poll(timeout_s * 1000))


def _decisive(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(EXECUTED)}


# The server

def _serve(control: socket.socket) -> tuple[list[str], dict[str, str], str, int] | None:
    """Fork until the control socket is closed. Returns None then, and in each child what it is to be."""
    running: dict[int, tuple[int, socket.socket]] = {}      # of each child: its pidfd -> its id, who wants its code
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is not control:
                    selector.unregister(key.fileobj)
                    pid, status = running.pop(key.fd)
                    os.close(key.fd)
                    _tell(status, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                    status.close()
                    continue
                request, files, _, _ = socket.recv_fds(control, REQUEST_BYTES_MAX, 2)
                if not request:
                    return None
                log, status = files[0], socket.socket(fileno=files[1])
                pid = os.fork()
                if pid == 0:
                    for other, (_, their_status) in running.items():
                        os.close(other)
                        their_status.close()
                    status.close()
                    command, environment, folder = json.loads(request)
                    return command, environment, folder, log
                os.close(log)
                _tell(status, pid)
                child = os.pidfd_open(pid)
                running[child] = pid, status
                selector.register(child, selectors.EVENT_READ)


def _tell(status: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):      # nobody wants to know any more
        status.sendall(NUMBER.pack(number))


def main(control_file: str) -> Any:
    """Serve; in a child, run sockpqd as its console script does."""
    from gateway.main import main as sockpqd
    with socket.socket(fileno=int(control_file)) as control:
        chosen = _serve(control)
    if chosen is None:
        return None
    sys.argv, environment, folder, log = chosen
    os.setsid()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return sockpqd()
