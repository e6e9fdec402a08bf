"""`pqctl region ..`: a copy of a cluster in another region."""

from __future__ import annotations

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, group
from sockpqd.pqctl.output import exit_codes

ORIGIN = "ORIGIN"


@group("region")
def region() -> None:
    """A copy of a cluster in another region (a replica).

    --servers names servers of the replica; ORIGIN (HOST:PORT,...) names servers of the cluster that it copies.
    """


@command(region, timeout=5.0, epilog=exit_codes.READING)
@click.argument("origin", required=False, metavar=f"[{ORIGIN}]")
def status(call: Call, origin: str | None) -> int:
    """Show how far the copy is on each node, and how far behind its origin if that is given."""
    from sockpqd.pqctl.actions.regions import compare

    return compare.status(call, origin)


@command(region, timeout=5.0, epilog=exit_codes.epilog(
    done="it can follow, or follows", refused="something is in the way; the lines with FAIL say what"))
@click.argument("origin", required=False, metavar=f"[{ORIGIN}]")
def follow(call: Call, origin: str | None) -> int:
    """Check whether this copy can follow its origin, and let it follow again if it was stopped.

    A copy follows when its nodes have a section [replica] in their configuration and are started with empty data
    directories: with ORIGIN this looks from here whether the servers answer, feed a copy to this user, and have a
    feature level that the copy knows, and prints the section if the nodes do not have it yet.
    """
    from sockpqd.pqctl.actions.regions import following

    return following.follow(call, origin)


@command(region, timeout=10.0)
@click.option("--yes", is_flag=True, help="Do not ask.")
def stop(call: Call, yes: bool) -> int:
    """Stop following the origin, until `pqctl region follow`.

    The copy stays as it is at this position, also after restarts, and can be promoted. Use it before something on the
    origin that may go wrong, or at once when something went wrong there that the copy has not received yet.
    """
    from sockpqd.pqctl.actions.regions import following

    return following.stop(call, yes)


@command(region, timeout=10.0, epilog=exit_codes.epilog(
    done="equal", refused="DIFFERENT at the same position: call for help", unreached="could not be compared",
    unknown=""))
@click.argument("origin", metavar=ORIGIN)
def diff(call: Call, origin: str) -> int:
    """Compare the copy with its origin, by their hashes at the same position in the log.

    Under load they rarely answer at the same position, so this keeps asking for --timeout. A replica compares itself
    all the time as well, and stops following when it differs.
    """
    from sockpqd.pqctl.actions.regions import compare

    return compare.diff(call, origin)


@command(region, timeout=30.0)
@click.option("--grace", type=Seconds(0, 86_400), metavar="SECONDS",
              help="What leases, sessions, holds and TTLs get beyond what they had left. [default: 60]")
@click.option("--fence", metavar=ORIGIN, help="First switch off the origin at these servers for good.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def promote(call: Call, grace: float | None, fence: str | None, yes: bool) -> int:
    """Let the copy take the place of its origin: it serves, and follows no longer.

    With --fence nothing is lost as long as the origin can be reached: it is switched off first, and the copy takes the
    rest of its log.
    """
    from sockpqd.pqctl.actions.regions import promote

    return promote.promote(call, grace, fence, yes)
