"""The settings of groups, and the ends of their pauses (spec/fair 7). They exist whether groups are in use or not."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace
from sortedcontainers import SortedDict

from sockpqd.core import limits
from sockpqd.core.store.timer_index import TimerIndex


class GroupSettings(Struct, gc=False, frozen=True):
    """The settings of one group; 0 means no limit."""

    limit: int = 0              # RUNNING jobs
    rate: int = 0               # hand-outs
    per_ms: int = 0             # the period of `rate`
    weight: int = 1
    paused: bool = False
    pause_ends_ms: int = 0      # when the pause ends; 0: only by GROUP RESUME


NO_SETTINGS = GroupSettings()


class GroupTable:
    """The groups that have settings, by name."""

    __slots__ = ("by_name", "pauses")

    def __init__(self) -> None:
        self.by_name: SortedDict = SortedDict()                 # group -> GroupSettings
        self.pauses: TimerIndex[tuple[int, str]] = TimerIndex(limits.DUE_BITS)      # (end, group)

    def of(self, group: str) -> GroupSettings:
        """Return the settings of the group."""
        found: GroupSettings = self.by_name.get(group, NO_SETTINGS)
        return found

    def set(self, group: str, settings: GroupSettings) -> None:
        """Give the group these settings; without any it is not listed."""
        before_ms = self.of(group).pause_ends_ms
        if before_ms != settings.pause_ends_ms:
            if before_ms:
                self.pauses.remove((before_ms, group))
            if settings.pause_ends_ms:
                self.pauses.add((settings.pause_ends_ms, group))
        if settings == NO_SETTINGS:
            self.by_name.pop(group, None)
        else:
            self.by_name[group] = settings

    def full(self, group: str) -> bool:
        """Return whether the table is full, so that a group without settings cannot be given any."""
        return len(self.by_name) >= limits.GROUPS_MAX and group not in self.by_name

    def end_pause(self, group: str) -> None:
        """End the pause of a paused group."""
        self.set(group, replace(self.of(group), paused=False, pause_ends_ms=0))
