"""Counts hand-outs of groups in windows of replicated time: RATE, GROUPRATE and SLEEP (spec/fair 7).

A period is divided into sixteen slots, and a hand-out is allowed while those in the current slot and in the sixteen
before are fewer than the rate. So there are never more in any time as long as the period, wherever it begins.
"""

from __future__ import annotations

from msgspec import Struct, field

from sockpqd.core import limits
from sockpqd.core.store.timer_index import NOTHING_MS, TimerIndex

SLOTS = 16          # of a period
ANY_QUEUE = ""      # instead of a queue, for the rate of a group in all queues


class RateWindow(Struct, gc=False, eq=False):
    """The recent hand-outs of a group.

    `due_ms`: when the timer checks it again, to open or to forget it.
    """

    slot_ms: int
    slots: list[tuple[int, int]] = field(default_factory=list)      # (number of the slot, hand-outs), ascending
    closed: bool = False            # nothing more is handed out before `due_ms`
    sleep_until_ms: int = 0         # nor before this time; 0: the group does not sleep
    due_ms: int = 0

    def resize(self, slot_ms: int, now_ms: int) -> None:
        """Change the length of the slots. Each hand-out is counted at the end of its old slot."""
        if slot_ms == self.slot_ms:
            return
        self.trim(now_ms)
        counts: dict[int, int] = {}
        for slot, count in self.slots:
            moved = ((slot + 1) * self.slot_ms - 1) // slot_ms
            counts[moved] = counts.get(moved, 0) + count
        self.slots = sorted(counts.items())
        self.slot_ms = slot_ms

    def trim(self, now_ms: int) -> None:
        """Forget the slots that are too old for any window that includes the current one."""
        first = now_ms // self.slot_ms - SLOTS
        self.slots = [one for one in self.slots if one[0] >= first]

    def add(self, now_ms: int) -> None:
        """Count a hand-out at this time, in replicated milliseconds."""
        slot = now_ms // self.slot_ms
        if self.slots and self.slots[-1][0] >= slot:
            last, count = self.slots[-1]
            self.slots[-1] = last, count + 1
        else:
            self.slots.append((slot, 1))

    def opens_ms(self, rate: int, now_ms: int) -> int:
        """Return the time from which another hand-out is allowed; the current time or earlier if it is allowed now."""
        count = sum([count for _, count in self.slots])
        opens_ms = self.sleep_until_ms
        for slot, hand_outs in self.slots:
            if not rate or count < rate:
                break
            count -= hand_outs
            opens_ms = max(opens_ms, (slot + SLOTS + 1) * self.slot_ms)
        return max(opens_ms, now_ms)

    def over_ms(self) -> int:
        """Return the time from which the window no longer limits anything."""
        return max(self.sleep_until_ms, (self.slots[-1][0] + SLOTS + 1) * self.slot_ms if self.slots else 0)


def slot_of(per_ms: int) -> int:
    """Return the length of a slot in ms for a rate per `per_ms`."""
    return max(1, -(-per_ms // SLOTS))


class RateWindows:
    """The windows of groups, by queue (ANY_QUEUE: of all together) and group."""

    __slots__ = ("asleep", "by_queue", "sleeping", "timers")

    def __init__(self) -> None:
        self.by_queue: dict[str, dict[str, RateWindow]] = {}
        self.sleeping = 0           # number of windows of sleeping groups,
        self.asleep: dict[str, dict[str, None]] = {}        # and the queues in which each group sleeps
        self.timers: TimerIndex[tuple[int, tuple[str, str]]] = TimerIndex(limits.DUE_BITS)

    def find(self, queue: str, group: str) -> RateWindow | None:
        """Return the window of the group in the queue; None if it has had no recent hand-outs."""
        windows = self.by_queue.get(queue)
        return None if windows is None else windows.get(group)

    def get(self, queue: str, group: str, per_ms: int, now_ms: int) -> RateWindow:
        """Return the window of the group in the queue, created or resized for a rate per `per_ms` if necessary."""
        windows = self.by_queue.setdefault(queue, {})
        window = windows.get(group)
        if window is None:
            window = windows[group] = RateWindow(slot_of(per_ms))
        elif per_ms:
            window.resize(slot_of(per_ms), now_ms)
        return window

    def has_room(self, queue: str, group: str) -> bool:
        """Return whether one more group may sleep: this one, in this queue."""
        windows = self.by_queue.get(queue, {})
        window = windows.get(group)
        if window is None and len(windows) >= limits.GROUPS_RELISTED_MAX:
            return False
        return (window is not None and window.sleep_until_ms > 0) or self.sleeping < limits.GROUPS_MAX

    def set(self, queue: str, group: str, window: RateWindow | None) -> None:
        """Set the window of the group in the queue; None removes it."""
        windows = self.by_queue.setdefault(queue, {})
        before = windows.pop(group, None)
        if before is not None:
            self.put_to_sleep(queue, group, before, 0)
            if before.due_ms:
                self.timers.remove((before.due_ms, (queue, group)))
        if window is not None:
            windows[group] = window
            if window.sleep_until_ms:
                until_ms, window.sleep_until_ms = window.sleep_until_ms, 0
                self.put_to_sleep(queue, group, window, until_ms)
            if window.due_ms:
                self.timers.add((window.due_ms, (queue, group)))
        if not windows:
            del self.by_queue[queue]

    def put_to_sleep(self, queue: str, group: str, window: RateWindow, until_ms: int) -> None:
        """Let this window of the group in the queue sleep until `until_ms`; 0 ends its sleep."""
        before, now = window.sleep_until_ms > 0, until_ms > 0
        window.sleep_until_ms = until_ms
        if before == now:
            return
        self.sleeping += now - before
        if now:
            self.asleep.setdefault(group, {})[queue] = None
            return
        queues = self.asleep[group]
        del queues[queue]
        if not queues:
            del self.asleep[group]

    def schedule(self, queue: str, group: str, rate: int, now_ms: int) -> None:
        """Open or close the window according to its hand-outs, and set its timer; drop it if it is no longer needed."""
        window = self.by_queue[queue][group]
        window.trim(now_ms)
        if 0 < window.sleep_until_ms <= now_ms:
            self.put_to_sleep(queue, group, window, 0)
        opens_ms = window.opens_ms(rate, now_ms)
        window.closed = opens_ms > now_ms
        due_ms = opens_ms if window.closed else window.over_ms()
        if due_ms <= now_ms:
            self.set(queue, group, None)
            return
        if window.closed or not window.due_ms or window.due_ms <= now_ms:
            # An open window keeps its timer, although it may fire early: so most hand-outs need not move it.
            if window.due_ms:
                self.timers.remove((window.due_ms, (queue, group)))
            window.due_ms = due_ms
            self.timers.add((due_ms, (queue, group)))

    def first_due(self, now_ms: int) -> tuple[str, str] | None:
        """Return the queue and group of a window that is due; None: there is none."""
        due = self.timers.first_due(now_ms)
        return None if due is None else due[1]

    @property
    def first_ms(self) -> int:
        """The time of the first timer."""
        return self.timers.first_ms

    def next_due_ms(self) -> int | None:
        """Return the time of the next check for due windows; None: there are no timers."""
        return None if self.timers.first_ms == NOTHING_MS else self.timers.next_due_ms()
