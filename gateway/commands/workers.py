"""WORKER: the heartbeats of pools, and their list."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.gateway.commands import streams
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.protocol.command import Command


def heartbeat(client: Client, command: Command) -> None:
    """WORKER: a pool says that it is there, and from where."""
    client.propose(replace(command.operation, address=client.link.peer), command.numbering)


def worker_list(client: Client, command: Command) -> None:
    """WORKER LIST: list the pools of the user in the order of their names, for administrators all."""
    client.run(streams.worker_list(client))
