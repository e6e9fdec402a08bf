"""The grammar has no ambiguity: every line that can be written is read as it was meant."""

from __future__ import annotations

import itertools

from sockpqd.core import Get
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.protocol.arguments import ArgumentError
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.responses import NOT_SUPPORTED
from tests.gateway.helpers.parsing import read_line, without_row

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
        VERBS.read(list(line))
    except ArgumentError:
        return False
    return True


# Behind explicit queues there may be words that the original has not, in any order, each at most once. One of the
# original's words is among them.
ITEM: list[set[bytes]] = [{b"IS"}, NAME]
GET_OF_ITEM = [[NAME, *ITEM]] + [
    [NAME, *options] for lease in LEASES[1:] for options in ([*ITEM, *lease], [*lease, *ITEM])
]


def test_get_reads_exactly_what_the_original_grammar_forms() -> None:
    for count in range(6):
        for words in itertools.product(WORDS, repeat=count):
            original, of_item = readings(GET, words), readings(GET_OF_ITEM, words)
            assert accepted((b"GET", *words)) == (original == 1 or of_item == 1), words
            if accepted((b"GET", *words)):
                asked = read_line(b" ".join((b"GET", *words))).operation
                assert isinstance(asked, Get)
                assert (asked.item is None) == (original == 1), words


NEW_WORDS = [b"EXPIRE", b"THEN", b"DONE", b"q", b"5", b"*", b"BOUND"]
OPTIONS: list[list[set[bytes]]] = [
    *LEASES, [{b"BOUND"}],
    *([*lease, {b"BOUND"}] for lease in LEASES[1:]), *([{b"BOUND"}, *lease] for lease in LEASES[1:]),
]
NEW_GET = [*LEASES, *([set(NEW_WORDS), *options] for options in OPTIONS)]


def test_get_reads_new_words_behind_explicit_queues_only() -> None:
    for count in range(7):
        for words in itertools.product(NEW_WORDS, repeat=count):
            assert accepted((b"GET", *words)) == (readings(NEW_GET, words) == 1), words


def test_a_line_of_the_original_keeps_its_meaning() -> None:
    for words in (b"GET BOUND", b"GET BOUND EXPIRE 5", b"GET EXPIRE 5", b"GET EXPIRE EXPIRE 5"):
        assert without_row(read_line(words)) == Command(read_line(words).operation), words
        assert isinstance(read_line(words).operation, Get), words
    assert without_row(read_line(b"GET BOUND BOUND")) == Command(Get(("BOUND",)), bound=True)
    assert read_line(b"GET *") == read_line(b"GET")


def test_behind_req_stands_what_stands_without_it() -> None:
    for verb in (b"PUT q 0 0", b"GET", b"GETB", b"GETBE", b"DONE", b"LATER", b"CLONE"):
        for count in range(4):
            for words in itertools.product([*WORDS, b"*", b"BOUND"], repeat=count):
                command = (*verb.split(), *words)
                assert accepted((b"REQ", b"7", *command)) == accepted(command), command


def test_put_reads_exactly_what_the_original_grammar_forms() -> None:
    for count in range(6):
        for words in itertools.product(WORDS, repeat=count):
            assert accepted((b"PUT", b"q", b"0", b"0", *words)) == (readings(PUT_TAIL, words) == 1), words


def test_sync_get_reads_exactly_what_the_original_grammar_forms() -> None:
    for count in range(6):
        for words in itertools.product(WORDS, repeat=count):
            assert accepted((b"SYNC", b"GET", *words)) == (readings(SYNC_GET, words) >= 1), words


def test_a_long_put_line_keeps_keywords_and_names_apart() -> None:
    put = read_line(b"PUT q 0 3 IS WAIT WAIT EXPIRE EXPIRE 5 THEN DONE")
    assert put.operation.item == "WAIT"
    assert put.wait is not None
    assert put.wait.queues == ("EXPIRE",)
    assert put.wait.expire_ms == 5000


def test_requests_that_are_refused_by_rule_are_well_formed() -> None:
    assert read_line(b"SYNC GET LAST q 7 3").answer == NOT_SUPPORTED
