"""`pqctl import ..`: jobs of other programs."""

from __future__ import annotations

import click

from pqctl.invocation import Call, command, group
from pqctl.output import exit_codes


@group("import")
def import_() -> None:
    """Jobs of other programs."""


@command(import_, timeout=30.0, epilog=exit_codes.epilog(refused="some are reserved there, and stay"))
@click.argument("address", metavar="HOST:PORT")
def beanstalkd(call: Call, address: str) -> int:
    """Move all jobs of the beanstalkd at HOST:PORT into queues named like its tubes.

    Ready, delayed and buried jobs keep priority, delay and time to run; each is put here before it is deleted there.
    Reserved ones stay. An import that was interrupted goes on when it is said again.
    """
    from pqctl.actions.beanstalkd import import_jobs

    return import_jobs(call, address)
