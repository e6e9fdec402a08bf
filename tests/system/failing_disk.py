"""sockpqd on a disk that fails: a command that executes the program given as its arguments.

    python -m tests.system.failing_disk sockpqd --config n1.toml

A sync of a file in a folder that also has a file named EIO fails as a broken disk makes it fail.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from sockpqd.gateway.main import main

MARKER = "EIO"

_sync = os.fdatasync


def sync(file: int) -> None:
    """Call os.fdatasync(), or raise its failure without asking the operating system."""
    if (Path(os.readlink(f"/proc/self/fd/{file}")).parent / MARKER).exists():
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    _sync(file)


if __name__ == "__main__":
    os.fdatasync = sync         # type: ignore[assignment]
    del sys.argv[0]
    main()
