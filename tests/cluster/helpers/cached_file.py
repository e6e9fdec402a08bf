"""A file as Linux keeps it: reads show the page cache, and after a failed sync that is not what the disk has."""

from __future__ import annotations

from collections.abc import Callable

SECTOR_BYTES = 512
PAGE_BYTES = 4096


def never() -> bool:
    """Write nothing in a failed sync."""
    return False


class CachedFile:
    """A file and its pages in the cache.

    `data`: what reads show. `unsynced`: offset, old bytes and new bytes of each write since the last sync.
    `synced_bytes`: the size on the disk. `failed`: what the disk has of the pages whose sync failed. Linux takes these
    for written: they keep showing what is not on the disk, and no later sync writes them, unless something else is
    written to them before.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.unsynced: list[tuple[int, bytes, bytes]] = []
        self.synced_bytes = 0
        self.failed: dict[int, bytes] = {}
        self._failed_size = -1      # the size that could not be synced

    def __deepcopy__(self, memo: dict[int, object]) -> CachedFile:
        """Copy as deepcopy does, in much less time: disks are cloned thousands of times."""
        other = CachedFile()
        other.data, other.unsynced, other.synced_bytes = self.data[:], self.unsynced[:], self.synced_bytes
        other.failed, other._failed_size = dict(self.failed), self._failed_size
        return other

    def write(self, new: bytes, offset: int) -> None:
        """Write bytes, which are not synced; the file grows as it must."""
        data, end = self.data, offset + len(new)
        if end > len(data):
            data.extend(bytes(end - len(data)))
        if self.failed:
            for page in range(offset // PAGE_BYTES, -(-end // PAGE_BYTES)):
                self._write_again(page)
        self.unsynced.append((offset, bytes(data[offset:end]), new))
        data[offset:end] = new

    def _write_again(self, page: int) -> None:
        """Mark the page to be written as a whole, with what a failed sync has left in it."""
        old = self.failed.pop(page, None)
        if old is not None:
            start = page * PAGE_BYTES
            shown = bytes(self.data[start:start + PAGE_BYTES])
            self.unsynced.append((start, _padded(old, shown), shown))

    def sync(self) -> None:
        """Put all that was written since the last sync on the disk, even after a failed one."""
        if self.unsynced or len(self.data) != self._failed_size:
            self.synced_bytes, self._failed_size = len(self.data), -1
        self.unsynced = []

    def fail_sync(self, reaches_disk: Callable[[], bool] = never) -> None:
        """Let a sync fail; `reaches_disk()`: whether the next sector still reaches the disk."""
        disk, pages = self.on_disk(), set()
        for offset, _, new in self.unsynced:
            for start in range(0, len(new), SECTOR_BYTES):
                place = offset + start
                if reaches_disk():
                    piece = new[start:start + SECTOR_BYTES]
                    disk[place:place + len(piece)] = piece
            pages.update(range(offset // PAGE_BYTES, -(-(offset + len(new)) // PAGE_BYTES)))
        self.unsynced = []
        if len(self.data) != self.synced_bytes:
            self._failed_size = len(self.data)
        for page in pages:
            place = slice(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
            if disk[place] != self.data[place]:
                self.failed[page] = bytes(disk[place])

    def lose(self) -> None:
        """Lose all bytes that are shown."""
        self.unsynced = []
        self.failed = {start // PAGE_BYTES: b"" for start in range(0, len(self.data), PAGE_BYTES)}

    def drop_cache(self) -> None:
        """Let reads show what the disk has, except for what is not synced."""
        for page, old in self.failed.items():
            place = slice(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
            self.data[place] = _padded(old, self.data[place])
        self.failed = {}

    def on_disk(self) -> bytearray:
        """Return what is certainly on the disk, in a file as long as this one."""
        other = CachedFile()
        other.data, other.failed = self.data[:], dict(self.failed)
        for offset, old, _ in reversed(self.unsynced):
            other.data[offset:offset + len(old)] = old
        other.drop_cache()
        return other.data


def _padded(old: bytes, shown: bytes | bytearray) -> bytes:
    """Return bytes padded by zeros: the file may have grown since."""
    return old.ljust(len(shown), b"\0")
