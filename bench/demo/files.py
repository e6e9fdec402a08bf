"""The demo's work: a file in, its SHA-256 out. A file that cannot be read is a result too."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

CHUNK_BYTES = 1 << 20


def list_files(folder: Path, most: int | None = None) -> dict[bytes, int]:
    """The files below `folder`, as path and size in bytes, `most` at most; folders that cannot be read are left out."""
    files: dict[bytes, int] = {}
    for parent, _, names in os.walk(os.fsencode(folder)):
        for name in names:
            if len(files) == most:
                return files
            path = os.path.join(parent, name)
            try:
                files[path] = os.lstat(path).st_size
            except OSError:
                files[path] = 0
    return files


def digest(path: bytes) -> str:
    """The SHA-256 of the file in hex, or why it cannot be read; raises nothing."""
    try:
        # NONBLOCK: opening a pipe must not wait for a writer
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        return _reason(error)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "unreadable: not a regular file"
        sha = hashlib.sha256()
        while chunk := os.read(descriptor, CHUNK_BYTES):
            sha.update(chunk)
        return sha.hexdigest()
    except OSError as error:
        return _reason(error)
    finally:
        os.close(descriptor)


def changed_since(path: bytes, moment: float) -> bool:
    """Return whether the file was written, replaced or removed after `moment` (Unix time in seconds)."""
    try:
        return os.stat(path).st_ctime >= moment
    except OSError:
        return True


def encode_result(path: bytes, result: str) -> bytes:
    """The body of a result's job."""
    return result.encode() + b"\0" + path


def decode_result(body: bytes) -> tuple[bytes, str]:
    result, _, path = body.partition(b"\0")
    return path, result.decode()


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return f"unreadable: {errno.errorcode.get(number, number) if number else type(error).__name__}"
