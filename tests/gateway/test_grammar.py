"""The grammar has no ambiguity (A13): every line a writer can form is read as what he meant."""

from __future__ import annotations

import itertools

from gateway.grammar import VERBS, PutHead
from gateway.requests import Refused
from gateway.values import ArgumentError

WORDS = [b"EXPIRE", b"THEN", b"DONE", b"LATER", b"IS", b"NEW", b"WAIT", b"LAST", b"q", b"5"]
# The original's grammar as printed, a word at a time: a name is any word, seconds are the number.
NAME = set(WORDS)
LEASES: list[list[set[bytes]]] = [[], [{b"EXPIRE"}, {b"5"}], [{b"EXPIRE"}, {b"5"}, {b"THEN"}, {b"DONE", b"LATER"}]]
GET = [[*queues, *lease] for queues in ([], [NAME]) for lease in LEASES]
PUT_TAIL = [[]] + [
    [*item, *wait] for item in ([{b"IS"}, NAME], [{b"NEW"}])
    for wait in ([], *([{b"WAIT"}, NAME, *lease] for lease in LEASES))
]
SYNC_GET = [[NAME, {b"5"}, {b"5"}], [{b"LAST"}, NAME, {b"5"}, {b"5"}]]


def readings(forms: list[list[set[bytes]]], words: tuple[bytes, ...]) -> int:
    return sum(
        len(form) == len(words) and all(word in allowed for word, allowed in zip(words, form, strict=True))
        for form in forms
    )


def accepted(line: tuple[bytes, ...]) -> bool:
    try:
        VERBS[line[0]](list(line))
    except ArgumentError:
        return False
    return True


def test_get_reads_exactly_what_the_original_grammar_forms() -> None:
    for count in range(6):
        for words in itertools.product(WORDS, repeat=count):
            assert accepted((b"GET", *words)) == (readings(GET, words) == 1), words


def test_put_reads_exactly_what_the_original_grammar_forms() -> None:
    for count in range(6):
        for words in itertools.product(WORDS, repeat=count):
            assert accepted((b"PUT", b"q", b"0", b"0", *words)) == (readings(PUT_TAIL, words) == 1), words


def test_sync_get_reads_exactly_what_the_original_grammar_forms() -> None:
    for count in range(6):
        for words in itertools.product(WORDS, repeat=count):
            assert accepted((b"SYNC", b"GET", *words)) == (readings(SYNC_GET, words) >= 1), words


def test_a_long_put_line_keeps_keywords_and_names_apart() -> None:
    head = VERBS[b"PUT"](b"PUT q 0 3 IS WAIT WAIT EXPIRE EXPIRE 5 THEN DONE".split())
    assert isinstance(head, PutHead)
    assert head.item == "WAIT"
    assert head.wait is not None
    assert head.wait.queues == ("EXPIRE",)
    assert head.wait.expire_ms == 5000


def test_requests_that_are_refused_by_rule_are_well_formed() -> None:
    assert isinstance(VERBS[b"SYNC"](b"SYNC GET LAST q 7 3".split()), Refused)
