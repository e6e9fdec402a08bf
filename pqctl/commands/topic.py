"""`pqctl topic ..`: topics, and the queues bound to them."""

from __future__ import annotations

import click

from pqctl.invocation import Call, command, group
from pqctl.output import exit_codes


@group("topic")
def topic() -> None:
    """The topics: what is put to one comes into all queues bound to it."""


@command(topic, "list", timeout=10.0, epilog=exit_codes.READING)
@click.argument("prefix", default="")
def list_(call: Call, prefix: str) -> int:
    """Show the bindings of all topics, or of those whose names begin with PREFIX."""
    from pqctl.actions import queues

    return queues.show_topics(call, prefix)


@command(topic, timeout=10.0)
@click.argument("name")
@click.argument("queue")
@click.option("--pattern", metavar="PATTERN", help="Only what has such a routing key: `*` is a word, `#` any number.")
def bind(call: Call, name: str, queue: str, pattern: str | None) -> int:
    """Bind QUEUE to topic NAME."""
    from pqctl.actions import queue_settings

    return queue_settings.bind(call, name, queue, pattern)


@command(topic, timeout=10.0)
@click.argument("name")
@click.argument("queue")
@click.option("--pattern", metavar="PATTERN", help="With which it was bound.")
def unbind(call: Call, name: str, queue: str, pattern: str | None) -> int:
    """Take the binding of QUEUE to topic NAME back."""
    from pqctl.actions import queue_settings

    return queue_settings.unbind(call, name, queue, pattern)


@command(topic, timeout=10.0)
@click.argument("name")
def delete(call: Call, name: str) -> int:
    """Take all bindings of topic NAME back. The queues stay if they have jobs or settings."""
    from pqctl.actions import queue_settings

    return queue_settings.delete_topic(call, name)
