"""Commands answered immediately: refusals, CAPS, HELP, CLUSTER ID, QUIT and SHUTDOWN."""

from __future__ import annotations

from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command


def say(client: Client, command: Command) -> None:
    """Answer a command that is not executed."""
    assert command.answer is not None
    client.say(command.answer)


def say_last(client: Client, command: Command) -> None:
    """Answer and close, because the rest of the stream cannot be parsed."""
    assert command.answer is not None
    client.say_last(command.answer)


def caps(client: Client, command: Command) -> None:
    """CAPS: list the features of the protocol."""
    client.say(responses.caps(client.hub.cluster.machine.level))


def help_(client: Client, command: Command) -> None:
    """HELP: show how commands are written."""
    client.say(responses.help_lines(command.arguments))


def cluster_id(client: Client, command: Command) -> None:
    """CLUSTER ID: show the id of this cluster, and its name in the map."""
    machine = client.hub.cluster.machine
    client.say(responses.cluster_id(machine.cluster_id, machine.cluster_map))


def quit_(client: Client, command: Command) -> None:
    """QUIT: answer, then close the connection."""
    client.say_last(responses.GOODBYE)


def shut_down(client: Client, command: Command) -> None:
    """SHUTDOWN: answer, then stop this node."""
    client.say_last(responses.SHUTTING_DOWN)
    client.hub.shut_down(f"SHUTDOWN from {client.link.peer}")
