"""`pqctl session ..`: listing sessions and ending one."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, command, group
from sockpqd.pqctl.output import exit_codes


@group("session")
def session() -> None:
    """The sessions of all clients."""


@command(session, "list", timeout=10.0, epilog=exit_codes.READING)
def list_(call: Call) -> int:
    """Show all sessions: user, address, idle time and number of bound jobs."""
    from sockpqd.pqctl.actions import sessions

    return sessions.show_list(call)


@command(session, timeout=10.0, epilog=exit_codes.epilog(refused="refused, or there is no such session"))
@click.argument("number", type=click.IntRange(1))
def close(call: Call, number: int) -> int:
    """End session NUMBER; the jobs bound to it go back to their queues.

    Its client notices at the next use, and opens a new one.
    """
    from sockpqd.pqctl.actions import sessions

    return sessions.close(call, number)
