"""The marks of memory and disk: beyond one of them this node has no room for further jobs, until there is enough again.

Both are looked at once a second, in a thread of their own: statvfs waits for as long as a hanging disk does not answer.
What is then known is what was seen last; the journal, on the same disk, stands still as well.

A node that was full of jobs would look full long after they are done. What is in use is told by process_memory.py.
Beside that, at the mark, memory is given back to the system: by a full collection, which lets go of what Python keeps
for later use (30 ms with a million jobs), and by asking the C library for what it keeps, in the thread, without the
interpreter's lock. Large jobs are returned by that.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import logging
import os
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable
from pathlib import Path

from cluster.metrics.process_memory import UsedMemory, resident_bytes, small_objects

log = logging.getLogger("sockpqd.cluster")

LOOK_S = 1.0
RETURN_LOOKS = 20               # at the mark, memory is given back once in so many looks
COUNT_BYTES = 2 << 30           # objects are counted once in so many looks as this much memory is resident, and one
RELIEF_PERCENT = 5              # a mark must be left behind by so much, or it would be reached again at once


class Watermarks:
    """What was seen last, and whether it is beyond its mark. A mark of 0 is never reached."""

    def __init__(
        self, memory_mark_bytes: int, disk_free_bytes_min: int, ballast_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        """`ballast_bytes()`: of the disk, that the node has for itself: they count as free."""
        self.memory_mark_bytes = memory_mark_bytes
        self.disk_free_bytes_min = disk_free_bytes_min
        self.memory_bytes = 0           # resident,
        self.memory_used_bytes = 0      # and what counts of it
        self.disk_free_bytes = 0
        self.free_bytes = 0             # the same without the ballast
        self._ballast_bytes = ballast_bytes
        self.memory_reached = False
        self.disk_reached = False

    @property
    def reached(self) -> bool:
        """Is there no room for further jobs, in memory or on disk?"""
        return self.memory_reached or self.disk_reached

    def update(self, memory_bytes: int, memory_used_bytes: int, disk_free_bytes: int) -> None:
        """This is how it is now; what changes by that is logged."""
        self.memory_bytes, self.memory_used_bytes = memory_bytes, memory_used_bytes
        self.free_bytes, self.disk_free_bytes = disk_free_bytes, disk_free_bytes + self._ballast_bytes()
        self._check_memory()
        self._check_disk()

    def _check_memory(self) -> None:
        mark = self.memory_mark_bytes
        relieved = mark * (100 - RELIEF_PERCENT) // 100
        reached = bool(mark) and self.memory_used_bytes > (relieved if self.memory_reached else mark)
        if reached == self.memory_reached:
            return
        self.memory_reached = reached
        fields = {"memory_used_bytes": self.memory_used_bytes, "memory_mark_bytes": mark}
        if reached:
            log.warning("this process uses %d bytes of memory, more than limits.memory_mark_bytes (%d): no further "
                        "jobs are taken. Let workers catch up, or give the machine more memory.",
                        self.memory_used_bytes, mark, extra={"fields": fields})
        else:
            log.info("memory is below its mark again (%d bytes): jobs are taken", self.memory_used_bytes,
                     extra={"fields": fields})

    def _check_disk(self) -> None:
        mark = self.disk_free_bytes_min
        enough = mark * (100 + RELIEF_PERCENT) // 100
        reached = self.disk_free_bytes < (enough if self.disk_reached else mark)
        if reached == self.disk_reached:
            return
        self.disk_reached = reached
        fields = {"disk_free_bytes": self.disk_free_bytes, "disk_free_bytes_min": mark}
        if reached:
            log.warning("the disk of node.data_dir has %d bytes free, less than limits.disk_free_bytes_min (%d): no "
                        "further jobs are taken. Make room on it, or let workers catch up.", self.disk_free_bytes,
                        mark, extra={"fields": fields})
        else:
            log.info("the disk has enough room again (%d bytes free): jobs are taken", self.disk_free_bytes,
                     extra={"fields": fields})


class WatermarkMonitor:
    """Looks at memory and disk once a second, and tells the marks on the loop."""

    def __init__(self, directory: Path, marks: Watermarks, loop: AbstractEventLoop) -> None:
        self._directory = directory
        self._marks = marks
        self._loop = loop
        self._used = UsedMemory()
        self._objects = 0               # when they were last counted
        self._looks = 0
        self._stopping = threading.Event()

    def start(self) -> None:
        """Look once at once, then in the thread. Raises OSError when the directory cannot be asked."""
        self._marks.update(*self._look())
        # A daemon: whoever hangs in a system call must not keep the process from ending.
        threading.Thread(target=self._run, name="marks", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()

    def _run(self) -> None:
        trim = _memory_returner()
        looks = 0
        complained = False
        while not self._stopping.wait(LOOK_S):
            if self._marks.memory_reached:
                if looks % RETURN_LOOKS == 0:
                    self._collect()
                elif looks % RETURN_LOOKS == 1:
                    trim()
                looks += 1
            else:
                looks = 0
            try:
                self._loop.call_soon_threadsafe(self._marks.update, *self._look())
                complained = False
            except OSError as error:
                if not complained:
                    log.error("nobody can look at the memory of this process or the room of its disk: %s", error)
                complained = True
            except RuntimeError:
                return                  # the loop is closed

    def _look(self) -> tuple[int, int, int]:
        resident = resident_bytes()
        far_below = resident * 2 < self._marks.memory_mark_bytes or not self._marks.memory_mark_bytes
        if not far_below and self._looks % (1 + resident // COUNT_BYTES) == 0:
            self._objects = small_objects()
        self._looks += 1
        used = resident if far_below else self._used.bytes(resident, self._objects)
        return resident, used, free_bytes(self._directory)

    def _collect(self) -> None:
        with contextlib.suppress(RuntimeError):         # on the loop: destructors may belong to it
            self._loop.call_soon_threadsafe(gc.collect)


def free_bytes(directory: Path) -> int:
    """What this process may still write to the disk of the directory; raises OSError."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


def _memory_returner() -> Callable[[], object]:
    """Gives free memory of the C library back to the system; does nothing where the library cannot."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return (lambda: None) if trim is None else (lambda: trim(0))
