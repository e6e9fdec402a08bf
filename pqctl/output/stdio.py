"""The standard streams: coping with closed and full ones, and with characters they cannot encode."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

from sockpqd.pqctl.output.exit_codes import FILE_ERROR, PIPE_CLOSED, Failure
from sockpqd.pqctl.output.text import printable

# Replacements for streams that were closed before this program started. The first two fail when used, as they should:
# otherwise a job would seem to have been printed, or an empty body to have been given.
CLOSED = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def prepare() -> None:
    """Make the standard streams usable. Otherwise connections would get the descriptor numbers of closed ones."""
    for name, flags, mode in CLOSED:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")       # for file names, say; like standard error


def say(text: str) -> None:
    """Write a sentence to standard error, printable. If that fails, the exit code has to suffice."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr.fileno())


@contextlib.contextmanager
def output() -> Iterator[None]:
    """Handle write errors on standard output: exit silently if the reader is gone, else raise Failure."""
    try:
        yield
    except OSError as error:
        _discard(sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(PIPE_CLOSED)
        raise Failure(FILE_ERROR, f"cannot write the output: {error.strerror}") from error


def _discard(descriptor: int) -> None:
    """Redirect the stream to /dev/null, so that flushing its buffer at exit does not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
