"""How long a client may take for what is expected of it: the time limits of [limits].

Nothing is timed when a command comes. Every few seconds each connection is looked at, and what has not changed since
the last time has lasted so much longer; so a limit is kept late by a little, never early.
"""

from __future__ import annotations

from enum import Enum

from gateway.limits import SWEEP_S, SWEEP_S_MIN, Limits


class Turn(Enum):
    """What a conversation waits for."""

    OURS = "an answer of ours; nothing is expected of the client"
    HELLO = "the first line"
    NEXT = "the next command"
    REST = "the rest of a command"


class Patience:
    """What is expected of one client, and since when. `now` is the loop's time in seconds."""

    __slots__ = ("_begun", "_limits", "_since", "_taken_bytes", "_took", "_turn")

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._turn = (Turn.HELLO, 0)
        self._since = self._begun = now
        self._taken_bytes = 0           # of the answers, so far
        self._took = now                # when the client took something, or had nothing to take

    def end(
        self, now: float, turn: tuple[Turn, int], taken_bytes: int, unsent_bytes: int, *, stranger: bool = False
    ) -> str | None:
        """Why the client is to be cut off, None if it is not. `turn`: the number changes when the client gets on.

        `stranger`: it has to say who it is, and has not yet.
        """
        limits = self._limits
        if stranger and _over(limits.auth_timeout_s, self._begun, now):
            return "it does not say who it is"
        if not unsent_bytes or taken_bytes > self._taken_bytes:
            self._taken_bytes = taken_bytes
            self._took = now
        elif _over(limits.answer_timeout_s, self._took, now):
            return "it takes nothing of its answers"
        if turn != self._turn:
            self._turn = turn
            self._since = now
            return None
        expected = turn[0]
        if expected is Turn.HELLO and _over(limits.hello_timeout_s, self._since, now):
            return "it says nothing"
        if expected is Turn.NEXT and _over(limits.idle_timeout_s, self._since, now):
            return "it has been idle"
        if expected is Turn.REST and _over(limits.command_timeout_s, self._since, now):
            return "its command does not end"
        return None


def sweep_s(limits: Limits) -> float:
    """Seconds between two looks at all connections."""
    set_ones = [seconds for seconds in (limits.hello_timeout_s, limits.idle_timeout_s, limits.command_timeout_s,
                                        limits.answer_timeout_s, limits.auth_timeout_s) if seconds]
    return min(SWEEP_S, max(SWEEP_S_MIN, min(set_ones) / 10)) if set_ones else SWEEP_S


def _over(limit_s: int, since: float, now: float) -> bool:
    return limit_s > 0 and now - since > limit_s
