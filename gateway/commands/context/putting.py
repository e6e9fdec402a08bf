"""The user who puts a job, for queues that group their jobs by user (GROUPBY USER)."""

from __future__ import annotations

from sockpqd.gateway.commands.context.client import Client


def user_of(client: Client) -> str | None:
    """Return the user of the client, to be logged with each job that it puts; None if no queue needs it."""
    user = client.guard.user
    return user if user is not None and client.hub.cluster.machine.groups_by_user else None
