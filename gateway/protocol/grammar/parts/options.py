"""Table-driven parsing of options: keywords with values after the fixed part of a line, in any order, at most once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from sockpqd.core import Due, Feedback, Policy, Then
from sockpqd.gateway.protocol.arguments import ArgumentError, WrongWord, milliseconds, unix_ms
from sockpqd.gateway.protocol.command import Words
from sockpqd.gateway.protocol.reasons import choice, shown, suggestion_or_all


class Option(Struct, frozen=True):
    """A keyword that sets `field`: to the next word parsed by `read`, or to `value` if it takes none.

    Keywords that set the same field are mutually exclusive. `behind`: a keyword allowed only directly after this one.
    `second`: the field of a second value and its parser. `alone`: first values that it does not follow. `data`: the
    value is the length of data that follow the line, so the option comes last, except for one `behind` it.
    """

    field: str
    read: Callable[[bytes], Any] | None = None
    value: Any = True
    behind: tuple[bytes, Option] | None = None
    second: tuple[str, Callable[[bytes], Any]] | None = None
    alone: tuple[bytes, ...] = ()
    data: bool = False


Table = Mapping[bytes, Option]
NOWHERE: Mapping[bytes, str] = {}


def read_options(
    words: Words, at: int, table: Table, elsewhere: Mapping[bytes, str] = NOWHERE,
) -> dict[str, Any]:
    """Parse the options from position `at` to the end of the line; return the fields they set.

    `elsewhere` has the reasons why certain keywords, which are not options of this line, are not allowed here.
    """
    begin = at
    found: dict[str, Any] = {}
    count = len(words)
    behind: tuple[bytes, Option] | None = None
    early: bytes | None = None          # an option with data that does not end the line
    while at < count:
        word = words[at]
        at += 1
        option = behind[1] if behind is not None and word == behind[0] else table.get(word)
        if option is None and word.startswith(b"EXPIRE="):          # as in the prose of the original protocol
            option, at = table.get(b"EXPIRE"), at - 1
            words, word = [*words[:at], word[7:], *words[at + 1:]], b"EXPIRE"
        if option is None:
            raise unknown_option(word, table, elsewhere)
        if option.field in found:
            raise _second(word, option, table, words[begin:at - 1])
        if option.read is None:
            found[option.field] = option.value
        elif at == count:
            raise ArgumentError(f"{word.decode()} wants a value behind it")
        else:
            try:
                found[option.field] = option.read(words[at])
            except WrongWord as error:
                raise WrongWord(error.wanted, error.word, f"{word.decode()} wants") from None
            at += 1
            if option.second is not None and words[at - 1] not in option.alone:
                _read_second(word, option.second, words[at:at + 1], found)
                at += 1
            if option.data and at < count and (option.behind is None or words[at] != option.behind[0]):
                early = early or word
        behind = option.behind
    if early is not None:
        raise ArgumentError(f"{early.decode()} stands at the end of the line")
    return found


def _read_second(
    word: bytes, second: tuple[str, Callable[[bytes], Any]], rest: Words, found: dict[str, Any],
) -> None:
    """Parse the second value of the option, the first of the remaining words, into `found`."""
    field, read = second
    if not rest:
        raise ArgumentError(f"{word.decode()} wants two values behind it")
    try:
        found[field] = read(rest[0])
    except WrongWord as error:
        raise WrongWord(error.wanted, error.word, f"the second value of {word.decode()} must be") from None


def unknown_option(word: bytes, table: Table, elsewhere: Mapping[bytes, str] = NOWHERE) -> ArgumentError:
    """Return the error for a word that is not an option here."""
    if word in elsewhere:
        return ArgumentError(elsewhere[word])
    for first, option in table.items():
        before, behind = first, option.behind
        while behind is not None:
            if word == behind[0]:
                return ArgumentError(f"{word.decode()} stands directly behind {before.decode()}")
            before, behind = behind[0], behind[1].behind
    return ArgumentError(f"no option {shown(word)}{suggestion_or_all(word, table)}")


def _second(word: bytes, option: Option, table: Table, before: Words) -> ArgumentError:
    """Return the error for a second option that sets the same field."""
    first = next((one for one in before if one in table and table[one].field == option.field), word)
    if first == word:
        return ArgumentError(f"{word.decode()} is given twice")
    return ArgumentError(f"{first.decode()} and {word.decode()} exclude each other")


def keywords(table: Table) -> str:
    """List the keywords in alphabetical order, each with the ones allowed directly after it."""
    return ", ".join(word.decode() + _behind(table[word]) for word in sorted(table))


def _behind(option: Option) -> str:
    return f" [{option.behind[0].decode()}{_behind(option.behind[1])}]" if option.behind is not None else ""


def one_of(values: Mapping[bytes, Any]) -> Callable[[bytes], Any]:
    """Return a parser that accepts one of these words."""
    wanted = choice([word.decode() for word in values])

    def read(word: bytes) -> Any:
        if word not in values:
            raise WrongWord(wanted, word)
        return values[word]
    return read


def or_off(read: Callable[[bytes], Any], off: Any = 0) -> Callable[[bytes], Any]:
    """Return a parser that also accepts OFF, which removes the setting; its value is then `off`."""
    def read_or_off(word: bytes) -> Any:
        if word == b"OFF":
            return off
        try:
            return read(word)
        except WrongWord as error:
            raise WrongWord(f"{error.wanted}, or OFF", error.word) from None
    return read_or_off


THEN = {b"DONE": Then.DONE, b"LATER": Then.LATER, b"DEAD": Then.DEAD}
POLICIES = {policy.name.encode(): policy for policy in Policy}
OF_LISTS = (Policy.PLACE,)      # for GETs that name queues only
DEFAULT_POLICIES = {word: policy for word, policy in POLICIES.items() if policy not in OF_LISTS}

EXPIRE = Option("expire_ms", milliseconds, behind=(b"THEN", Option("then", one_of(THEN))))
FEEDBACK = {
    b"SLOW": Option("feedback", value=(Feedback.SLOW, 0)),
    b"SLEEP": Option("feedback", lambda word: (Feedback.SLEEP, milliseconds(word))),
}
WHEN = {
    b"DELAY": Option("when", lambda word: Due(delay_ms=milliseconds(word))),
    b"AT": Option("when", lambda word: Due(at_ms=unix_ms(word))),
}
