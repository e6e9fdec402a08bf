"""Turns of a pulse: wait for one, act, and report the outcome."""

# Made from _async/pulse.py by client/tools/faces.py: edit there.

from __future__ import annotations

import os
from types import TracebackType

from sockpq._backends.sync import run
from sockpq._process import check_own, is_inherited
from sockpq._protocol import arguments
from sockpq._protocol.arguments import EXPIRE_S_MAX
from sockpq._protocol.commands import pulses
from sockpq._routing.router import Router
from sockpq.errors import Denied, SockpqError, TicketNotFound, WaitTimeout

LEAST_S = 0.001         # of a wait


class Pulse:
    """A pulse of the cluster, which many programs share; see Client.pulse."""

    __slots__ = ("_router", "name")

    def __init__(self, router: Router, name: str) -> None:
        self._router = router
        self.name = arguments.name(name, "pulse")

    def turn(self, *, within: float | None = None, timeout: float | None = None) -> Turn:
        """Wait for a turn, `within` seconds at most: `with client.pulse("ga").turn(within=30) as turn:`.

        The end of the block reports success, an exception failure. Raises Denied when the pulse says not to act,
        WaitTimeout when no turn came in time, PulseNotFound. `timeout` limits the time without a serving leader. A call
        that is repeated, after a failover for example, gets the same turn.
        """
        return Turn(self._router, self.name, within, timeout)

    def __repr__(self) -> str:
        return f"<Pulse {self.name!r}>"


class Turn:
    """One turn. `payload`: the data set for the pulse; `ticket`: its number."""

    __slots__ = (
        "_feedback", "_process", "_pulse", "_reason", "_router", "_sleep", "_timeout", "_within", "payload", "ticket",
    )

    def __init__(self, router: Router, pulse: str, within: float | None, timeout: float | None) -> None:
        self._router = router
        self._process = os.getpid()
        self._pulse = pulse
        self._within = within
        self._timeout = timeout
        self._feedback: pulses.Feedback | None = None
        self._sleep = 0.0
        self._reason: str | None = None
        self.payload = b""
        self.ticket = 0

    def slow(self, reason: str | None = None) -> None:
        """Report at the end of the block that this was too fast, so that all clients slow down."""
        self._feedback, self._reason = "slow", reason if reason is None else arguments.reason(reason)

    def sleep(self, seconds: float, reason: str | None = None) -> None:
        """Report at the end of the block that no client may have a turn for this many seconds."""
        arguments.seconds(seconds, "seconds", 0, EXPIRE_S_MAX)
        self._feedback, self._sleep = "sleep", seconds
        self._reason = reason if reason is None else arguments.reason(reason)

    def fail(self, reason: str | None = None) -> None:
        """Report at the end of the block a failure that is not due to the rate."""
        self._feedback, self._reason = "fail", reason if reason is None else arguments.reason(reason)

    def __enter__(self) -> Turn:
        check_own(self._process, "this turn")
        command = pulses.wait(self._pulse, self._within)
        wait = None if self._within is None else max(self._within, LEAST_S)
        granted = run(self._router.run(command, timeout=self._timeout, wait=wait))
        if granted is None:                     # the answer to WITHIN did not come in time either
            raise WaitTimeout("408 Wait Timeout")
        self.ticket, self.payload, denied = granted
        if denied:
            raise Denied(f"the pulse {self._pulse!r} says not to act", self.payload)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if is_inherited(self._process):         # the parent says how its turn went
            return
        feedback = self._feedback or ("ok" if error is None else "fail")
        command = pulses.pulse_result(self.ticket, feedback, sleep=self._sleep, reason=self._reason)
        try:
            run(self._router.run(command, timeout=self._timeout))
        except TicketNotFound:                  # later than MAXRUN: it is no longer awaited
            pass
        except SockpqError as failure:
            if error is None:
                raise
            error.add_note(f"and the result of the turn could not be reported: {failure}")

    def __repr__(self) -> str:
        return f"<Turn {self.ticket} of {self._pulse!r}>"
