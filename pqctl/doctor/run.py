"""`pqctl doctor`: runs all checks and prints a line for each."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sockpqd.pqctl.doctor import cluster_checks, lease_checks, machine_checks
from sockpqd.pqctl.doctor.check import FAIL, SKIP, Check, exit_code
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.text import printable

if TYPE_CHECKING:
    from rich.text import Text

COLOURS = {"OK": "green", "WARN": "yellow", "FAIL": "red", "SKIP": ""}


def show(call: Call, data_dir: str | None) -> int:
    """Run the checks and print them; returns the exit code."""
    directory = None if data_dir is None else machine_checks.data_directory(data_dir)
    checks = cluster_checks.look(call.servers, call.timeout, call.access)
    if all(check.state != FAIL for check in checks):
        checks += lease_checks.look(call.servers, call.timeout, call.access)
    if directory is None:
        checks.append(Check(SKIP, "this machine", "disk and limits were not checked", "give --data-dir on a node"))
    else:
        checks += machine_checks.look(directory)
    report(call, checks)
    return exit_code(checks)


def report(call: Call, checks: Sequence[Check]) -> None:
    """Print a line for each check."""
    if call.as_json:
        call.answer("", {"checks": [check._asdict() for check in checks]})
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
        from rich.text import Text

        call.print_rich(Text("\n").join(_lines(check, width) for check in checks))


def _lines(check: Check, width: int) -> Text:
    """Format a check as one line, wrapped and indented on a narrow terminal; further lines of its advice stay lines."""
    from rich.text import Text  # not for --json

    head = f"{check.state:<4}  {check.name:<12}  "
    text, *block = (check.found + (f": {check.advice}" if check.advice else "")).split("\n")
    body = f"\n{' ' * len(head)}".join(textwrap.wrap(printable(text), max(width - len(head), 20)))
    body += "".join(f"\n    {printable(line)}" for line in block)       # of a file, to be copied
    return Text().append(head, COLOURS[check.state]).append(body)
