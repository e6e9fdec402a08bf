"""Headers, keys that are remembered, and texts of errors, against the real gateway in memory."""

from __future__ import annotations

import unicodedata

import pytest
from sockpq import BadArguments, Client, Key, Number
from sockpq._protocol.headers import CONTROL

from tests.client.conftest import MakeClient
from tests.client.real_server import RealServer


@pytest.fixture
def client(server: RealServer, make_client: MakeClient) -> Client:
    """A client that ends before its server, which would wait a second for its connection."""
    return make_client(server.address, timeout=60)


def test_headers_come_with_the_job_or_when_they_are_read(client: Client) -> None:
    client.put("q", b"body", headers={"task": "send", "tenant": "Zoe: a"})
    client.put("q", b"plain")
    first = client.get("q", expire=30, headers=True)
    assert first is not None
    assert (first.data, first.headers) == (b"body", {"task": "send", "tenant": "Zoe: a"})
    first.later(first=True)
    again, plain = client.get_many(2, "q", expire=30, headers=True)
    assert (again.data, again.headers) == (b"body", {"task": "send", "tenant": "Zoe: a"})
    assert (plain.data, plain.headers) == (b"plain", {})


def test_the_blocking_client_asks_for_headers_when_they_are_read() -> None:
    with RealServer() as server, Client(server.address, timeout=60) as client:
        client.put("q", b"body", headers={"task": "send"})
        client.put("q", b"plain")
        taken = client.get_many(2, "q", expire=30)
        assert [job.headers for job in taken] == [{"task": "send"}, {}]


def test_many_jobs_have_headers(client: Client) -> None:
    assert client.put_many("q", [b"1", b"2"], headers={"h": "x"}) == 2
    assert client.put_to(["q", "r"], b"3", headers={"h": "y"}) == 2
    taken = client.get_many(9, "q", expire=30, headers=True, meta=True)
    assert [(job.data, job.headers) for job in taken] == [(b"1", {"h": "x"}), (b"2", {"h": "x"}), (b"3", {"h": "y"})]
    with client.transaction() as t:
        t.put("s", b"4", headers={"h": "z"})
        t.done(taken[0])
    for job in client.consume("s", expire=30, wait=0.1, headers=True, prefetch=2):
        assert (job.data, job.headers) == (b"4", {"h": "z"})


def test_headers_are_changed_and_taken_away(client: Client) -> None:
    client.put("q", b"body", key="k", headers={"a": "1"})
    client.change(Key("q", "k"), headers={"b": "2"})
    seen = client.peek(Key("q", "k"), headers=True)
    assert seen is not None
    assert (seen.data, seen.headers) == (b"body", {"b": "2"})
    job = client.get("q", expire=30, headers=True)
    assert job is not None
    job.change(data=b"other", headers={"c": "3"})
    assert (job.data, job.headers) == (b"other", {"c": "3"})
    job.move("r", headers={})
    (moved,) = client.peek_queue("r", headers=True, places=True)
    assert (moved.data, moved.headers) == (b"other", {})
    assert moved.place is not None


@pytest.mark.parametrize("headers", [
    {"a b": "x"}, {"": "x"}, {"a": "x\n"}, {"a": "x" * 1025}, {str(number): "" for number in range(65)},
    {"a" * 65: ""}, {str(number): "x" * 1000 for number in range(20)},
])
def test_wrong_headers_are_not_sent(client: Client, headers: dict[str, str]) -> None:
    with pytest.raises(BadArguments):
        client.put("q", b"", headers=headers)
    assert client.total("q").jobs == 0


def test_exactly_the_control_characters_of_unicode_are_refused() -> None:
    characters = list(map(chr, range(0x3000)))
    found = [character for character in characters if CONTROL.search(character)]
    assert found == [character for character in characters if unicodedata.category(character) == "Cc"]


def test_a_put_that_is_remembered_is_not_executed_again(client: Client) -> None:
    stored = client.put("q", b"1", dedup=("mail-17", 60), number=True)
    assert (stored.outcome, stored.number is None) == ("new", False)
    again = client.put("q", b"2", dedup=("mail-17", 60), number=True)
    assert (again.outcome, again.number) == ("exists", stored.number)
    assert client.put("q", b"3", dedup=("mail-17", 60)).outcome == "exists"
    assert client.put_to(["q", "r"], b"4", dedup=("mail-17", 60)) == 1
    for wrong in (("mail 17", 60), ("a", 0), "ab"):
        with pytest.raises((BadArguments, TypeError)):
            client.put("q", b"", dedup=wrong)       # type: ignore[arg-type]


def test_the_text_of_an_error_stays_with_the_job(client: Client) -> None:
    number = client.put("q", b"1", number=True).number
    assert number is not None
    job = client.get("q", expire=30)
    assert job is not None
    job.later(reason="broken", error="Traceback: é\n" + "x" * 20_000)
    text = client.job_error(Number(number))
    assert text is not None
    assert text.startswith("Traceback: é\n")
    assert text.endswith("xxx")
    assert "[..]" in text
    assert len(text.encode()) <= 16_384
    job = client.get("q", expire=30)
    assert job is not None
    job.bury(error="gone for good", here=True)
    assert client.job_error(Number(number)) == "gone for good"
    client.kick("q", 1, here=True)
    assert client.job_error(Number(number)) is None

