"""The levels: the time each has used, and how groups and levels are charged (spec/fair 3).

The times of levels and the priorities of groups are integer nanoseconds, as they are divided by weights; the time
that a group has used is integer microseconds.
"""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct, field

from sockpqd.core import limits
from sockpqd.core.limits import LEVELS_MAX

SECOND_US = 1_000_000
MS_NS = 1_000_000


class FairSettings(Struct, gc=False, frozen=True):
    """SCHED CONFIG: thresholds and cap in seconds."""

    thresholds_s: tuple[int, ...] = (0, 1, 10, 60, 300)
    cap_ms: int = 30_000
    multiplier: int = 2
    keep_ms: int = 600_000      # how long a group without unfinished jobs is remembered


def allowed(settings: FairSettings) -> bool:
    """Return whether the settings are valid: 2 to 16 thresholds rising from 0, all other numbers in their ranges."""
    thresholds_s = settings.thresholds_s
    rising = all(before < after for before, after in pairwise(thresholds_s))
    known = 2 <= len(thresholds_s) <= limits.LEVELS_MAX and thresholds_s[0] == 0
    return (
        known and rising and thresholds_s[-1] <= limits.LEVEL_S_MAX
        and 1000 <= settings.cap_ms <= limits.CAP_MS_MAX
        and 1 <= settings.multiplier <= limits.MULTIPLIER_MAX
        and 0 <= settings.keep_ms <= limits.GROUP_KEEP_MS_MAX
    )


class GroupAccount(Struct, gc=False, eq=False):
    """One group: the time it has used, its place, and the number of its jobs in queues of other names."""

    name: str
    used_us: int = 0
    level: int = 0
    priority_ns: int = 0        # the group with the smallest is next in its level
    turn: int = 0               # among equals: the number of its last choice or offer
    offered: bool = False       # it has a place in its level
    idle_ms: int | None = None  # since when it has had no unfinished job
    waiting: int = 0            # its READY and DELAYED jobs in queues of other names
    deferred: int = 0           # the DELAYED ones of them
    running: int = 0            # its RUNNING jobs in queues of other names
    open: bool = True           # it may have jobs: see gates.py
    queues: dict[str, None] = field(default_factory=dict)       # queues of other names in which it has READY jobs
    ranked: dict[str, None] = field(default_factory=dict)       # queues with many groups where it can hand out a job,
    ranked_as: tuple[int, tuple[int, int, str]] | None = None   # and its level and key there; None: it has none
    wide: bool = False          # these are too many: they list it instead (first_jobs.py)

    @property
    def key(self) -> tuple[int, int, str]:
        """The order in which the groups of a level are chosen."""
        return self.priority_ns, self.turn, self.name

    @property
    def moves(self) -> int:
        """The number of queues in which it is ranked again when it moves in its level, opens or closes."""
        return 0 if self.wide else len(self.ranked)


class Levels(Struct, gc=False, eq=False):
    """The time that each level has used; sized for the greatest number of levels."""

    settings: FairSettings = FairSettings()
    time_ns: list[int] = field(default_factory=lambda: [0] * LEVELS_MAX)
    least_ns: list[int | None] = field(default_factory=lambda: [None] * LEVELS_MAX)     # least priority chosen last
    selected: list[int] = field(default_factory=lambda: [0] * LEVELS_MAX)
    standing: list[int] = field(default_factory=lambda: [0] * LEVELS_MAX)               # groups of each level

    def in_use(self) -> list[int]:
        """Return the levels in use: the levels of the settings, and any others that still have a group."""
        count = len(self.settings.thresholds_s)
        return [level for level in range(LEVELS_MAX) if level < count or self.standing[level]]

    def level0_ns(self) -> int:
        """Return the time of level 0 from which the targets of all levels follow."""
        times, multiplier, count = self.time_ns, self.settings.multiplier, len(self.settings.thresholds_s)
        most = 0
        for level in self.in_use() if any(self.standing[count:]) else range(count):
            scaled = times[level] * multiplier**level
            if scaled > most:
                most = scaled
        return most

    def before(self, one: int, other: int, level0_ns: int) -> bool:
        """Return whether level `one` lags further behind its target than `other`; if equal, the lower level does."""
        one_ns, other_ns, multiplier = self.time_ns[one], self.time_ns[other], self.settings.multiplier
        left = level0_ns // multiplier**one * other_ns if one_ns and other_ns else int(one_ns > 0)
        right = level0_ns // multiplier**other * one_ns if one_ns and other_ns else int(other_ns > 0)
        return left > right or (left == right and one < other)

    def refill(self, level: int) -> None:
        """Bring a level that has a group again up to its target, so that it gets no burst for the time it was empty."""
        self.time_ns[level] = self.level0_ns() // self.settings.multiplier**level

    def charge(self, account: GroupAccount, run_us: int, weight: int = 1) -> None:
        """Charge the group `run_us`, which may move it to a higher level; each level it passes is charged its part.

        The level follows from the full time used, the group's priority from the time divided by `weight`.
        """
        thresholds = self.settings.thresholds_s
        account.used_us += run_us
        old, new = account.level, len(thresholds) - 1
        while thresholds[new] * SECOND_US > account.used_us:
            new -= 1
        own_ns = 1000 * run_us // weight
        rest_ns = min(own_ns, self.settings.cap_ms * MS_NS // weight)
        if new == old:
            self.time_ns[old] += rest_ns
            account.priority_ns += own_ns
            return
        for level in range(old, new):
            part_ns = min((thresholds[level + 1] - thresholds[level]) * SECOND_US * 1000, rest_ns)
            self.time_ns[level] += part_ns
            rest_ns -= part_ns
            own_ns -= part_ns
        self.time_ns[new] += rest_ns
        least = self.least_ns[new]
        if least is None:
            least = self.least_ns[new] = 1000 * account.used_us
        account.priority_ns = least + own_ns
        self.standing[old] -= 1
        self.standing[new] += 1
        account.level = new
