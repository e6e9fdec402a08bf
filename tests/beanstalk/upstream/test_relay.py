"""The relay that counts ids from 1."""

from __future__ import annotations

import pytest

from tests.beanstalk.upstream.relay import Answers, Ids, Requests

LARGE = 1740800000000000


def test_ids_are_counted_from_1_in_all_answers() -> None:
    answers = Answers(Ids())
    assert answers.feed(b"INSERTED %d\r\nINSERTED %d\r\n" % (LARGE, LARGE + 5)) == b"INSERTED 1\r\nINSERTED 2\r\n"
    assert answers.feed(b"RESERVED %d 6\r\na\r\n" % (LARGE + 5)) == b""
    assert answers.feed(b"b c\r\nFOUND %d 0\r\n\r\n" % LARGE) == b"RESERVED 2 6\r\na\r\nb c\r\nFOUND 1 0\r\n\r\n"
    body = b"---\nid: %d\ntube: x\n" % LARGE
    assert answers.feed(b"OK %d\r\n%b\r\n" % (len(body), body)) == b"OK 18\r\n---\nid: 1\ntube: x\n\r\n"
    assert answers.feed(b"OK 8\r\n---\n- x\n\r\nNOT_FOUND\r\n") == b"OK 8\r\n---\n- x\n\r\nNOT_FOUND\r\n"


def test_ids_that_are_known_are_those_of_the_server_in_all_commands() -> None:
    ids = Ids()
    Answers(ids).feed(b"INSERTED %d\r\n" % LARGE)
    requests = Requests(ids)
    assert requests.feed(b"delete 1\r\nrelease  1 0 0\r\n") == b"delete %d\r\nrelease  %d 0 0\r\n" % (LARGE, LARGE)
    assert requests.feed(b"peek 2\r\nbury x\r\ntouch 99999999999999999999999999\r\n") \
        == b"peek 2\r\nbury x\r\ntouch 99999999999999999999999999\r\n"
    ids.forget()
    assert requests.feed(b"delete 1\r\n") == b"delete 1\r\n"


@pytest.mark.parametrize("data", [b"put 0 0 1 10\r\ndelete 1\r\n\r\n", b"put 0 0 1 8\r\ndelete 1\r\n"])
def test_bodies_pass_as_they_are(data: bytes) -> None:
    ids = Ids()
    Answers(ids).feed(b"INSERTED %d\r\n" % LARGE)
    assert Requests(ids).feed(data) == data
    requests = Requests(ids)
    assert b"".join(requests.feed(bytes([byte])) for byte in data) == data


def test_what_is_no_line_yet_comes_at_the_end() -> None:
    requests = Requests(Ids())
    assert requests.feed(b"delete 1") == b""
    assert requests.rest() == b"delete 1"
