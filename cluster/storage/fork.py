"""Background tasks in a forked child, which sees the memory as it was at the fork while the node continues."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import warnings
from collections.abc import Callable, Collection
from typing import NoReturn, Protocol

NICE = 15                   # so that the node itself comes first
_MESSAGE_BYTES = 4096       # fits into an empty pipe, so the child never blocks


class BackgroundTask(Protocol):
    """Work done in the background. `error`: why it failed, empty if it has not."""

    error: str

    def poll(self) -> int | None:
        """The exit status, 0 for success; None while the task runs. Never blocks."""

    def kill(self) -> None:
        """Stop the task; nothing of it still runs when this returns."""


class ForkedTask:
    """A forked child that does one thing and exits."""

    def __init__(self, work: Callable[[], None], keep: Collection[int] = ()) -> None:
        """Fork; the child calls `work`, and an exception of it becomes `error` here. Raises OSError.

        `keep`: descriptors that the child needs.
        """
        self.error = ""
        self._status: int | None = None
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns about forking in a process with threads. The child takes no lock that another
                # thread can hold: it reads our state, writes one file and leaves by os._exit.
                warnings.simplefilter("ignore", DeprecationWarning)
                self.pid = os.fork()
            if self.pid == 0:
                _be_the_child(work, write_end, keep)
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
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._collect(0)

    def _collect(self, options: int) -> None:
        try:
            pid, status = os.waitpid(self.pid, options)
        except ChildProcessError:
            pid, status = self.pid, 1 << 8      # its status was collected elsewhere and is unknown: count it as failed
        if pid == 0:
            return
        self._status = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(BlockingIOError):
            self.error = os.read(self._pipe, _MESSAGE_BYTES).decode(errors="replace")
        os.close(self._pipe)
        if self._status < 0:
            self.error = f"killed by signal {-self._status}"


def _be_the_child(work: Callable[[], None], pipe: int, keep: Collection[int]) -> NoReturn:
    """Run `work` without the node's event loop, signal handlers and open sockets."""
    status = 1
    try:
        gc.disable()                            # a collection would touch, and so copy, every page
        signal.set_wakeup_fd(-1)                # otherwise a signal to the child would wake the parent's loop
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        start = 3
        for file in sorted((*keep, pipe)):
            os.closerange(start, file)
            start = file + 1
        os.closerange(start, max(os.sysconf("SC_OPEN_MAX"), 1 << 16))
        os.nice(NICE)
        work()
        status = 0
    except BaseException as error:
        os.write(pipe, f"{type(error).__name__}: {error}".encode()[:_MESSAGE_BYTES])
    finally:
        os._exit(status)


class InlineTask:
    """A task done synchronously in its constructor, for simulations."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.error = ""
        self._status = 0
        try:
            work()
        except Exception as error:
            self.error, self._status = f"{type(error).__name__}: {error}", 1

    def poll(self) -> int | None:
        return self._status

    def kill(self) -> None:
        pass
