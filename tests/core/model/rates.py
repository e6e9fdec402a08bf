"""Rates of groups in the reference model: every hand-out that may still count, with its time (spec/fair 7)."""

from __future__ import annotations

from dataclasses import dataclass, field

SLOTS = 16
LONGEST_MS = (2**32 - 1) * 1000


@dataclass
class Rate:
    """The hand-outs of a group, from one queue or from all."""

    slot_ms: int
    given_ms: list[int] = field(default_factory=list)
    sleep_until_ms: int = 0
    looked_ms: int = 0          # when it was last looked at; it is as it was then

    def last_ms(self, at_ms: int) -> int:
        """Return the last moment at which a hand-out of this time counts."""
        return (at_ms // self.slot_ms + SLOTS + 1) * self.slot_ms - 1

    def opens_ms(self, rate: int, clock_ms: int) -> int:
        """Return the first moment, from now on, at which another one is allowed."""
        ends = sorted(self.last_ms(at_ms) + 1 for at_ms in self.given_ms if self.last_ms(at_ms) >= clock_ms)
        return max(self.sleep_until_ms, clock_ms, ends[-rate] if rate and len(ends) >= rate else 0)

    def over_ms(self) -> int:
        """Return when nothing of it counts any more."""
        return max([self.sleep_until_ms, *(self.last_ms(at_ms) + 1 for at_ms in self.given_ms)])


class Rates:
    """The rates of all groups, by queue ("": of all queues) and group."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Rate] = {}

    def pass_time(self, clock_ms: int) -> None:
        """Advance all rates: at the beginning of an entry, except one with a new leader."""
        for rate in self.known.values():
            rate.looked_ms = clock_ms
        self._forget()

    def _forget(self) -> None:
        self.known = {name: one for name, one in self.known.items() if one.over_ms() > one.looked_ms}

    def of(self, queue: str, group: str, per_ms: int, clock_ms: int) -> Rate:
        """Return the rate with a period; 0: whatever it has."""
        slot_ms = max(1, (per_ms + SLOTS - 1) // SLOTS)
        rate = self.known.setdefault((queue, group), Rate(slot_ms))
        rate.looked_ms = clock_ms
        if per_ms and slot_ms != rate.slot_ms:      # each counts as one at the end of its old slot
            given_ms = [at_ms for at_ms in rate.given_ms if rate.last_ms(at_ms) >= clock_ms]
            rate.given_ms = [(at_ms // rate.slot_ms + 1) * rate.slot_ms - 1 for at_ms in given_ms]
            rate.slot_ms = slot_ms
        return rate

    def resize(self, queue: str, group: str | None, per_ms: int, clock_ms: int) -> None:
        """Change the period of the rate of the group (None: of each group of the queue)."""
        for known in [name for name in self.known if name[0] == queue and group in (None, name[1])]:
            self.of(*known, per_ms, clock_ms)
        self._forget()

    def give(self, queue: str, group: str, per_ms: int, clock_ms: int) -> None:
        """Count a hand-out at `clock_ms` for a rate per `per_ms`."""
        rate = self.of(queue, group, per_ms, clock_ms)
        rate.given_ms.append(max([clock_ms, *rate.given_ms]))

    def sleep(self, queue: str, group: str, per_ms: int, sleep_ms: int, clock_ms: int) -> None:
        """Allow no hand-outs for this long."""
        rate = self.of(queue, group, per_ms, clock_ms)
        rate.sleep_until_ms = max(rate.sleep_until_ms, clock_ms + min(max(sleep_ms, 0), LONGEST_MS))
        self._forget()

    def wake(self, group: str, clock_ms: int) -> bool:
        """End the sleep of the group in all queues; returns whether it slept in any."""
        asleep = [one for (_, of), one in self.known.items() if of == group and one.sleep_until_ms > clock_ms]
        for one in asleep:
            one.sleep_until_ms, one.looked_ms = 0, clock_ms
        self._forget()
        return bool(asleep)

    def is_open(self, queue: str, group: str, rate: int) -> bool:
        """Return whether another hand-out is allowed."""
        known = self.known.get((queue, group))
        return known is None or known.opens_ms(rate, known.looked_ms) <= known.looked_ms
