"""Writes to the audit log what clients of beanstalkd administer: pauses of tubes, and jobs brought back."""

from __future__ import annotations

from msgspec.structs import asdict

from sockpqd.beanstalk import Call, CallFailure, Done, Result, calls
from sockpqd.gateway import audit
from sockpqd.gateway.beanstalkd.services import Principal

GONE = "the client has gone; perhaps it was executed"

# The commands that leave a line, and the answer to each that succeeds.
ACTIONS: dict[type[Call], tuple[str, str]] = {
    calls.KickTube: ("kick", "KICKED"), calls.KickJob: ("kick-job", "KICKED"), calls.Pause: ("pause-tube", "PAUSED"),
}


def noted(principal: Principal, call: Call, done: Done) -> Done:
    """Wrap `done` so that it also notes the result of this call in the audit log."""
    action, answer = ACTIONS[type(call)]

    def note(result: Result | CallFailure) -> None:
        about = " ".join(f"{name}={value}" for name, value in asdict(call).items() if name != "known")
        audit.note(principal.user, principal.peer, action, about, _text(call, answer, result))
        done(result)

    return note


def _text(call: Call, answer: str, result: Result | CallFailure) -> str:
    if isinstance(result, CallFailure):
        return GONE if result is CallFailure.GONE else result.name
    if isinstance(result, calls.NumberResult):
        return f"{answer} {result.number}"
    return GONE if type(call) is calls.KickTube else answer     # it was cancelled
