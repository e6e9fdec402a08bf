"""`pqctl backup`, `verify`, `restore`: the whole state as a file; `pqctl import`: jobs of other programs."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, command, directories, files, group
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each

KEEP_MAX = 100_000


@command(None, timeout=600.0, epilog=exit_codes.epilog(unknown=""), over_all=each, of_one=["node"])
@click.argument("directory", metavar="DIR", shell_complete=directories)
@click.option("--keep", type=click.IntRange(1, KEEP_MAX), metavar="N",
              help="Then remove all but the newest N backups of this cluster in DIR.")
@click.option("--with-users", is_flag=True, help="Save the users of the cluster as well, with their keys.")
@click.option("--node", metavar="NAME", help="Ask this node instead of a follower. For use when no majority is left.")
def backup(call: Call, directory: str, keep: int | None, with_users: bool, node: str | None) -> int:
    """Save all queues with all jobs, as of one moment, to a new file in DIR.

    Its name has the cluster's identity and the time. A follower is asked, to spare the leader; it may be slightly
    behind. The file appears once it is complete, verified and on disk. It contains users only with --with-users:
    anybody who reads their keys can act as these users. Users in the servers' own files never are. With --all each
    cluster has a file of its own, as of a moment of its own.
    """
    from sockpqd.pqctl.actions import backups

    return backups.backup(call, directory, keep, node, with_users=with_users)


@command(None, epilog=exit_codes.epilog(done="the file is whole", refused="", unreached="", unknown=""))
@click.argument("file", shell_complete=files)
def verify(call: Call, file: str) -> int:
    """Check that not a byte of the backup FILE has changed, and show its cluster and time.

    No server is asked.
    """
    from sockpqd.pqctl.actions import backups

    return backups.verify(call, file)


@command(None, timeout=600.0)
@click.argument("file", shell_complete=files)
@click.option("--dry-run", is_flag=True, help="Only check FILE and say what would be replaced.")
@click.option("--with-users", is_flag=True, help="Then set the users that are in FILE.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore(call: Call, file: str, dry_run: bool, with_users: bool, yes: bool) -> int:
    """Replace everything in the cluster with the state saved in FILE.

    All current jobs are lost. Members and settings of the cluster stay. So do users; with --with-users the users in
    FILE are set again, as they were. A file that is damaged, or of a newer version, changes nothing.
    """
    from sockpqd.pqctl.actions import backups

    return backups.restore(call, file, dry_run=dry_run, with_users=with_users, yes=yes)


@group("import")
def import_() -> None:
    """Move jobs of other programs into this cluster."""


@command(import_, timeout=30.0, epilog=exit_codes.epilog(refused="some are reserved there, and stay"))
@click.argument("address", metavar="HOST:PORT")
def beanstalkd(call: Call, address: str) -> int:
    """Move all jobs of the beanstalkd at HOST:PORT into queues with the names of its tubes.

    Ready, delayed and buried jobs keep priority, delay and time to run; each is put here before it is deleted there.
    Reserved ones stay. An interrupted import continues when it is run again.
    """
    from sockpqd.pqctl.importing.beanstalkd import import_jobs

    return import_jobs(call, address)
