"""Reading files, and writing them atomically."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

import click

from sockpqd.pqctl.output.exit_codes import FILE_ERROR, Failure

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


def opened(name: str) -> BinaryIO:
    """Open a regular file for reading; raises click.UsageError."""
    try:
        file = open(name, "rb")     # noqa: SIM115 (the caller closes it)
    except (OSError, ValueError) as error:      # ValueError: a zero byte in the name
        raise click.UsageError(f"cannot read {name}: {_reason(error)}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise click.UsageError(f"{name} is not a regular file")
    return file


class NewFile:
    """A file in a folder that appears complete and durable, or not at all, under a name that is known at the end."""

    def __init__(self, folder: str) -> None:
        """Check early that the folder exists; raises click.UsageError."""
        if "\0" in folder:
            raise click.UsageError("the name of the directory contains a zero byte")
        self.folder = Path(folder)
        try:
            if not self.folder.is_dir():
                raise click.UsageError(f"there is no directory {folder}")
        except OSError as error:
            raise click.UsageError(f"cannot write to {folder}: {_reason(error)}") from error

    def fill(self, write: Callable[[BinaryIO], str]) -> Path:
        """Let `write` fill a temporary file, sync it, give it the name that `write` returned, sync the folder.

        Raises Failure, and whatever `write` raises, and leaves nothing behind then.
        """
        temporary = self.folder / f".backup.{secrets.token_hex(4)}.tmp"
        try:
            try:
                descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with open(descriptor, "w+b") as file:
                    path = self.folder / write(file)
                    file.flush()
                    os.fsync(descriptor)
                os.replace(temporary, path)
            except BaseException:
                with suppress(OSError):
                    temporary.unlink()
                raise
            directory = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise Failure(FILE_ERROR, f"cannot write to {self.folder}: {_reason(error)}") from error
        return path


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
