"""Client timeouts: how long a client may take for each step expected of it (`*_timeout_s` of its limits).

Nothing is timed per command. Instead every connection is checked every few seconds, and a state that has not changed
since the last check has lasted that much longer; so a timeout fires slightly late, never early.
"""

from __future__ import annotations

from enum import StrEnum

from sockpqd.connections.limits import SWEEP_S, SWEEP_S_MIN, ConnectionLimits


class Expected(StrEnum):
    """The input that a conversation waits for."""

    OURS = "ours"       # an answer of ours; nothing is expected of the client
    HELLO = "hello"     # the first line
    NEXT = "next"       # the next command
    REST = "rest"       # the rest of a command


class ClientTimeouts:
    """Tracks what is expected of one client, and from what time. `now` is the time of the loop in seconds."""

    __slots__ = ("_begun", "_limits", "_since", "_taken_bytes", "_took", "_turn")

    def __init__(self, limits: ConnectionLimits, now: float) -> None:
        self._limits = limits
        self._turn: tuple[str, int] = (Expected.HELLO, 0)
        self._since = self._begun = now
        self._taken_bytes = 0           # of the answers so far
        self._took = now                # when the client last read something or had nothing to read

    def end(
        self, now: float, turn: tuple[str, int], taken_bytes: int, unsent_bytes: int, *, unauthenticated: bool = False
    ) -> str | None:
        """Return the reason to cut the client off, or None.

        `turn` is what is expected, and a number that changes when the client makes progress. `unauthenticated`: the
        client still has to authenticate.
        """
        limits = self._limits
        if unauthenticated and _over(limits.auth_timeout_s, self._begun, now):
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
        if expected == Expected.HELLO and _over(limits.hello_timeout_s, self._since, now):
            return "it has sent no command"
        if expected == Expected.NEXT and _over(limits.idle_timeout_s, self._since, now):
            return "it has been idle"
        if expected == Expected.REST and _over(limits.command_timeout_s, self._since, now):
            return "its command is incomplete"
        return None


def sweep_s(limits: ConnectionLimits) -> float:
    """Return the seconds between two checks of all connections."""
    set_ones = [seconds for seconds in (limits.hello_timeout_s, limits.idle_timeout_s, limits.command_timeout_s,
                                        limits.answer_timeout_s, limits.auth_timeout_s) if seconds]
    return min(SWEEP_S, max(SWEEP_S_MIN, min(set_ones) / 10)) if set_ones else SWEEP_S


def _over(limit_s: int, since: float, now: float) -> bool:
    return limit_s > 0 and now - since > limit_s
