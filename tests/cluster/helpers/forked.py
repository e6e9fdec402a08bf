"""Calls a function in a forked child, so that what it does to the state of this process is forgotten with the child."""

from __future__ import annotations

import json
import os
import traceback
import warnings
from collections.abc import Callable


def forked(call: Callable[[], list[int]]) -> list[int]:
    """Return what the call returns in a child of this process. AssertionError: it failed."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 and later warn of threads; those of the test runner hold no lock that the child needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer(call, write)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        found, failure = json.loads(answer.read() or b'[[], "the child died"]')
    os.waitpid(child, 0)
    assert failure is None, failure
    return list(found)


def _answer(call: Callable[[], list[int]], write: int) -> None:
    """Write the result of the call, or how it failed, and end this process without a trace of it in the parent."""
    try:
        answer: tuple[list[int], str | None] = call(), None
    except BaseException:       # the parent says it
        answer = [], traceback.format_exc()
    try:
        with os.fdopen(write, "wb") as pipe:
            pipe.write(json.dumps(answer).encode())
    finally:
        os._exit(0)
