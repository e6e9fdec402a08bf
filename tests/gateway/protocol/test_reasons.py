"""Behind `400 Bad Arguments` there is a reason, whatever is wrong, and it shows little of what the client sent."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.protocol.command import Row
from sockpqd.gateway.protocol.parser import Parser
from sockpqd.gateway.protocol.reasons import SHOWN_MAX, shown, suggestion
from tests.gateway.helpers.parsing import is_refused, pulled

ROOT = Path(__file__).parents[3]
REASON_BYTES_MAX = 200
BAD = (b"", b"x", b"-1", b"1.5", b"9" * 30, b"\xff\x01'\\", b"a|", b"@t", b"*", b"q*", b"q", b"1", b"n" * 300)
# Lines that begin well, with all keywords behind them: misspelt, twice, without a value, with a bad one.
GOOD = (
    "PUT q 0 1", "PUT q 0 1 NEW WAIT a", "PUT a|b 0 1", "PUT @t 0 1", "GET q", "GET *", "GETB q", "GETBE q",
    "GET NUMBER 5", "DONE 5", "DONE 5 6", "LATER 5", "LATER 5 6", "TOUCH 5", "TOUCH 5 6", "BURY 5", "CHANGE 5",
    "CHANGE KEY q k", "DELETE 5", "DELETE NUMBER 5", "MOVE 5 q", "KICK q 1", "PEEK q READY", "QUEUE CREATE q",
    "QUEUE CONFIG q", "QUEUE PAUSE q OUT", "PULSE CREATE p", "PULSE CONFIG p", "PULSE WAIT p", "PULSE SET p 1",
    "PULSE RESULT 5 OK", "PULSE RESULT 5 SLEEP 3", "SCHED CONFIG", "CONFIG", "WORKER SET w", "WORKER w 1 1",
    "TOPIC BIND t q", "SUBSCRIBE FINQ", "SUBSCRIBE FINQ q", "SESSION CLOSE", "SESSION", "SNAPSHOT", "SYNC PUT q 0 1",
)
KEYWORDS = sorted({
    word.encode() for path in (ROOT / "gateway" / "protocol" / "grammar").rglob("*.py")
    for word in re.findall(r'b"([A-Z]+)"', path.read_text())
})


def answers(line: bytes) -> list[bytes]:
    """Return all that a client gets at once for this line and what may follow it."""
    parser = Parser(Limits(), VERBS)
    parser.feed(line + b"\r\nxyz")
    found = []
    for command in pulled(parser):
        if command.answer is not None:
            found.append(command.answer)
        found += [one for one in command.arguments if isinstance(one, bytes)] if command.row.word == b"PUTS" else []
    return found


def lines_of(row: Row) -> Iterator[bytes]:
    for count in range(4):
        for words in itertools.product(BAD, repeat=count):
            yield b" ".join((row.word, *words))
    for count in (4, 5, 6):
        for word in BAD:
            yield b" ".join((row.word, *[word] * count))


def check(line: bytes) -> int:
    """Checks the reasons of what is refused; returns how many there were."""
    bad = [answer for answer in answers(line) if answer.startswith(b"400 Bad Arguments")]
    for answer in bad:
        assert re.fullmatch(rb"400 Bad Arguments: [ -~]+\r\n", answer), (line, answer)
        assert len(answer) <= REASON_BYTES_MAX, (line, answer)
        assert all(len(word) <= SHOWN_MAX for word in re.findall(rb"'([^']*)'", answer)), (line, answer)
        assert b"n" * (SHOWN_MAX + 1) not in answer
    return len(bad)


@pytest.mark.parametrize("word", sorted({row.word for row in VERBS.rows}), ids=bytes.decode)
def test_every_verb_gives_a_reason_for_any_bad_arguments(word: bytes) -> None:
    row = next(row for row in VERBS.rows if row.word == word)
    assert sum(check(line) for line in lines_of(row)) > 100
    assert check(b"REQ " + word)
    assert check(b"REQ 0 " + word)


@pytest.mark.parametrize("good", GOOD)
def test_every_option_gives_a_reason(good: str) -> None:
    line = good.encode()
    for word in KEYWORDS:
        for more in ([word], [word, b"\xff"], [word, word], [word, b"1", word, b"1"], [word.lower(), b"1"]):
            check(b" ".join((line, *more)))


@pytest.mark.parametrize(("line", "reason"), [
    ("PUT q 0 1 DELAY 5 IS x", "IS stands directly behind the length"),
    ("PUT q 0 1 DELAY x", "DELAY wants seconds, not 'x'"),
    ("PUT q high 1", "the priority must be an integer of 64 bits, not 'high'"),
    ("GET q expire 5", "no option 'expire' (EXPIRE?)"),
    ("GET q EXIPRE 5", "no option 'EXIPRE' (EXPIRE?)"),
    ("GET q EXPIRE 9999999999", "EXPIRE wants at most 4294967295 seconds, not '9999999999'"),
    ("GET q COUNT 1 THEN DONE", "THEN stands directly behind EXPIRE"),
    ("GET q WITHIN 5", "WITHIN is for GETB and GETBE: GET does not wait"),
    ("LATER 5 DELAY 1 AT 1", "DELAY and AT exclude each other"),
    ("LATER 5 PRI 1 PRI 1", "PRI is given twice"),
    ("DONE 5 Last", "no option 'Last' (LAST?)"),
    ("QUEUE LIST mail", "QUEUE LIST takes a prefix: mail*"),
    ("QUEUE LISTS", "QUEUE wants CREATE, CONFIG, DELETE, PURGE, MOVE, PAUSE, RESUME, STAT or LIST, not 'LISTS'"),
    ("QUEUE CREATE q TRIES 3 DEAD q", "DEAD wants another queue"),
    ("TOUCH 5 x\x00y", "no option 'x\\x00y'; there are EXPIRE, RAN and PROGRESS"),
    ("LATER 5 PRIORITY 3", "no option 'PRIORITY' (PRI?)"),
    ("QUEUE CONFIG q FOO 3", "no option 'FOO'; HELP and the command show all"),
])
def test_reasons_say_what_is_wanted(line: str, reason: str) -> None:
    assert answers(line.encode())[0] == f"400 Bad Arguments: {reason}\r\n".encode()


@pytest.mark.parametrize("line", [
    "AUTH top/secret x", "AUTH top/secret", "AUTH top/secret x y", "USER SET ann put top/secret",
    "SESSION 7_top/secret", "SESSION KEEP 7_top/secret",
])
def test_secrets_are_not_shown(line: str) -> None:
    assert is_refused(line)
    assert b"top" not in answers(line.encode())[0]


def test_a_word_is_shown_in_a_safe_form() -> None:
    assert shown(b"mail") == "'mail'"
    assert shown(b"a'b\\c\r\n\x7f\xe4") == "'a\\x27b\\x5cc\\x0d\\x0a\\x7f\\xe4'"
    assert shown(b"n" * 40) == f"'{'n' * 40}'"
    assert shown(b"n" * 1000) == f"'{'n' * 40}'.."


@pytest.mark.parametrize(("word", "known"), [
    (b"expire", b"EXPIRE"), (b"EXPIR", b"EXPIRE"), (b"EXPIREE", b"EXPIRE"), (b"EXPYRE", b"EXPIRE"),
    (b"XEPIRE", b"EXPIRE"), (b"EXPIER", b"EXPIRE"), (b"COUNTS", b"COUNT"), (b"EXPAIR", None), (b"E", None),
    (b"", None), (b"EXPIREEXPIREEXPIREEXPIREE", None), (b"XPIREE", None),
])
def test_one_slip_is_recognized(word: bytes, known: bytes | None) -> None:
    assert suggestion(word, (b"IS", b"EXPIRE", b"COUNT")) == ("" if known is None else f" ({known.decode()}?)")
