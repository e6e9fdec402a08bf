"""The entry point of `pqctl`. Modules are loaded inside, so that an early Ctrl-C ends it silently."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sockpqd.pqctl.output.signals import abrupt, orderly


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    with abrupt():
        from sockpqd.pqctl.program import run
    with orderly():
        code = run(arguments)
    sys.exit(code)
