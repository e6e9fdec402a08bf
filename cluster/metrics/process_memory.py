"""Estimates the memory of this process that is in use, which counts against the watermark.

Resident memory does not show it. Python allocates small objects in arenas of a megabyte and returns an arena only when
it is completely empty. The few objects that the journal keeps of each entry lie between the objects of its jobs: after
400,000 small jobs were put and done, not one of 104 arenas was returned although 99% of their contents was free
(measured). Such a node would refuse PUT for ever with nearly all of its memory ready for new jobs.

So the objects are counted. The difference to the greatest count is free room in the arenas, minus what resident memory
has shrunk since. The estimate is low (the objects of a small job have 97 bytes on average), and it ends when resident
memory exceeds what the greatest count needed.
"""

from __future__ import annotations

import os
import sys

OBJECT_BYTES = 64               # estimated size of a freed object
BEYOND_PERCENT = 5              # with this much more than at the greatest count, the free room is evidently not used
_STATM = "/proc/self/statm"


class UsedMemory:
    """Remembers the greatest count of objects and the resident memory at that time."""

    def __init__(self) -> None:
        self._objects = 0
        self._resident_bytes = 0

    def bytes(self, resident_bytes: int, objects: int) -> int:
        """The bytes in use, given the resident memory and the number of small objects."""
        if objects >= self._objects:
            self._objects, self._resident_bytes = objects, resident_bytes
            return resident_bytes
        if resident_bytes * 100 > self._resident_bytes * (100 + BEYOND_PERCENT):
            return resident_bytes
        returned = max(0, self._resident_bytes - resident_bytes)
        free = (self._objects - objects) * OBJECT_BYTES - returned
        return resident_bytes - min(max(0, free), resident_bytes)


def small_objects() -> int:
    """The number of small objects; counting takes 3 ms per gigabyte of them."""
    return sys.getallocatedblocks()


def resident_bytes() -> int:
    """The resident memory of this process. Raises OSError."""
    with open(_STATM, encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")
