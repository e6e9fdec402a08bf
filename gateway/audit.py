"""The audit log: a line for each administrative command, each action on the dashboard and each signal that stops the
node or makes it reload its files; logger `sockpqd.audit`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger("sockpqd.audit")

TEXT_MAX = 300              # characters of each part that are logged
SIGNAL = "signal"           # the address shown for a signal to the process
ROOM_S = 0.01               # between two looks whether the lines have been written
DASHBOARD = ":HTTP"         # ends the address of clients whose actions are logged by the dashboard


def note(user: str | None, address: str, action: str, about: str, outcome: str) -> None:
    """Log the actor, the action, its target and its outcome, with the timestamp of the log line."""
    log.info("user=%s address=%s action=%s object=%r outcome=%r", user or "-", address, action, about[:TEXT_MAX],
             outcome[:TEXT_MAX])


class Backlog(Protocol):
    """The lines of the audit log that wait to be written."""

    audit_behind: Callable[[], bool]            # they are very many,
    audit_line: asyncio.Lock                    # and commands that leave one wait for these, one after the other


def is_behind(backlog: Backlog) -> bool:
    """Return whether a command that leaves a line must wait for `room` first."""
    return backlog.audit_line.locked() or backlog.audit_behind()


async def room(backlog: Backlog) -> None:
    """Wait until so many lines have been written that there is room for another one."""
    async with backlog.audit_line:
        while backlog.audit_behind():
            await asyncio.sleep(ROOM_S)
