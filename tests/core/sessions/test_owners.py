"""Sessions cannot be used up: an owner of too many loses its own longest unused one, and nobody else loses any."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core import (
    SESSIONS_MAX,
    Accepted,
    AttachSession,
    CloseSession,
    Done,
    Get,
    Machine,
    OpenSession,
    Operation,
    Put,
    Request,
    SessionNotFound,
    SessionOpened,
    Tick,
    TooManySessions,
    TouchSession,
    limits,
)
from sockpqd.core.sessions import owners as owners_module
from tests.core.helpers.logs import ask, restored, run, snapshot_of

HERE, THERE = "10.0.0.1", "10.0.0.2"
TTL_MS = 900_000
SECONDS = 1800          # of a flood: twice what an unused session lives


def opening(address: str = HERE, owner_max: int | None = 3, user: str = "") -> OpenSession:
    return OpenSession(7, TTL_MS, user, address, owner_max)


def numbers(machine: Machine) -> list[int]:
    return [session.number for session in machine.sessions()]


def test_a_full_owner_loses_its_own_longest_unused_session() -> None:
    machine = Machine()
    for now_ms in range(3):
        run(machine, opening(), opening(THERE), opening(user="ann"), now_ms=now_ms)
    assert numbers(machine) == list(range(1, 10))
    ask(machine, TouchSession(1), now_ms=10)
    assert ask(machine, opening(), now_ms=11) == [SessionOpened(f"10_{7:016x}", TTL_MS)]
    assert numbers(machine) == [1, 2, 3, 5, 6, 7, 8, 9, 10]         # not the 4th of those that were opened here
    assert ask(machine, TouchSession(4), Request(4, 1, b"d", 0, False, Put("q", 0, b""))) == [SessionNotFound()] * 2
    assert machine.sessions_beside(1) == 3


def test_of_those_used_in_one_entry_the_first_one_goes() -> None:
    machine = Machine()
    ask(machine, *[opening()] * 4)
    assert numbers(machine) == [2, 3, 4]


def test_every_kind_of_use_counts() -> None:
    machine = Machine()
    uses: list[Operation] = [
        TouchSession(1), AttachSession(1, 7), Request(1, 1, b"d", 0, False, Done(99)), Get(("none",), session=1),
    ]
    for at, use in enumerate(uses):
        if not at:
            run(machine, opening())
        run(machine, opening(), opening(), now_ms=100 * at)
        run(machine, use, now_ms=100 * at + 50)
        assert 1 in numbers(machine)
    assert ask(machine, AttachSession(1, 8), opening(), opening(), opening(), now_ms=1000)[0] == SessionNotFound()
    assert 1 not in numbers(machine)            # who does not know its secret does not use it


def test_a_session_with_bound_jobs_is_kept() -> None:
    machine = Machine()
    ask(machine, *[opening()] * 3, *[Put("q", 0, b"")] * 3)
    ask(machine, Get(("q",), session=1), Get(("q",), session=2), now_ms=10)
    ask(machine, opening(), now_ms=20)
    assert numbers(machine) == [1, 2, 4]
    ask(machine, Get(("q",), session=4), now_ms=30)
    assert ask(machine, opening(), opening(THERE), now_ms=40) == [
        TooManySessions(), SessionOpened(f"5_{7:016x}", TTL_MS),
    ]
    ask(machine, Done(2), now_ms=50)
    assert isinstance(ask(machine, opening(), now_ms=60)[0], SessionOpened)
    assert numbers(machine) == [1, 4, 5, 6]


def test_a_limit_that_became_smaller_lets_nobody_in_for_free() -> None:
    machine = Machine()
    ask(machine, *[opening(owner_max=5)] * 5)
    ask(machine, opening(owner_max=2), now_ms=10)
    assert numbers(machine) == [2, 3, 4, 5, 6]          # they end gradually, or are used on
    assert ask(machine, opening(THERE, 0)) == [TooManySessions()]


def test_the_end_of_all_places_is_told_and_takes_from_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.limits.SESSIONS_MAX", 4)
    machine = Machine()
    assert ask(machine, *[opening()] * 3, opening(THERE), opening(THERE), opening("10.0.0.3")) == [
        *[SessionOpened(f"{number}_{7:016x}", TTL_MS) for number in (1, 2, 3, 4)], TooManySessions(), TooManySessions(),
    ]
    assert ask(machine, opening(), now_ms=1) == [SessionOpened(f"5_{7:016x}", TTL_MS)]     # in the place of its own
    assert numbers(machine) == [2, 3, 4, 5]
    assert SESSIONS_MAX == 100_000


def test_a_restored_machine_takes_the_same_ones() -> None:
    random = Random(1)
    machine = Machine()
    run(machine, *[Put("q", 0, b"")] * 300)
    for step in range(1, 400):
        address = random.choice([HERE, THERE])
        live = numbers(machine) or [1]
        used = [TouchSession(random.choice(live)), Get(("q",), session=random.choice(live))]
        ended: list[Operation] = [CloseSession(random.choice(live), True), Done(random.randrange(300))]
        found: list[Operation] = [*[opening(address, 8)] * random.randrange(3), *used, random.choice(ended), Tick()]
        copy = restored(snapshot_of(machine))       # its heaps have no history
        assert ask(copy, *found, now_ms=10 * step) == ask(machine, *found, now_ms=10 * step)
        assert snapshot_of(copy) == snapshot_of(machine)


class Counted(tuple):     # type: ignore[type-arg]
    """An entry of the heap that counts how often one was compared with another."""

    compared = 0

    def __lt__(self, other: object) -> bool:
        Counted.compared += 1
        return super().__lt__(other)    # type: ignore[operator]


def test_111_sessions_a_second_for_half_an_hour_do_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is opened by a program that never closes it; one worker is there all the time, others are elsewhere."""
    real = owners_module.heappush
    monkeypatch.setattr(owners_module, "heappush", lambda heap, entry: real(heap, Counted(entry)))
    Counted.compared = 0
    machine = Machine()
    run(machine, opening(THERE, 10_000), opening(THERE, 10_000), opening(owner_max=10_000))
    most = 0
    for second in range(1, SECONDS + 1):
        run(machine, TouchSession(1), *[opening(owner_max=10_000)] * 111, now_ms=1000 * second)
        if second % 10 == 0:
            assert ask(machine, TouchSession(3), now_ms=1000 * second) == [Accepted()]
        if second == 600:
            assert ask(machine, TouchSession(2), now_ms=1000 * second) == [Accepted()]
        most = max(most, machine.session_count)
    opened = SECONDS * 111
    assert most == 10_002
    assert {1, 3} <= {*numbers(machine)[:3]}
    assert Counted.compared < 40 * opened       # by the logarithm of what there is, and not by what there is
    owner = machine._state.sessions.owners._owners["", HERE]
    assert len(owner.unused) <= 2 * owner.sessions + limits.STALE_OWNER_ENTRIES_MAX
    assert len(machine._state.sessions.owners._owners) == 2


def test_sessions_that_are_closed_leave_nothing_behind() -> None:
    machine = Machine()
    for _ in range(1000):
        (opened,) = ask(machine, opening())
        assert isinstance(opened, SessionOpened)
        ask(machine, CloseSession(int(opened.sid.partition("_")[0]), True))
    assert machine._state.sessions.owners._owners == {}
    ask(machine, opening(owner_max=None))
    for _ in range(1000):
        (opened,) = ask(machine, opening(owner_max=None))
        assert isinstance(opened, SessionOpened)
        ask(machine, CloseSession(int(opened.sid.partition("_")[0]), True))
    assert len(machine._state.sessions.owners._owners["", HERE].unused) < 30
