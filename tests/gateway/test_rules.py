"""There is a rule for everything a client can say."""

from __future__ import annotations

import itertools
from types import UnionType
from typing import get_args

import pytest

from core import Put
from gateway import requests, rights
from gateway.answers import FORBIDDEN
from gateway.grammar import CLUSTER, VERBS, Head
from gateway.rules import OPEN, RULES
from gateway.values import ArgumentError
from tests.gateway.fake_cluster import FakeCluster

# What the parser makes by itself, behind a head that was let through, or to end a stream.
NOT_ASKED = {Put, requests.PutWait, requests.CloneStart, requests.CloneData, requests.Broken}
# A word for each place of each line; with them every verb has a line that is right.
WORDS = (
    b"q", b"0", b"1", b"*", b"LIST", b"SET", b"put", b"00112233445566778899aabbccddeeff", b"DONE", b"STATUS", b"user",
)
NOTHING = rights.of_text("-")
EVERYTHING = rights.of_text("admin")


def members(union: object) -> set[type]:
    """The types of a union, those inside of other unions too."""
    return set().union(*map(members, get_args(union))) if isinstance(union, UnionType) else {union}  # type: ignore[arg-type]


def lines(verb: bytes) -> list[list[bytes]]:
    """Short lines of this verb, right ones and wrong ones."""
    found = [[verb, *words] for count in range(4) for words in itertools.product(WORDS, repeat=count)]
    found += [[verb, word] for word in CLUSTER] + [[verb, word, b"n4"] for word in CLUSTER]
    found += [[verb, b"ADD", b"n4", b"h", b"1", b"h", b"2"], [verb, b"1", b"PUT", b"q", b"0", b"1"]]
    found += [[verb, b"SET", b"user", b"put", b"00112233445566778899aabbccddeeff"], [verb, b"1_9f3c5a7e11d0c2b4"]]
    return found


def test_every_request_has_a_rule() -> None:
    assert members(requests.Command) | members(Head) == RULES.keys() | NOT_ASKED
    assert set(OPEN) <= RULES.keys()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_rule(verb: bytes) -> None:
    right = 0
    for words in lines(verb):
        try:
            request = VERBS[verb](list(words))
        except ArgumentError:
            continue
        right += 1
        assert type(request) in RULES, words
        assert RULES[type(request)](EVERYTHING, request, FakeCluster()) in (None, b"404 Job Not Found\r\n"), words
    assert right > 0


# Everything that a user without any right may do; whatever else there is, or will be, is refused.
FREE = {
    b"TOTAL", b"INTERCONNECT", b"SESSION", b"TAKEN", b"PING", b"CAPS", b"QUIT", b"AUTH", b"CLUSTER STATUS",
    b"CLUSTER LEADER", b"CLUSTER HASH", b"SYNC", b"DONE", b"LATER", b"SNAPSHOT",
}


def test_without_a_right_nothing_is_free_but_this() -> None:
    free = set()
    for verb in VERBS:
        for words in lines(verb):
            try:
                request = VERBS[verb](list(words))
            except ArgumentError:
                continue
            if RULES[type(request)](NOTHING, request, FakeCluster()) != FORBIDDEN:
                free.add(b" ".join(words[:2]) if verb == b"CLUSTER" else verb)
    # DONE and LATER of a job that does not run, also with REQ; SNAPSHOT and INTERCONNECT as the original's servers.
    assert free <= FREE | {b"REQ"}
    assert free >= FREE - {b"SNAPSHOT"}
