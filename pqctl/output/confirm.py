"""Asks for confirmation before irreversible actions."""

from __future__ import annotations

import sys

import click

from sockpqd.pqctl.output.exit_codes import REFUSED, Failure
from sockpqd.pqctl.output.text import printable


def confirm(question: str, yes: bool) -> None:
    """Return only if `yes` is set or the user confirms at the terminal; raises Failure and click.UsageError."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("there is no terminal for confirmation: give --yes to proceed")
    if not click.confirm(printable(question), err=True):
        raise Failure(REFUSED, "not confirmed: nothing was done")
