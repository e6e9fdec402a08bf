"""Runs a benchmark in this process: most of a tiny run would be the start of Python."""

from __future__ import annotations

import importlib
from pathlib import Path

import click
from click.testing import CliRunner, Result


def run(program: str, *arguments: str | Path) -> Result:
    """As `python -m program`: exit code, standard output and errors. Raises what the program does not handle."""
    module = importlib.import_module(program)
    if hasattr(module, "__path__"):         # a package is run by its __main__
        module = importlib.import_module(f"{program}.__main__")
    main = module.main
    assert isinstance(main, click.Command)
    ended = CliRunner().invoke(main, [*map(str, arguments)])
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return ended
