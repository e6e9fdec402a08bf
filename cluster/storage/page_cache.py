"""The page cache of Linux, where it may show other bytes of a file than the disk has.

When a sync fails, Linux marks the pages as written: reads still return their bytes, and the next sync succeeds and
writes nothing. Only dropping them from the cache shows what is on the disk.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os

_BLOCK_BYTES = 1 << 20
_libc = ctypes.CDLL(None, use_errno=True)


def drop(file: int) -> None:
    """Make reads of a file, which is synced and not being written, return what is on the disk. Raises OSError."""
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    if resident(file):
        _correct(f"/proc/self/fd/{file}")


def resident(file: int) -> bool:
    """Return whether any page of the file is in the cache, or may be."""
    size = os.fstat(file).st_size
    if not size:
        return False
    pages = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
    with mmap.mmap(file, size, access=mmap.ACCESS_COPY) as mapped:      # private, so that its address can be had
        start = ctypes.c_char.from_buffer(mapped)
        failed = _libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), pages)
        del start
    if failed and ctypes.get_errno() == errno.EPERM:
        return True         # a filter of system calls, such as an older unit's, lets nobody ask: it has to be assumed
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return bool(pages.raw.strip(b"\0"))


def _correct(path: str) -> None:
    """Correct the cache, which keeps pages that another program has mapped, by a read that bypasses it.

    Where it cannot be bypassed, as in a file system in memory, the cache is all there is.
    """
    try:
        direct = os.open(path, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return
    shown = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        with mmap.mmap(-1, _BLOCK_BYTES) as block:      # aligned, as a direct read must be
            offset = 0
            while length := os.preadv(direct, [block], offset):
                if os.pread(shown, length, offset) != block[:length]:
                    os.pwrite(shown, block[:length], offset)    # needs no sync: the disk has these bytes
                offset += length
    finally:
        os.close(direct)
        os.close(shown)
