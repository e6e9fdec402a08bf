"""Users: setting and deleting, the owners of sessions, and what of it all is in snapshots (spec/access 1)."""

from __future__ import annotations

from typing import Any

import pytest

from sockpqd.core import (
    Accepted,
    AttachSession,
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
from sockpqd.core.limits import USERS_MAX
from tests.core.handlers.test_clone import clone_of
from tests.core.helpers.forge import forged
from tests.core.helpers.forged_frames import END, HEAD, RUNNING, WAITING
from tests.core.helpers.logs import ask, restored, snapshot_of
from tests.core.snapshot.test_sessions import SESSIONS, TABLE
from tests.core.snapshot.test_snapshot import refuse

KEY = b"sixteen byte key"
USERS: list[Any] = ["users", [["mailer", "put:mail*,get:mail*", KEY], ["op", "admin", b"\0" * 64]]]



@pytest.fixture
def machine() -> Machine:
    """Return a machine with two users."""
    machine = Machine()
    ask(machine, SetUser("mailer", User("put:mail*", KEY)), SetUser("printer", User("-", KEY[::-1])))
    return machine


def test_users_are_set_changed_and_deleted(machine: Machine) -> None:
    assert ask(machine, SetUser("mailer", User("get", b"new")), SetUser("printer", None), SetUser("printer", None)) == [
        Accepted(), Accepted(), UserNotFound(),
    ]
    assert machine.users == {"mailer": User("get", b"new")}


def test_each_change_makes_another_table_and_nothing_else_does(machine: Machine) -> None:
    before = machine.users
    ask(machine, Put("q", 0, b""), SetUser("nobody", None))
    assert machine.users is before
    ask(machine, SetUser("mailer", User("put:mail*", KEY)))
    assert machine.users is not before
    before = machine.users
    ask(machine, SetUser("printer", None))
    assert machine.users is not before
    assert "printer" in before


def test_there_is_an_end_to_the_number_of_users(machine: Machine) -> None:
    machine.restore([forged(HEAD[:], ["users", [[f"{k:05}", "", b""] for k in range(USERS_MAX)]], ["end", 0, 0])])
    too_many = SetUser("one more", User("", b""))
    assert ask(machine, too_many, SetUser("00007", User("put", b""))) == [TooManyUsers(), Accepted()]
    assert ask(machine, SetUser("00007", None), too_many) == [Accepted(), Accepted()]


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

def test_users_are_restored_with_their_sessions() -> None:
    snapshot = forged(HEAD, WAITING, RUNNING, TABLE, SESSIONS, USERS, END)
    machine = restored(snapshot)
    assert snapshot_of(machine) == snapshot
    assert machine.users == {"mailer": User("put:mail*,get:mail*", KEY), "op": User("admin", b"\0" * 64)}
    assert ask(machine, AttachSession(3, 0, "printer"), AttachSession(3, 0, "mailer")) == [
        SessionNotFound(), SessionAttached(1000, 0),
    ]


def test_many_users_are_restored_from_several_frames() -> None:
    machine = Machine()
    ask(machine, *[SetUser(f"u{k * 7919 % 1000}", User("put", KEY)) for k in range(1000)])
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
    users = SetUser("mailer", User("admin", b"foreign")), SetUser("intruder", User("admin", b"key"))
    ask(other, Put("mail", 0, b"data"), *users)
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
