"""The command `pqctl`. What it needs is loaded inside: Ctrl-C before has nothing to clean up, and nothing to say."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pqctl.output.signals import abrupt, orderly


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and exit."""
    with abrupt():
        from pqctl.program import run
    with orderly():
        code = run(arguments)
    sys.exit(code)
