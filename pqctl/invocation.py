"""The parts common to all commands: the options --servers, --json and --timeout, output and failures."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from sockpqd.pqctl.output import exit_codes
from sockpqd.pqctl.output.exit_codes import Failure
from sockpqd.pqctl.output.stdio import output, say
from sockpqd.pqctl.output.text import one_line, printable, readable
from sockpqd.pqctl.settings import Options, find_access, find_servers

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from rich.console import RenderableType

    from sockpqd.pqctl.access import ClusterAccess

P = ParamSpec("P")
OverAll = Callable[["Call", Callable[["Call"], int]], int]

OVER_ALL = "over_all"


class Seconds(click.FloatRange):
    """A number of seconds within a range. Unlike click's own range, it rejects NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the value; raises click.BadParameter."""
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value} is not a number.", param, ctx)
        return number


SHORT_HELP_MAX = 500        # longer than any first sentence


class Group(click.Group):
    """A group of commands whose help page has the whole first sentence of each, on two lines if need be."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands. Click's own cuts sentences to one line of the terminal."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([
                (name, command.get_short_help_str(SHORT_HELP_MAX)) for name, command in found if command is not None
            ])


SERVERS_HELP = "Servers of the cluster; one that answers is enough, the others are found."


class Call:
    """One invocation of a command."""

    def __init__(self, options: Options, as_json: bool, timeout: float) -> None:
        self.as_json = as_json
        self.timeout = timeout      # seconds
        self.options = options

    @functools.cached_property
    def servers(self) -> list[str]:
        """The servers given; raises click.UsageError."""
        from sockpq import BadArguments, Client

        servers, origin = find_servers(self.options.servers)
        try:
            Client(servers).close()     # does not connect: it only checks the addresses
        except BadArguments as error:
            raise click.UsageError(f"{origin}: {error}") from error
        return servers

    @functools.cached_property
    def access(self) -> ClusterAccess:
        """Return how to connect to the servers; raises click.UsageError."""
        from sockpq import BadArguments

        found = find_access(self.options)
        try:
            found.client(["localhost"]).close()         # likewise: it checks the CA, the user and the secret
        except BadArguments as error:
            raise click.UsageError(str(error)) from error
        return found

    def answer(self, sentence: str, told: Mapping[str, object]) -> None:
        """Print the result: `sentence` for people or `told` as one JSON object for programs."""
        self.print(json.dumps(told, indent=2) if self.as_json else sentence)

    def answer_nothing(self, sentence: str, told: Mapping[str, object]) -> None:
        """Report that there is no result: for people on standard error, as JSON on standard output."""
        if self.as_json:
            self.answer(sentence, told)
        else:
            say(sentence)

    def print(self, text: str) -> None:
        """Write a text to standard output, printable."""
        with output():
            sys.stdout.write(f"{printable(text)}\n")
            sys.stdout.flush()

    def print_rich(self, picture: RenderableType) -> None:
        """Write a table, or any other rich renderable; lines of a text are left as long as they are."""
        from rich.text import Text

        from sockpqd.pqctl.output.table import console

        with output():
            console().print(picture, soft_wrap=isinstance(picture, Text))
            sys.stdout.flush()

    def write(self, data: bytes) -> None:
        """Write bytes to standard output unchanged."""
        rest = memoryview(data)
        with output():
            while rest:             # unbuffered (PYTHONUNBUFFERED), or on a full disk, a write can be partial
                rest = rest[sys.stdout.buffer.write(rest):]
            sys.stdout.buffer.flush()

    def write_body(self, data: bytes) -> None:
        """Write a body to standard output: unchanged, or printable and with a line end on a terminal."""
        if sys.stdout.isatty():
            self.print(readable(data).removesuffix("\n"))
        else:
            self.write(data)

    def execute(self, function: Callable[[Call], int]) -> int:
        """Execute a command; returns its exit code. A failure is reported. Raises click.UsageError."""
        try:
            return function(self)
        except click.UsageError as error:
            error.ctx = error.ctx or click.get_current_context()
            raise
        except Exception as error:
            from sockpqd.pqctl.output.errors import as_failure

            failure = as_failure(error)
            if failure is None:
                raise
            if failure.code == exit_codes.USAGE_ERROR:
                raise click.UsageError(str(failure), click.get_current_context()) from error
            return self.fail(failure)

    def fail(self, failure: Failure) -> int:
        """Report a failure and return its exit code. With --json an object goes to standard output as well."""
        from sockpqd.pqctl.output.errors import KINDS

        message = one_line(str(failure))
        if self.as_json:
            try:
                self.print(json.dumps({"error": KINDS[failure.code], "message": message}, indent=2))
            except Failure as unwritten:
                say(f"{message}; {unwritten}")
                return unwritten.code
        say(message)
        return failure.code


def command(
    group: click.Group | None, name: str | None = None, *, timeout: float = 30.0, epilog: str = exit_codes.STEERING,
    over_all: OverAll | None = None, of_one: Sequence[str] = (),
) -> Callable[[Callable[Concatenate[Call, P], int]], click.Command]:
    """Turn a function into a command, of `group` if given; it takes a Call first and returns the exit code.

    `timeout`: the default of --timeout in seconds. `over_all`: executes the command with --all, see over_all.py.
    `of_one`: parameters of options that exclude --all.
    """
    def decorate(function: Callable[Concatenate[Call, P], int]) -> click.Command:
        @functools.wraps(function)
        def run(servers: str | None, as_json: bool, timeout: float, *args: P.args, **kwargs: P.kwargs) -> int:
            options: Options = click.get_current_context().obj
            call = Call(options if servers is None else options._replace(servers=servers), as_json, timeout)
            if over_all is None or not kwargs.pop(OVER_ALL):
                return call.execute(lambda call: function(call, *args, **kwargs))
            for option in of_one:
                if kwargs[option]:
                    raise click.UsageError(f"--{option.replace('_', '-')} is for one cluster: leave out --all")
            return call.execute(lambda call: over_all(call, lambda one: function(one, *args, **kwargs)))

        make = click.command if group is None else group.command
        made = make(name, epilog=epilog)(run)
        made.params += [*([] if over_all is None else [_all()]), *_options(timeout)]
        return made

    return decorate


def _all() -> click.Option:
    return click.Option(["--all", OVER_ALL], is_flag=True,
                        help="For each cluster of the map, one after the other; see `pqctl map`.")


def _options(timeout: float) -> list[click.Parameter]:
    """Return the options common to all commands, shown last on help pages."""
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object."),
        click.Option(
            ["--timeout"], default=timeout, show_default=True, type=Seconds(0.05, 3600), metavar="SECONDS",
            help="How long to look for servers and wait for their answers.",
        ),
        click.Option(["--servers"], metavar="HOST:PORT,...", help="As `pqctl --servers`."),
    ]


def given(**options: Any) -> Any:
    """Return the options that were given, by name."""
    return {name: value for name, value in options.items() if value is not None}


def group(name: str, **more: Any) -> Callable[[Callable[[], None]], click.Group]:
    """Create a group of commands; using it without a command is an error, not a request for help."""
    return click.group(name, cls=Group, no_args_is_help=False, **more)


def files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete file names, for `shell_complete`."""
    return [completion("file", incomplete)]


def directories(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete directory names, for `shell_complete`."""
    return [completion("dir", incomplete)]


def completion(kind: str, incomplete: str) -> CompletionItem:
    """Return the completion item that stands for names of this kind."""
    from click.shell_completion import CompletionItem

    return CompletionItem(incomplete, type=kind)
