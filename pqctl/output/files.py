"""Reading whole files, and writing files atomically."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import click

from pqctl.output.exit_codes import FILE_ERROR, Failure

CHUNK_BYTES = 1 << 20


def read_stream(name: str, bytes_max: int) -> bytes:
    """Read all bytes of a file, a pipe, or with "-" of standard input; raises click.UsageError."""
    what = "the standard input" if name == "-" else name
    data = bytearray()
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                data += chunk
                if len(data) > bytes_max:
                    raise click.UsageError(f"{what} has more than {bytes_max:,} bytes")
    except (OSError, ValueError) as error:      # ValueError: a zero byte in the name
        raise click.UsageError(f"cannot read {what}: {_reason(error)}") from error
    return bytes(data)


def read_file(name: str) -> bytes:
    """Read all bytes of a regular file; raises click.UsageError."""
    try:
        with open(name, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise click.UsageError(f"{name} is not a regular file")
            return file.read()
    except (OSError, ValueError) as error:
        raise click.UsageError(f"cannot read {name}: {_reason(error)}") from error


class NewFile:
    """A file that appears complete and durable, or not at all."""

    def __init__(self, name: str, force: bool) -> None:
        """Check early that the file can be written; raises click.UsageError."""
        self._force = force
        if "\0" in name:
            raise click.UsageError("there is a zero byte in the name of the file")
        self.path = Path(os.path.realpath(name) if os.path.islink(name) else name)      # a symbolic link is kept
        try:
            if not self.path.parent.is_dir():
                raise click.UsageError(f"there is no directory {self.path.parent}")
            self._check()
        except OSError as error:
            raise click.UsageError(f"cannot write {name}: {_reason(error)}") from error

    def write(self, data: bytes) -> None:
        """Write and sync a temporary file, rename it, sync the directory. Raises Failure and leaves nothing behind."""
        temporary = self.path.with_name(f".{self.path.name[:200]}.{secrets.token_hex(4)}.tmp")
        try:
            try:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with open(descriptor, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(descriptor)
                self._check()
                os.replace(temporary, self.path)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
            directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise Failure(FILE_ERROR, f"cannot write {self.path}: {_reason(error)}") from error

    def _check(self) -> None:
        """Check that the name can be used. A device, a pipe or a socket must never be replaced by the file."""
        if not os.path.lexists(self.path):
            return
        if self.path.is_dir():
            raise click.UsageError(f"{self.path} is a directory")
        if self.path.exists() and not self.path.is_file():
            raise click.UsageError(f"{self.path} is not a regular file")
        if not self._force:
            raise click.UsageError(f"{self.path} exists; --force overwrites it")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
