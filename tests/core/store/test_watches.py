"""Watches follow a job from seq to seq, and leave nothing when nobody waits any more."""

from __future__ import annotations

from random import Random

from sockpqd.core.store.watches import Handles, Watches


class Steps:
    """Undoes the recorded steps, the last one first."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches
        self._steps: list[tuple[int, int | Handles]] = []

    def carried(self, old: int, new: int) -> None:
        self._steps.append((old, new))

    def unwatched(self, seq: int, handles: Handles) -> None:
        self._steps.append((seq, handles))

    def back(self) -> None:
        for seq, step in reversed(self._steps):
            if isinstance(step, int):
                self._watches.carry(step, seq, None)
            else:
                self._watches.watch_again(seq, step)


def contents(watches: Watches) -> tuple[object, ...]:
    return {**watches}, {**watches._seqs}, {*watches.asked}


def test_a_job_that_was_asked_for_twice_has_two_handles() -> None:
    watches = Watches()
    assert watches.ask(5) == 5
    watches.carry(5, 9, None)
    assert watches.ask(9) == 9
    assert {**watches} == {9: (5, 9)}
    watches.carry(9, 12, None)
    assert watches.end(12, None) == (5, 9)
    assert contents(watches)[:2] == ({}, {})


def test_who_asks_again_at_the_same_place_gets_the_same_handle() -> None:
    watches = Watches()
    assert [watches.ask(5), watches.ask(5)] == [5, 5]
    watches.keep(5)
    assert watches.ask(5) == 5
    watches.forget_unkept()
    assert {**watches} == {5: (5,)}


def test_what_nobody_keeps_is_forgotten() -> None:
    watches = Watches()
    watches.ask(5)
    watches.keep(5)
    watches.carry(5, 6, None)
    watches.ask(6)
    watches.forget_unkept()
    assert contents(watches) == ({6: (5,)}, {5: 6}, set())
    watches.forget(5)
    assert contents(watches) == ({}, {}, set())


def test_what_has_ended_needs_not_be_forgotten() -> None:
    watches = Watches()
    watches.ask(5)
    watches.end(5, None)
    watches.keep(5)
    watches.forget(5)
    assert contents(watches) == ({}, {}, set())


def test_steps_that_are_undone_leave_the_watches_as_they_were() -> None:
    for seed in range(50):
        random, watches = Random(seed), Watches()
        for seq in range(1, 6):
            watches.keep(watches.ask(seq))
        watches.carry(1, 10, None)
        watches.keep(watches.ask(10))
        before = contents(watches)
        steps = Steps(watches)
        for new in range(20, 20 + random.randrange(12)):
            if not watches:
                break
            seq = random.choice([*watches])
            if random.random() < 0.6:
                watches.carry(seq, new, steps)
            else:
                watches.end(seq, steps)
        steps.back()
        assert contents(watches) == before
