"""Pulses: rates that many programs share. A program waits for a turn, acts, and reports the outcome."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from sockpq import Denied
from starlette.responses import Response

from sockpq_http.exchange.caller import Caller, Calling, answer, given
from sockpq_http.limits import WAIT_S_MAX
from sockpq_http.problems.problem import Problem
from sockpq_http.routes.running import changed_answer
from sockpq_http.values import bodies
from sockpq_http.values.bodies import Body, BodyView
from sockpq_http.values.ids import Id
from sockpq_http.values.model import Model, View
from sockpq_http.values.names import Pulse
from sockpq_http.values.patterns import NAME, WORD
from sockpq_http.values.times import Span


class PulseSettings(Model):
    """Settings of a pulse; one that is not given stays as it is, or has its default."""

    rate: int | None = Field(default=None, ge=1, le=100_000, description="Turns in `per` seconds.")
    per: Span | None = None
    step: Span | None = None
    max_pause: Span | None = None
    max_run: Span | None = Field(default=None, description="How long to wait for the result of a turn.")
    spread: bool | None = Field(default=None, description="The turns come one by one, at even distances.")
    max_wait: Span | None = None

    def options(self) -> dict[str, Any]:
        """Return the arguments of pulse_create() and pulse_config()."""
        return {name: value for name in type(self).model_fields
                if name != "name" and (value := getattr(self, name)) is not None}


class NewPulse(PulseSettings):
    """A pulse with its settings."""

    name: str = Field(pattern=NAME)
    together: bool | None = Field(default=None, description="The turns of a period come all at once.")


class Payload(Body):
    """The data of each turn from now on, and whether it says to act."""

    deny: bool = Field(default=False, description="Turns say not to act.")


class WaitForTurn(Model):
    """The longest wait for a turn."""

    wait: Span = Field(default=30.0, le=WAIT_S_MAX)


class TurnResult(Model):
    """The outcome of a turn."""

    ticket: Id
    feedback: Literal["ok", "fail", "slow", "sleep"] = Field(
        default="ok", description="`slow`: this was too fast; `sleep`: nobody may have a turn for `sleep` seconds."
    )
    sleep: Span | None = None
    reason: str | None = Field(default=None, pattern=WORD)


class PulsesView(View):
    """The names of all pulses."""

    pulses: list[str]


class FiguresView(View):
    """Settings and figures of a pulse, in the words of the protocol in lower case."""

    figures: dict[str, float | None]


class TurnView(BodyView):
    """A turn: report its result under its ticket. Its body is the data set for the pulse."""

    ticket: Id
    act: bool = Field(description="Whether it says to act.")


async def list_(caller: Calling) -> Response:
    """List the names of all pulses."""
    return answer(PulsesView(pulses=sorted(await caller.client.pulses())))


async def create(caller: Calling, pulse: NewPulse) -> Response:
    """Create a pulse; 409 when it exists."""
    await caller.client.pulse_create(pulse.name, **pulse.options())
    return answer(FiguresView(figures=await caller.client.pulse_stat(pulse.name)), 201)


async def stat(caller: Calling, pulse: Pulse) -> Response:
    """Return the settings and the figures of a pulse."""
    return answer(FiguresView(figures=await caller.client.pulse_stat(pulse)))


async def configure(caller: Calling, pulse: Pulse, settings: PulseSettings) -> Response:
    """Change settings of a pulse."""
    await caller.client.pulse_config(pulse, **settings.options())
    return answer(FiguresView(figures=await caller.client.pulse_stat(pulse)))


async def delete(caller: Calling, pulse: Pulse) -> Response:
    """Remove a pulse; 409 when a queue uses it."""
    await caller.client.pulse_delete(pulse)
    return changed_answer()


async def set_payload(caller: Calling, pulse: Pulse, payload: Payload) -> Response:
    """Set the data of each turn from now on."""
    await caller.client.pulse_set(pulse, payload.data() or b"", deny=payload.deny)
    return changed_answer()


async def wait(caller: Calling, pulse: Pulse, how: WaitForTurn | None = None) -> Response:
    """Wait for a turn; 408 when none comes in time."""
    turn = await caller.unless_gone(_turn(caller, pulse, how.wait if how else 30.0))
    if turn is None:
        raise Problem(503, "this program stops: ask again", "stopping", headers={"retry-after": "1"})
    return answer(turn)


async def result(caller: Calling, pulse: Pulse, outcome: TurnResult) -> Response:
    """Report the outcome of a turn; 404 when it is too late for one."""
    options = given(sleep=outcome.sleep, reason=outcome.reason)
    await caller.client.pulse_result(await caller.id(outcome.ticket), outcome.feedback, **options)
    return changed_answer()


async def _turn(caller: Caller, pulse: str, within_s: float) -> TurnView:
    turn = caller.client.pulse(pulse).turn(within=within_s)
    try:
        await turn.__aenter__()         # its end is another request, perhaps to another instance
    except Denied as error:
        return TurnView(ticket=caller.client.id_text(turn.ticket), act=False, **bodies.shown(error.payload, None))
    return TurnView(ticket=caller.client.id_text(turn.ticket), act=True, **bodies.shown(turn.payload, None))
