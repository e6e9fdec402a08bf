"""`pqctl region ..`: a copy of a cluster in another region."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, directories, files, group
from sockpqd.pqctl.output import exit_codes

if TYPE_CHECKING:
    from sockpqd.pqctl.actions.regions.origin import OriginAccess

ORIGIN = "ORIGIN"


def _reaching_origin(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options by which the origin is reached, whose users and authority may be others."""
    @functools.wraps(function)
    def run(
        call: Call, origin: str | None, origin_ca: str | None, origin_user: str | None, origin_secret_file: str | None,
        **more: Any,
    ) -> int:
        from sockpqd.pqctl.actions.regions.origin import OriginAccess

        given = None if origin is None else OriginAccess(origin, origin_ca, origin_user, origin_secret_file)
        return function(call, given, **more)

    for option in reversed((
        click.option("--origin-ca", metavar="FILE", shell_complete=files,
                     help="PEM: who signed the origin's certificates. [default: as for the replica]"),
        click.option("--origin-user", metavar="NAME", help="The user at the origin. [default: as for the replica]"),
        click.option("--origin-secret-file", metavar="FILE", shell_complete=files, help="That user's secret."),
    )):
        run = option(run)
    return run


@group("region")
def region() -> None:
    """A copy of a cluster in another region (a replica).

    --servers names servers of the replica; ORIGIN (HOST:PORT,...) names servers of the cluster that it copies.
    """


@command(region, timeout=5.0, epilog=exit_codes.epilog(
    done="it follows, or fetches the state with which it begins",
    refused="it does not follow, or is no copy of ORIGIN; the lines say why", unreached="no server answers",
    unknown=""))
@click.argument("origin", required=False, metavar=f"[{ORIGIN}]")
@_reaching_origin
def status(call: Call, origin: OriginAccess | None) -> int:
    """Show how far the copy is on each node, and how far behind its origin if that is given."""
    from sockpqd.pqctl.actions.regions import compare

    return compare.status(call, origin)


@command(region, timeout=5.0, epilog=exit_codes.epilog(
    done="it can follow, or follows",
    refused="it cannot or does not follow; the lines with FAIL say why"))
@click.argument("origin", required=False, metavar=f"[{ORIGIN}]")
@_reaching_origin
def follow(call: Call, origin: OriginAccess | None) -> int:
    """Check whether this copy can follow its origin, and let it follow again if it was stopped.

    A copy follows when its nodes have a section [replica] in their configuration and are started with empty data
    directories: with ORIGIN this looks from here whether the servers answer, feed a copy to this user, and have a
    feature level that the copy knows, and prints the section if the nodes do not have it yet. Options for the origin go
    after `region follow`.
    """
    from sockpqd.pqctl.actions.regions import following

    return following.follow(call, origin)


@command(region, timeout=10.0)
@click.option("--yes", is_flag=True, help="Do not ask.")
def stop(call: Call, yes: bool) -> int:
    """Stop following the origin, until `pqctl region follow`.

    The copy stays as it is at this position, even after restarts, and can be promoted. Use it before a risky change on
    the origin, or at once when something went wrong there that the copy has not received yet.
    """
    from sockpqd.pqctl.actions.regions import following

    return following.stop(call, yes)


@command(region, timeout=10.0, epilog=exit_codes.epilog(
    done="equal", refused="DIFFERENT at the same position: call for help", unreached="could not be compared",
    unknown=""))
@click.argument("origin", metavar=ORIGIN)
@_reaching_origin
def diff(call: Call, origin: OriginAccess) -> int:
    """Compare the copy with its origin, by their hashes at the same position in the log.

    Under load they rarely answer at the same position, so this keeps asking for --timeout. A replica compares itself
    all the time as well, and stops following when it differs.
    """
    from sockpqd.pqctl.actions.regions import compare

    return compare.diff(call, origin)


@command(region, timeout=30.0)
@click.option("--grace", type=Seconds(0, 86_400), metavar="SECONDS",
              help="What leases, sessions, holds and TTLs get beyond what they had left. [default: 60]")
@click.option("--fence", "origin", metavar=ORIGIN, help="First switch off the origin at these servers for good.")
@_reaching_origin
@click.option("--yes", is_flag=True, help="Do not ask.")
def promote(call: Call, origin: OriginAccess | None, grace: float | None, yes: bool) -> int:
    """Let the copy take the place of its origin: it serves, and follows no longer.

    With --fence nothing is lost as long as the origin can be reached: it is switched off first, and the copy takes the
    rest of its log.
    """
    from sockpqd.pqctl.actions.regions import promote

    return promote.promote(call, grace, origin, yes)


@command(region, timeout=600.0, epilog=exit_codes.epilog(
    done="the copy was equal, and served", refused="it was DIFFERENT, or refused", unknown=""))
@click.option("--folder", metavar="DIR", shell_complete=directories,
              help="Where the copy has its data, which are removed: a folder on a disk.  [default: that of temporary "
                   "files, which may be memory]")
@click.option("--hot-bytes", type=click.IntRange(0), metavar="BYTES",
              help="As limits.hot_bytes of the origin, so that a large state needs no more memory than there.")
def drill(call: Call, folder: str | None, hot_bytes: int | None) -> int:
    """Rehearse a promotion: make another copy of the live cluster at --servers on this machine, and remove it.

    A node without clients, on loopback only, follows the cluster until it is level, is compared with it and promoted,
    executes a first command and is removed. It costs the cluster what another copy costs: usually a snapshot on the
    disk of one node, and its transfer. Every wait is for --timeout at most. The machine needs as much memory and disk
    as a node of the cluster.
    """
    from sockpqd.pqctl.actions.regions import drill

    return drill.drill(call, folder, hot_bytes)
