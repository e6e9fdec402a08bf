"""sockpqd on a disk that fails: a command that executes the program given as its arguments.

    python -m tests.system.failing_disk sockpqd --config n1.toml

A sync of a file in a folder that also has a file named EIO fails as a broken disk makes it fail.
"""

from __future__ import annotations

import errno
import os
import sys
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
    del sys.argv[0]
    main()
