"""A child that is a process, forked from the pool: it inherits the app from the pool, and dies with the pool.

It gets jobs through a socket, several in one message. Before it begins a job it must read a ticket for it from a pipe.
The pool can read that pipe as well, and a job whose ticket the pool has read is not begun. So the owner of a job is
clear at any time, even if the child was killed, and a job sent to a busy child waits only until another child is idle.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import mmap
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Iterator, Sequence, Set
from contextlib import suppress
from time import monotonic

from sockpq.model import Handed
from sockpq.worker.app import App
from sockpq.worker.children.child import Parent, Result, Usage
from sockpq.worker.children.frames import READ_BYTES, Decoder, encode, messages
from sockpq.worker.children.serving import Serving

LOG = logging.getLogger("sockpq.worker")
PR_SET_PDEATHSIG = 1
JOB_BYTES = 8               # the id of a job, which is its ticket
TICKETS_BYTES_MAX = 65_536  # of all that are in the pipe
CANCEL_SIGNAL = signal.SIGUSR2
GATHER_S = 0.001, 0.005     # results of a child that has more jobs are left unread for this long, at least and at most
SIGNALS = (
    signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR1,
)


class ProcessChild:
    """A child process as its pool sees it. `files`: the descriptors that it keeps, which are older than the pool."""

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
        self._begun_or_not = 0          # jobs that it has
        self._run_s = 0.0               # how long it worked on the last one
        self._listens = self._is_full = False
        self._gathering: asyncio.TimerHandle | None = None
        self._cancelled = mmap.mmap(-1, JOB_BYTES)      # shared with it: a signal does not say which job is cancelled
        self._link: socket.socket
        self._tickets = -1
        self._watch = -1

    def start(self) -> None:
        self._link, other = socket.socketpair()
        self._tickets = _pipe()
        pool = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            kept = self._files | {other.fileno(), self._tickets}
            _be_child(other, self._tickets, self._cancelled, kept, self._app, self._soft_time_limit, pool)
        other.close()
        self._link.setblocking(False)
        self._watch = os.pidfd_open(self.pid)
        self._loop.add_reader(self._watch, self._exited)
        self._listen(True)

    def give(self, jobs: Sequence[Handed], until: float, timed: Set[int]) -> None:
        os.write(self._tickets, b"".join([job.id.to_bytes(JOB_BYTES) for job in jobs]))
        self._begun_or_not += len(jobs)
        self._unsent += encode((until, timed, [tuple(job) for job in jobs]))
        self._send()
        self._gather()

    def take_back(self) -> set[int]:
        """Read all remaining tickets, so that the child begins no more jobs."""
        try:
            drawn = os.read(self._tickets, TICKETS_BYTES_MAX)
        except BlockingIOError:
            return set()
        ids = {int.from_bytes(drawn[at : at + JOB_BYTES]) for at in range(0, len(drawn), JOB_BYTES)}
        self._begun_or_not -= len(ids)
        return ids

    def cancel(self, job: int) -> bool:
        """Write the id of the job, then send a signal. The child ends after that, so there is never a second one."""
        self._cancelled[:] = job.to_bytes(JOB_BYTES)
        with suppress(ProcessLookupError):
            os.kill(self.pid, CANCEL_SIGNAL)
        return True

    def stop(self) -> None:
        """Close the link: the child ends when it reads that, after it has sent its last messages."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """Kill the child and its own child processes: it leads a process group."""
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
            self._is_full = True
            return
        except OSError:             # it has died: _exited comes
            self._unsent.clear()
        if self._is_full:
            self._is_full = False
            self._loop.remove_writer(self._link)

    def _receive(self) -> bool:
        """Read from the child; returns whether there was anything."""
        try:
            data = self._link.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._hear(data)
            self._gather()
        else:
            self._listen(False)
        return True

    def _listen(self, on: bool) -> None:
        if on != self._listens:
            self._listens = on
            if on:
                self._loop.add_reader(self._link.fileno(), self._receive)
            else:
                self._loop.remove_reader(self._link.fileno())

    def _hear(self, data: bytes) -> None:
        results = []
        for message in self._decoder.feed(data):
            if message is None:
                self._parent.ready(self.number)
            else:
                job, outcome, memory_bytes = message
                results.append(Result(job, outcome, Usage(memory_bytes)))
                self._run_s = outcome.run_s if outcome else 0.0
        if results:
            self._begun_or_not -= len(results)
            self._parent.ended(self.number, results)

    def _gather(self) -> None:
        """Leave results unread for a moment if more will follow, as each wake-up of the pool costs time.

        The moment is the expected time of all its jobs, if they are as quick as the last one.
        """
        if self._gathering:
            return
        if self._begun_or_not > 1:
            least, most = GATHER_S
            self._listen(False)
            self._gathering = self._loop.call_later(
                min(max(self._begun_or_not * self._run_s, least), most), self._gathered
            )
        elif self._begun_or_not:
            self._listen(True)

    def _gathered(self) -> None:
        self._gathering = None
        if not self._receive():         # it works on something longer
            self._listen(True)

    def _exited(self) -> None:
        """Record that it has ended: read its last messages, and take its exit status, so that it leaves no zombie."""
        self._loop.remove_reader(self._watch)
        os.close(self._watch)
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        with suppress(OSError):
            while data := self._link.recv(READ_BYTES):
                self._hear(data)
        if self._gathering:
            self._gathering.cancel()
        self._listen(False)
        self._loop.remove_writer(self._link)
        self._link.close()
        if code < 0:                # what it has started may be there still
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._parent.gone(self.number, f"its process has ended by {named_signal(-code)}" if code < 0 else
                          f"its process has ended with exit code {code}")
        os.close(self._tickets)
        self._cancelled.close()


def open_files() -> set[int]:
    """Return the descriptors that are open now."""
    return {int(name) for name in os.listdir("/proc/self/fd")}


def named_signal(number: int) -> str:
    """Return the name of a signal for messages: "signal 9 (SIGKILL)"."""
    known = number in set(signal.Signals)
    return f"signal {number} ({signal.Signals(number).name})" if known else f"signal {number}"


def die_with_parent(parent: int) -> None:
    """Have this process killed when its parent ends, however that happens."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _pipe() -> int:
    """Return a non-blocking pipe with one descriptor for both ends."""
    ends = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{ends[0]}", os.O_RDWR | os.O_NONBLOCK)
    finally:
        for end in ends:
            os.close(end)


def _be_child(
    link: socket.socket, tickets: int, cancelled: mmap.mmap, files: Set[int], app: App, soft_time_limit: float | None,
    pool: int,
) -> None:
    """Run as a child to its end; never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.setsid()                 # Ctrl-C is for the pool; and a group that can be killed as a whole
        die_with_parent(pool)
        gc.freeze()
        _let_go(files)
        _serve(link, tickets, cancelled, app, soft_time_limit)
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
    """Release the pool's files and connections; their descriptors stay allocated for objects that still exist."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for one in open_files() - files - {nothing}:
        with suppress(OSError):     # the descriptor by which they were listed is closed already
            os.dup2(nothing, one, inheritable=False)


def _serve(
    link: socket.socket, tickets: int, cancelled: mmap.mmap, app: App, soft_time_limit: float | None,
) -> None:
    serving = Serving(app, soft_time_limit)
    signal.signal(CANCEL_SIGNAL, lambda number, frame: serving.interrupt(int.from_bytes(cancelled[:])))
    serving.start()
    link.sendall(encode(None))
    for job, until, timed in _own(link, tickets):
        outcome = serving.work(job, timed) if monotonic() < until else None
        memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        link.sendall(encode((job.id, outcome, memory_bytes)))
    serving.close()
    app.close()


def _own(link: socket.socket, tickets: int) -> Iterator[tuple[Handed, float, bool]]:
    """Yield the jobs for which there is a ticket, in order; tickets are written before their jobs."""
    ticket: int | None = None
    for until, timed, jobs in messages(link):
        for words in jobs:
            ticket = ticket or _drawn(tickets)
            if ticket is None:
                break               # the pool has taken back the rest
            if words[0] == ticket:
                ticket = None
                yield Handed(*words), until, words[0] in timed


def _drawn(tickets: int) -> int | None:
    try:
        return int.from_bytes(os.read(tickets, JOB_BYTES))
    except BlockingIOError:
        return None
