"""The program `sockpq-http`: a group of commands, each imported when it is used."""

from __future__ import annotations

from importlib import import_module

import click

from sockpq_http._version import __version__

# The commands by name: the module and the function of each.
COMMANDS = {
    "serve": ("sockpq_http.server.command", "serve"),
    "openapi": ("sockpq_http.server.command", "openapi"),
    "push": ("sockpq_http.push.command", "push"),
}


class Commands(click.Group):
    """The commands of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one of them; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), name)
        return command


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sockpq-http")
def main() -> None:
    """sockpqd over HTTP: a REST API with an OpenAPI document, and push."""


if __name__ == "__main__":
    main()
