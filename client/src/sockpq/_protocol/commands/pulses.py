"""Pulses: rates shared by many programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypedDict, get_args

from sockpq._protocol import arguments
from sockpq._protocol.arguments import EXPIRE_S_MAX, Data
from sockpq._protocol.command import Blocks, Command, Repeat, call, single
from sockpq._protocol.reader import (
    BODY_BYTES_MAX,
    LINE,
    Reader,
    accepted,
    as_name,
    as_number,
    as_text,
    expect,
    fields_of,
    lines_of_list,
    list_of,
)
from sockpq.errors import BadArguments
from sockpq.model import Grant

NEEDS = ("pulse",)
RATE_MAX = 100_000
PAYLOAD_BYTES_MAX = 64 << 10
LONGEST_S = 86_400.0

Feedback = Literal["ok", "fail", "slow", "sleep"]
FEEDBACKS: tuple[Feedback, ...] = get_args(Feedback)


class PulseSettings(TypedDict, total=False):
    """The settings of a pulse; a setting not given is unchanged, or has the default for a new one. Times in seconds.

    `rate` grants (10) in `per` seconds (1). If that was too fast there is one grant fewer; when only one is left, the
    pause between two grows by `step` (1), up to `max_pause` (300). `max_run` (7): how long to wait for a result.
    `together`: the grants of a period are given all at once, when as many clients wait or `max_wait` (7) has passed.
    `spread`: they are given one by one, at even distances.
    """

    rate: int
    per: float
    step: float
    max_pause: float
    max_run: float
    together: bool
    spread: bool
    max_wait: float


_TIMES = {"per": ("PER", 0.01), "step": ("STEP", 0.001), "max_pause": ("MAXPAUSE", 0.0), "max_run": ("MAXRUN", 0.001)}


@call()
def pulse_create(pulse: str, settings: PulseSettings) -> Command[None]:
    """Create a pulse with these settings (sockpq.PulseSettings). Raises PulseExists, TooManyPulses."""
    if pulse == "OFF" or pulse.startswith("queue:"):
        raise BadArguments("a pulse cannot be called OFF, and queue:.. is the own pulse of a queue")
    text = _settings(settings)
    if arguments.switch(settings.get("spread", False), "spread"):
        text += " SPREAD"
        if settings.get("together"):
            raise BadArguments("turns are given together, or spread")
    if arguments.switch(settings.get("together", False), "together"):
        text += " TOGETHER" + _max_wait(settings)
    elif "max_wait" in settings:
        raise BadArguments("max_wait is for a pulse with together=True")
    return _command(f"CREATE {_pulse(pulse)}{text}", Repeat.IF_ASKED)


@call()
def pulse_config(pulse: str, settings: PulseSettings) -> Command[None]:
    """Change settings of a pulse; with `rate` or `per` it restarts at its full rate. Raises PulseNotFound."""
    if "together" in settings:
        raise BadArguments("whether turns are given together is decided when a pulse is created")
    if not settings:
        raise BadArguments("give a setting to change")
    text = _settings(settings) + _max_wait(settings) + _spread(settings)
    return _command(f"CONFIG {_pulse(pulse)}{text}", Repeat.IF_ASKED)


def _spread(settings: PulseSettings) -> str:
    """Return the option " SPREAD ON", or OFF."""
    if "spread" not in settings:
        return ""
    return " SPREAD ON" if arguments.switch(settings["spread"], "spread") else " SPREAD OFF"


@call()
def pulse_delete(pulse: str) -> Command[None]:
    """Remove a pulse. Raises PulseNotFound, PulseInUse when a queue uses it."""
    return _command(f"DELETE {_pulse(pulse)}", Repeat.IF_ASKED)


@call()
def pulse_set(pulse: str, payload: Data = b"", *, deny: bool = False) -> Command[None]:
    """Set the data of each turn from now on, up to 64 KiB; with `deny` turns raise Denied. Raises PulseNotFound."""
    data = arguments.body(payload, PAYLOAD_BYTES_MAX)
    denied = " DENY" if arguments.switch(deny, "deny") else ""
    line = f"PULSE SET {_pulse(pulse)} {len(data)}{denied}"
    return single(line, accepted, Repeat.HARMLESS, data=data, logged=True, needs=NEEDS)


@call("any")
def pulses() -> Command[list[str]]:
    """List the names of all pulses that the user may see."""
    return Command(b"PULSE LIST\r\n", b"", _names, Repeat.FREELY, needs=NEEDS)


@call("any")
def pulse_stat(pulse: str) -> Command[dict[str, float | None]]:
    """Return settings and figures of a pulse by the protocol's words. Raises PulseNotFound.

    `now` turns in `per` + `pause` seconds at present, none before `sleepuntil`; clients `waiting` (None: unknown to
    this server), turns `granted` so far, `errors` among their results, results still `open`.
    """
    return Command(f"PULSE STAT {_pulse(pulse)}\r\n".encode(), b"", _figures, Repeat.FREELY, needs=NEEDS)


def wait(pulse: str, within: float | None) -> Command[Grant]:
    """PULSE WAIT: wait for a turn, `within` seconds at most."""
    limit = "" if within is None else f" WITHIN {arguments.seconds(within, 'within', 0, EXPIRE_S_MAX)}"
    line = f"PULSE WAIT {_pulse(pulse)}{limit}\r\n".encode()
    return Command(line, b"", _grant, Repeat.IF_ASKED, Blocks.AT_ONCE, logged=True, needs=NEEDS)


@call()
def pulse_result(
    ticket: int, feedback: Literal["ok", "fail", "slow", "sleep"] = "ok", *, sleep: float = 0.0,
    reason: str | None = None,
) -> Command[None]:
    """Report the outcome of a turn by its `ticket`, in another program than the one that has waited for it.

    `feedback`: "ok", "fail" for a failure that is not due to the rate, "slow" if this was too fast, or "sleep": no
    client may have a turn for `sleep` seconds. Raises TicketNotFound if it has one, or it is too late.
    """
    if feedback not in FEEDBACKS:
        raise BadArguments(f"feedback is 'ok', 'fail', 'slow' or 'sleep', not {feedback!r}")
    number = arguments.integer(ticket, "ticket", 0, arguments.UINT64_MAX)
    word = f"SLEEP {arguments.seconds(sleep, 'sleep', 0, EXPIRE_S_MAX)}" if feedback == "sleep" else feedback.upper()
    text = "" if reason is None else f" REASON {arguments.reason(reason)}"
    return single(f"PULSE RESULT {number} {word}{text}", accepted, Repeat.HARMLESS, logged=True, needs=NEEDS)


def _pulse(name: str) -> str:
    return arguments.name(name, "pulse")


def _command(line: str, repeat: Repeat) -> Command[None]:
    return single(f"PULSE {line}", accepted, repeat, logged=True, needs=NEEDS)


def _settings(settings: PulseSettings) -> str:
    for name in settings:
        if name not in PulseSettings.__annotations__:
            raise TypeError(f"there is no setting {name!r}")
    text = ""
    if "rate" in settings:
        text += f" RATE {arguments.integer(settings['rate'], 'rate', 1, RATE_MAX)}"
    by_name: Mapping[str, object] = settings
    for name, (word, least) in _TIMES.items():
        if name in by_name:
            text += f" {word} {arguments.seconds(by_name[name], name, least, LONGEST_S)}"
    return text


def _max_wait(settings: PulseSettings) -> str:
    if "max_wait" not in settings:
        return ""
    return f" MAXWAIT {arguments.seconds(settings['max_wait'], 'max_wait', 0, LONGEST_S)}"


def _grant() -> Reader[Grant]:
    """Read `GO <ticket> <len>` or `NOGO <ticket> <len>`, then the payload."""
    fields = fields_of(as_text((yield LINE)))
    expect(len(fields) == 3 and fields[0] in ("GO", "NOGO"), "not an answer to PULSE WAIT")
    length = as_number(fields[2], BODY_BYTES_MAX)
    return Grant(as_number(fields[1]), (yield length), fields[0] == "NOGO")


def _names() -> Reader[list[str]]:
    return (yield from list_of(as_name))


def _figures() -> Reader[dict[str, float | None]]:
    figures: dict[str, float | None] = {}
    for line in (yield from lines_of_list()):
        word, _, value = line.partition(" ")
        whole, _, rest = value.partition(".")
        expect(value == "-" or (whole.isdigit() and (not rest or rest.isdigit())), f"not a figure: {line[:100]!r}")
        figures[word.lower()] = None if value == "-" else float(value) if rest else int(value)
    return figures
