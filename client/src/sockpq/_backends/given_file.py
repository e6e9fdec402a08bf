"""A file that a program reads throughout its life, such as a CA or a secret, and whose content may change."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from sockpq.errors import BadArguments

T = TypeVar("T")
LOG = logging.getLogger("sockpq")

Seen = tuple[int, int, int, int]        # of one state of a file


class GivenFile(Generic[T]):
    """A file, and the value made of its content when it was last read. Any thread may use it."""

    def __init__(self, path: str | os.PathLike[str], make: Callable[[], T]) -> None:
        """`make` reads the file, and raises OSError, or BadArguments for unusable content. So does this."""
        self._path = path
        self._make = make
        self._seen = self._look()
        self._content = Path(path).read_bytes() if self._seen else b""      # a pipe can be read only once
        self.value = make()

    def read_again(self, whatever: bool = False) -> bool:
        """Read the file if it has changed, or in any case with `whatever`; return whether its value has changed.

        Unusable content leaves the value unchanged, with a warning.
        """
        try:
            seen = self._look()
            if seen is None or (seen == self._seen and not whatever):
                return False
            content = Path(self._path).read_bytes()
            if content == self._content:
                self._seen = seen
                return False
            value = self._make()
        except (OSError, BadArguments) as error:
            LOG.warning("what was read before from %s stays in use: %s", self._path, error)
            return False
        self._seen, self._content, self.value = seen, content, value
        LOG.info("read %s again", self._path)
        return True

    def _look(self) -> Seen | None:
        """Return a value that differs between states of the file, None if it is not a regular file."""
        found = os.stat(self._path)
        if not stat.S_ISREG(found.st_mode):
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
