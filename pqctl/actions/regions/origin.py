"""The origin of a copy, as commands name it, and how it is reached."""

from __future__ import annotations

from typing import NamedTuple

from sockpqd.pqctl.invocation import Call


class OriginAccess(NamedTuple):
    """Servers of the origin as written; authority, user and secret where these differ from the replica's."""

    servers: str
    ca: str | None = None
    user: str | None = None
    secret_file: str | None = None


def origin_of(call: Call, origin: OriginAccess) -> Call:
    """Return the same call for the origin."""
    given = {key: value for key, value in origin._asdict().items() if value is not None}
    return Call(call.options._replace(**given), call.as_json, call.timeout)
