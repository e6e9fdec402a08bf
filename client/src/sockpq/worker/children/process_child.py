"""A child that is a process, forked from the pool: it has the app as the pool has it, and dies with the pool."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Set
from contextlib import suppress

from sockpq.model import Handed
from sockpq.worker.app import App
from sockpq.worker.children.child import Parent, Usage
from sockpq.worker.children.frames import READ_BYTES, Decoder, encode, messages
from sockpq.worker.children.serving import Serving

LOG = logging.getLogger("sockpq.worker")
PR_SET_PDEATHSIG = 1
SIGNALS = (
    signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1,
)


class ProcessChild:
    """The pool's side. `files`: the descriptors that the child keeps, those that were there before the pool."""

    def __init__(
        self, number: int, app: App, soft_time_limit: float | None, files: Set[int], parent: Parent
    ) -> None:
        self.number = number
        self.pid = 0
        self._app = app
        self._soft_time_limit = soft_time_limit
        self._files = files
        self._parent = parent
        self._loop = asyncio.get_running_loop()
        self._decoder = Decoder()
        self._unsent = bytearray()
        self._link: socket.socket
        self._watch = -1

    def start(self) -> None:
        """Fork."""
        self._link, other = socket.socketpair()
        pool = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(other, self._files | {other.fileno()}, self._app, self._soft_time_limit, pool)
        other.close()
        self._link.setblocking(False)
        self._watch = os.pidfd_open(self.pid)
        self._loop.add_reader(self._watch, self._exited)
        self._loop.add_reader(self._link, self._receive)

    def give(self, job: Handed) -> None:
        """Send a job."""
        self._unsent += encode(tuple(job))
        self._send()

    def stop(self) -> None:
        """Close the link: the child ends when it reads that. What it has to say comes before."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Kill it, and what it has started: it is the leader of a process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):      # it has not come so far as to have a group of its own
            os.kill(self.pid, signal.SIGKILL)

    def _send(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._link.send(self._unsent)]
        except BlockingIOError:
            self._loop.add_writer(self._link, self._send)
            return
        except OSError:             # it has died: _exited comes
            self._unsent.clear()
        self._loop.remove_writer(self._link)

    def _receive(self) -> None:
        try:
            data = self._link.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._link)
            return
        for message in self._decoder.feed(data):
            if message is None:
                self._parent.ready(self.number)
            else:
                job, outcome, memory_bytes = message
                self._parent.ended(self.number, job, outcome, Usage(memory_bytes))

    def _exited(self) -> None:
        """It has ended: read what it had said, and take its exit status, so that it leaves no zombie."""
        self._loop.remove_reader(self._watch)
        os.close(self._watch)
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        with suppress(OSError):
            while data := self._link.recv(READ_BYTES):
                for message in self._decoder.feed(data):
                    if message is not None:
                        job, outcome, memory_bytes = message
                        self._parent.ended(self.number, job, outcome, Usage(memory_bytes))
        self._loop.remove_reader(self._link)
        self._loop.remove_writer(self._link)
        self._link.close()
        if code < 0:                # what it has started may be there still
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._parent.gone(self.number, f"signal {-code}" if code < 0 else f"exit code {code}")


def open_files() -> set[int]:
    """The descriptors that are open now."""
    return {int(name) for name in os.listdir("/proc/self/fd")}


def die_with_parent(parent: int) -> None:
    """Be killed when the parent ends, however that happens."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _be_child(link: socket.socket, files: Set[int], app: App, soft_time_limit: float | None, pool: int) -> None:
    """Live as a child, to its end; never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()                 # Ctrl-C is for the pool; and a group that can be killed as a whole
        die_with_parent(pool)
        gc.freeze()
        _let_go(files)
        _serve(link, app, soft_time_limit)
        code = 0
    except (ConnectionError, KeyboardInterrupt):
        pass                        # the pool is gone
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _let_go(files: Set[int]) -> None:
    """Let go of the pool's files and connections; their numbers stay taken, for objects that are still there."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for one in open_files() - files - {nothing}:
        with suppress(OSError):     # the descriptor by which they were listed is closed already
            os.dup2(nothing, one, inheritable=False)


def _serve(link: socket.socket, app: App, soft_time_limit: float | None) -> None:
    serving = Serving(app, soft_time_limit)
    serving.start()
    link.sendall(encode(None))
    for message in messages(link):
        job = Handed(*message)
        outcome = serving.work(job)
        memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        link.sendall(encode((job.id, outcome, memory_bytes)))
    serving.close()
    app.close()
