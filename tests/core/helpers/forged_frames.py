"""Snapshots made by hand: the frames of a small right one."""

from __future__ import annotations

from typing import Any

from sockpqd.core import Then

LATER = Then.LATER.value
HEAD: list[Any] = [
    "head", 9, 1, "n1", 1000, b"id", LATER, [["n1", 1], ["n2", 2]], 2, 10, 20, 5,
    [["n1", "h:1", "h:2"], ["n2", "", ""]], None, 3, False, 0, 7, 1,
]
WAITING: list[Any] = ["waiting", "q", [[0, 0, 3, None, b"a", 0, None, None], [0, 0, 4, "x", b"b", 0, None, None]]]
RUNNING: list[Any] = [
    "running",
    [
        [1, "q", 0, 1, None, b"c", 1500, LATER, False, 0, 1, None, None, None, None, 0, 40, 0],
        [2, "r", 0, 2, "x", b"d", None, LATER, True, 0, 1, None, None, None, None, 0, None, 0],
    ],
]
END: list[Any] = ["end", 2, 2, 0, 0]


def changed(frame: list[Any], at: int, value: object) -> list[Any]:
    """Return the frame with another value at one place."""
    return [*frame[:at], value, *frame[at + 1 :]]


def waiting(*rows: list[object], queue: object = "q") -> list[object]:
    """Return a frame of waiting jobs with this priority, seq, item and data."""
    return ["waiting", queue, [[row[0], 0, *row[1:], 0, None, None] for row in rows]]


def running(at: int, value: object) -> list[object]:
    """Return a frame with one running job that has another value at one place."""
    return ["running", [changed(RUNNING[1][0], at, value)]]
