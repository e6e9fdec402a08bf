"""Client timeouts: how long a client can take for each thing expected of it (the *_timeout_s of its limits).

Nothing is timed per command. Instead every connection is checked every few seconds, and a state that has not changed
since the last check has lasted that much longer; so a timeout fires slightly late, never early.
"""

from __future__ import annotations

from enum import StrEnum

from sockpqd.visits.limits import SWEEP_S, SWEEP_S_MIN, VisitLimits


class Turn(StrEnum):
    """The event that a conversation waits for."""

    OURS = "ours"       # an answer of ours; nothing is expected of the client
    HELLO = "hello"     # the first line
    NEXT = "next"       # the next command
    REST = "rest"       # the rest of a command


class ClientTimeouts:
    """Tracks what is expected of one client, and since when. `now` is the loop's time in seconds."""

    __slots__ = ("_begun", "_limits", "_since", "_taken_bytes", "_took", "_turn")

    def __init__(self, limits: VisitLimits, now: float) -> None:
        self._limits = limits
        self._turn: tuple[str, int] = (Turn.HELLO, 0)
        self._since = self._begun = now
        self._taken_bytes = 0           # of the answers so far
        self._took = now                # when the client last read something or had nothing to read

    def end(
        self, now: float, turn: tuple[str, int], taken_bytes: int, unsent_bytes: int, *, stranger: bool = False
    ) -> str | None:
        """Return the reason to cut the client off, or None. The number in `turn` changes when the client progresses.

        `stranger`: it has yet to authenticate.
        """
        limits = self._limits
        if stranger and _over(limits.auth_timeout_s, self._begun, now):
            return "it did not authenticate in time"
        if not unsent_bytes or taken_bytes > self._taken_bytes:
            self._taken_bytes = taken_bytes
            self._took = now
        elif _over(limits.answer_timeout_s, self._took, now):
            return "it does not read its answers"
        if turn != self._turn:
            self._turn = turn
            self._since = now
            return None
        expected = turn[0]
        if expected == Turn.HELLO and _over(limits.hello_timeout_s, self._since, now):
            return "it has sent no command"
        if expected == Turn.NEXT and _over(limits.idle_timeout_s, self._since, now):
            return "it has been idle"
        if expected == Turn.REST and _over(limits.command_timeout_s, self._since, now):
            return "its command is incomplete"
        return None


def sweep_s(limits: VisitLimits) -> float:
    """Return the seconds between two checks of all connections."""
    set_ones = [seconds for seconds in (limits.hello_timeout_s, limits.idle_timeout_s, limits.command_timeout_s,
                                        limits.answer_timeout_s, limits.auth_timeout_s) if seconds]
    return min(SWEEP_S, max(SWEEP_S_MIN, min(set_ones) / 10)) if set_ones else SWEEP_S


def _over(limit_s: int, since: float, now: float) -> bool:
    return limit_s > 0 and now - since > limit_s
