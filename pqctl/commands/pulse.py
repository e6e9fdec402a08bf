"""`pqctl pulse ..`: rates that many programs keep together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from sockpqd.pqctl.invocation import Call, Seconds, command, files, given, group
from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.over_all import each


def settings(*, defaults: bool) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Add the options for a pulse's settings; `defaults`: their help shows the default values."""
    def option(name: str, kind: click.ParamType[Any], metavar: str, text: str, default: int) -> Callable[..., Any]:
        return click.option(name, type=kind, metavar=metavar, help=f"{text} [default: {default}]" if defaults else text)

    def add(function: Callable[..., int]) -> Callable[..., int]:
        for one in reversed((
            option("--rate", click.IntRange(1), "N", "Turns in a period.", 10),
            option("--per", Seconds(0), "SECONDS", "The length of a period.", 1),
            option("--step", Seconds(0), "SECONDS", "By how much the pause between turns grows and shrinks.", 1),
            option("--max-pause", Seconds(0), "SECONDS", "The longest pause.", 300),
            option("--max-run", Seconds(0), "SECONDS", "How long to await results.", 7),
            option("--max-wait", Seconds(0), "SECONDS",
                   "Of a pulse with --together: how long the first waits for the others.", 7),
        )):
            function = one(function)
        return function
    return add


@group("pulse")
def pulse() -> None:
    """The pulses: rates that many programs keep together."""


@command(pulse, "list", timeout=10.0, epilog=exit_codes.READING, over_all=each)
def list_(call: Call) -> int:
    """Show all pulses, with their rates and their current speeds."""
    from sockpqd.pqctl.actions import pulses

    return pulses.show_list(call)


@command(pulse, timeout=10.0, epilog=exit_codes.READING)
@click.argument("name")
def stat(call: Call, name: str) -> int:
    """Show settings and figures of pulse NAME."""
    from sockpqd.pqctl.actions import pulses

    return pulses.show_stat(call, name)


@command(pulse, timeout=10.0)
@click.argument("name")
@settings(defaults=True)
@click.option("--together", is_flag=True, default=None, help="Give the turns of one period at one moment.")
@click.option("--spread", is_flag=True, default=None, help="Give turns one by one, at even distances.")
def create(call: Call, name: str, **options: Any) -> int:
    """Create pulse NAME with these settings."""
    from sockpqd.pqctl.actions import pulses

    return pulses.create(call, name, given(**options))


@command(pulse, timeout=10.0)
@click.argument("name")
@settings(defaults=False)
@click.option("--spread/--no-spread", default=None, help="Give turns one by one, at even distances, or not.")
def config(call: Call, name: str, **options: Any) -> int:
    """Change settings of pulse NAME; the others stay. With another rate or period it starts over."""
    from sockpqd.pqctl.actions import pulses

    return pulses.config(call, name, given(**options))


@command(pulse, timeout=10.0)
@click.argument("name")
def delete(call: Call, name: str) -> int:
    """Remove pulse NAME, unless a queue uses it."""
    from sockpqd.pqctl.actions import pulses

    return pulses.delete(call, name)


@command(pulse, "set", timeout=10.0)
@click.argument("name")
@click.argument("payload", required=False, default="")
@click.option("--file", "path", metavar="FILE", shell_complete=files, help="Take the payload from this file.")
@click.option("--deny", is_flag=True, help="Tell those who get a turn not to act.")
def set_(call: Call, name: str, payload: str, path: str | None, deny: bool) -> int:
    """Set PAYLOAD to come with each turn of pulse NAME from now on."""
    from sockpqd.pqctl.actions import pulses

    return pulses.change_payload(call, name, payload, path, deny)


@command(pulse, timeout=10.0, epilog=exit_codes.READING)
@click.argument("name")
@click.option("--lines", type=click.IntRange(1), metavar="N", help="Stop after N lines. [default: never]")
def watch(call: Call, name: str, lines: int | None) -> int:
    """Print a line every period: the speed of pulse NAME, and the turns of the last 60 periods.

    Until interrupted; with --json one object per line.
    """
    from sockpqd.pqctl.actions import pulses

    return pulses.watch(call, name, lines)
