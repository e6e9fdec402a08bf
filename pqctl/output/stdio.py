"""The standard streams: closed ones, full ones, and characters they do not have."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

from pqctl.output.exit_codes import FILE_ERROR, PIPE_CLOSED, Failure

# What stands in for a stream that was closed before this program began. The first two fail when they are used, as they
# should; nobody is to think that a job was printed, or that an empty body was meant.
CLOSED = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def prepare() -> None:
    """Make the standard streams usable, whatever they are. Connections would get the numbers of closed ones."""
    for name, flags, mode in CLOSED:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")       # of names of files, say; as the standard error does


def say(text: str) -> None:
    """A sentence to the standard error. When it takes no more the exit code must do."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr.fileno())


@contextlib.contextmanager
def output() -> Iterator[None]:
    """What to do when the standard output takes no more: end without a word if its reader has gone, else complain."""
    try:
        yield
    except OSError as error:
        _discard(sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(PIPE_CLOSED)
        raise Failure(FILE_ERROR, f"cannot write the output: {error.strerror}") from error


def _discard(descriptor: int) -> None:
    """What its buffer still has is written when the program ends, and must not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
