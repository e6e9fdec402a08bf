"""Parses the commands of PULSE: each function reads the words of one."""

from __future__ import annotations

from sockpqd.core import (
    OWN_PREFIX,
    PER_MS_MAX,
    PER_MS_MIN,
    RATE_MAX,
    ConfigurePulse,
    DeletePulse,
    Feedback,
    GiveResult,
    PulseChange,
    SetPulse,
)
from sockpqd.gateway.limits import PULSE_DATA_BYTES_MAX
from sockpqd.gateway.protocol.arguments import (
    LENGTH,
    ArgumentError,
    WrongWord,
    between,
    milliseconds,
    name,
    plain_word,
    unsigned,
)
from sockpqd.gateway.protocol.command import Command, Words
from sockpqd.gateway.protocol.grammar.parts.options import Option, one_of, read_options
from sockpqd.gateway.protocol.responses import TOO_LARGE
from sockpqd.gateway.protocol.tokens import seconds


def _length_ms(lowest_ms: int) -> Option:
    wanted = f"seconds from {seconds(lowest_ms)} to {seconds(PER_MS_MAX)}"

    def read(word: bytes) -> int:
        length_ms = milliseconds(word)
        if not lowest_ms <= length_ms <= PER_MS_MAX:
            raise WrongWord(wanted, word)
        return length_ms
    return Option("", read)


rate = between(1, RATE_MAX)
per_ms = _length_ms(PER_MS_MIN).read
_at_least_1_ms, _any_length_ms = _length_ms(1).read, _length_ms(0).read

_SETTINGS = {
    b"RATE": Option("rate", rate),
    b"PER": Option("per_ms", per_ms),
    b"STEP": Option("step_ms", _at_least_1_ms),
    b"MAXPAUSE": Option("max_pause_ms", _any_length_ms),
    b"MAXRUN": Option("max_run_ms", _at_least_1_ms),
}
_MAX_WAIT = Option("max_wait_ms", _any_length_ms)
_CREATE = {
    **_SETTINGS, b"TOGETHER": Option("together", behind=(b"MAXWAIT", _MAX_WAIT)), b"SPREAD": Option("spread"),
}
_CONFIG = {**_SETTINGS, b"MAXWAIT": _MAX_WAIT, b"SPREAD": Option("spread", one_of({b"ON": True, b"OFF": False}))}
_WITHIN = {b"WITHIN": Option("within_ms", milliseconds)}
_OWN = OWN_PREFIX.encode()
_REASON = {b"REASON": Option("reason", plain_word)}


_NEEDS_NAME = "the name of a pulse is missing"


def pulse_name(word: bytes) -> str:
    """Parse the name of a pulse. The name of a queue's own pulse may be longer by its prefix."""
    if word == b"OFF":
        raise ArgumentError("a pulse cannot be called OFF")
    if word.startswith(_OWN) and len(word) > len(_OWN):
        return OWN_PREFIX + name(word[len(_OWN):])
    return name(word)


def pulse_create(words: Words) -> Command:
    """PULSE CREATE <name> with settings; the names of queues' own pulses are reserved."""
    found = read_options(words, 2, _CREATE)
    pulse = _named(words)
    together = found.pop("together", False)
    if pulse.startswith(OWN_PREFIX):
        raise ArgumentError(f"names with {OWN_PREFIX} are those of queues' own pulses")
    if together and "spread" in found:
        raise ArgumentError("TOGETHER and SPREAD exclude each other")
    return Command(ConfigurePulse(pulse, PulseChange(**found), create=True, together=together))


def pulse_config(words: Words) -> Command:
    """PULSE CONFIG <name> with at least one setting. The rate of a queue's own pulse is a setting of the queue."""
    found = read_options(words, 2, _CONFIG)
    pulse = _named(words)
    if not found:
        raise ArgumentError("PULSE CONFIG takes a pulse and its settings: RATE 10")
    if pulse.startswith(OWN_PREFIX) and ("rate" in found or "per_ms" in found):
        raise ArgumentError("the rate of a queue's own pulse is set with QUEUE CONFIG")
    return Command(ConfigurePulse(pulse, PulseChange(**found)))


def _named(words: Words) -> str:
    if len(words) < 2:
        raise ArgumentError(_NEEDS_NAME)
    return pulse_name(words[1])


def pulse_delete(words: Words) -> Command:
    """PULSE DELETE <name>."""
    if len(words) != 2:
        raise ArgumentError("PULSE DELETE takes a pulse")
    return Command(DeletePulse(pulse_name(words[1])))


def pulse_stat(words: Words) -> Command:
    """PULSE STAT <name>. Arguments: the pulse."""
    if len(words) != 2:
        raise ArgumentError("PULSE STAT takes a pulse")
    return Command(arguments=(pulse_name(words[1]),))


def pulse_set(words: Words) -> Command:
    """PULSE SET <name> <len> [DENY]: the data follow."""
    if len(words) not in (3, 4) or (len(words) == 4 and words[3] != b"DENY"):
        raise ArgumentError("PULSE SET takes a pulse, a length and perhaps DENY")
    pulse, length = pulse_name(words[1]), unsigned(words[2], LENGTH)
    answer = TOO_LARGE if length > PULSE_DATA_BYTES_MAX else None
    return Command(SetPulse(pulse, b"", len(words) == 4), length, answer=answer)


def pulse_wait(words: Words) -> Command:
    """PULSE WAIT <name> [WITHIN <sec>]. Arguments: the pulse."""
    return Command(arguments=(_named(words),), within_ms=read_options(words, 2, _WITHIN).get("within_ms"))


_TICKET = "the ticket must be"


def _sleep_ms(word: bytes) -> int:
    try:
        return milliseconds(word)
    except WrongWord as error:
        raise WrongWord(error.wanted, word, "SLEEP wants") from None


def pulse_result(words: Words) -> Command:
    """PULSE RESULT <ticket> OK|FAIL|SLOW|SLEEP <sec> [REASON <word>]. Arguments: the reason if given."""
    match words[1:]:
        case [ticket, (b"OK" | b"FAIL" | b"SLOW") as result, *_]:
            operation, at = GiveResult(unsigned(ticket, _TICKET), Feedback[result.decode()]), 3
        case [ticket, b"SLEEP", length, *_]:
            operation, at = GiveResult(unsigned(ticket, _TICKET), Feedback.SLEEP, _sleep_ms(length)), 4
        case _:
            raise ArgumentError("PULSE RESULT takes a ticket and OK, FAIL, SLOW or SLEEP <seconds>")
    reason = read_options(words, at, _REASON).get("reason")
    return Command(operation, arguments=() if reason is None else (reason,))
