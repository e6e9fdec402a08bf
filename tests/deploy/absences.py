"""Finds out from systemd's own lines when the daemons of nodes were away, and whether two were at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

LINE = re.compile(r"^([\d.]+) \S+ systemd\[1\]: (Stopping|Started) sockpqd\.service", re.MULTILINE)


class Absence(NamedTuple):
    """The time for which a node was not ready, in Unix time; the hosts have one clock."""

    away: float
    back: float
    name: str


def absence_of(name: str, lines: str) -> Absence:
    """Read the journal of a node, in the form `short-unix`, that was restarted exactly once; else AssertionError."""
    told = LINE.findall(lines)
    assert [word for _, word in told] == ["Stopping", "Started"], lines
    return Absence(float(told[0][0]), float(told[1][0]), name)


def at_once(absences: Sequence[Absence]) -> list[tuple[str, str]]:
    """Return the pairs of nodes of which the second was gone before the first was back."""
    return [(one.name, other.name) for one, other in pairwise(sorted(absences)) if other.away < one.back]
