"""`pqctl user ..`: users and their rights; `pqctl session ..`: the sessions of their clients."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, command, files, group
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each


@group("user")
def user() -> None:
    """The users and their rights."""


@command(user, "list", epilog=exit_codes.READING, over_all=each)
def list_(call: Call) -> int:
    """Show all users, first the users in the servers' users file."""
    from sockpqd.pqctl.actions import users

    return users.show_list(call)


@command(user, "set")
@click.argument("name")
@click.option("--rights", required=True, metavar="RIGHT,...",
              help="put, get, queue, item, group, admin, each for all names or for those that begin with a prefix: "
                   "put:mail*,get. `-` for none.")
@click.option("--secret-file", metavar="FILE", shell_complete=files,
              help="The user's secret, 16 to 64 visible characters. Without it one is generated and shown once.")
def set_(call: Call, name: str, rights: str, secret_file: str | None) -> int:
    """Create user NAME, or change their rights and secret, on all nodes.

    Users of the servers' users file are changed there.
    """
    from sockpqd.pqctl.actions import users

    return users.change(call, name, rights, secret_file)


@command(user)
@click.argument("name")
def delete(call: Call, name: str) -> int:
    """Delete user NAME; their connections lose all rights."""
    from sockpqd.pqctl.actions import users

    return users.delete(call, name)


@group("session")
def session() -> None:
    """The sessions of all clients."""


@command(session, "list", timeout=10.0, epilog=exit_codes.READING, over_all=each)
def list_sessions(call: Call) -> int:
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
