"""The audit log: a line for each action on the dashboard, logger `sockpqd.audit`, level info."""

from __future__ import annotations

import logging

from gateway.dashboard.visitor import Visitor

log = logging.getLogger("sockpqd.audit")

LINE_MAX = 300              # characters of the command that are logged


def note(visitor: Visitor, action: str, line: str, outcome: str) -> None:
    """Log who did what to what, and what came of it. The time is that of the line of the log."""
    log.info("user=%s address=%s action=%s object=%r outcome=%r", visitor.user or "-", visitor.address, action,
             line[:LINE_MAX], outcome[:LINE_MAX])
