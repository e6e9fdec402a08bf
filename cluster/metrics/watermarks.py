"""Watermarks of memory and disk: beyond one of them this node accepts no more jobs until there is enough room again.

Both are measured once a second in a thread, because statvfs blocks while a disk hangs. The last measurement counts
then; the journal, on the same disk, blocks as well.

A node that was full of jobs would look full long after they are done, so process_memory.py estimates the memory really
in use. In addition, beyond the mark, memory is returned to the system: by a full garbage collection, which frees what
Python keeps for reuse (30 ms with a million jobs), and by malloc_trim of the C library, in the thread and without the
interpreter's lock, which returns the memory of large jobs.
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

from sockpqd.cluster.metrics.process_memory import UsedMemory, resident_bytes, small_objects

log = logging.getLogger("sockpqd.cluster")

LOOK_S = 1.0
RETURN_LOOKS = 20               # beyond the mark, memory is returned once in this many measurements
COUNT_BYTES = 2 << 30           # objects are counted once in 1 + (resident memory / this) measurements
RELIEF_PERCENT = 5              # hysteresis: how far below a mark accepting jobs resumes


class Watermarks:
    """The last measurements, and whether they are beyond their marks. A mark of 0 is never reached."""

    def __init__(
        self, memory_mark_bytes: int, disk_free_bytes_min: int, ballast_bytes: Callable[[], int] = lambda: 0,
        written_bytes: Callable[[], int] = lambda: 0,
    ) -> None:
        """`ballast_bytes()`: size of the node's ballast on the disk, which counts as free space.

        `written_bytes()`: the total of jobs that left memory: they may fill a small disk between two measurements.
        """
        self.memory_mark_bytes = memory_mark_bytes
        self.disk_free_bytes_min = disk_free_bytes_min
        self.memory_bytes = 0           # resident
        self.memory_used_bytes = 0      # what counts of it
        self.disk_free_bytes = 0        # with the ballast
        self.disk_bytes = 0             # size of the disk
        self._free_bytes = 0
        self._ballast_bytes = ballast_bytes
        self._written_bytes = written_bytes
        self._written = 0               # at the last measurement
        self.memory_reached = False
        self.disk_reached = False

    @property
    def reached(self) -> bool:
        """True if there is no room for more jobs, in memory or on disk."""
        return self.memory_reached or self.disk_reached

    @property
    def free_bytes(self) -> int:
        """Free space without the ballast, minus the pages written since it was measured."""
        return max(0, self._free_bytes - (self._written_bytes() - self._written))

    def update(self, memory_bytes: int, memory_used_bytes: int, disk_free_bytes: int, disk_bytes: int = 0) -> None:
        """Store new measurements, and log when a mark is reached or left."""
        self.memory_bytes, self.memory_used_bytes, self.disk_bytes = memory_bytes, memory_used_bytes, disk_bytes
        self._free_bytes, self.disk_free_bytes = disk_free_bytes, disk_free_bytes + self._ballast_bytes()
        self._written = self._written_bytes()
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
            log.warning("this process uses %d bytes of memory, more than limits.memory_mark (%d): no more "
                        "jobs are accepted. Let workers catch up, keep more of the waiting jobs on the disk "
                        "(limits.hot_bytes), or give the machine more memory.",
                        self.memory_used_bytes, mark, extra={"fields": fields})
        else:
            log.info("memory is below its mark again (%d bytes): jobs are accepted", self.memory_used_bytes,
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
                        "more jobs are accepted. Free disk space, or let workers catch up.", self.disk_free_bytes,
                        mark, extra={"fields": fields})
        else:
            log.info("the disk has enough room again (%d bytes free): jobs are accepted", self.disk_free_bytes,
                     extra={"fields": fields})


class WatermarkMonitor:
    """Measures memory and disk once a second in a thread, and updates the watermarks on the loop."""

    def __init__(self, directory: Path, marks: Watermarks, loop: AbstractEventLoop) -> None:
        self._directory = directory
        self._marks = marks
        self._loop = loop
        self._used = UsedMemory()
        self._objects = 0               # when they were last counted
        self._looks = 0
        self._stopping = threading.Event()

    def start(self) -> None:
        """Measure once now, then in the thread. Raises OSError if the directory cannot be examined."""
        self._marks.update(*self._look())
        # A daemon thread: hanging in a system call, it must not keep the process from ending.
        threading.Thread(target=self._run, name="marks", daemon=True).start()

    def stop(self) -> None:
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
                    log.error("the memory of this process or the room on its disk cannot be measured: %s", error)
                complained = True
            except RuntimeError:
                return                  # the loop is closed

    def _look(self) -> tuple[int, int, int, int]:
        resident = resident_bytes()
        far_below = resident * 2 < self._marks.memory_mark_bytes or not self._marks.memory_mark_bytes
        if not far_below and self._looks % (1 + resident // COUNT_BYTES) == 0:
            self._objects = small_objects()
        self._looks += 1
        used = resident if far_below else self._used.bytes(resident, self._objects)
        return resident, used, free_bytes(self._directory), disk_bytes(self._directory)

    def _collect(self) -> None:
        with contextlib.suppress(RuntimeError):         # on the loop: destructors may belong to it
            self._loop.call_soon_threadsafe(gc.collect)


def free_bytes(directory: Path) -> int:
    """The free space for this process on the disk of the directory. Raises OSError."""
    status = os.statvfs(directory)
    return status.f_bavail * status.f_frsize


def disk_bytes(directory: Path) -> int:
    """The size of the disk of the directory. Raises OSError."""
    status = os.statvfs(directory)
    return status.f_blocks * status.f_frsize


def _memory_returner() -> Callable[[], object]:
    """A function that returns free memory of the C library to the system, if the library can do that."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return (lambda: None) if trim is None else (lambda: trim(0))
