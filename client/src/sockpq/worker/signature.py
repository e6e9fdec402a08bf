"""Signatures: calls of tasks as values, which are combined into canvases. No IO.

    fetch.s(1) >> (parse.s() | index.s()) >> report.s()

`>>` is a chain: its right side runs after its left side. `|` is a group: its members run in parallel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from sockpq._protocol.arguments import Bodies
from sockpq._protocol.command import Command
from sockpq.errors import BadArguments
from sockpq.model import Stored
from sockpq.worker.policy import Policy


class Parents(NamedTuple):
    """The steps directly before a step, as stored in its job, by the numbers of their jobs.

    `optional`: for each, whether the step runs even if that one has failed. `taken`: the function gets their results;
    `joined`: as one list.
    """

    numbers: list[int]
    optional: list[bool]
    taken: bool
    joined: bool


class Called(Protocol):
    """The part of a task, with the options of one call, that signatures need."""

    @property
    def name(self) -> str:
        """The name of the task."""
        ...

    @property
    def queue(self) -> str:
        """The queue of the task."""
        ...

    @property
    def policy(self) -> Policy:
        """The policy of the task."""
        ...

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any], takes_result: bool) -> None:
        """Raise TypeError when the function does not take these arguments, with a result before them."""
        ...

    def command(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], bodies: Bodies, parents: Parents | None, **options: Any,
    ) -> Command[Stored]:
        """Return the PUT of a call."""
        ...


class Step(NamedTuple):
    """One call in a canvas. `parents`: the indexes of the steps directly before it; `joined`: they are a group."""

    call: Called
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    immutable: bool = False
    optional: bool = False
    parents: tuple[int, ...] = ()
    joined: bool = False

    @property
    def takes_result(self) -> bool:
        """True if the function gets the results of its parents."""
        return bool(self.parents) and not self.immutable


class Canvas:
    """Calls that belong together: `steps`, of which `first` come before all others and `last` after them.

    Every mention of a signature is a step of its own. A canvas never changes; operators create new ones.
    """

    def __init__(
        self, steps: tuple[Step, ...], first: tuple[int, ...], last: tuple[int, ...], joined: bool = False,
    ) -> None:
        """`joined`: the steps after it get a list of results, even of a single one."""
        self.steps = steps
        self.first = first
        self.last = last
        self.joined = joined

    def __rshift__(self, other: Canvas) -> Canvas:
        """Return the chain: `other` begins when all of this is done."""
        if not isinstance(other, Canvas):
            return NotImplemented
        steps = _moved(other.steps, len(self.steps))
        for index in other.first:
            steps[index] = steps[index]._replace(parents=self.last, joined=self.joined)
        last = tuple(index + len(self.steps) for index in other.last)
        return Canvas((*self.steps, *steps), self.first, last, other.joined)

    def __or__(self, other: Canvas) -> Canvas:
        """Return a group of both."""
        if not isinstance(other, Canvas):
            return NotImplemented
        return group(self, other)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {', '.join(step.call.name for step in self.steps)}>"


class Signature(Canvas):
    """One call of a task, of `task.s(..)`: in a chain its function gets the previous result as its first argument.

    `task.si(..)` (immutable) takes no result.
    """

    def __init__(self, step: Step) -> None:
        super().__init__((step,), (0,), (0,))

    @property
    def step(self) -> Step:
        """The only step of this canvas."""
        return self.steps[0]

    def continue_on_failure(self) -> Signature:
        """Return the same call as one whose failure prevents no later step: later steps get None as its result."""
        return Signature(self.step._replace(optional=True))


def group(*members: Canvas | Iterable[Canvas]) -> Canvas:
    """Return a canvas whose members run in parallel: `group(a, b)`, or `group(resize.s(n) for n in names)`.

    The step after it gets the list of their results, in order. Raises BadArguments without members.
    """
    parts = [part for member in members for part in ([member] if isinstance(member, Canvas) else member)]
    if not parts:
        raise BadArguments("a group needs members")
    steps: list[Step] = []
    first: list[int] = []
    last: list[int] = []
    for part in parts:
        first += [index + len(steps) for index in part.first]
        last += [index + len(steps) for index in part.last]
        steps += _moved(part.steps, len(steps))
    return Canvas(tuple(steps), tuple(first), tuple(last), joined=True)


def chain(*links: Canvas | Iterable[Canvas]) -> Canvas:
    """Return a canvas whose links run one after another, `a >> b` for `chain(a, b)`. Raises BadArguments for none."""
    parts = [part for link in links for part in ([link] if isinstance(link, Canvas) else link)]
    if not parts:
        raise BadArguments("a chain needs links")
    whole = parts[0]
    for part in parts[1:]:
        whole = whole >> part
    return whole


def _moved(steps: tuple[Step, ...], by: int) -> list[Step]:
    """Return the steps with all indexes increased by `by`."""
    return [step._replace(parents=tuple(parent + by for parent in step.parents)) for step in steps]
