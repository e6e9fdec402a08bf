"""How much of this process's memory is in use: what counts against the mark.

Resident memory does not tell. Python takes memory for small objects in arenas of a megabyte, and returns an arena only
when nothing at all is left in it. The few objects that the journal keeps of each entry lie between those of the jobs
that came with it, so after 400,000 small jobs were put and done not one of 104 arenas was returned, though 99% of what
was in them was free (measured). Such a node would refuse PUT for ever, with nearly all its memory ready for new jobs.

So the objects are counted. What is missing from the greatest count is room in those arenas, as far as resident memory
has not shrunk since by itself. The estimate is low (a small job's objects have 97 bytes on average), and it ends where
resident memory grows beyond what the greatest count had needed.
"""

from __future__ import annotations

import os
import sys

OBJECT_BYTES = 64               # what a freed object is counted for
BEYOND_PERCENT = 5              # more resident memory than at the greatest count: what is free there is not made use of
_STATM = "/proc/self/statm"


class UsedMemory:
    """Remembers the greatest count of objects, and the resident memory then."""

    def __init__(self) -> None:
        self._objects = 0
        self._resident_bytes = 0

    def bytes(self, resident_bytes: int, objects: int) -> int:
        """What is in use, of so much resident memory with so many small objects in it."""
        if objects >= self._objects:
            self._objects, self._resident_bytes = objects, resident_bytes
            return resident_bytes
        if resident_bytes * 100 > self._resident_bytes * (100 + BEYOND_PERCENT):
            return resident_bytes
        returned = max(0, self._resident_bytes - resident_bytes)
        free = (self._objects - objects) * OBJECT_BYTES - returned
        return resident_bytes - min(max(0, free), resident_bytes)


def small_objects() -> int:
    """How many there are; takes three milliseconds for each gigabyte they have."""
    return sys.getallocatedblocks()


def resident_bytes() -> int:
    """Resident memory of this process; raises OSError."""
    with open(_STATM, encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
