"""Asks for confirmation before irreversible actions."""

from __future__ import annotations

import sys

import click

from sockpqd.pqctl.output.exit_codes import REFUSED, Failure
from sockpqd.pqctl.output.text import printable


def must_be_able_to_ask(yes: bool) -> None:
    """Raise click.UsageError if `yes` is not set and there is no terminal at which to ask."""
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("there is no terminal for confirmation: give --yes to proceed")


def confirm(question: str, yes: bool) -> None:
    """Return only if `yes` is set or the user confirms at the terminal; raises Failure and click.UsageError."""
    if yes:
        return
    must_be_able_to_ask(yes)
    if not click.confirm(printable(question), err=True):
        raise Failure(REFUSED, "not confirmed: nothing was done")
