"""Headers: what they may be, and that a job with nothing else is as any plain one."""

from __future__ import annotations

import pytest

from sockpqd.core import Change, Get, GetWith, JobState, Machine, Put, PutWith, Selector, wrong_headers
from sockpqd.core.pages.extras import fit_pages
from sockpqd.core.store.headers import has_header
from sockpqd.core.store.job import Extras, Job, extras_of_many
from tests.core.helpers.logs import ask, lead, run

GOOD = b"task: send\nempty: \nA.b-C_9: \xc3\xa4:  x \n"


@pytest.mark.parametrize("block", [
    b"", GOOD, b"a: 1\nab: 2\n", b"ab: 1\na: 2\n", b"n" * 64 + b": " + b"v" * 1024 + b"\n",
    b"".join(b"n%d: \n" % number for number in range(64)),
])
def test_good_headers(block: bytes) -> None:
    assert wrong_headers(block) is None


@pytest.mark.parametrize(("block", "why"), [
    (b"a: 1", "each header ends with LF"), (b"a: 1\n\n", "header 2 is not"), (b"\n", "header 1 is not"),
    (b"a:1\n", "header 1 is not"), (b": 1\n", "header 1 is not"), (b"a b: 1\n", "header 1 is not"),
    (b"\xc3\xa4: 1\n", "header 1 is not"), (b"n" * 65 + b": 1\n", "header 1 is not"),
    (b"a: 1\nb: " + b"v" * 1025 + b"\n", "header 2 has more than 1024"), (b"a: 1\na: 2\n", "two headers have one name"),
    (b"a: 1\r\n", "control"), (b"a: \x00\n", "control"), (b"a: \x7f\n", "control"), (b"a: \xc2\x85\n", "control"),
    (b"a: \t\n", "control"), (b"a: \xff\n", "UTF-8"),
    (b"".join(b"n%d: \n" % number for number in range(65)), "more than 64"),
    (b"".join(b"n%d: %s\n" % (number, b"v" * 1000) for number in range(17)), "more than 16384"),
])
def test_wrong_headers(block: bytes, why: str) -> None:
    found = wrong_headers(block)
    assert found is not None
    assert why in found


def test_one_header() -> None:
    for line in (b"task: send\n", b"empty: \n", b"A.b-C_9: \xc3\xa4:  x \n"):
        assert has_header(GOOD, line)
    for line in (b"tas: send\n", b"ask: send\n", b"task: sen\n", b"task: \n", b"empty: x\n", b"A.b-C.9: x\n"):
        assert not has_header(GOOD, line)


def test_a_job_with_headers_only_is_paged_as_a_plain_one() -> None:
    def job(extras: Extras | None) -> Job:
        return Job(0, 0, 1, "q", b"a: 1\nx", None, 0, None, extras)

    plain = extras_of_many(None, None, None, None, None, head=5)
    keyed, tried = Extras(key="k", head=5), extras_of_many(2, None, None, None, None, head=5)
    assert fit_pages([job(None), job(plain), job(keyed), job(tried), job(plain)]) == [True, True, False, False, True]


@pytest.mark.parametrize("number", [False, True])
def test_who_does_not_ask_gets_the_body(number: bool) -> None:
    machine = Machine()
    run(machine, lead())
    ask(machine, PutWith(Put("q", 0, b"a: 1\nbody"), head=5, number=number))
    (reply,) = ask(machine, Get(("q",)))
    assert (reply.data, reply.head) == (b"body", reply.turned)          # unset
    (view,) = machine.peek_queue("q", JobState.RUNNING, 1)
    assert (view.headers(), view.body(), view.body_bytes) == (b"a: 1\n", b"body", 4)


def test_what_stays_of_the_data_is_kept() -> None:
    machine = Machine()
    run(machine, lead())
    ask(machine, PutWith(Put("q", 0, b"a: 1\nbody"), head=5, key="k"))
    key = Selector(queue="q", key="k")
    for change, headers, body in [
        (Change(key, data=b"x"), b"a: 1\n", b"x"), (Change(key, headers=b"b: 22\n"), b"b: 22\n", b"x"),
        (Change(key, headers=b"", data=b"yy"), b"", b"yy"), (Change(key, headers=b"c: \n"), b"c: \n", b"yy"),
        (Change(key, headers=b""), b"", b"yy"), (Change(key, priority=3), b"", b"yy"),
    ]:
        ask(machine, change)
        (view,) = machine.peek_queue("q", JobState.READY, 1)
        assert (view.headers(), view.body()) == (headers, body)
    (reply,) = ask(machine, GetWith(Get(("q",)), head=True))
    assert (reply.data, reply.head) == (b"yy", 0)
