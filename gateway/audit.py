"""The audit log: a line for each administrative command, each action on the dashboard and each signal that stops the
node or makes it reload its files; logger `sockpqd.audit`.
"""

from __future__ import annotations

import logging

log = logging.getLogger("sockpqd.audit")

TEXT_MAX = 300              # characters of each part that are logged
SIGNAL = "signal"           # the address shown for a signal to the process
DASHBOARD = ":HTTP"         # ends the address of clients whose actions are logged by the dashboard


def note(user: str | None, address: str, action: str, about: str, outcome: str) -> None:
    """Log the actor, the action, its target and its outcome, with the timestamp of the log line."""
    log.info("user=%s address=%s action=%s object=%r outcome=%r", user or "-", address, action, about[:TEXT_MAX],
             outcome[:TEXT_MAX])
