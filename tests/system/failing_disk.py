"""sockpqd on a disk that fails: run in its place by the tests.

A sync of a file in a folder that also has a file named EIO fails as a broken disk makes it fail.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from cluster.storage.disk import Disk
from gateway.main import main

MARKER = "EIO"


_sync = Disk.sync


def sync(self: Disk, file: int) -> None:
    """Disk.sync, or its failure; the operating system is not asked then."""
    if (Path(os.readlink(f"/proc/self/fd/{file}")).parent / MARKER).exists():
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    _sync(self, file)


if __name__ == "__main__":
    Disk.sync = sync        # type: ignore[method-assign]
    main()
