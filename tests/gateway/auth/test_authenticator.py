"""Authentication: its results, its duration, and its log lines."""

from __future__ import annotations

import asyncio
import hmac
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sockpqd.cluster.wire import refusal_log
from sockpqd.core import Machine, SetUser, User
from sockpqd.gateway import rights
from sockpqd.gateway.auth import scrypt
from sockpqd.gateway.auth.authenticator import Access
from sockpqd.gateway.auth.scrypt import Scrypt
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.config import ConfigError
from sockpqd.gateway.limits import SCRYPTS_MAX
from tests.core.helpers.logs import ask
from tests.gateway.helpers.memory import access_of

KEY = b"secret-of-the-mailer"
PUT, GET = rights.of_text("put:mail*"), rights.of_text("get")
USERS = {"op": Account(PUT, None, scrypt.hashed("right")), "mail": Account(GET, KEY)}


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """Return the parameters of all secrets that were hashed."""
    found: list[tuple[int, int, int]] = []
    matches = Scrypt.matches

    def counted(self: Scrypt, secret: str) -> bool:
        found.append((self.n, self.r, self.p))
        return matches(self, secret)

    monkeypatch.setattr(Scrypt, "matches", counted)
    return found


def run(test: Callable[[Access], Awaitable[Any]], access: Access | None = None) -> None:
    """Run the test with the users of this file."""
    async def attached() -> None:
        found = access or access_of(USERS)
        found.attach(Machine())
        await test(found)
    asyncio.run(attached())


def test_secrets_are_checked() -> None:
    async def test(access: Access) -> None:
        assert await access.check("op", "right") == PUT
        assert await access.check("op", "wrong") is None
        assert await access.check("mail", KEY.decode()) == GET
        assert await access.check("mail", KEY.hex()) is None
        assert await access.check("mail", "") is None
        assert await access.check("nobody", "right") is None
        assert await access.check("mail", "\0é") is None
    run(test)


@pytest.mark.parametrize(("then", "found"), [
    ({}, None), ({"op": Account(PUT, None, scrypt.hashed("other"))}, None), ({"op": Account(PUT, KEY)}, None),
    ({"op": Account(GET, None, USERS["op"].scrypt)}, GET),
])
def test_a_user_who_changes_while_the_secret_is_hashed_is_the_changed_one(
    then: dict[str, Account], found: rights.Rights | None, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(access: Access) -> None:
        matches = Scrypt.matches

        def changed_meanwhile(self: Scrypt, secret: str) -> bool:
            access.file_users = then
            return matches(self, secret)

        monkeypatch.setattr(Scrypt, "matches", changed_meanwhile)
        assert await access.check("op", "right") == found
    run(test)


def test_whoever_is_wrong_in_whatever_way_costs_the_same(hashed: list[tuple[int, int, int]]) -> None:
    async def test(access: Access) -> None:
        for user in ("op", "mail", "nobody"):
            assert await access.check(user, "wrong") is None
            assert hashed == [(scrypt.N, scrypt.R, scrypt.P)], user
            hashed.clear()
    run(test)


def test_who_was_right_is_not_hashed_again_until_something_changes(hashed: list[tuple[int, int, int]]) -> None:
    async def test(access: Access) -> None:
        for _ in range(3):
            assert await access.check("op", "right") == PUT
        assert len(hashed) == 1
        assert await access.check("op", "wrong") is None
        assert len(hashed) == 2
        access.file_users = {"op": Account(PUT, None, scrypt.hashed("other"))}
        assert await access.check("op", "right") is None
        assert await access.check("op", "other") == PUT
        assert len(hashed) == 4
        access.file_users = {}
        assert await access.check("op", "other") is None
    run(test)


def test_a_fleet_of_one_user_is_hashed_once_and_no_more_than_two_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, most, calls, lock = 0, 0, 0, threading.Lock()

    def slow(self: Scrypt, secret: str) -> bool:
        nonlocal now, most, calls
        with lock:
            now, calls = now + 1, calls + 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1
        return secret == "right"

    async def test(access: Access) -> None:
        access.threads = ThreadPoolExecutor(SCRYPTS_MAX)
        found = await asyncio.gather(*[access.check("op", "right") for _ in range(50)])
        assert found == [PUT] * 50
        assert calls <= SCRYPTS_MAX
        await asyncio.gather(*[access.check("op", f"wrong {number}") for number in range(6)])
        assert most == SCRYPTS_MAX
        access.threads.shutdown()

    monkeypatch.setattr(Scrypt, "matches", slow)
    run(test)


def test_the_loop_goes_on_while_secrets_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    hashing, going_on = threading.Event(), threading.Event()

    def stuck(self: Scrypt, secret: str) -> bool:
        hashing.set()
        return going_on.wait(60)

    async def test(access: Access) -> None:
        access.threads = ThreadPoolExecutor(SCRYPTS_MAX)
        asked = asyncio.ensure_future(access.check("op", "right"))
        while not hashing.is_set():
            await asyncio.sleep(0.001)
        assert not asked.done()
        going_on.set()
        assert await asked == PUT
        access.threads.shutdown()

    monkeypatch.setattr(Scrypt, "matches", stuck)
    run(test)


@pytest.mark.parametrize("guesser", ["10.0.0.9", "2001:db8::%x"])
def test_a_flood_of_guesses_holds_up_neither_keys_nor_other_hosts(
    guesser: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    going_on = threading.Event()
    seen: list[str] = []

    def stuck(self: Scrypt, secret: str) -> bool:
        seen.append(secret)
        going_on.wait(2)
        return secret == "right"

    async def test(access: Access) -> None:
        access.threads = ThreadPoolExecutor(SCRYPTS_MAX)
        hosts = [guesser % number if "%" in guesser else guesser for number in range(30)]      # all of one /64
        guesses = [asyncio.ensure_future(access.check("op", f"wrong {number}", f"{host}:{number}"))
                   for number, host in enumerate(hosts)]
        while len(seen) < SCRYPTS_MAX:
            await asyncio.sleep(0.001)
        assert await access.check("mail", KEY.decode(), "10.0.0.9:99") == GET
        assert len(seen) == SCRYPTS_MAX
        honest = asyncio.ensure_future(access.check("op", "right", "10.0.0.7:1"))
        await asyncio.sleep(0)
        going_on.set()
        assert await honest == PUT
        assert seen.index("right") <= 2 * SCRYPTS_MAX
        await asyncio.gather(*guesses)
        access.threads.shutdown()

    monkeypatch.setattr(Scrypt, "matches", stuck)
    run(test)


def test_a_refusal_comes_late_however_it_was_found() -> None:
    async def test(access: Access) -> None:
        access.failure_s = 0.2
        for user in ("op", "nobody"):
            began = time.monotonic()
            assert await access.check(user, "wrong") is None
            assert time.monotonic() - began >= 0.19
    run(test)


def test_a_challenge_is_answered_by_users_with_a_key_only() -> None:
    async def test(access: Access) -> None:
        nonce = access.new_nonce()
        assert nonce != access.new_nonce()
        assert access.answers("mail", nonce, hmac.digest(KEY, nonce, "sha256"))
        assert not access.answers("mail", access.new_nonce(), hmac.digest(KEY, nonce, "sha256"))
        for user, key in (("mail", b"wrong"), ("op", b"right"), ("op", b""), ("nobody", KEY), ("nobody", b"")):
            assert not access.answers(user, nonce, hmac.digest(key, nonce, "sha256"))
        assert not access.answers("mail", nonce, b"")
    run(test)


def test_users_of_the_file_go_before_those_of_the_log() -> None:
    async def test(access: Access) -> None:
        key = b"another sixteen."
        ask(access.machine, SetUser("mail", User("admin", key)), SetUser("print", User("put", key)))
        assert await access.check("mail", "another sixteen.") is None
        assert await access.check("mail", KEY.decode()) == GET
        assert await access.check("print", "another sixteen.") == rights.of_text("put")
        assert access.listed(access.names()) == [
            ("mail", "get", "FILE"), ("op", "put:mail*", "FILE"), ("print", "put", "LOG"),
        ]
    run(test)


def test_reload_takes_a_good_file_and_leaves_things_as_they_are_for_a_bad_one(caplog: pytest.LogCaptureFixture) -> None:
    users: list[dict[str, Account] | None] = [USERS, {"op": USERS["op"]}, None]

    def read_file() -> dict[str, Account]:
        found = users.pop(0)
        if found is None:
            raise ConfigError("auth.users_file: users.op.rights: must be a list")
        return found

    access = Access(read_file)
    assert access.required
    assert access.account("mail") == USERS["mail"]
    caplog.set_level(logging.INFO)
    access.reload()
    assert access.file_users == {"op": USERS["op"]}
    assert "reloaded the users file; users: 1" in caplog.text
    access.reload()
    assert access.file_users == {"op": USERS["op"]}
    assert "correct it and send SIGHUP again: auth.users_file: users.op.rights" in caplog.text
    assert caplog.records[-1].levelname == "ERROR"
    Access().reload()
    assert not Access().required


def test_refused_attempts_name_known_users_only(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def test(access: Access) -> None:
        assert await access.check("op", "top secret", "10.0.0.9:5") is None
        assert await access.check("typed-here-by-mistake", "op", "10.0.0.9:6") is None
    monkeypatch.setattr(refusal_log, "AT_MOST_EVERY_S", 0.0)
    monkeypatch.setattr(scrypt, "_digest", lambda *arguments: b"x")
    run(test)
    assert [record.getMessage() for record in caplog.records] == [
        "refused: 10.0.0.9:5: wrong user or secret, user op",
        "refused: 10.0.0.9:6: wrong user or secret, unknown user",
    ]
