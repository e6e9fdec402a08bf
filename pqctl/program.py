"""The program: dispatches arguments to commands and returns the exit code."""

from __future__ import annotations

import importlib
import itertools
import json
import keyword
import re
import sys
from collections.abc import Sequence

import click

from sockpqd.pqctl.invocation import SERVERS_HELP, Group, files
from sockpqd.pqctl.output.exit_codes import BUG, DONE, INTERRUPTED, PIPE_CLOSED, USAGE_ERROR, Failure
from sockpqd.pqctl.output.signals import EndedBySignal
from sockpqd.pqctl.output.stdio import output, prepare, say
from sockpqd.pqctl.output.text import one_line
from sockpqd.pqctl.settings import Options

COMMANDS = (
    "cluster", "node", "map", "region", "queue", "topic", "job", "item", "group", "sched", "pulse", "backup", "verify",
    "restore", "import", "session", "worker", "user", "cron", "config", "bench", "doctor", "shell", "events", "top",
)

# The modules of commands that are not in one of their own name.
HOMES = {
    "top": "events", "sched": "config", "topic": "queue", "verify": "backup", "restore": "backup", "import": "backup",
    "cron": "worker", "bench": "doctor", "session": "user",
}

NUMBER = re.compile(r"a valid (?P<kind>integer|float)(?: range)?\b")      # click's words, the second ones with limits
NUMBERS = {"integer": "a whole number", "float": "a number"}
NEAR = 0.7              # the likeness of two names of options from which on one is suggested for the other
OF_COMMANDS = ("--json", "--timeout", "--all")       # options of commands, not of the program
OF_PROGRAM = ("--ca", "--user", "--secret-file", "--tls", "--no-tls")       # options of the program, not of commands


class Commands(Group):
    """Loads a command's module only when it is used, for a fast start."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, from its own module or another that defines it; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command = getattr(importlib.import_module(f"sockpqd.pqctl.commands.{HOMES.get(cmd_name, cmd_name)}"), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; if there is none, the error suggests similar names."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            similar = [] if args[0] == "help" else get_close_matches(args[0], COMMANDS)
            if similar:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, similar))}?")
        return super().resolve_command(ctx, args)


EPILOG = """\b
The servers are taken from the first of these that is given:
  --servers; SOCKPQ_SERVERS; ~/.config/sockpq/config.toml; /etc/sockpq.toml;
  127.0.0.1:11361
Likewise SOCKPQ_CA, SOCKPQ_USER and SOCKPQ_SECRET_FILE, or SOCKPQ_SECRET.

Every command has --json, and its exit codes at the end of its --help.
"""


@click.group(
    cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG
)
@click.option("--servers", metavar="HOST:PORT,...", help=SERVERS_HELP)
@click.option("--ca", metavar="FILE", shell_complete=files,
              help="Use TLS; the CA that signed the servers' certificates.")
@click.option("--tls/--no-tls", default=None, help="Use TLS with the system's CAs, or no TLS at all.")
@click.option("--user", metavar="NAME", help="The user to authenticate as; needs a secret.")
@click.option("--secret-file", metavar="FILE", shell_complete=files, help="The user's secret, in a private file.")
@click.version_option(package_name="sockpqd", prog_name="pqctl")
@click.pass_context
def pqctl(
    context: click.Context, servers: str | None, ca: str | None, tls: bool | None, user: str | None,
    secret_file: str | None,
) -> None:
    """Inspect and administer a sockpqd cluster."""
    context.obj = Options(servers, tls, ca, user, secret_file)
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    prepare()
    stdout = sys.stdout
    try:
        with output():              # for output outside of commands: help, version, completion
            return pqctl.main(args=arguments, prog_name="pqctl", standalone_mode=False) or DONE
    except click.ClickException as error:
        if _is_group_alone(error):
            return _help_of(error.ctx)      # type: ignore[attr-defined]
        return _misused(error, sys.argv[1:] if arguments is None else arguments)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except EndedBySignal as end:
        return end.exit_code
    except SystemExit:
        if sys.stdout is not stdout:    # click has noticed a closed pipe, and would exit with 1
            return PIPE_CLOSED
        raise
    except Failure as failure:
        say(str(failure))
        return failure.code
    except Exception:
        import traceback

        say(traceback.format_exc().rstrip())
        return BUG


def _is_group_alone(error: click.ClickException) -> bool:
    """Return whether a group of commands was called without one, such as `pqctl queue`."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    return context is not None and isinstance(context.command, click.Group) and not context.args and (
        error.message == "Missing command.")


def _help_of(context: click.Context) -> int:
    """Show the help page of a group, as `pqctl` alone shows its own."""
    with output():
        click.echo(context.get_help())
    return DONE


def _command_in(arguments: Sequence[str]) -> str:
    """Return the path of the command that these arguments name, for errors that click raises without it."""
    path = "pqctl"
    command: click.Group = pqctl
    for argument in arguments:
        below = command.get_command(click.Context(command), argument)
        if below is not None:
            path = f"{path} {argument}"
        if isinstance(below, click.Group):
            command = below
        elif below is not None:
            break
    return path


def _no_such_option(error: click.NoSuchOption) -> str:
    """Return the message, with suggestions that are near without their dashes, as `--bogus` is not to `--user`."""
    from difflib import get_close_matches

    offered = {option.lstrip("-"): option for option in error.possibilities or ()}
    near = get_close_matches(error.option_name.lstrip("-"), offered, cutoff=NEAR)
    return error.message + (f" Did you mean {' or '.join(repr(offered[name]) for name in near)}?" if near else "")


def _misused(error: click.ClickException, arguments: Sequence[str]) -> int:
    """Report wrong usage and point to the help page; as JSON as well if --json is among the arguments."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else _command_in(arguments)
    words = _no_such_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
    message = NUMBER.sub(lambda found: NUMBERS[found["kind"]], one_line(words))
    if isinstance(error, click.NoSuchOption) and error.option_name in OF_COMMANDS:
        message = f"{error.option_name} goes after the command"
    elif isinstance(error, click.NoSuchOption) and error.option_name in OF_PROGRAM:
        message = f"{error.option_name} goes before the command"
    say(f"Error: {message} (see `{path} --help`)")
    if "--json" in itertools.takewhile(lambda argument: argument != "--", arguments):
        try:
            with output():
                print(json.dumps({"error": "usage", "message": message}, indent=2), flush=True)
        except Failure as failure:
            say(str(failure))
            return failure.code
    return USAGE_ERROR
