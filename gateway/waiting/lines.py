"""Wait lists: for each key (such as a queue), the numbers of its waiters in order of arrival.

Most lines have a single waiter, and one waiter can be in ten thousand lines, so a line of one is stored as just the
number.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")


class Lines(dict[K, int | list[int]]):
    """The line of each key: the number of its only waiter, or a list of numbers. Empty lines are not kept."""

    __slots__ = ()

    def add(self, key: K, number: int) -> None:
        """Add a waiter to this line, in the order of its number."""
        line = self.get(key)
        if line is None:
            self[key] = number
        elif isinstance(line, int):
            self[key] = [line, number] if line < number else [number, line]
        else:
            insort(line, number)

    def add_to_all(self, keys: Iterable[K], number: int) -> None:
        """Add a waiter to each of these lines: the same as `add`, without a call for each."""
        get = self.get
        for key in keys:
            line = get(key)
            if line is None:
                self[key] = number
            elif isinstance(line, int):
                self[key] = [line, number] if line < number else [number, line]
            elif line[-1] < number:             # most come last
                line.append(number)
            else:
                insort(line, number)

    def discard(self, key: K, number: int) -> None:
        """Remove a waiter from this line if it is in it."""
        line = self.get(key)
        if line is None:
            return
        if isinstance(line, int):
            if line == number:
                del self[key]
            return
        place = bisect_left(line, number)
        if place < len(line) and line[place] == number:
            del line[place]
            if len(line) == 1:
                self[key] = line[0]

    def remove(self, key: K, number: int) -> None:
        """Remove a waiter from this line."""
        line = self[key]
        if isinstance(line, int):
            assert line == number
            del self[key]
            return
        del line[bisect_left(line, number)]
        if len(line) == 1:
            self[key] = line[0]

    def has(self, key: K, number: int) -> bool:
        """Return whether a waiter is in this line."""
        line = self.get(key)
        if line is None or isinstance(line, int):
            return line == number
        place = bisect_left(line, number)
        return place < len(line) and line[place] == number

    def first(self, key: K) -> int | None:
        """Return the number of the waiter that has waited longest in this line, None if the line is empty."""
        line = self.get(key)
        return line if line is None or isinstance(line, int) else line[0]

    def numbers(self, key: K) -> list[int]:
        """Return the numbers in this line, in order of arrival."""
        line = self.get(key)
        return [] if line is None else [line] if isinstance(line, int) else list(line)

    def take(self, key: K) -> list[int]:
        """Remove a line; returns the numbers that were in it."""
        numbers = self.numbers(key)
        self.pop(key, None)
        return numbers

    def length(self, key: K) -> int:
        """Return how many waiters are in this line."""
        line = self.get(key)
        return 0 if line is None else 1 if isinstance(line, int) else len(line)
