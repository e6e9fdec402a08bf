"""The operations on pulses: rates shared by many clients (spec/pulse 1.1)."""

from __future__ import annotations

from sockpqd.core.ops.jobs import Feedback
from sockpqd.core.ops.logged import Logged


class PulseChange(Logged, frozen=True):
    """New values for settings of a pulse; None: unchanged, or the default for a new one."""

    rate: int | None = None             # grants per period, at most
    per_ms: int | None = None           # the length of a period
    step_ms: int | None = None          # by how much the pause grows and shrinks
    max_pause_ms: int | None = None
    max_run_ms: int | None = None       # how long after its grant a result is awaited
    max_wait_ms: int | None = None      # with TOGETHER: how long the first one waits for the others
    spread: bool | None = None          # grants are given one by one, at even distances; not with TOGETHER


class ConfigurePulse(Logged, tag=54, frozen=True):
    """PULSE CONFIG; a `rate` or `per_ms` restarts the pulse (spec/pulse 4.4). PULSE CREATE, with `create`.

    With `create` only: `together`; `pulses_max`: the limit on the number of pulses; None: no limit.

    Replies: Accepted, PulseNotFound, BadSetting (a `max_wait_ms` without TOGETHER, `spread` with it, a
    rate of a queue's own pulse); with `create` PulseExists, TooManyPulses.
    """

    pulse: str
    change: PulseChange
    create: bool = False
    together: bool = False
    pulses_max: int | None = None


class DeletePulse(Logged, tag=55, frozen=True):
    """PULSE DELETE. Replies: Accepted, PulseNotFound, PulseInUse."""

    pulse: str


class SetPulse(Logged, tag=56, frozen=True):
    """PULSE SET: the data that come with each grant; `deny`: the grants say not to act.

    Replies: Accepted, PulseNotFound.
    """

    pulse: str
    data: bytes
    deny: bool = False


class Grant(Logged, tag=57, frozen=True):
    """Issue `count` grants, for which the proposer knows that the window has room (spec/pulse 2.1).

    Replies: Granted (of none while the pulse sleeps), PulseNotFound.
    """

    pulse: str
    count: int


class TakeTurn(Logged, tag=58, frozen=True):
    """PULSE WAIT as a request of a session. `free`: the proposer knows that the window has room for one grant.

    Replies: Turn; Empty, which is not an answer yet; PulseNotFound.
    """

    pulse: str
    free: bool


class GiveResult(Logged, tag=59, frozen=True):
    """PULSE RESULT: close this ticket with a result. `sleep_ms`: used only if the result is SLEEP.

    Replies: Accepted, TicketNotFound.
    """

    ticket: int
    result: Feedback
    sleep_ms: int = 0


OnPulses = ConfigurePulse | DeletePulse | SetPulse | TakeTurn | GiveResult
