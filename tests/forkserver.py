"""Nodes of the test suite, and many a pqctl and pqworker, begin as forks of a process that has imported the program.

A start of Python with all imports costs 0.6 s of processor time, 0.3 s for the others, and the suite starts hundreds. A
fork has the same code, arguments, environment, session, files and exit code as the program that is executed. A module
that changes something and then runs the program, as in `python -m tests.chaos.machines.altered sockpqd ..`, is run in
the fork. What must be executed is: another program, any other command around it, or another environment of Python or of
the dynamic linker. The tests of `sockpqd` itself and the demo execute it always, and campaigns unless they are to
fork.

Nodes of different numbers come from different servers, each with a hash seed of its own: as between real nodes, sets
and dicts of strings do not have the same order.

The server's loop: a request on the control socket is the arguments, the environment and the folder, with a socket and
the standard files attached; on that socket the server tells the process id, and the exit code once there is one.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import runpy
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, ClassVar, TextIO, cast

from devcluster.node import NodeError, Process, execute, program

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
SERVERS = 3                 # a cluster mostly has three nodes
NUMBER = struct.Struct("!q")
REQUEST_BYTES_MAX = 1 << 18
PROGRAM = "import sys; from tests.forkserver import main; sys.exit(main(*sys.argv[1:]))"   # no "python -m" in messages
BY_MODULE = (sys.executable, "-m")  # the name of the module follows, and the program with its arguments
MAIN = {"sockpqd": "sockpqd.gateway.main", "pqctl": "sockpqd.pqctl.main", "pqworker": "sockpq.worker.program.main"}
NEEDED = {                          # what they load later
    "sockpqd": ("sockpqd.gateway.daemon", "sockpqd.gateway.dev.alone", "sockpqd.gateway.process.restarts", "uvloop"),
    "pqctl": (
        "sockpqd.pqctl.program", "sockpqd.pqctl.connect", "sockpqd.pqctl.output.table", "sockpqd.pqctl.commands.job",
        "sockpqd.pqctl.commands.queue",
    ),
    "pqworker": ("sockpq.worker",),
}
# Tests that are run in the background ignore signals, and children inherit that.
SIGNALS = {
    signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL,
}
EXECUTED = ("PYTHON", "LD_", "LC_", "LANG", "TZ")   # with other variables that begin so, a program is another one

File = int | IO[bytes]
Server = tuple[str, int]            # the program, and a number


class Forkserver:
    """Servers that are started when they are needed, until `close`."""

    current: ClassVar[Forkserver]       # of all tests; set by conftest.py

    def __init__(self) -> None:
        self._program = program()
        self._environment = _decisive(os.environ)
        self._servers: dict[Server, tuple[subprocess.Popen[bytes], socket.socket]] = {}
        self._lock = threading.Lock()

    def launch(self, command: Sequence[str | Path], environment: Mapping[str, str], log: BinaryIO) -> Process:
        """Fork a node if that is the same as to execute it."""
        if not self._forks(command) or _decisive(environment) != self._environment:
            return execute(command, environment, log)
        node = Path(command[-1]).stem           # n2 of .../n2.toml
        number = int("".join(filter(str.isdigit, node)) or 0) % SERVERS
        with Path(os.devnull).open("rb") as nothing:
            return self._fork(("sockpqd", number), command, environment, [nothing, log, log])

    def run(
        self, name: str, arguments: Sequence[str | bytes], environment: Mapping[str, str], files: Sequence[File],
        folder: Path | None = None,
    ) -> Forked:
        """Fork another program with these standard files: input, output, errors."""
        assert _decisive(environment) == self._environment, "then it has to be executed"
        return self._fork((name, 0), [BIN / name, *map(os.fsdecode, arguments)], environment, files, folder)

    def _fork(
        self, server: Server, command: Sequence[str | Path], environment: Mapping[str, str], files: Sequence[File],
        folder: Path | None = None,
    ) -> Forked:
        request = json.dumps([list(map(str, command)), dict(environment), str(folder or Path.cwd())]).encode()
        mine, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control(server), [request], [
                    theirs.fileno(), *(file if isinstance(file, int) else file.fileno() for file in files)])
            except BaseException:
                mine.close()
                raise
        return Forked(mine)

    def _forks(self, command: Sequence[str | Path]) -> bool:
        """Return whether this is the program, or a module that runs it."""
        return command[0] == self._program or (*command[:2], *command[3:4]) == (*BY_MODULE, self._program)

    def close(self) -> None:
        """End the servers, and wait for them."""
        for process, control in self._servers.values():
            control.close()
            process.wait()
        self._servers.clear()

    def _control(self, server: Server) -> socket.socket:
        with self._lock:
            if server not in self._servers:
                mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                mine.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES_MAX)
                with theirs:
                    process = subprocess.Popen(
                        [sys.executable, "-c", PROGRAM, str(theirs.fileno()), server[0]],
                        pass_fds=[theirs.fileno()], cwd=ROOT,
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
                        env={**os.environ, "PYTHONHASHSEED": str(random.SystemRandom().randrange(2**32))},
                    )
                self._servers[server] = process, mine
            return self._servers[server][1]


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

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

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

def _serve(control: socket.socket) -> tuple[list[str], dict[str, str], str, list[int]] | None:
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
                request, files, _, _ = socket.recv_fds(control, REQUEST_BYTES_MAX, 4)
                if not request:
                    return None
                status, files = socket.socket(fileno=files[0]), files[1:]
                pid = os.fork()
                if pid == 0:
                    for other, (_, their_status) in running.items():
                        os.close(other)
                        their_status.close()
                    status.close()
                    command, environment, folder = json.loads(request)
                    return command, environment, folder, files
                for file in files:
                    os.close(file)
                _tell(status, pid)
                child = os.pidfd_open(pid)
                running[child] = pid, status
                selector.register(child, selectors.EVENT_READ)


def _tell(status: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):      # the client has gone
        status.sendall(NUMBER.pack(number))


def _take(files: list[int]) -> None:
    """Let these be the standard files, for Python as well: it looks for terminals when it begins."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = sys.__stdin__ = _standard(0, "r", sys.stdin)
    sys.stdout = sys.__stdout__ = _standard(1, "w", sys.stdout)
    sys.stderr = sys.__stderr__ = _standard(2, "w", sys.stderr, buffering=1)


def _standard(number: int, mode: str, like: TextIO, buffering: int = -1) -> TextIO:
    """A standard stream on this descriptor, like the one before, for as long as the process lives."""
    return cast(TextIO, os.fdopen(number, mode, buffering, like.encoding, like.errors, closefd=False))


def main(control_file: str, program: str) -> Any:
    """Serve; in a child, run the program as its console script does, or the module that runs it."""
    run = importlib.import_module(MAIN[program]).main
    for module in NEEDED[program]:
        importlib.import_module(module)
    with socket.socket(fileno=int(control_file)) as control:
        chosen = _serve(control)
    if chosen is None:
        return None
    command, environment, folder, files = chosen
    os.setsid()
    _take(files)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, handler in SIGNALS.items():
        signal.signal(number, handler)
    if tuple(command[:2]) == BY_MODULE:
        sys.argv = command[2:]
        return runpy.run_module(command[2], run_name="__main__", alter_sys=True)
    sys.argv = command
    return run()
