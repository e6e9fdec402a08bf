"""Names made of any text: the server accepts them, and no two texts have the same name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sockpq._protocol import arguments
from sockpq.names import GROUP_MAX, KEY_MAX, NAME_MAX, escape_group, escape_key, escape_name

TEXTS = st.text(st.sampled_from("aZ0_.@-:+/ \u00fc\U0001f600\n\x00"), max_size=300)


@pytest.mark.parametrize(("text", "name"), [
    ("celery", "celery"), ("a b/\u00fc", "a:20b:2F:C3:BC"), (".hidden", ".hidden"), ("-", "+-"), ("_-", "_-"),
    ("", "+"), ("a:b", "a:3Ab"), ("+", "+:2B"), ("anna@home", "anna@home"),
])
def test_names(text: str, name: str) -> None:
    assert escape_name(text) == name


def test_keys_and_groups_have_no_at_sign() -> None:
    assert escape_key("anna@a b") == escape_group("anna@a b") == "anna:40a:20b"
    assert escape_key("") == escape_group("") == ":"


@pytest.mark.parametrize(("escape", "most"), [
    (escape_name, NAME_MAX), (escape_key, KEY_MAX), (escape_group, GROUP_MAX),
])
def test_long_texts_are_cut_and_stay_different(escape: Callable[[str], str], most: int) -> None:
    first, second = (escape("x" * 300 + end) for end in "ab")
    assert first != second
    assert max(len(first), len(second)) <= most


@given(TEXTS, TEXTS)
def test_the_server_takes_them_and_no_two_texts_share_one(one: str, other: str) -> None:
    assert arguments.name(escape_name(one), "queue")
    assert arguments.name(escape_name(one, "v."), "queue")
    assert arguments.job_key(escape_key(one))
    assert arguments.group(escape_group(one))
    for escape in (escape_name, escape_key, escape_group):
        assert (escape(one) == escape(other)) is (one == other)
