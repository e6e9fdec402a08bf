"""The data after a malformed line: an option shows their length, if it stands as an option and its value ends the line.
"""

from __future__ import annotations

import pytest

from sockpqd.gateway.protocol.arguments import ArgumentError, unsigned
from sockpqd.gateway.protocol.grammar.parts.bodies import with_option
from sockpqd.gateway.protocol.grammar.parts.options import Option, read_options

TABLE = {
    b"PRI": Option("priority", unsigned), b"FIRST": Option("first"), b"HEAD": Option(
        "head", unsigned, data=True, behind=(b"DATA", Option("length", unsigned, data=True))),
    b"ERROR": Option("error", unsigned, data=True),
}
BODY = with_option(TABLE, lambda words: 2)


@pytest.mark.parametrize(("line", "length"), [
    ("LATER 5 ERROR 7", 7), ("LATER x ERROR 7", 7), ("LATER 5 6 ERROR 7", 7), ("LATER 5 FIRST ERROR 7", 7),
    ("LATER 5 PRI 1 ERROR 7", 7), ("LATER 5 PRI x BOGUS ERROR 7", 7), ("LATER 5 HEAD 3 ERROR 7", 7),
    ("LATER 5 PRI ERROR 7", 0),             # the value of PRI
    ("LATER 5 ERROR 7 FIRST", 0), ("LATER 5 ERROR 7 PRI 1", 0), ("LATER 5 ERROR", 0), ("LATER ERROR 7", 0),
    ("LATER 5 PRI 1", 0), ("LATER 5 FIRST 1", 0), ("LATER 5", 0), ("LATER", 0), ("LATER 5 ERROR x", None),
])
def test_data_follow_if_the_last_word_but_one_is_an_option_with_data(line: str, length: int | None) -> None:
    assert BODY.length(line.encode().split()) == length


@pytest.mark.parametrize(("line", "found"), [
    ("ERROR 7", {"error": 7}), ("PRI 1 FIRST ERROR 7", {"priority": 1, "first": True, "error": 7}),
    ("HEAD 3 DATA 9", {"head": 3, "length": 9}),
])
def test_an_option_with_data_ends_its_line(line: str, found: dict[str, object]) -> None:
    assert read_options(line.encode().split(), 0, TABLE) == found


@pytest.mark.parametrize(("line", "reason"), [
    ("ERROR 7 FIRST", "ERROR stands at the end of the line"),
    ("HEAD 3 PRI 1 DATA 9", "DATA stands directly behind HEAD"),
    ("HEAD 3 FIRST", "HEAD stands at the end of the line"),
])
def test_nothing_stands_behind_an_option_with_data(line: str, reason: str) -> None:
    with pytest.raises(ArgumentError) as error:
        read_options(line.encode().split(), 0, TABLE)
    assert error.value.reason == reason
