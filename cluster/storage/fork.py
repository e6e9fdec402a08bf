"""Work in a forked child: it sees the memory of the fork, so a big state can be written while the node goes on."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import warnings
from collections.abc import Callable
from typing import NoReturn, Protocol

NICE = 15                   # the node itself goes first
_MESSAGE_BYTES = 4096       # fits into an empty pipe, so the child never waits for a reader


class BackgroundTask(Protocol):
    """Work that goes on beside the node. `error` says why it failed, once it has."""

    error: str

    def poll(self) -> int | None:
        """None while it runs, then its exit status: 0 when all went well. Never waits."""

    def kill(self) -> None:
        """Stop it at once; nothing is left running when this returns."""


class ForkedTask:
    """A forked child that does one thing and exits."""

    def __init__(self, work: Callable[[], None]) -> None:
        """Fork; the child calls `work`, and whatever that raises becomes `error` here. Raises OSError."""
        self.error = ""
        self._status: int | None = None
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of forking beside threads. The child takes no lock that another thread can hold: it
                # reads our state, writes one file and leaves by os._exit.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.pid = os.fork()
            if self.pid == 0:
                _be_the_child(work, write_end)
        except OSError:
            os.close(self._pipe)
            raise
        finally:
            os.close(write_end)

    def poll(self) -> int | None:
        """See BackgroundTask. A child that was killed has the negative number of the signal."""
        if self._status is None:
            self._collect(os.WNOHANG)
        return self._status

    def kill(self) -> None:
        """See BackgroundTask."""
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._collect(0)

    def _collect(self, options: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            pid, status = self.pid, 1 << 8      # somebody else collected it: how it ended is unknown, so it failed
        if pid == 0:
            return
        self._status = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(BlockingIOError):
            self.error = os.read(self._pipe, _MESSAGE_BYTES).decode(errors="replace")
        os.close(self._pipe)
        if self._status < 0:
            self.error = f"killed by signal {-self._status}"


def _be_the_child(work: Callable[[], None], pipe: int) -> NoReturn:
    """Nothing of the node's own life may go on here: no loop, no signal handlers, no sockets held open."""
    status = 1
    try:
        gc.disable()                            # a collection would touch, and so copy, every page
        signal.set_wakeup_fd(-1)                # else a signal to the child would wake the parent's loop
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.closerange(3, pipe)
        os.closerange(pipe + 1, max(os.sysconf("SC_OPEN_MAX"), 1 << 16))
        os.nice(NICE)
        work()
        status = 0
    except BaseException as error:
        os.write(pipe, f"{type(error).__name__}: {error}".encode()[:_MESSAGE_BYTES])
    finally:
        os._exit(status)


class InlineTask:
    """The same without a child, done before it begins to exist: for simulations."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.error = ""
        self._status = 0
        try:
            work()
        except Exception as error:
            self.error, self._status = f"{type(error).__name__}: {error}", 1

    def poll(self) -> int | None:
        """See BackgroundTask."""
        return self._status

    def kill(self) -> None:
        """See BackgroundTask."""
