"""Answers that are known at once, and those after which the connection or this node ends."""

from __future__ import annotations

from gateway.commands.client import Client
from gateway.protocol import responses
from gateway.protocol.command import Command


def say(client: Client, command: Command) -> None:
    """What is not executed is answered."""
    assert command.answer is not None
    client.say(command.answer)


def say_last(client: Client, command: Command) -> None:
    """The same, and nothing behind it can be understood."""
    assert command.answer is not None
    client.say_last(command.answer)


def caps(client: Client, command: Command) -> None:
    """CAPS."""
    client.say(responses.CAPS)


def quit_(client: Client, command: Command) -> None:
    """QUIT."""
    client.say_last(responses.GOODBYE)


def shut_down(client: Client, command: Command) -> None:
    """SHUTDOWN."""
    client.say_last(responses.SHUTTING_DOWN)
    client.hub.shut_down(f"SHUTDOWN from {client.link.peer}")
