"""Users: setting and deleting, whose a session is, and what of it all is in snapshots (spec/access 1)."""

from __future__ import annotations

from typing import Any

import pytest

from core import (
    Accepted,
    AttachSession,
    DeleteUser,
    Machine,
    OpenSession,
    Put,
    SessionAttached,
    SessionNotFound,
    SetUser,
    TooManyUsers,
    User,
    UserNotFound,
)
from core.ops.users import USERS_MAX
from tests.core.forge import forged
from tests.core.forged_frames import END, END_3, HEAD, HEAD_4, RUNNING, RUNNING_3, UPGRADED, WAITING, WAITING_3
from tests.core.logs import ask, restored, snapshot_of
from tests.core.test_clone import clone_of
from tests.core.test_session_snapshot import FORMAT_2, SESSIONS, SESSIONS_4, TABLE
from tests.core.test_snapshot import refuse

KEY = b"sixteen byte key"
USERS: list[Any] = ["users", [["mailer", "put:mail*,get:mail*", KEY], ["op", "admin", b"\0" * 64]]]

# Everything of test_session_snapshot.py and these users, as bytes on a disk. Never edited.
FORMAT_3 = bytes.fromhex(
    "505152414654310a000000030000003adc0010a4686561640901a26e31cd03e8c4026964019292a26e310192a26e3202020a"
    "14059293a26e31a3683a31a3683a3293a26e32a0a0c003c20000001b93a777616974696e67a17192940003c0c40161940004"
    "a178c401620000002792a772756e6e696e67929901a1710001c0c40163cd05dc01c29902a1720002a178c40164c001c30000"
    "000c93a873657373696f6e7309030000014192a773657373696f6e939902cfffffffffffffffffcdea60cdee48c2c2979303"
    "c408646967657374203191920092a673746f726564c09304c408646967657374203192920092a673746f726564a269319201"
    "92a668616e646564029305c408646967657374203291920092a668616e646564079306c4086469676573742032909307c408"
    "646967657374203192920092a5656d707479c3920192a5656d707479c29308c40864696765737420319292fd93a866696e69"
    "73686564c3c292cfffffffffffffffff92a5706c61696ea861636365707465649342c408646967657374203193920092a570"
    "6c61696ea96e6f7420666f756e64920192a5706c61696ea7696e76616c6964920292a5706c61696eaa6e6f2073657373696f"
    "6e9101a0990300cd03e8cd05dcc3c29090a66d61696c6572990805cd03e8cd0384c2c3909102a00000008292a57573657273"
    "9293a66d61696c6572b37075743a6d61696c2a2c6765743a6d61696c2ac4107369787465656e2062797465206b657993a26f"
    "70a561646d696ec4400000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000000000000000000000000793a3656e6402027f24e99d26d8b7369d688d520a8ba8d1"
    "a933236ae9e2cae24d955d31ebdbc4f5"
)


@pytest.fixture
def machine() -> Machine:
    """With two users."""
    machine = Machine()
    ask(machine, SetUser("mailer", "put:mail*", KEY), SetUser("printer", "-", KEY[::-1]))
    return machine


def test_users_are_set_changed_and_deleted(machine: Machine) -> None:
    assert ask(machine, SetUser("mailer", "get", b"new"), DeleteUser("printer"), DeleteUser("printer")) == [
        Accepted(), Accepted(), UserNotFound(),
    ]
    assert machine.users == {"mailer": User("get", b"new")}


def test_each_change_makes_another_table_and_nothing_else_does(machine: Machine) -> None:
    before = machine.users
    ask(machine, Put("q", 0, b""), DeleteUser("nobody"))
    assert machine.users is before
    ask(machine, SetUser("mailer", "put:mail*", KEY))
    assert machine.users is not before
    before = machine.users
    ask(machine, DeleteUser("printer"))
    assert machine.users is not before
    assert "printer" in before


def test_there_is_an_end_to_the_number_of_users(machine: Machine) -> None:
    machine.restore([forged(HEAD[:], ["users", [[f"{k:05}", "", b""] for k in range(USERS_MAX)]], ["end", 0, 0])])
    assert ask(machine, SetUser("one more", "", b""), SetUser("00007", "put", b"")) == [TooManyUsers(), Accepted()]
    assert ask(machine, DeleteUser("00007"), SetUser("one more", "", b"")) == [Accepted(), Accepted()]


# --- sessions

@pytest.mark.parametrize(
    ("owner", "comer", "welcome"),
    [("", "", True), ("a", "a", True), ("a", "b", False), ("", "b", True), ("a", "", True)],
)
def test_a_session_is_there_for_its_user_only(owner: str, comer: str, welcome: bool) -> None:
    machine = Machine()
    ask(machine, OpenSession(7, 60_000, owner))
    reply = SessionAttached(60_000, 0) if welcome else SessionNotFound()
    assert ask(machine, AttachSession(1, 7, comer)) == [reply]
    assert ask(restored(snapshot_of(machine)), AttachSession(1, 7, comer)) == [reply]


def test_another_user_does_not_keep_a_session_alive() -> None:
    machine = Machine()
    ask(machine, OpenSession(7, 1000, "a"))
    ask(machine, AttachSession(1, 7, "b"), now_ms=900)
    assert ask(machine, AttachSession(1, 7, "a"), now_ms=1100) == [SessionNotFound()]


# --- snapshots

def test_snapshot_of_format_3_is_read_as_ever() -> None:
    assert forged(HEAD_4, WAITING_3, RUNNING_3, TABLE, SESSIONS_4, USERS, END_3, number=3) == FORMAT_3
    machine = restored(FORMAT_3)
    unlocated = ["session", [[*row[:-2], "", row[-1]] for row in SESSIONS[1]]]
    assert snapshot_of(machine) == forged(UPGRADED, WAITING, RUNNING, TABLE, unlocated, USERS, END)
    assert machine.users == {"mailer": User("put:mail*,get:mail*", KEY), "op": User("admin", b"\0" * 64)}
    assert ask(machine, AttachSession(3, 0, "printer"), AttachSession(3, 0, "mailer")) == [
        SessionNotFound(), SessionAttached(1000, 0),
    ]


def test_format_2_knew_no_users() -> None:
    assert restored(FORMAT_2).users == {}


def test_many_users_are_restored_from_several_frames() -> None:
    machine = Machine()
    ask(machine, *[SetUser(f"u{k * 7919 % 1000}", "put", KEY) for k in range(1000)])
    snapshot = snapshot_of(machine)
    assert snapshot.count(b"\xa5users") == 10
    assert snapshot_of(restored(snapshot)) == snapshot
    assert restored(snapshot).users == machine.users


def test_what_goes_to_clients_has_no_keys_in_it(machine: Machine) -> None:
    ask(machine, Put("mail", 0, b"data"))
    export = b"".join(machine.export())
    assert b"data" in export
    assert KEY not in export
    assert KEY[::-1] not in export
    assert restored(export).users == {}
    assert KEY in snapshot_of(machine)


@pytest.mark.parametrize("with_users", [False, True])
def test_clone_leaves_users_alone(machine: Machine, with_users: bool) -> None:
    other = Machine()
    ask(other, Put("mail", 0, b"data"), SetUser("mailer", "admin", b"foreign"), SetUser("intruder", "admin", b"key"))
    snapshot = snapshot_of(other) if with_users else b"".join(other.export())
    before = machine.users
    assert ask(machine, *clone_of(snapshot))[-1] == Accepted()
    assert machine.total(None).jobs == 1
    assert machine.users is before


@pytest.mark.parametrize(
    "frames",
    {
        "users fall": (["users", [["b", "", b""], ["a", "", b""]]],),
        "user twice": (["users", [["a", "", b""], ["a", "", b""]]],),
        "user twice in two frames": (["users", [["a", "", b""]]], ["users", [["a", "", b""]]]),
        "user without a name": (["users", [["", "", b""]]],),
        "text for a key": (["users", [["a", "", "key"]]],),
        "no rights": (["users", [["a", None, b""]]],),
        "user with a tail": (["users", [["a", "", b"", 1]]],),
        "users before sessions": (["users", []], ["sessions", 9, 0]),
        "clone before users": (["clone", 1, 10], ["users", []]),
    }.items(),
    ids=lambda case: case[0],
)
def test_inconsistent_users_are_refused(machine: Machine, frames: tuple[str, tuple[object, ...]]) -> None:
    refuse(machine, forged(HEAD, *frames[1], ["end", 0, 0]))
