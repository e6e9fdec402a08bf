"""The search through all states: breadth first, so that a counterexample is a shortest one.

Of a state that was seen only its hash is kept, 64 bits: of ten million states two are equal by chance once in 400,000
searches. A counterexample is found again from the hashes along its path, with the names of its nodes.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from tests.model.invariants import broken
from tests.model.rules import Label

CLOCK_STATES = 500              # the time is looked at after so many states


S = TypeVar("S")


class System(Protocol[S]):
    """A model: what may happen in a state, and which states are one."""

    def steps(self, state: S) -> Iterator[tuple[Label, S]]:
        """Yield all that may happen next, each with the state after it."""

    def normal(self, state: S) -> S:
        """Return the one state that stands for all that are no different from this one."""


class Outcome(NamedTuple):
    """The outcome of a search. `whole`: all states were seen."""

    states: int
    steps: int
    depth: int
    whole: bool
    seconds: float              # of processor time
    broken: str = ""            # an invariant, by its name
    path: tuple[Label, ...] = ()


def search(
    rules: System[S], first: S, invariants: tuple[Callable[[Any, S], bool], ...], *, seconds: float = float("inf"),
    report: Callable[[int, int, int], None] = lambda depth, states, waiting: None,
) -> Outcome:
    """Search all reachable states, for a limited time; ends at the first that breaks an invariant.

    `seconds`: of processor time. `report(depth, states, waiting)` is called at each new depth.
    """
    began = time.process_time()
    level = [rules.normal(first)]
    hashes, parents = array("q", [hash(level[0])]), array("Q", [0])
    seen = set(hashes)
    numbers, depth, steps, looked = [0], 0, 0, 0
    while level:
        report(depth, len(seen), len(level))
        following: list[S] = []
        following_numbers: list[int] = []
        for state, number in zip(level, numbers, strict=True):
            looked += 1
            if looked % CLOCK_STATES == 0 and time.process_time() - began > seconds:
                return Outcome(len(seen), steps, depth, False, time.process_time() - began)
            for _, after in rules.steps(state):
                steps += 1
                one = rules.normal(after)
                key = hash(one)
                if key in seen:
                    continue
                seen.add(key)
                hashes.append(key)
                parents.append(number)
                for name in broken(rules, invariants, after):
                    path = _path(rules, first, hashes, parents)
                    return Outcome(len(seen), steps, depth + 1, False, time.process_time() - began, name, path)
                following.append(one)
                following_numbers.append(len(hashes) - 1)
        level, numbers = following, following_numbers
        depth += bool(level)
    return Outcome(len(seen), steps, depth, True, time.process_time() - began)


def _path(rules: System[S], first: S, hashes: array[int], parents: array[int]) -> tuple[Label, ...]:
    """The steps to the state that was seen last, with the same names of nodes from the beginning to the end."""
    number, keys = len(hashes) - 1, []
    while number:
        keys.append(hashes[number])
        number = parents[number]
    state, path = first, []
    for key in reversed(keys):
        label, state = next(
            (label, after) for label, after in rules.steps(state)
            if hash(rules.normal(after)) == key)
        path.append(label)
    return tuple(path)


def follow(rules: System[S], first: S, path: tuple[Label, ...]) -> S | None:
    """Return the state after these steps, None if the rules forbid one of them."""
    state = first
    for wanted in path:
        after = next((after for label, after in rules.steps(state) if label == wanted), None)
        if after is None:
            return None
        state = after
    return state
