"""Snapshots made by hand: the frames of a small right one, in today's format and in the old ones."""

from __future__ import annotations

from typing import Any

from core import Then

LATER = Then.LATER.value
HEAD_1: list[Any] = ["head", 9, 1, "n1", 1000, b"id", LATER, [["n1", 1], ["n2", 2]], 2, 10, 20, 5]
HEAD_4: list[Any] = [*HEAD_1, [["n1", "h:1", "h:2"], ["n2", "", ""]], None, 3, False]
HEAD: list[Any] = [*HEAD_4, 0]
UPGRADED: list[Any] = [*HEAD_4, 1000]       # what is made of an old one: its jobs are as old as its clock

# Until format 3.
WAITING_3: list[Any] = ["waiting", "q", [[0, 3, None, b"a"], [0, 4, "x", b"b"]]]
RUNNING_3: list[Any] = [
    "running",
    [[1, "q", 0, 1, None, b"c", 1500, LATER, False], [2, "r", 0, 2, "x", b"d", None, LATER, True]],
]
END_3: list[Any] = ["end", 2, 2]

# What is made of them today: no job has a time or anything rare; those that run were handed out once.
WAITING: list[Any] = ["waiting", "q", [[0, 0, 3, None, b"a", 0, None, None], [0, 0, 4, "x", b"b", 0, None, None]]]
RUNNING: list[Any] = ["running", [[*row, 0, 1, None, None, None] for row in RUNNING_3[1]]]
END: list[Any] = [*END_3, 0]

# The same as bytes on a disk. Never edited: a new format gets a new one beside it.
FORMAT_1 = bytes.fromhex(
    "505152414654310a00000001000000229ca4686561640901a26e31cd03e8c4026964019292a26e310192a26e3202020a1405"
    "0000001b93a777616974696e67a17192940003c0c40161940004a178c401620000002792a772756e6e696e67929901a17100"
    "01c0c40163cd05dc01c29902a1720002a178c40164c001c30000000793a3656e64020294df246f650ceba9ca54fef6e3ae6c"
    "52a6511b6d2e5dae64b049246cdcd7a8d8"
)
FORMAT_2 = bytes.fromhex(
    "505152414654310a000000020000003adc0010a4686561640901a26e31cd03e8c4026964019292a26e310192a26e3202020a"
    "14059293a26e31a3683a31a3683a3293a26e32a0a0c003c20000001b93a777616974696e67a17192940003c0c40161940004"
    "a178c401620000002792a772756e6e696e67929901a1710001c0c40163cd05dc01c29902a1720002a178c40164c001c30000"
    "000793a3656e640202e73fd8f4af343ec7210d7bbb47e198cd48e28722c06a451ff4d624886b99151e"
)


def changed(frame: list[Any], at: int, value: object) -> list[Any]:
    """The frame with another value at one place."""
    return [*frame[:at], value, *frame[at + 1 :]]


def waiting(*rows: list[object], queue: object = "q") -> list[object]:
    """A frame of waiting jobs, of which priority, seq, item and data are given."""
    return ["waiting", queue, [[row[0], 0, *row[1:], 0, None, None] for row in rows]]


def running(at: int, value: object) -> list[object]:
    """A frame with one running job that has another value at one place."""
    return ["running", [changed(RUNNING[1][0], at, value)]]
