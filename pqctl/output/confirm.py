"""Ask before what cannot be taken back."""

from __future__ import annotations

import sys

import click

from pqctl.output.exit_codes import REFUSED, Failure


def confirm(question: str, yes: bool) -> None:
    """Go on only if `yes` was said already, or is said now at the terminal; raises Failure and click.UsageError."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError("there is no terminal to ask at: say --yes if it is meant")
    if not click.confirm(question, err=True):
        raise Failure(REFUSED, "not confirmed: nothing was done")
