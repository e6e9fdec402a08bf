"""Writes man pages and completions next to this file, and docs/reference, from the programs: `make manual`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from sockpqd.beanstalk_proxy.main import main as sockpq_beanstalkd
from sockpqd.gateway.main import main as sockpqd
from sockpqd.pqctl.program import pqctl

HERE = Path(__file__).parent
REFERENCE = HERE.parents[1] / "docs" / "reference"
PROGRAMS: dict[str, click.Command] = {
    "sockpqd": sockpqd, "pqctl": pqctl, "sockpq-beanstalkd": sockpq_beanstalkd,
}
WIDTH = 76


def page(name: str, program: click.Command) -> str:
    """Return the man page of a program, with a section for each of its commands."""
    summary = (program.help or "").strip().splitlines()[0].rstrip(".")
    lines = [
        f'.TH "{name.upper()}" "1" "" "sockpqd" "User Commands"', ".SH NAME", f"{name} \\- {_plain(summary)}",
    ]
    for path, command in commands(name, program):
        context = click.Context(command, info_name=path, max_content_width=WIDTH, terminal_width=WIDTH)
        lines += [f'.SH "{path}"', ".nf", *map(_plain, command.get_help(context).splitlines()), ".fi"]
    lines += [".SH SEE ALSO", "docs/PROTOCOL.md, docs/CONFIGURATION.md and docs/OPERATIONS.md of the sources"]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def reference(name: str, program: click.Command) -> str:
    """Return the page of a program on the documentation site, with a section for each of its commands."""
    parts = [f"# {name}"]
    for path, command in commands(name, program):
        context = click.Context(command, info_name=path, max_content_width=WIDTH, terminal_width=WIDTH)
        parts += [f"## {path}", _block(command.get_help(context))]
    return "\n\n".join(parts) + "\n"


def reference_of_pqworker() -> str:
    """Return the page of pqworker, which belongs to the client library and does without click."""
    help_ = subprocess.run(
        [Path(sys.executable).parent / "pqworker", "--help"], env={**os.environ, "COLUMNS": str(WIDTH + 2)},
        capture_output=True, text=True, check=True,
    ).stdout
    return f"# pqworker\n\nThe options are explained in [Workers](../WORKERS.md).\n\n{_block(help_)}\n"


def commands(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """Yield a command and all commands below it, with the words to type for each."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(f"{path} {name}", below)


def completion(name: str, program: click.Command, shell: str) -> str:
    """Return the script that completes a program's arguments in this shell."""
    made = get_completion_class(shell)
    assert made is not None
    complete = made(program, {}, name, f"_{name.upper().replace('-', '_')}_COMPLETE")
    return complete.source_template % complete.source_vars()


def files() -> dict[str, str]:
    """Return the content of every file to write."""
    made = {f"{name}.1": page(name, program) for name, program in PROGRAMS.items()}
    for shell in ("bash", "zsh", "fish"):
        made |= {f"{name}.{shell}": completion(name, program, shell) for name, program in PROGRAMS.items()}
    return made


def documents() -> dict[str, str]:
    """Return the content of every page of the reference."""
    pages = {f"{name}.md": reference(name, program) for name, program in PROGRAMS.items()}
    return {**pages, "pqworker.md": reference_of_pqworker()}


def _block(text: str) -> str:
    return "\n".join(("```text", *(line.rstrip() for line in text.strip().splitlines()), "```"))


def _plain(line: str) -> str:
    """Escape a line for troff."""
    line = line.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{line}" if line.startswith((".", "'")) else line


if __name__ == "__main__":
    REFERENCE.mkdir(exist_ok=True)
    for folder, written in ((HERE, files()), (REFERENCE, documents())):
        for file, content in written.items():
            (folder / file).write_text(content, "utf-8")
    sys.exit(0)
