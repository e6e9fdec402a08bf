"""Numbers of rows in messages."""

from __future__ import annotations


def rows_counted(number: int) -> str:
    """Return "1 row", or "2 rows"."""
    return f"{number} row{'' if number == 1 else 's'}"


def rows_wait(number: int) -> str:
    """Return "1 row waits", or "2 rows wait"."""
    return f"{rows_counted(number)} wait{'s' if number == 1 else ''}"
