"""The checks of `pqctl doctor` on certificates and users."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from sockpq import AuthError, ServerView, Untrusted

from sockpqd.pqctl.access import ClusterAccess
from sockpqd.pqctl.doctor.check import FAIL, OK, WARN, Check
from sockpqd.pqctl.health import complaint
from sockpqd.pqctl.output.text import counted

DAYS_WARN = 30
PROBE_S = 1.0
DAY_S = 86_400


def look(views: Sequence[ServerView], access: ClusterAccess) -> list[Check]:
    """Run the checks that apply to this kind of access."""
    found = [certificates(views) if access.tls else plain(views), users(views, access)]
    return [check for check in found if check is not None]


def certificates(views: Sequence[ServerView]) -> Check | None:
    """Check that certificates are valid, and for how long. None if no server presented one."""
    bad = [complaint(view) for view in views if isinstance(view.error, Untrusted)]
    if bad:
        return Check(FAIL, "tls", "; ".join(bad), "correct the certificates, the address, or the CA that --ca names")
    ends = {view.server: view.expires_at for view in views if view.expires_at is not None}
    if not ends:
        return None
    first = min(ends, key=ends.__getitem__)
    days = int((ends[first] - time.time()) // DAY_S)
    if days < DAYS_WARN:
        found = f"the certificate of {first} ends in {counted(days, 'day')}"
        return Check(FAIL if days < 0 else WARN, "tls", found, "renew it")
    return Check(OK, "tls", f"all certificates are good for {counted(days, 'day')} at least")


def plain(views: Sequence[ServerView]) -> Check | None:
    """Check whether servers that do not answer expect TLS."""
    silent = [view.server for view in views if view.error is not None and speaks_tls(view.server)]
    return Check(FAIL, "tls", f"TLS is required by {', '.join(silent)}", "give --ca FILE, or --tls") if silent else None


def users(views: Sequence[ServerView], access: ClusterAccess) -> Check | None:
    """Check that the servers accept the user. None if that could not be tried."""
    refused = [complaint(view) for view in views if isinstance(view.error, AuthError)]
    if refused:
        advice = "check the secret, and that the users file of every node has this user"
        return Check(FAIL, "user", "; ".join(refused), advice if access.user else "give --user and --secret-file")
    if access.user is None or all(view.error for view in views):
        return None
    return Check(OK, "user", f"{access.user} is let in")


def speaks_tls(server: str) -> bool:
    """Return whether the server completes a TLS handshake, without verifying its certificate."""
    import ssl  # only doctor needs it without --ca

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, _, port = server.rpartition(":")
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), PROBE_S) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except (OSError, ValueError):
        return False
